//! How a foot ends.

use footbridge_shared::ErrorCode;

use crate::config::{ConfigError, TokenError};
use crate::identity::IdentityError;
use crate::policy::PolicyError;

/// How a foot ends when nothing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It was asked to.
    Stopped,
    /// A newer process of the same foot took over.
    Superseded,
}

/// Why a foot cannot work. It does not try again: somebody has to change something first.
#[derive(Debug, thiserror::Error)]
pub enum FootError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The token cannot be read.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The roots cannot be served.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// There is no identity.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The answers that are remembered cannot be read.
    #[error("{0}")]
    Remembered(String),
    /// The audit file cannot be written.
    #[error("the audit file cannot be written: {0}")]
    Audit(std::io::Error),
    /// What runs the work of this process does not start.
    #[error("nothing can be run here: {0}")]
    Runtime(std::io::Error),
    /// There is no foot that a command speaks of, or more than one.
    #[error("{0}")]
    WhichFoot(String),
    /// The certificates to trust cannot be read.
    #[error("the certificates in `{path}` cannot be used: {reason}")]
    Certificates {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The hub does not accept the token.
    #[error("the hub does not accept the token: {0} [unauthorized]")]
    Unauthorized(String),
    /// The token may not do this, or the foot is not what it says.
    #[error("the hub refuses this foot: {message} [{code}]")]
    Refused {
        /// What the hub said.
        code: ErrorCode,
        /// The same for people.
        message: String,
    },
    /// Another foot holds the name.
    #[error(
        "the name `{name}` belongs to another foot: {message}; choose another with --name, or release it [name_taken]"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// What the hub said.
        message: String,
    },
    /// Hub and foot have no protocol version in common.
    #[error("the hub does not speak {}: {message} [unsupported_version]", footbridge_shared::version::FOOTBRIDGE_V1)]
    Version {
        /// What the hub said.
        message: String,
    },
}

impl Exit {
    /// The exit code of the process.
    pub const fn code(self) -> u8 {
        match self {
            Self::Stopped => 0,
            Self::Superseded => 6,
        }
    }
}

impl FootError {
    /// The exit code of the process: 2 for what is wrong here, 3 to 7 for what the hub said.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Config(_)
            | Self::Token(_)
            | Self::Policy(_)
            | Self::Identity(_)
            | Self::Remembered(_)
            | Self::Audit(_)
            | Self::Runtime(_)
            | Self::WhichFoot(_)
            | Self::Certificates { .. } => 2,
            Self::Unauthorized(_) => 3,
            Self::Refused { .. } => 4,
            Self::NameTaken { .. } => 5,
            Self::Version { .. } => 7,
        }
    }

    /// The final error behind a code that the hub gave, if it is one.
    pub(crate) fn by_code(code: ErrorCode, message: &str, name: &str) -> Option<Self> {
        let message = message.to_owned();
        match code {
            ErrorCode::Unauthorized => Some(Self::Unauthorized(message)),
            ErrorCode::Forbidden | ErrorCode::UnknownScope | ErrorCode::BadProof | ErrorCode::InvalidName => {
                Some(Self::Refused { code, message })
            }
            ErrorCode::NameTaken => Some(Self::NameTaken { name: name.to_owned(), message }),
            ErrorCode::UnsupportedVersion => Some(Self::Version { message }),
            _ => None,
        }
    }
}
