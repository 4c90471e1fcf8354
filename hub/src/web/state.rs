//! What the routes work with.

use std::sync::Arc;

use crate::access::{Tenants, Tokens};
use crate::clock::SharedClock;
use crate::dispatch::Dispatcher;
use crate::documents::Documents;
use crate::lifecycle::Lifecycle;
use crate::sources::configured::ConfiguredSource;
use crate::sources::feet::FeetRegistry;
use crate::store::Store;
use crate::web::bodies::Bodies;
use crate::web::host::HostRules;
use crate::web::mcp::Mcp;

/// Shared by all routes.
pub struct AppState {
    /// Runs calls.
    pub dispatcher: Arc<Dispatcher>,
    /// The document cascade.
    pub documents: Documents,
    /// Tools from documents.
    pub configured: ConfiguredSource,
    /// What is kept for MCP clients.
    pub mcp: Mcp,
    /// What it holds of request bodies.
    pub bodies: Bodies,
    /// Under which names the hub is reached.
    pub hosts: HostRules,
    /// Feet.
    pub feet: FeetRegistry,
    /// Tokens.
    pub tokens: Arc<Tokens>,
    /// Tenants and projects.
    pub tenants: Arc<Tenants>,
    /// Where it all lies; for the readiness check.
    pub store: Arc<dyn Store>,
    /// The time of day.
    pub clock: SharedClock,
    /// Start and stop.
    pub lifecycle: Lifecycle,
}
