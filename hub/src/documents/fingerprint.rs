//! Whether the documents under a prefix are still the same, whatever else was written to their scope.

use super::error::DocumentsError;
use super::{Assembled, Documents, levels, stored_layer};
use crate::domain::document::{DocumentPath, Layer};
use crate::domain::scope::Scope;

/// Stored documents looked at in one go.
const PAGE: usize = 1_000;

/// The stored documents of a scope under a prefix by layer, path and version, and the state of both its folders. Equal
/// fingerprints: the same documents. Comparable within one run of one hub only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    stored: Vec<(Layer, DocumentPath, String)>,
    folder: Vec<u64>,
}

impl Assembled {
    /// The fingerprint of what was read.
    pub fn fingerprint(&self) -> Fingerprint {
        let layers = self.documents.iter().flat_map(|(path, layers)| layers.iter().map(move |held| (path, held)));
        let mut stored: Vec<_> = layers
            .filter(|(_, held)| matches!(held.layer, Layer::Project | Layer::Tenant))
            .map(|(path, held)| (held.layer, path.clone(), held.etag.clone()))
            .collect();
        stored.sort();
        Fingerprint { stored, folder: self.revision.folder().to_vec() }
    }
}

impl Documents {
    /// The fingerprint as it is now. Reads no texts.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn fingerprint(&self, scope: &Scope, prefix: &str) -> Result<Fingerprint, DocumentsError> {
        let folder = self.revision(scope).await?.folder().to_vec();
        let mut stored = Vec::new();
        for level in levels(scope) {
            let layer = stored_layer(&level.scope.project);
            let mut after: Option<DocumentPath> = None;
            loop {
                let page = self.inner.store.list(&level.scope, prefix, after.as_ref(), PAGE).await?;
                let more = page.len() == PAGE;
                after = page.last().map(|meta| meta.path.clone());
                let etag = |version| super::cascade::stored_etag(layer, version);
                stored.extend(page.into_iter().map(|meta| (layer, meta.path, etag(meta.version))));
                if !more {
                    break;
                }
            }
        }
        stored.sort();
        Ok(Fingerprint { stored, folder })
    }
}
