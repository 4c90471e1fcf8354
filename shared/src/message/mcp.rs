//! The rest of MCP, carried between a local server of the foot and the clients of the hub.

use serde::{Deserialize, Serialize};

use super::{Caller, Raw, ServerInfo};
use crate::id::{CallId, Subject};

wire! {
    /// For whom a local MCP server works.
    struct Audience {
        /// This subject.
        subject: Subject,
        /// This MCP session of theirs alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    }

    /// The local MCP servers of the foot as they are now, all of them: said when one came, went or changed.
    struct Servers {
        /// The servers.
        servers: Vec<ServerInfo>,
    }

    /// Anything else of MCP to a local server.
    struct Request {
        /// The request's own call id.
        call: CallId,
        /// The server.
        server: String,
        /// MCP method.
        method: String,
        /// Its parameters.
        params: Raw,
        /// What was left at `sent_ms`, milliseconds.
        deadline_ms: u64,
        /// The hub's clock when it sent this.
        sent_ms: u64,
        /// Who asks.
        caller: Caller,
    }

    /// The answer to `request`: one of `result` and `error`.
    struct Response {
        /// The request's call id.
        call: CallId,
        /// The MCP result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Raw>,
        /// The MCP error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Raw>,
    }

    /// A local MCP server asks the client of a call (elicitation, sampling, roots).
    struct Upcall {
        /// The call that caused it.
        call: CallId,
        /// Id of this question within the call.
        id: String,
        /// MCP method.
        method: String,
        /// Its parameters.
        params: Raw,
        /// How long the foot waits, milliseconds.
        timeout_ms: u64,
    }

    /// The foot no longer wants the answer.
    struct UpcallCancel {
        /// The call.
        call: CallId,
        /// The question.
        id: String,
    }

    /// The answer to `upcall`: one of `result` and `error`.
    struct UpcallResult {
        /// The call.
        call: CallId,
        /// The question.
        id: String,
        /// The MCP result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Raw>,
        /// The MCP error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Raw>,
    }

    /// A local MCP server's notification.
    struct Notify {
        /// The call or request that it belongs to, where that is known: it is for that one's client alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// For whom it is, where it belongs to no call: the MCP session, else the subject, that the server works for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audience: Option<Audience>,
        /// The server.
        server: String,
        /// MCP method.
        method: String,
        /// Its parameters.
        params: Raw,
    }
}
