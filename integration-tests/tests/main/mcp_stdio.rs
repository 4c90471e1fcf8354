//! What the README promises to those whose client starts its servers as programs, or has servers already.

use std::io::Write as _;
use std::process::{Command, Stdio};

use integration_tests::binaries;
use integration_tests::clients::stage::{McpStage, OWNER};
use integration_tests::fake_mcp::FakeMcp;
use integration_tests::fake_mcp::script::Script;
use integration_tests::foot::TestFoot;
use integration_tests::process::Process;
use serde_json::{Value, json};

use crate::TestResult;

/// One message, as clients write them.
fn line(message: &Value) -> String {
    format!("{message}\n")
}

fn request(id: u64, method: &str, params: Value) -> String {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

#[tokio::test]
async fn a_client_on_stdio_reaches_the_hub_and_outlives_its_restart() -> TestResult {
    let mut stage = McpStage::start().await?;
    let token = stage.hub.token(OWNER, &["engine", "viewer"]).await?;
    let mut command = Command::new(binaries::footbridge()?);
    command.args(["mcp-stdio"]).stdin(Stdio::piped()).env("FOOTBRIDGE_URL", &stage.hub.url);
    command.env("FOOTBRIDGE_TOKEN", token).env("FOOTBRIDGE_TENANT", "local").env("FOOTBRIDGE_PROJECT", "main");
    let mut bridge = Process::spawn(&mut command)?;
    let mut input = bridge.input().ok_or("no input")?;
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    input.write_all(request(1, "initialize", hello).as_bytes())?;
    assert!(bridge.line_with(r#""id":1"#)?.contains("serverInfo"));
    input.write_all(line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).as_bytes())?;
    let call = json!({"name": "current_time", "arguments": {}});
    input.write_all(request(2, "tools/call", call.clone()).as_bytes())?;
    assert!(bridge.line_with(r#""id":2"#)?.contains("content"));
    stage.hub.kill_and_restart()?;
    input.write_all(request(3, "tools/call", call).as_bytes())?;
    let answer = bridge.line_with(r#""id":3"#)?;
    assert!(answer.contains(r#""content""#) && !answer.contains(r#""isError":true"#), "{answer}");
    assert_eq!(bridge.output().matches("serverInfo").count(), 1, "the client is not greeted again");
    drop(input);
    assert!(bridge.wait()?.success(), "it ends with its input:\n{}", bridge.output());
    Ok(())
}

/// What another client reads is read too, when the owner of the foot names it.
#[tokio::test]
async fn the_servers_of_another_clients_file_are_offered() -> TestResult {
    let fake = FakeMcp::new(&Script::with_tools(&["look"]))?;
    let stage = McpStage::start().await?;
    let (root, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let file = folder.path().join("mcp.json");
    let servers = json!({
        "@scope/books": {"command": fake.command()?, "args": fake.args(), "autoApprove": ["look"]},
        "off": {"command": fake.command()?, "args": fake.args(), "disabled": true},
    });
    std::fs::write(&file, json!({ "mcpServers": servers }).to_string())?;
    let file = file.to_string_lossy().into_owned();
    let _foot = TestFoot::start(&stage.hub, OWNER, "laptop", root.path(), &["--mcp-json", &file]).await?;
    stage.until_listed(OWNER, "scope_books__look").await?;
    let api = stage.api.with_token(&stage.hub.token(OWNER, &["engine", "viewer"]).await?);
    let answer = api.invoke("scope_books__look", json!({})).await?.ok()?.json();
    assert_eq!(answer["isError"], false, "{answer}");
    assert!(!api.get("tools").await?.ok()?.text.contains("off__"));
    Ok(())
}
