//! Merged, paged listings.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::cascade::{LayerDocument, stored_etag};
use super::error::DocumentsError;
use super::{Documents, levels};
use crate::domain::document::{DocumentPath, Layer};
use crate::domain::scope::Scope;
use crate::store::DocumentMeta;

/// Most documents of one page.
pub const MAX_PAGE: usize = 1000;

/// What a listing says of a document: of the layer that wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentEntry {
    /// Its path.
    #[schema(value_type = String)]
    pub path: DocumentPath,
    /// The layer that wins.
    pub layer: Layer,
    /// Its ETag, without quotes.
    pub etag: String,
    /// Length of its text, bytes.
    pub bytes: u64,
    /// When it was last written (RFC 3339); not there for bundled documents.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl DocumentEntry {
    fn of(path: &DocumentPath, document: &LayerDocument) -> Self {
        Self {
            path: path.clone(),
            layer: document.layer,
            etag: document.etag.clone(),
            bytes: document.bytes(),
            updated_at: document.updated_at,
            error: document.content.as_ref().err().map(ToString::to_string),
        }
    }

    fn stored(layer: Layer, meta: DocumentMeta) -> Self {
        Self {
            path: meta.path,
            layer,
            etag: stored_etag(layer, meta.version),
            bytes: meta.bytes,
            updated_at: Some(meta.updated_at),
            error: None,
        }
    }
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentPage {
    /// By path in byte order.
    pub documents: Vec<DocumentEntry>,
    /// Where the next page starts; not there on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl Documents {
    /// Documents whose path starts with `prefix`, each once, from `cursor` on, at most `limit` (1 to [`MAX_PAGE`]).
    ///
    /// A page is not a snapshot: what is written between two pages may be in neither.
    ///
    /// # Errors
    /// A cursor that no listing gave, or a store that does not answer.
    pub async fn list(
        &self,
        scope: &Scope,
        prefix: &str,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<DocumentPage, DocumentsError> {
        let after = cursor.map(DocumentPath::parse).transpose().map_err(|_| DocumentsError::BadCursor)?;
        let limit = limit.clamp(1, MAX_PAGE);
        // One more than asked for tells whether there is a next page. Each layer gives its own first ones, and the first ones
        // of all layers together are among them.
        let wanted = limit + 1;
        let folder = self.folder_snapshot();
        let mut found: BTreeMap<DocumentPath, DocumentEntry> = BTreeMap::new();
        let levels = levels(scope);
        for level in &levels {
            if let Some(folder) = &folder {
                let files = folder.under(&level.scope, level.folder, prefix);
                for (path, document) in files.filter(|(path, _)| Some(*path) > after.as_ref()).take(wanted) {
                    found.entry(path.clone()).or_insert_with(|| DocumentEntry::of(path, &document));
                }
            }
            for meta in self.inner.store.list(&level.scope, prefix, after.as_ref(), wanted).await? {
                found.entry(meta.path.clone()).or_insert_with(|| DocumentEntry::stored(level.stored, meta));
            }
        }
        let bundled = self.inner.bundled.under(prefix);
        for (path, document) in bundled.filter(|(path, _)| Some(*path) > after.as_ref()).take(wanted) {
            found.entry(path.clone()).or_insert_with(|| DocumentEntry::of(path, document));
        }
        if let Some(folder) = &folder {
            // Where a folder cannot be looked into, it may hold any path.
            for (path, entry) in &mut found {
                let above = levels.iter().filter(|level| level.folder < entry.layer);
                let blind = above.filter_map(|level| Some((level.folder, folder.blind(&level.scope, path)?))).next();
                if let Some((layer, error)) = blind {
                    *entry = DocumentEntry::of(path, &LayerDocument::unreadable(layer, error.clone()));
                }
            }
        }
        let more = found.len() > limit;
        let documents: Vec<_> = found.into_values().take(limit).collect();
        let next_cursor = documents.last().filter(|_| more).map(|entry| entry.path.to_string());
        Ok(DocumentPage { documents, next_cursor })
    }
}
