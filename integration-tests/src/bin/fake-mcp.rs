//! The scripted MCP server of the stories: `fake-mcp --folder DIR [--http ADDRESS]`. What it does stands in
//! `DIR/script.json`, what it heard in `DIR/log`.

use std::process::ExitCode;

use integration_tests::bench::say;
use integration_tests::fake_mcp::{http, stdio};

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--folder", folder] => stdio::run(folder.into()).await,
        ["--folder", folder, "--http", address] => http::run(folder.into(), address).await,
        _ => Err("fake-mcp --folder DIR [--http ADDRESS]".into()),
    };
    match outcome {
        // What still reads stdin must not hold it.
        Ok(()) => std::process::exit(0),
        Err(error) => {
            say(&format!("fake-mcp: {error}"));
            ExitCode::FAILURE
        }
    }
}
