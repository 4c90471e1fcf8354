//! Measures what relaying a call costs: engine → hub (HTTP) → foot → back, against what such a call cannot avoid: two
//! sockets, and where it has a key, the disk; in the same run on the same machine.
//!
//! Prints tables: ours, the comparison, the ratio, the target. Run it with `integration-tests/bench`. The words `relay`,
//! `keyed`, `payloads`, `mcp` and `slow-link` choose a table each; `--calls N` and `--rounds N` make it shorter, and its figures
//! worth less. `--flat N` says over how many calls the hub's memory is watched.

use std::process::ExitCode;

use integration_tests::bench::{echo, mcp_echo, run, say};

#[tokio::main]
async fn main() -> ExitCode {
    // The comparison servers are processes of their own, as hub and foot are.
    let mut words = std::env::args().skip(1).peekable();
    let outcome = match words.peek().map(String::as_str) {
        Some("http-echo") => echo::serve_http().await,
        Some("socket-echo") => echo::serve_socket().await,
        Some("mcp-echo") => mcp_echo::serve().await,
        _ => run(words).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("relay-bench: {error}"));
            ExitCode::FAILURE
        }
    }
}
