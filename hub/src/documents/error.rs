//! Why a document was not read or written.

use std::borrow::Cow;

use footbridge_shared::ErrorCode;

use crate::domain::document::{DocumentPath, Layer, MAX_DOCUMENT_BYTES};
use crate::domain::failure::Failure;
use crate::store::StoreError;
use crate::yaml::DocumentError;

/// Why a file of the documents folder cannot be used. Never names a path outside the folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unreadable {
    /// Stable code: `invalid_path` for what leaves its folder, else `invalid_document`.
    pub code: ErrorCode,
    /// What is wrong with it. Safe to show.
    pub reason: Cow<'static, str>,
}

impl Unreadable {
    pub(super) const fn file(reason: &'static str) -> Self {
        Self { code: ErrorCode::InvalidDocument, reason: Cow::Borrowed(reason) }
    }

    pub(super) const fn path(reason: &'static str) -> Self {
        Self { code: ErrorCode::InvalidPath, reason: Cow::Borrowed(reason) }
    }
}

/// Why a document was not read or written. The texts are safe to show; causes are for the log.
#[derive(Debug, thiserror::Error)]
pub enum DocumentsError {
    /// The path's innermost layer cannot be read, and no layer below takes its place.
    #[error("`{path}` cannot be read in the layer `{layer}`: {error}")]
    Unreadable {
        /// The document.
        path: DocumentPath,
        /// The layer.
        layer: Layer,
        /// Why.
        error: Unreadable,
    },
    /// The layer that is written to does not hold the document.
    #[error("the layer `{layer}` holds no document `{path}`")]
    NotFound {
        /// The document.
        path: DocumentPath,
        /// The layer.
        layer: Layer,
        /// The layer whose document is seen here nevertheless.
        inherited: Option<Layer>,
    },
    /// A file of the documents folder holds the path.
    #[error("a file in the documents folder holds `{path}`")]
    LayerReadOnly {
        /// The document.
        path: DocumentPath,
    },
    /// The text is larger than a document may be.
    #[error("the document has {bytes} bytes, the limit is {MAX_DOCUMENT_BYTES}")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// The precondition does not hold; nothing was written.
    #[error("the document is not what the condition says; {}", standing(.current.as_deref()))]
    Precondition {
        /// The ETag that would fit.
        current: Option<String>,
    },
    /// The text does not follow the schema of the documents at this path.
    #[error("{}", listed(.0))]
    Invalid(Vec<DocumentError>),
    /// The cursor is none that a listing gave.
    #[error("the cursor is none that a listing gave")]
    BadCursor,
    /// The store did not do it.
    #[error(transparent)]
    Store(StoreError),
}

fn standing(current: Option<&str>) -> String {
    current.map_or_else(|| "it does not exist".to_owned(), |etag| format!("its ETag is `{etag}`"))
}

fn listed(errors: &[DocumentError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl From<StoreError> for DocumentsError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl DocumentsError {
    /// Stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unreadable { error, .. } => error.code,
            Self::NotFound { .. } | Self::Store(StoreError::NotFound) => ErrorCode::NotFound,
            Self::LayerReadOnly { .. } => ErrorCode::LayerReadOnly,
            Self::TooLarge { .. } => ErrorCode::PayloadTooLarge,
            Self::Precondition { .. } | Self::Store(StoreError::VersionMismatch { .. }) => ErrorCode::VersionMismatch,
            Self::Invalid(errors) => errors.first().map_or(ErrorCode::InvalidDocument, |error| error.code),
            Self::BadCursor => ErrorCode::BadRequest,
            Self::Store(StoreError::Full) => ErrorCode::StorageFull,
            Self::Store(StoreError::Unavailable(_)) => ErrorCode::StorageUnavailable,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound { inherited: Some(layer), .. } => {
                Some(format!("what is seen here comes from the layer `{layer}`"))
            }
            Self::LayerReadOnly { .. } => {
                Some("edit or remove the file; the change is seen within a second".to_owned())
            }
            Self::Precondition { .. } => Some("read it again and decide anew".to_owned()),
            Self::Invalid(errors) => errors.first().and_then(|error| error.hint.clone()),
            _ => None,
        }
    }
}

impl From<DocumentsError> for Failure {
    fn from(error: DocumentsError) -> Self {
        let failure = Self::not_run(error.code(), error.to_string());
        let failure = match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        };
        match error {
            DocumentsError::Store(StoreError::Unavailable(cause)) => failure.cause(cause),
            DocumentsError::Invalid(errors) => failure.details(serde_json::json!({ "errors": errors })),
            _ => failure,
        }
    }
}
