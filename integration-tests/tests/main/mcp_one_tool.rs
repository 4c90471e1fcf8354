//! What documents say of a server's tools: which are offered, with which arguments, and under which names.

use integration_tests::clients::raw::Client;
use integration_tests::clients::stage::{McpStage, OWNER};
use integration_tests::fake_mcp::FakeMcp;
use integration_tests::fake_mcp::message::raw;
use integration_tests::fake_mcp::script::{Script, Step};
use serde_json::{Value, json};

use crate::TestResult;

/// A tool that answers with the parameters that reached it.
fn echo(name: &str) -> Script {
    Script::default().doing(name, vec![Step::EchoParams])
}

/// The arguments that reached the server.
async fn reached(client: &Client, tool: &str, arguments: Value) -> TestResult<Value> {
    let answer = client.call(tool, arguments).await?.result_value();
    let text = answer["content"][0]["text"].as_str().ok_or_else(|| format!("{tool}: {answer}"))?;
    Ok(serde_json::from_str::<Value>(text)?["arguments"].clone())
}

fn schema(properties: &Value) -> TestResult<Script> {
    let mut script = echo("search");
    let tool = json!({"name": "search", "inputSchema": {"type": "object", "properties": properties}});
    script.tools = vec![raw(&tool.to_string())?];
    Ok(script)
}

#[tokio::test]
async fn one_tool_of_a_server_has_a_name_of_its_own() -> TestResult {
    let properties = json!({"q": {"type": "string"}, "limit": {"type": "integer"}, "lang": {"type": "string"}});
    let fake = FakeMcp::new(&schema(&properties)?)?;
    let stage = McpStage::start().await?;
    stage.attach("wiki", &fake, json!({"exclude": ["*"], "defaultArgs": {"limit": 5, "lang": "en"}})).await?;
    let document = json!({
        "type": "mcp", "description": "Looks things up.",
        "parameters": {"server": "wiki", "toolName": "search", "defaultArgs": {"lang": "de"}},
    });
    stage.api.put("server-tools/look_up", &document.to_string()).await?.ok()?;
    let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    let names = client.tool_names().await?;
    assert!(names.contains(&"look_up".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("wiki__")), "all of the pack is left out: {names:?}");
    let sent = reached(&client, "look_up", json!({"q": "x"})).await?;
    assert_eq!(sent, json!({"q": "x", "limit": 5, "lang": "de"}), "the tool's own defaults come first");
    let lost = json!({"type": "mcp", "description": "d", "parameters": {"server": "nowhere", "toolName": "search"}});
    stage.api.put("server-tools/lost", &lost.to_string()).await?.ok()?;
    let answer = client.call("lost", json!({})).await?.result_value();
    assert_eq!(answer["isError"], true, "{answer}");
    Ok(())
}

#[tokio::test]
async fn arguments_are_filled_forced_and_mended_as_the_document_and_the_schema_say() -> TestResult {
    let properties = json!({
        "q": {"type": "string"}, "limit": {"type": "integer"}, "deep": {"type": "boolean"},
        "filter": {"type": "object"}, "any": {},
    });
    let fake = FakeMcp::new(&schema(&properties)?)?;
    let stage = McpStage::start().await?;
    let more = json!({"defaultArgs": {"limit": 5, "unknown": 1}, "forceArgs": {"deep": false}});
    stage.attach("wiki", &fake, more).await?;
    let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    let sent = reached(&client, "wiki__search", json!({"q": "3", "deep": true, "any": "3"})).await?;
    assert_eq!(sent, json!({"q": "3", "deep": false, "any": "3", "limit": 5}));
    let sent = reached(&client, "wiki__search", json!({"limit": "7", "filter": "{\"a\": 1}"})).await?;
    assert_eq!(sent, json!({"limit": 7, "filter": {"a": 1}, "deep": false}));
    let sent = reached(&client, "wiki__search", json!({"limit": "yes"})).await?;
    assert_eq!(sent["limit"], "yes", "what may mean several things goes as it is");
    Ok(())
}

#[tokio::test]
async fn what_is_left_out_cannot_be_called_and_the_status_counts_it() -> TestResult {
    let fake = FakeMcp::new(&Script::with_tools(&["get_a", "get_b", "drop_a", "put"]))?;
    let stage = McpStage::start().await?;
    stage.attach("crm", &fake, json!({"include": ["get_*", "put"], "exclude": ["get_b"]})).await?;
    let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    let mut names = client.tool_names().await?;
    names.retain(|name| name.starts_with("crm"));
    names.sort();
    assert_eq!(names, ["crm__get_a", "crm__put"]);
    let alone = Client::open(&stage.target_of(OWNER, "?pack=crm").await?, json!({})).await?;
    assert_eq!(alone.tool_names().await?, ["get_a", "put"], "in the server's order");
    for (client, name) in [(&client, "crm__get_b"), (&alone, "get_b")] {
        let refused = client.call(name, json!({})).await?;
        assert!(refused.error.is_some() || refused.result_value()["isError"] == true, "{name}");
    }
    assert!(fake.calls_of("get_b")?.is_empty());
    let pack = stage.pack("crm").await?;
    assert_eq!(pack["state"], "ready", "{pack}");
    Ok(())
}
