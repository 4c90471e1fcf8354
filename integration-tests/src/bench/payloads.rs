//! Large results: their cost should grow with the bytes that are copied, not with what is made of them on the way.

use serde_json::json;

use super::callers::{Answer, Post};
use super::effort::Effort;
use super::relay::{Calls, compare};
use super::stage::{Comparison, Stage};
use super::table::print;
use crate::Result;

const KIB: usize = 1024;
/// A size in bytes with its name, callers at once, and how many small calls one of it weighs.
const SIZES: [(usize, &str, usize, usize); 3] =
    [(100 * KIB, "100 KiB", 1, 8), (100 * KIB, "100 KiB", 64, 8), (5 * KIB * KIB, "5 MiB", 1, 256)];

/// Measures and prints.
///
/// # Errors
/// When any part does not come up, or any call fails.
pub(super) async fn run(effort: Effort) -> Result<()> {
    let stage = Stage::direct().await?;
    let comparison = Comparison::start()?;
    let mut rows = Vec::new();
    for (bytes, size, callers, weight) in SIZES {
        let message = format!("bytes {bytes}");
        let body = json!({ "arguments": { "bytes": bytes } }).to_string();
        let calls = Calls {
            ours: &Post::new(&stage.api, "/v1/local/main/tools/echo_bytes/invoke", &body, Answer::Relayed(bytes)),
            http: &Post::new(&comparison.http, "/echo", &message, Answer::Echo(bytes)),
            socket_url: &comparison.socket_url,
            message: &message,
        };
        rows.extend(compare(size, callers, &calls.measure(callers, effort.of_weight(weight), effort.rounds).await?));
    }
    print("Large results; comparison: as many bytes from a bare HTTP server + from a bare WebSocket server", &rows);
    Ok(())
}
