//! How commands end, for shells and programs. The numbers are stable.

use std::fmt::Write as _;
use std::process::ExitCode;

use footbridge_shared::ErrorCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It did what it was asked.
    Done = 0,
    /// Something that none of the others names.
    Failed = 1,
    /// The command line or the configuration is wrong; nothing was asked of the hub.
    Usage = 2,
    /// There is nothing of that name, or it is not this token's to see.
    NotFound = 3,
    /// The token does not allow it, or its owner does not.
    Denied = 4,
    /// It changed meanwhile, exists already, or cannot be written there.
    Conflict = 5,
    /// The call failed.
    ToolFailed = 6,
    /// No hub answers, or it is too busy: try again.
    Unreachable = 7,
    /// The hub refused the document, the name or the arguments.
    Invalid = 8,
    /// Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// All of them, by number.
    pub const ALL: [Self; 10] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::NotFound,
        Self::Denied,
        Self::Conflict,
        Self::ToolFailed,
        Self::Unreachable,
        Self::Invalid,
        Self::Interrupted,
    ];

    /// The number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// What it means, in a few words.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed for another reason",
            Self::Usage => "wrong command line or configuration",
            Self::NotFound => "not found, or not yours to see",
            Self::Denied => "not allowed",
            Self::Conflict => "changed meanwhile, exists already, or read-only",
            Self::ToolFailed => "the tool failed",
            Self::Unreachable => "the hub does not answer, or is too busy",
            Self::Invalid => "the hub refused the document, name or arguments",
            Self::Interrupted => "interrupted by Ctrl-C",
        }
    }

    /// How a command ends that got this code.
    pub const fn of(code: ErrorCode) -> Self {
        use ErrorCode as E;
        match code {
            E::NotFound | E::UnknownScope | E::UnknownTool | E::ResultExpired => Self::NotFound,
            E::Unauthorized | E::Forbidden | E::ConfigPath | E::PathDenied | E::PermissionDenied => Self::Denied,
            E::VersionMismatch
            | E::AlreadyExists
            | E::LayerReadOnly
            | E::NameTaken
            | E::IdConflict
            | E::IdempotencyKeyReused => Self::Conflict,
            E::ToolBroken
            | E::ToolChanged
            | E::ToolFailed
            | E::DeadlineExceeded
            | E::Cancelled
            | E::DepthExceeded
            | E::ScriptError
            | E::ScriptLimit
            | E::ScriptWorkerLost
            | E::ResultTooLarge
            | E::FootUnavailable
            | E::FootGone
            | E::FootRestarted => Self::ToolFailed,
            E::StorageUnavailable | E::Overloaded | E::Draining | E::Timeout | E::ScriptBusy | E::FootBusy => {
                Self::Unreachable
            }
            E::BadRequest
            | E::InvalidName
            | E::InvalidPath
            | E::ReservedName
            | E::InvalidDocument
            | E::UnknownToolType
            | E::InvalidArguments
            | E::InvalidToolName
            | E::InvalidToolSchema
            | E::PayloadTooLarge
            | E::UnsupportedMediaType
            | E::SecretReference
            | E::NotAFile => Self::Invalid,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}

/// The table that stands at the end of `--help`.
pub(super) fn help() -> String {
    let mut help = String::from("Exit codes:\n");
    for exit in Exit::ALL {
        let _ = writeln!(help, "  {:>3}  {}", exit.number(), exit.meaning());
    }
    help
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_hub_end_as_documented() {
        for (code, exit) in [
            (ErrorCode::UnknownTool, 3),
            (ErrorCode::Unauthorized, 4),
            (ErrorCode::VersionMismatch, 5),
            (ErrorCode::FootGone, 6),
            (ErrorCode::Draining, 7),
            (ErrorCode::InvalidDocument, 8),
            (ErrorCode::Internal, 1),
        ] {
            assert_eq!(Exit::of(code).number(), exit, "{code}");
        }
    }

    #[test]
    fn the_help_lists_every_exit_code_once() {
        insta::assert_snapshot!(help(), @r#"
        Exit codes:
            0  done
            1  failed for another reason
            2  wrong command line or configuration
            3  not found, or not yours to see
            4  not allowed
            5  changed meanwhile, exists already, or read-only
            6  the tool failed
            7  the hub does not answer, or is too busy
            8  the hub refused the document, name or arguments
          130  interrupted by Ctrl-C
        "#);
    }
}
