//! A call through hub and foot, against the sockets it cannot avoid.

use serde_json::json;

use super::callers::{Answer, EchoSocket, Post};
use super::effort::Effort;
use super::load::{Measured, measure};
use super::stage::{Comparison, Stage};
use super::table::{Row, print};
use crate::Result;

/// Payload sizes, bytes.
const PAYLOADS: [usize; 2] = [1024, 32 * 1024];
/// Callers at once.
pub(super) const CALLERS: [usize; 2] = [1, 64];
/// Where a relayed call goes.
pub(super) const INVOKE: &str = "/v1/local/main/tools/echo_text/invoke";

/// Measures and prints.
///
/// # Errors
/// When any part does not come up, or any call fails.
pub(super) async fn run(effort: Effort) -> Result<()> {
    let stage = Stage::direct().await?;
    let comparison = Comparison::start()?;
    let mut rows = Vec::new();
    for payload in PAYLOADS {
        let text = "x".repeat(payload);
        let body = json!({ "arguments": { "text": text } }).to_string();
        let bare = Post::new(&comparison.http, "/echo", &body, Answer::Echo(body.len()));
        let relayed = Post::new(&stage.api, INVOKE, &body, Answer::Relayed(payload));
        for callers in CALLERS {
            let calls = Calls { ours: &relayed, http: &bare, socket_url: &comparison.socket_url, message: &text };
            let measured = calls.measure(callers, effort.calls, effort.rounds).await?;
            rows.extend(compare(&format!("{} KiB", payload / 1024), callers, &measured));
        }
    }
    print("Relay: engine → hub (HTTP) → foot → back, unkeyed; comparison: bare HTTP echo + bare WebSocket echo", &rows);
    Ok(())
}

/// A call, and the two that it is compared with.
pub(super) struct Calls<'a> {
    pub(super) ours: &'a Post,
    pub(super) http: &'a Post,
    pub(super) socket_url: &'a str,
    pub(super) message: &'a str,
}

impl Calls<'_> {
    /// Ours, that of HTTP, and that of the socket.
    pub(super) async fn measure(&self, callers: usize, calls: usize, rounds: usize) -> Result<[Measured; 3]> {
        let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=rounds {
            let echo = EchoSocket::connect(self.socket_url).await?;
            let socket = measure(callers, calls, || echo.caller(self.message)).await?;
            let bare = measure(callers, calls, || self.http.caller()).await?;
            let relayed = measure(callers, calls, || self.ours.caller()).await?;
            // The first round warms up.
            if round > 0 {
                a.push(relayed);
                b.push(bare);
                c.push(socket);
            }
        }
        Ok([a, b, c].map(|rounds| Measured::median(&rounds)))
    }
}

pub(super) fn compare(size: &str, callers: usize, [ours, http, socket]: &[Measured; 3]) -> Vec<Row> {
    let what = |figure: &str| format!("{size}, {callers} caller(s), {figure}");
    let mut rows = vec![
        Row::time(what("p50"), ours.p50_us, http.p50_us + socket.p50_us, 1.5),
        Row::time(what("p99"), ours.p99_us, http.p99_us + socket.p99_us, 2.0),
    ];
    if callers > 1 {
        let slower = http.per_second.min(socket.per_second);
        rows.push(Row::throughput(what("throughput (slower of the two)"), ours.per_second, slower, 0.6));
    }
    rows
}
