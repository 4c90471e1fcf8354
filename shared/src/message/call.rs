//! Calls: what a hub asks for, what a foot says while it works, and the one terminal message.

use serde::{Deserialize, Serialize};

use super::Raw;
use crate::error::{ErrorCode, Outcome};
use crate::id::{CallId, Subject};

/// Where an unfinished call stands in the foot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InFlightState {
    /// Accepted, not started.
    Queued,
    /// Waiting for a person's permission.
    Asking,
    /// Finished; the result waits for its `ack`.
    Done,
    /// Running. A state that this build does not know reads as this one: the hub waits.
    #[serde(other)]
    Running,
}

/// One of a command's output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

wire! {
    /// Who calls.
    struct Caller {
        /// The subject; the foot checks it against its own sharing.
        subject: Subject,
        /// The process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process: Option<String>,
        /// The MCP client that it came through.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<Box<CallerClient>>,
    }

    /// The MCP client that a call came through: whom `upcall` asks.
    struct CallerClient {
        /// The protocol version that it speaks.
        protocol: String,
        /// Its capabilities, as it stated them: a JSON object.
        capabilities: Raw,
        /// Its session at the hub, opaque; without one every call stands alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    }

    /// Run a tool.
    struct Call {
        /// The call.
        call: CallId,
        /// Whether the caller gave an idempotency key.
        #[serde(default)]
        keyed: bool,
        /// Digest of tool and arguments, for keyed calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        /// The tool's name on this foot.
        tool: String,
        /// Its arguments: a JSON object.
        arguments: Raw,
        /// What an MCP client sent with it beside name and arguments (`_meta` and more): a JSON object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extra: Option<Raw>,
        /// What was left of the hard deadline at `sent_ms`, milliseconds.
        deadline_ms: u64,
        /// Idle time, milliseconds: without progress for this long the call ends.
        idle_ms: u64,
        /// The hub's clock when it sent this.
        sent_ms: u64,
        /// Opaque to the foot, echoed in the terminal message.
        origin: String,
        /// Who calls.
        caller: Caller,
    }

    /// Stop a call: the foot kills the work and answers with one terminal message.
    struct Cancel {
        /// The call.
        call: CallId,
        /// Why.
        reason: String,
    }

    /// The result is safe with its receiver: the foot may drop the payload.
    struct Ack {
        /// The call.
        call: CallId,
    }

    /// A call that the foot has not been told to forget.
    struct InFlight {
        /// The call.
        call: CallId,
        /// Digest of tool and arguments, for keyed calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        /// Where it stands.
        state: InFlightState,
        /// As it came with the call.
        origin: String,
    }

    /// A sign of life of a call: resets its idle time, never its deadline.
    struct Progress {
        /// The call.
        call: CallId,
        /// How far it is.
        progress: f64,
        /// What `progress` counts up to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// What it does; `awaiting_approval` while a person is asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    }

    /// Partial output of a call; may be dropped under pressure.
    struct Output {
        /// The call.
        call: CallId,
        /// Counts up within the call, dropped frames included.
        seq: u64,
        /// Which stream.
        stream: Stream,
        /// The text.
        data: String,
        /// Bytes dropped before this frame.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skipped_bytes: Option<u64>,
    }

    /// The result of a call, its one terminal message.
    struct CallResult {
        /// The call.
        call: CallId,
        /// As it came with the call.
        origin: String,
        /// MCP content blocks: a JSON array.
        content: Raw,
        /// The structured result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        structured: Option<Raw>,
        /// Whether the tool says that it failed.
        #[serde(default)]
        is_error: bool,
        /// MCP `_meta`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meta: Option<Raw>,
        /// What the MCP result holds beside these: a JSON object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extra: Option<Raw>,
    }

    /// The failure of a call, its one terminal message.
    struct CallFailure {
        /// The call.
        call: CallId,
        /// As it came with the call.
        origin: String,
        /// What went wrong.
        code: ErrorCode,
        /// The same for people; safe to show.
        message: String,
        /// What to do about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// Whether the tool ran.
        outcome: Outcome,
        /// Whether the same call may be sent again; only with `not_run`.
        #[serde(default)]
        retryable: bool,
        /// When to try again, milliseconds from now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
        /// The JSON-RPC error of a local MCP server, as it sent it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rpc: Option<Raw>,
    }

    /// Bulk was taken in: its sender may send as much again. See [`crate::parts`].
    struct Credit {
        /// The call whose bulk it was, or the id of a message in parts that belongs to no call.
        call: CallId,
        /// How many bytes are returned: of whole frames, headers included.
        bytes: u64,
        /// There is no room for more of this message: its sender waits with it, and with nothing else, for a
        /// [`PartsFrom`].
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        hold: bool,
    }

    /// Asks for the parts of a message from a sequence number on: after a resume, after a gap, or when there is room again.
    struct PartsFrom {
        /// The call, or the id of a message in parts that belongs to no call.
        call: CallId,
        /// First wanted part.
        seq: u32,
    }
}
