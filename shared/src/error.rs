//! Every error code of Footbridge, on the wire, over HTTP and in results. The list is append-only.

use serde::{Deserialize, Serialize};

/// What is known of a call that gave no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Certain: the tool did not run. A retry is safe.
    NotRun,
    /// The tool ran to its end, although there is no result to show.
    Completed,
    /// It may have run, in part or whole. An outcome that this build does not know reads as this one.
    #[serde(other)]
    Unknown,
}

/// Declares the codes with their text and meaning, once.
macro_rules! error_codes {
    ($($variant:ident = $text:literal, $meaning:literal;)*) => {
        /// A stable, machine-readable error code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = $meaning] $variant,)*
        }

        impl ErrorCode {
            /// All codes, in the order they were added.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The text that stands on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// What the code says, for people.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

error_codes! {
    BadRequest = "bad_request", "The request is not well formed.";
    Unauthorized = "unauthorized", "No token, or one that is unknown, revoked or expired.";
    Forbidden = "forbidden", "The token's roles do not allow this.";
    NotFound = "not_found", "There is nothing of that name here, or it is not yours to see.";
    UnknownScope = "unknown_scope", "There is no such tenant or project, or the token does not reach it.";
    MethodNotAllowed = "method_not_allowed", "The path exists, the verb does not.";
    UnsupportedMediaType = "unsupported_media_type", "The body is of a type that this path does not read.";
    PayloadTooLarge = "payload_too_large", "The body is larger than this path reads.";
    InvalidName = "invalid_name", "A name does not follow its rule.";
    InvalidPath = "invalid_path", "A document path leaves its root or holds characters that no path may hold.";
    ReservedName = "reserved_name", "The name belongs to a meta tool.";
    InvalidDocument = "invalid_document", "A document does not follow its schema.";
    UnknownToolType = "unknown_tool_type", "There is no tool type of that name.";
    VersionMismatch = "version_mismatch", "The document changed since it was read; nothing was written.";
    AlreadyExists = "already_exists", "Something of that name exists already.";
    LayerReadOnly = "layer_read_only", "A file in the documents folder holds this path; edit the file.";
    StorageFull = "storage_full", "There is no room to write; nothing was written.";
    StorageUnavailable = "storage_unavailable", "The store does not answer.";
    ConfigPath = "config_path", "Tools may not write configuration documents.";
    UnknownTool = "unknown_tool", "There is no such tool for this caller.";
    ToolBroken = "tool_broken", "The tool's document is broken; the reason is listed.";
    ToolChanged = "tool_changed", "The tool is not what it was when it was approved.";
    InvalidArguments = "invalid_arguments", "The arguments do not follow the tool's schema; nothing ran.";
    DeadlineExceeded = "deadline_exceeded", "The call ran out of time.";
    Cancelled = "cancelled", "The call was cancelled.";
    DepthExceeded = "depth_exceeded", "Tools called tools too deeply.";
    ToolFailed = "tool_failed", "The tool reported a failure.";
    ScriptError = "script_error", "The script threw, or could not be compiled.";
    ScriptBusy = "script_busy", "All script workers are busy and the queue is full.";
    ScriptLimit = "script_limit", "The script used more memory, stack or statements than it may.";
    ScriptWorkerLost = "script_worker_lost", "The script's worker process ended before it answered.";
    ResultTooLarge = "result_too_large", "The result is larger than the limit.";
    FootUnavailable = "foot_unavailable", "The foot is not connected.";
    FootGone = "foot_gone", "The foot went away and did not come back in time.";
    FootRestarted = "foot_restarted", "The foot came back as a new process; the call's fate is unknown.";
    FootBusy = "foot_busy", "The foot runs as many calls as it may.";
    IdConflict = "id_conflict", "The same call id came with other content.";
    IdempotencyKeyReused = "idempotency_key_reused", "The same key came with another call.";
    ResultExpired = "result_expired", "The call completed; its result is no longer kept.";
    NameTaken = "name_taken", "Another foot holds this name.";
    BadFrame = "bad_frame", "A frame is malformed or too large.";
    BadProof = "bad_proof", "The foot could not prove its id.";
    UnsupportedVersion = "unsupported_version", "There is no common protocol version.";
    InvalidToolName = "invalid_tool_name", "The tool's name does not follow the rule.";
    InvalidToolSchema = "invalid_tool_schema", "The tool's schema is no object schema, or too large.";
    TooManyTools = "too_many_tools", "The foot offers more tools than it may.";
    Shadowed = "shadowed", "A built-in tool has this name and keeps its calls.";
    PathDenied = "path_denied", "The path is outside the granted roots, or never served.";
    NotAFile = "not_a_file", "The path is not what the tool works on.";
    PermissionDenied = "permission_denied", "The owner of the foot does not allow this.";
    Overloaded = "overloaded", "Too much at once; try again.";
    Draining = "draining", "The hub is going down in order.";
    NotSupported = "not_supported", "This build does not offer that yet.";
    Internal = "internal", "Something broke inside; the log has the cause.";
    Timeout = "timeout", "The other side did not answer in time.";
    SecretReference = "secret_reference", "A secret reference cannot be used here.";
    FileChanged = "file_changed", "The file is not what its hash says; nothing was written.";
    NoMatch = "no_match", "The text to replace is not there, or not exactly once; nothing was written.";
    SandboxUnavailable = "sandbox_unavailable", "Commands cannot be confined on this machine, so none is run.";
    TooManyJobs = "too_many_jobs", "The foot runs as many commands as it may.";
    ServerUnavailable = "server_unavailable", "The MCP server behind this is not connected.";
    BadAnswer = "bad_answer", "What the other side answered cannot be used.";
    CommandNotAllowed = "command_not_allowed", "The operator of the hub does not allow this command.";
}

impl ErrorCode {
    /// Finds a code by its text.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text)
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    /// A code that this build does not know reads as [`ErrorCode::Internal`]: a newer peer must not break an older one.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Ok(Self::from_text(&text).unwrap_or(Self::Internal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_snake_case_and_found_by_text() {
        let mut seen = std::collections::HashSet::new();
        for code in ErrorCode::ALL {
            let text = code.as_str();
            assert!(seen.insert(text), "{text} stands twice");
            assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{text}");
            assert_eq!(ErrorCode::from_text(text), Some(*code));
        }
    }
}
