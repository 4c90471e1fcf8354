//! The client that the MCP conformance suite judges: plays the scenario that the suite names in the environment with the
//! server whose address is the last argument.

use std::process::ExitCode;

use integration_tests::Result;
use integration_tests::conformance::{Script, play};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ =
                std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("mcp-client-conformance: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let url = std::env::args().next_back().ok_or("no address")?;
    let context = setting("MCP_CONFORMANCE_CONTEXT")?;
    let script = Script {
        scenario: setting("MCP_CONFORMANCE_SCENARIO")?.ok_or("no scenario")?,
        version: setting("MCP_CONFORMANCE_PROTOCOL_VERSION")?.unwrap_or_default(),
        context: context.map(|context| serde_json::from_str(&context)).transpose()?.unwrap_or_default(),
    };
    play(&url, &script).await
}

fn setting(name: &str) -> Result<Option<String>> {
    let value = std::env::var_os(name).map(std::ffi::OsString::into_string);
    value.transpose().map_err(|_| format!("{name} is no text").into())
}
