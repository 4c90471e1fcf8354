//! Writing: to the stored layer of the scope named, never elsewhere.

use std::sync::Arc;

use super::cascade::{LayerDocument, stored_etag};
use super::error::DocumentsError;
use super::{DocumentValidator, Documents, stored_layer};
use crate::domain::document::{Document, DocumentPath, Layer, MAX_DOCUMENT_BYTES};
use crate::domain::scope::Scope;
use crate::store::{Precondition, StoreError};
use crate::yaml::DocumentError;

/// Longest text that is checked in the task that writes it, bytes; a longer one would keep others waiting.
const MAX_INLINE_BYTES: usize = 64 * 1024;

/// What must hold for a write or delete to happen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum WriteCondition {
    /// Nothing.
    #[default]
    Any,
    /// `If-None-Match: *`: the scope's own stored layer does not hold the path. An inherited document does not count: an
    /// override of it is made exactly once.
    Absent,
    /// `If-Match: *`: the path resolves to something here, inherited or not.
    Present,
    /// `If-Match`: what the path resolves to here, inherited or not, has one of these ETags (without quotes). Whether the
    /// scope's own document changed is checked together with the write; an inherited one is checked just before it.
    Matches(Vec<String>),
}

/// A document that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The new version.
    pub document: Document,
    /// The layer it went to.
    pub layer: Layer,
    /// Its ETag, without quotes.
    pub etag: String,
}

impl Documents {
    /// Checks a text as [`Self::put`] does, without writing it.
    ///
    /// # Errors
    /// What `put` would refuse it for, preconditions aside.
    pub async fn check(&self, scope: &Scope, path: &DocumentPath, text: &str) -> Result<(), DocumentsError> {
        if text.len() > MAX_DOCUMENT_BYTES {
            return Err(DocumentsError::TooLarge { bytes: text.len() });
        }
        let layer = stored_layer(&scope.project);
        let refused = if text.len() > MAX_INLINE_BYTES {
            let (inner, path, text) = (self.inner.clone(), path.clone(), text.to_owned());
            let check = move || refusals(&inner.validators, layer, &path, &text);
            tokio::task::spawn_blocking(check)
                .await
                .map_err(|error| DocumentsError::Store(StoreError::Unavailable(Box::new(error))))?
        } else {
            refusals(&self.inner.validators, layer, path, text)
        };
        if !refused.is_empty() {
            return Err(DocumentsError::Invalid(refused));
        }
        self.check_writable(scope, path)
    }

    /// Writes a document to the scope's own stored layer: the first write over an inherited one makes the override.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn put(
        &self,
        scope: &Scope,
        path: &DocumentPath,
        text: &str,
        author: &str,
        condition: &WriteCondition,
    ) -> Result<Written, DocumentsError> {
        self.check(scope, path, text).await?;
        let layer = stored_layer(&scope.project);
        let precondition = match condition {
            WriteCondition::Any => Precondition::Any,
            WriteCondition::Absent => Precondition::Absent,
            WriteCondition::Present | WriteCondition::Matches(_) => {
                let winner = self.winner(scope, path).await?;
                self.precondition(layer, winner, condition)?
            }
        };
        let written = self.inner.store.put(scope, path, text, author, precondition).await;
        let document = written.map_err(|error| refused(layer, error))?;
        self.inner.changes.count(scope, path);
        Ok(Written { layer, etag: stored_etag(layer, document.version), document })
    }

    /// Deletes a document from the scope's own stored layer; what lies below is seen again.
    ///
    /// # Errors
    /// Nothing was deleted; [`DocumentsError::NotFound`] when that layer holds none, whatever is inherited.
    pub async fn delete(
        &self,
        scope: &Scope,
        path: &DocumentPath,
        author: &str,
        condition: &WriteCondition,
    ) -> Result<(), DocumentsError> {
        self.check_writable(scope, path)?;
        let layer = stored_layer(&scope.project);
        let Some(own) = self.inner.store.get(scope, path).await? else {
            let inherited = self.winner(scope, path).await?.map(|winner| winner.layer);
            return Err(DocumentsError::NotFound { path: path.clone(), layer, inherited });
        };
        let etag = stored_etag(layer, own.version);
        let fits = match condition {
            WriteCondition::Any | WriteCondition::Present => true,
            WriteCondition::Absent => false,
            WriteCondition::Matches(etags) => etags.contains(&etag),
        };
        if !fits {
            return Err(DocumentsError::Precondition { current: Some(etag) });
        }
        let precondition = match condition {
            WriteCondition::Matches(_) => Precondition::Version(own.version),
            _ => Precondition::Any,
        };
        match self.inner.store.delete(scope, path, author, precondition).await {
            Ok(()) => {}
            Err(StoreError::NotFound) => {
                return Err(DocumentsError::NotFound { path: path.clone(), layer, inherited: None });
            }
            Err(error) => return Err(refused(layer, error)),
        }
        self.inner.changes.count(scope, path);
        Ok(())
    }

    /// The kept versions in the scope's own stored layer, newest first; also of a document that was deleted there.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn versions(&self, scope: &Scope, path: &DocumentPath) -> Result<Vec<Document>, DocumentsError> {
        Ok(self.inner.store.versions(scope, path).await?)
    }

    /// Where a file lies above the stored document, a write would have no effect.
    fn check_writable(&self, scope: &Scope, path: &DocumentPath) -> Result<(), DocumentsError> {
        let held = self.folder_snapshot().is_some_and(|folder| folder.holds(scope, path));
        if held { Err(DocumentsError::LayerReadOnly { path: path.clone() }) } else { Ok(()) }
    }

    /// The store's precondition that keeps what was just checked from changing before the write.
    fn precondition(
        &self,
        layer: Layer,
        winner: Option<LayerDocument>,
        condition: &WriteCondition,
    ) -> Result<Precondition, DocumentsError> {
        let Some(winner) = winner else { return Err(DocumentsError::Precondition { current: None }) };
        match condition {
            WriteCondition::Matches(etags) if !etags.contains(&winner.etag) => {
                Err(DocumentsError::Precondition { current: Some(winner.etag) })
            }
            WriteCondition::Matches(_) if winner.layer == layer => Ok(winner
                .etag
                .rsplit_once('-')
                .and_then(|(_, version)| version.parse().ok())
                .map_or(Precondition::Any, Precondition::Version)),
            WriteCondition::Matches(_) => Ok(Precondition::Absent),
            _ => Ok(Precondition::Any),
        }
    }
}

/// What any of the validators has against a text.
fn refusals(
    validators: &[Arc<dyn DocumentValidator>],
    layer: Layer,
    path: &DocumentPath,
    text: &str,
) -> Vec<DocumentError> {
    validators.iter().filter_map(|validator| validator.check(layer, path, text).err()).flatten().collect()
}

/// A lost race is a precondition that no longer holds.
fn refused(layer: Layer, error: StoreError) -> DocumentsError {
    match error {
        StoreError::VersionMismatch { current } => {
            DocumentsError::Precondition { current: current.map(|version| stored_etag(layer, version)) }
        }
        error => DocumentsError::Store(error),
    }
}
