//! The MCP server of the tests: on the standard streams, or with `--http PORT` over HTTP on `127.0.0.1` (port 0: any free
//! one; the address is printed).

use std::process::ExitCode;

use integration_tests::Result;
use integration_tests::fixture::{serve_http, serve_stdio};

#[tokio::main]
async fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let outcome = match (words.next().as_deref(), words.next()) {
        (None, _) => serve_stdio().await,
        (Some("--http"), Some(port)) => http(&port).await,
        _ => Err("usage: mcp-fixture [--http PORT]".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard output belongs to the protocol.
            let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("mcp-fixture: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

async fn http(port: &str) -> Result<()> {
    match serve_http(port.parse()?).await? {}
}
