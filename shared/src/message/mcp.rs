//! The rest of MCP, carried between a local server of the foot and the clients of the hub.
//!
//! **Servers.** `hello` names the local servers, `servers` names all of them anew. A foot whose servers do not fit `hello`
//! names none there and says `servers` right after `welcome`; a process that resumes and names none keeps those that the
//! hub knows until it does. At most [`MAX_SERVERS_PER_FOOT`](crate::limits::MAX_SERVERS_PER_FOOT), each with at most
//! [`MAX_SERVER_BYTES`](crate::limits::MAX_SERVER_BYTES); what is wrong or too much is left out.
//!
//! **Requests.** `request` has a call id of its own and goes to the server that it names; `response` is its one end, also
//! for what the foot itself has to say: then `error` has the code -32603, and the stable code in `data.code`. What the hub
//! wants to know for itself (the lists that a server offers) it asks in the name of the owner, without a client. `cancel`
//! with the request's id ends it; nobody waits for a `response` then. A request does not outlive its connection: when that
//! breaks, the hub fails it and the foot stops it. Its answer is not acknowledged.
//!
//! **Questions.** `upcall` asks the client of a call or request that runs. Its id is the foot's, unique within the call,
//! of at most [`MAX_UPCALL_ID_BYTES`](crate::limits::MAX_UPCALL_ID_BYTES). The hub answers each with one `upcallResult`:
//! at once where no client can answer, where the call is not known, or where
//! [`MAX_UPCALLS_PER_FOOT`](crate::limits::MAX_UPCALLS_PER_FOOT) are open; at the latest after `timeoutMs`. An
//! `upcallCancel`, and the end of the call, withdraw it: then there may be no answer. As long as it is open, the call is not
//! idle. A question of a call outlives its connection: a foot that resumes asks again, under the same id, what it still wants
//! to know, and gets the one answer of the client, who is not asked twice as long as that answer was not sent; what it wants
//! to know no more it withdraws.
//!
//! **Notifications.** `notify` with a `call` is for the client of that call or request alone. With an `audience` it is for
//! whom the server works; the hub checks that the foot works for them. With neither, the lists of the server have changed, or
//! it is for the log.
//!
//! **Long ones.** `request` and `response` travel as `call` and `result` do: their parts have the id of the request. The
//! id of a call belongs to the `call` and its end, so `upcall`, `upcallResult` and `notify` that do not fit a text frame go
//! in parts under 16 random bytes of their own, and are not taken back once their first part is out. `servers` go as `tools`
//! do. Of all these nothing that is unfinished outlives a connection: both sides drop it, see
//! [`outlives_connection`](crate::parts::outlives_connection).

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
