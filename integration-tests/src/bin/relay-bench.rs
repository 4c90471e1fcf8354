//! Measures what relaying a call costs: engine → hub (HTTP) → foot → back, against the two sockets that such a call cannot
//! avoid, a bare axum echo and a bare tokio-tungstenite echo, in the same run on the same machine.
//!
//! Prints one table: ours, the comparison, the ratio, the target. Run it with `integration-tests/bench`; `--calls N` and
//! `--rounds N` make it shorter, and its figures worth less.

use std::process::ExitCode;

use integration_tests::bench::{echo, relay};

#[tokio::main]
async fn main() -> ExitCode {
    // The comparison servers are processes of their own, as hub and foot are.
    let mut words = std::env::args().skip(1).peekable();
    let outcome = match words.peek().map(String::as_str) {
        Some("http-echo") => echo::serve_http().await,
        Some("socket-echo") => echo::serve_socket().await,
        _ => match relay::Effort::parse(words) {
            Ok(effort) => relay::run(effort).await,
            Err(error) => Err(error),
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            integration_tests::bench::say(&format!("relay-bench: {error}"));
            ExitCode::FAILURE
        }
    }
}
