//! Who may come in, and what there is to come into: tokens and tenants.
//!
//! Both are records of the store, and both are asked for with every request. So each service keeps what it has read in
//! memory and answers from there. What a call here changes is in force in this process when the call returns; what
//! another hub changes arrives with its notice, or with the poll every [`POLL_INTERVAL`].

use footbridge_shared::ErrorCode;

use crate::domain::principal::{Principal, Role};
use crate::store::StoreError;

mod follow;
mod mirror;
pub mod tenant;
pub mod token;

pub use follow::POLL_INTERVAL;
pub use tenant::{TenantInfo, Tenants};
pub use token::{CreatedToken, NewToken, TokenInfo, TokenText, Tokens};

/// Why tokens or tenants could not be read or changed. The text is safe to show.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The token was revoked or expired while its request was on its way.
    #[error("the token has ended")]
    Ended,
    /// The token lacks the role.
    #[error("this needs a token with the role admin")]
    NeedsAdmin,
    /// The token has the role, but not so far.
    #[error("{0}")]
    BeyondReach(&'static str),
    /// A part of the request cannot be.
    #[error("`{field}`: {reason}")]
    Invalid {
        /// The part, as it is called in the API.
        field: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is no such token, or it lies beyond the reach of who asks.
    #[error("there is no such token here")]
    UnknownToken,
    /// There is no such tenant or project, or it lies beyond the reach of who asks.
    #[error("there is no such tenant or project, or the token does not reach it")]
    UnknownScope,
    /// The tenant is a folder of the documents folder.
    #[error("this tenant is a folder of the documents folder; change it there")]
    InFolder,
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AccessError {
    /// The code that goes with it.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Ended => ErrorCode::Unauthorized,
            Self::NeedsAdmin | Self::BeyondReach(_) => ErrorCode::Forbidden,
            Self::Invalid { .. } => ErrorCode::BadRequest,
            Self::UnknownToken | Self::Store(StoreError::NotFound) => ErrorCode::NotFound,
            Self::UnknownScope => ErrorCode::UnknownScope,
            Self::InFolder => ErrorCode::LayerReadOnly,
            Self::Store(StoreError::VersionMismatch { .. }) => ErrorCode::VersionMismatch,
            Self::Store(StoreError::Full) => ErrorCode::StorageFull,
            Self::Store(StoreError::Unavailable(_)) => ErrorCode::StorageUnavailable,
        }
    }
}

/// Refuses whoever is no admin, and a token that has ended. Asked where nothing can come in between any more, so that a
/// token that is being revoked cannot leave another behind.
fn require_admin(by: &Principal) -> Result<(), AccessError> {
    if by.ended.is_cancelled() {
        Err(AccessError::Ended)
    } else if by.has(Role::Admin) {
        Ok(())
    } else {
        Err(AccessError::NeedsAdmin)
    }
}
