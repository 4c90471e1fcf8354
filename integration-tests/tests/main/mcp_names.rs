//! Names of servers and tools that are hard to join, and hard to take apart again.

use integration_tests::clients::raw::Client;
use integration_tests::clients::stage::{McpStage, OWNER, Way};
use integration_tests::fake_mcp::FakeMcp;
use integration_tests::fake_mcp::script::{Script, Step};
use integration_tests::hub::Options;
use serde_json::{Value, json};

use crate::TestResult;

const ODD: [&str; 4] =
    ["stock.level", "stock level by site", "rapport/été", "synchronise_all_open_replenishment_orders_for_every_site"];

/// H01: a pack's name with the join mark is refused where it is written, and costs nobody else a tool.
#[tokio::test]
async fn a_pack_whose_name_holds_the_join_mark_is_refused_and_the_others_work() -> TestResult {
    let fake = FakeMcp::new(&Script::with_tools(&["eu__find", "ping"]))?;
    let other = FakeMcp::new(&Script::with_tools(&["find", "ping"]))?;
    let folder = tempfile::tempdir()?;
    let place = folder.path().join("local/main/server-tools");
    std::fs::create_dir_all(&place)?;
    std::fs::write(place.join("crm__eu.yaml"), other.document(json!({}))?)?;
    let documents = Some(folder.path().to_owned());
    let stage = McpStage::start_with(Options { documents, ..Options::default() }).await?;
    stage.attach("crm", &fake, json!({})).await?;
    let refused = stage.api.put("server-tools/crm__us", &other.document(json!({}))?).await?;
    assert!(refused.status.is_client_error(), "{}: {}", refused.status, refused.text);
    assert!(refused.text.contains("name"), "{}", refused.text);
    let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    let mut names = client.tool_names().await?;
    names.retain(|name| name.starts_with("crm"));
    assert_eq!(names.len(), 2, "{names:?}");
    let find = names.iter().find(|name| name.contains("find")).ok_or("no find")?;
    assert!(client.call(find, json!({ "q": "x" })).await?.result.is_some());
    assert_eq!(fake.calls_of("eu__find")?.len(), 1, "the server hears the name that it gave");
    assert!(other.log()?.is_empty(), "the refused pack is never started");
    Ok(())
}

/// H02: names that no provider takes become others, the same each time, and go back as they were.
#[tokio::test]
async fn odd_names_become_legal_ones_that_lead_back() -> TestResult {
    let script = ODD.iter().fold(Script::default(), |script, name| script.doing(name, vec![Step::EchoParams]));
    for way in Way::ALL {
        let fake = FakeMcp::new(&script)?;
        let mut stage = McpStage::start().await?;
        let pack = "warehouse_reporting_internal";
        let _foot = stage.offer(way, pack, &fake, json!({})).await?;
        let before = public_names(&stage, pack).await?;
        assert_eq!(before.len(), ODD.len(), "{way:?}: {before:?}");
        for name in &before {
            let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            assert!(name.len() <= 64 && name.bytes().all(legal), "{name}");
        }
        let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
        let mut reached = Vec::new();
        for name in &before {
            let answer = client.call(name, json!({})).await?.result_value();
            let text = answer["content"][0]["text"].as_str().ok_or_else(|| format!("{name}: {answer}"))?;
            let params: Value = serde_json::from_str(text)?;
            reached.push(params["name"].as_str().unwrap_or_default().to_owned());
            let about = client.call("tool_description", json!({ "names": [name] })).await?.result_value();
            assert!(about.to_string().contains(&reached[reached.len() - 1]), "the original name is shown: {about}");
        }
        reached.sort();
        let mut sent = ODD.map(str::to_owned);
        sent.sort();
        assert_eq!(reached, sent, "{way:?}");
        stage.hub.kill_and_restart()?;
        stage.until_listed(OWNER, &format!("{pack}__")).await?;
        assert_eq!(public_names(&stage, pack).await?, before, "{way:?}: the same after a restart");
    }
    Ok(())
}

async fn public_names(stage: &McpStage, pack: &str) -> TestResult<Vec<String>> {
    let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    let mut names = client.tool_names().await?;
    names.retain(|name| name.starts_with(&format!("{pack}__")));
    Ok(names)
}
