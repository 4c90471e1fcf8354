//! MCP as the hub and the foot speak it.
//!
//! Both stand between a client and a server and change as little as they can: a message is taken apart where it is routed
//! (`id`, `method`, `_meta`), and what it carries stays the text that came ([`Raw`]). What a revision of MCP, or a server
//! of its own, adds to a result therefore arrives.

mod client;
mod declined;
mod error;
mod fields;
pub mod headers;
mod input_required;
mod legacy;
pub mod lines;
mod list;
mod listen;
mod message;
mod relay;
pub mod sse;
mod streamable;
mod streams;
mod turns;
mod version;

pub use client::discovery::KnowsDiscovery;
pub use client::{
    Connection, Events, HttpTarget, OnProgress, Open, Preferred, Progress, RequestOptions, ServerDescription, Spawn,
    Tag,
};
pub use declined::{can_be_asked, declined, everything_carried};
pub use error::{ConnectError, RequestError, RpcError};
pub use fields::Fields;
pub use footbridge_shared::message::Raw;
pub use input_required::{InputRequired, Question};
pub use list::{ListLimits, Listed, list_all};
pub use listen::Subscriptions;
pub use message::{Message, Outlined, RequestId, call_text, response_text};
pub use relay::HttpRelay;
/// Addresses of servers, as [`HttpTarget`] has them.
pub use reqwest::Url;
pub use streamable::{HttpClientOptions, http_client};
pub use version::{Lifecycle, Version};

/// JSON-RPC and MCP error codes.
pub mod codes {
    /// The text is no JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The JSON is no request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Something broke inside.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// There is no such resource.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// The HTTP headers of a request are not what its body says.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The request needs a capability that its client did not state.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The version of the request is not spoken; `data.supported` has those that are.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
}

/// Methods by which a server tells of changes.
pub mod changes {
    /// The tools are others now.
    pub const TOOLS: &str = "notifications/tools/list_changed";
    /// The list of resources, or of their templates, is another one now.
    pub const RESOURCES: &str = "notifications/resources/list_changed";
    /// The prompts are others now.
    pub const PROMPTS: &str = "notifications/prompts/list_changed";
    /// A resource that somebody follows is another one now.
    pub const RESOURCE: &str = "notifications/resources/updated";
    /// `subscriptions/listen` has begun: what was listed before it may have changed since.
    pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

    /// Whether it tells that a list is another one now.
    pub fn is_of_a_list(method: &str) -> bool {
        [TOOLS, RESOURCES, PROMPTS].contains(&method)
    }
}

/// Names of `_meta` entries.
pub mod meta {
    /// Where progress of a request is told under.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The protocol version of a request without a session.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Who sends a request without a session.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// What the client of a request without a session can do.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// From which level on the client of a request without a session wants to be told `notifications/message`.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Who answers: in results without a session.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// To which `subscriptions/listen` a notification, or its end, belongs: the id of that request.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
}
