//! The bodies of the HTTP API, shared by the routes that write them and the CLI that reads them. Plain data.

pub mod calls;
pub mod documents;
pub mod feet;
pub mod packs;
pub mod problem;
pub mod tenants;
pub mod tokens;
pub mod tools;

/// The header of a reply that names its call.
pub const CALL_HEADER: &str = "footbridge-call";
/// The header with which a client makes a call repeatable.
pub const IDEMPOTENCY_KEY_HEADER: &str = "idempotency-key";
/// The header of a reply that is the stored end of an earlier try: `true`.
pub const REPLAYED_HEADER: &str = "footbridge-replayed";
/// The header of a document reply that names the layer it came from.
pub const LAYER_HEADER: &str = "footbridge-layer";
/// Most items of one page.
pub const MAX_PAGE: usize = 1_000;
/// Items of a page when the request does not say.
pub const DEFAULT_PAGE: usize = 200;
