//! H13: long lists, dead servers and slow ones. What works is there at once, whole, and in the same order each time.

use integration_tests::clients::raw::Client;
use integration_tests::clients::stage::{McpStage, OWNER};
use integration_tests::fake_mcp::FakeMcp;
use integration_tests::fake_mcp::script::{Script, Step, tool};
use integration_tests::hub::Options;
use serde_json::json;

use crate::TestResult;

/// Of a folder of documents, so that the hub has them all when it starts.
async fn hub_with(servers: &[(&str, &FakeMcp)]) -> TestResult<(McpStage, tempfile::TempDir)> {
    let folder = tempfile::tempdir()?;
    let place = folder.path().join("local/main/server-tools");
    std::fs::create_dir_all(&place)?;
    for (name, fake) in servers {
        std::fs::write(place.join(format!("{name}.yaml")), fake.document(json!({ "initTimeoutSeconds": 1 }))?)?;
    }
    let documents = Some(folder.path().to_owned());
    Ok((McpStage::start_with(Options { documents, ..Options::default() }).await?, folder))
}

#[tokio::test]
async fn a_list_of_five_thousand_tools_is_read_to_its_end() -> TestResult {
    let fake = FakeMcp::over_http(&Script { count: 5_000, page: 250, ..Script::default() })?;
    let stage = McpStage::start().await?;
    stage.attach("big", &fake, json!({})).await?;
    assert_eq!(fake.received("tools/list")?.len(), 20, "each page is asked for once");
    for client in Client::both(&stage.target(OWNER).await?, &json!({})).await? {
        let names = client.tool_names().await?;
        let big = names.iter().filter(|name| name.starts_with("big__")).count();
        assert_eq!(big, 5_000);
        let answer = client.call("big__op_4999", json!({})).await?;
        assert!(answer.result.is_some(), "{}", answer.error_value());
    }
    assert_eq!(fake.calls_of("op_4999")?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_cursor_that_repeats_ends_the_list() -> TestResult {
    let fake = FakeMcp::over_http(&Script { repeats_cursor: true, page: 2, ..Script::with_tools(&["a", "b"]) })?;
    let stage = McpStage::start().await?;
    stage.attach("loop", &fake, json!({})).await?;
    let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    let names = client.tool_names().await?;
    let here: Vec<&String> = names.iter().filter(|name| name.starts_with("loop__")).collect();
    assert_eq!(here, ["loop__a", "loop__b"]);
    assert!(fake.received("tools/list")?.len() <= 3, "{}", fake.received("tools/list")?.len());
    Ok(())
}

#[tokio::test]
async fn dead_servers_cost_the_others_nothing_and_a_late_one_appears_by_itself() -> TestResult {
    let big = FakeMcp::over_http(&Script { count: 1_000, page: 200, ..Script::default() })?;
    let mute = FakeMcp::new(&Script { mute: true, ..Script::default() })?;
    let silent = FakeMcp::over_http(&Script { silent: true, ..Script::default() })?;
    let gate = Some("up".to_owned());
    let late = FakeMcp::over_http(&Script { handshake_gate: gate, ..Script::with_tools(&["hello"]) })?;
    let servers = [("big", &big), ("mute", &mute), ("silent", &silent), ("late", &late)];
    let (mut stage, _folder) = hub_with(&servers).await?;
    // The hub answers from its first moment; here are the tools of its own.
    let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    assert!(client.tool_names().await?.contains(&"tool_list".to_owned()));
    stage.until_state("big", "ready").await?;
    for dead in ["mute", "silent", "late"] {
        stage.until_state(dead, "failed").await?;
        assert!(stage.pack(dead).await?["lastError"]["message"].is_string(), "{}", stage.pack(dead).await?);
    }
    let list = |names: Vec<String>| names.into_iter().filter(|name| name.contains("__")).collect::<Vec<_>>();
    assert_eq!(list(client.tool_names().await?).len(), 1_000, "all of what works");

    let mut told = client.listen(None).await?;
    late.open_gate("up")?;
    stage.until_state("late", "ready").await?;
    told.until("notifications/tools/list_changed").await?;
    assert!(client.tool_names().await?.contains(&"late__hello".to_owned()));

    // Whatever order they answer in: after a restart the list is the same, to the byte.
    let before = whole_list(&stage).await?;
    stage.hub.kill_and_restart()?;
    for name in ["late", "big"] {
        stage.until_state(name, "ready").await?;
    }
    assert_eq!(whole_list(&stage).await?, before);
    Ok(())
}

#[tokio::test]
async fn a_change_of_a_servers_list_is_told_once_for_a_burst() -> TestResult {
    let change = |name: &str| Step::ReplaceTools(vec![tool("change"), tool("work"), tool(name)]);
    let steps = vec![change("a"), change("b"), change("c"), change("d"), Step::text("changed")];
    for http in [false, true] {
        // The work takes longer than changes are collected for.
        let script = Script::default()
            .doing("change", steps.clone())
            .doing("work", vec![Step::Wait(1_500), Step::text("worked")]);
        let fake = if http { FakeMcp::over_http(&script)? } else { FakeMcp::new(&script)? };
        let stage = McpStage::start().await?;
        // A program has a list for each connection, and the hub shows that of its own.
        let session = if http { "subject" } else { "shared" };
        stage.attach("crm", &fake, json!({ "session": session })).await?;
        let [client, stateless] = Client::both(&stage.target(OWNER).await?, &json!({})).await?;
        let (mut told, mut told_too) = (client.listen(None).await?, stateless.listen(None).await?);
        assert!(client.call("crm__change", json!({})).await?.result.is_some());
        told.until("notifications/tools/list_changed").await?;
        told_too.until("notifications/tools/list_changed").await?;
        let names = client.tool_names().await?;
        assert!(names.contains(&"crm__d".to_owned()) && !names.contains(&"crm__a".to_owned()), "{names:?}");
        assert!(client.call("crm__work", json!({})).await?.result.is_some());
        assert!(client.end().await?.is_success());
        // The stream ends with its session.
        let mut again = 0;
        while let Some(message) = told.next().await? {
            again += usize::from(message.method.as_deref() == Some("notifications/tools/list_changed"));
        }
        assert_eq!(again, 0, "http {http}: told once");
    }
    Ok(())
}

async fn whole_list(stage: &McpStage) -> TestResult<String> {
    let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    Ok(serde_json::to_string(&client.list("tools/list", "tools").await?)?)
}
