//! Reading through the layers.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::error::{DocumentsError, Unreadable};
use super::{Documents, Level, levels};
use crate::domain::document::{Document, DocumentPath, Layer, ResolvedDocument};
use crate::domain::scope::Scope;

/// Hex digits of the content hash in the ETag of a file or bundled document: 64 bits.
const ETAG_HASH_DIGITS: usize = 16;

/// A document as one layer holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerDocument {
    /// The layer.
    pub layer: Layer,
    /// Changes whenever the text does: `<layer>-<version or hash>`.
    pub etag: String,
    /// The text, or why the file cannot be used.
    pub content: Result<Arc<str>, Unreadable>,
    /// When it was last written; unknown for bundled documents.
    pub updated_at: Option<Timestamp>,
}

impl LayerDocument {
    /// A text without versions, known by its [`digest`].
    pub(super) fn digested(layer: Layer, text: Arc<str>, digest: &str, updated_at: Option<Timestamp>) -> Self {
        Self { layer, etag: format!("{layer}-{digest}"), content: Ok(text), updated_at }
    }

    /// A file that cannot be used.
    pub(super) fn unreadable(layer: Layer, error: Unreadable) -> Self {
        Self { layer, etag: format!("{layer}-unreadable"), content: Err(error), updated_at: None }
    }

    fn stored(layer: Layer, document: Document) -> (DocumentPath, Self) {
        let Document { path, text, version, updated_at, .. } = document;
        let etag = stored_etag(layer, version);
        (path, Self { layer, etag, content: Ok(text.into()), updated_at: Some(updated_at) })
    }

    /// Length of the text, bytes; 0 for a file that cannot be used.
    pub fn bytes(&self) -> u64 {
        self.content.as_ref().map_or(0, |text| text.len() as u64)
    }
}

/// What stands in the ETag of a text that has no version.
pub(super) fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..ETAG_HASH_DIGITS].to_owned()
}

pub(super) fn stored_etag(layer: Layer, version: u64) -> String {
    format!("{layer}-{version}")
}

/// The state of a scope, its tenant's layer and both their folders. Equal revisions: the same documents. Comparable
/// within one run of one hub only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    stored: Vec<u64>,
    folder: Vec<u64>,
}

impl Revision {
    /// Of the folders, innermost first.
    pub(super) fn folder(&self) -> &[u64] {
        &self.folder
    }
}

/// All documents of a scope under a prefix.
#[derive(Debug, Clone)]
pub struct Assembled {
    /// The state before they were read.
    pub revision: Revision,
    /// By path in byte order; the layers that hold it, innermost first.
    pub documents: Vec<(DocumentPath, Vec<LayerDocument>)>,
    /// The innermost layer that may hold further documents under the prefix, and why nobody knows: whatever no layer above
    /// it holds is neither here nor absent.
    pub blind: Option<(Layer, Unreadable)>,
}

impl Documents {
    /// The document at `path`, from the innermost layer that holds it.
    ///
    /// # Errors
    /// When that layer's file cannot be read, or the store does not answer.
    pub async fn resolve(
        &self,
        scope: &Scope,
        path: &DocumentPath,
    ) -> Result<Option<ResolvedDocument>, DocumentsError> {
        let Some(found) = self.winner(scope, path).await? else { return Ok(None) };
        let LayerDocument { layer, etag, content, .. } = found;
        match content {
            Ok(text) => Ok(Some(ResolvedDocument { layer, path: path.clone(), text: text.to_string(), etag })),
            Err(error) => Err(DocumentsError::Unreadable { path: path.clone(), layer, error }),
        }
    }

    /// The innermost layer that holds a path, readable or not.
    pub(super) async fn winner(
        &self,
        scope: &Scope,
        path: &DocumentPath,
    ) -> Result<Option<LayerDocument>, DocumentsError> {
        let folder = self.folder_snapshot();
        for level in levels(scope) {
            if let Some(held) = folder.as_ref().and_then(|folder| folder.held(&level.scope, level.folder, path)) {
                return Ok(Some(held));
            }
            if let Some(document) = self.inner.store.get(&level.scope, path).await? {
                return Ok(Some(LayerDocument::stored(level.stored, document).1));
            }
        }
        Ok(self.inner.bundled.get(path).cloned())
    }

    /// Every layer that holds a path, innermost first: the first one wins.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn layers(&self, scope: &Scope, path: &DocumentPath) -> Result<Vec<LayerDocument>, DocumentsError> {
        let folder = self.folder_snapshot();
        let mut found = Vec::new();
        for level in levels(scope) {
            found.extend(folder.as_ref().and_then(|folder| folder.held(&level.scope, level.folder, path)));
            let stored = self.inner.store.get(&level.scope, path).await?;
            found.extend(stored.map(|document| LayerDocument::stored(level.stored, document).1));
        }
        found.extend(self.inner.bundled.get(path).cloned());
        Ok(found)
    }

    /// All documents under `prefix`, with every layer that holds them. They are read one layer after the other: they stood
    /// together if [`Self::revision`] still gives the same revision afterwards.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn all(&self, scope: &Scope, prefix: &str) -> Result<Assembled, DocumentsError> {
        let folder = self.folder_snapshot();
        let levels = levels(scope);
        let revision = self.revision_with(&levels, folder.as_deref()).await?;
        let mut found: BTreeMap<DocumentPath, Vec<LayerDocument>> = BTreeMap::new();
        for level in &levels {
            if let Some(folder) = &folder {
                for (path, document) in folder.under(&level.scope, level.folder, prefix) {
                    found.entry(path.clone()).or_default().push(document);
                }
            }
            for document in self.inner.store.read_all(&level.scope, prefix).await? {
                let (path, document) = LayerDocument::stored(level.stored, document);
                found.entry(path).or_default().push(document);
            }
        }
        for (path, document) in self.inner.bundled.under(prefix) {
            found.entry(path.clone()).or_default().push(document.clone());
        }
        if let Some(folder) = &folder {
            for (path, layers) in &mut found {
                for level in &levels {
                    folder.blind(&level.scope, path).into_iter().for_each(|error| {
                        layers.push(LayerDocument::unreadable(level.folder, error.clone()));
                    });
                }
                layers.sort_by_key(|document| document.layer);
            }
        }
        let blind = folder.as_ref().and_then(|folder| {
            let of = |level: &Level| Some((level.folder, folder.blind_under(&level.scope, prefix)?.clone()));
            levels.iter().find_map(of)
        });
        Ok(Assembled { revision, documents: found.into_iter().collect(), blind })
    }

    /// The state of everything that `scope` sees but the bundled documents.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn revision(&self, scope: &Scope) -> Result<Revision, DocumentsError> {
        self.revision_with(&levels(scope), self.folder_snapshot().as_deref()).await
    }

    async fn revision_with(
        &self,
        levels: &[Level],
        folder: Option<&super::folder::Snapshot>,
    ) -> Result<Revision, DocumentsError> {
        let mut revision = Revision { stored: Vec::new(), folder: Vec::new() };
        for level in levels {
            revision.stored.push(self.inner.store.revision(&level.scope).await?);
            revision.folder.push(folder.map_or(0, |folder| folder.revision(&level.scope)));
        }
        Ok(revision)
    }

    pub(super) fn folder_snapshot(&self) -> Option<Arc<super::folder::Snapshot>> {
        self.inner.folder.as_ref().map(|folder| folder.snapshot())
    }
}
