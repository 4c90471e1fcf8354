//! What stands between a client and a server loses nothing: not a digit, not a field that nobody here knows.

use footbridge_mcp::Fields;
use integration_tests::clients::raw::{Client, Target};
use integration_tests::clients::stage::{McpStage, OWNER, Way};
use integration_tests::fake_mcp::FakeMcp;
use integration_tests::fake_mcp::message::{Message, raw};
use integration_tests::fake_mcp::script::{Script, Speaks, Step};
use serde_json::json;

use crate::TestResult;

/// Every kind of block, fields that no revision knows, numbers that a double cannot hold, texts written in odd ways.
const RESULT: &str = r#"{"content":[{"type":"text","text":"caf\u00e9 \ud83d\ude00","annotations":{"audience":["user"],"priority":0.50}},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png","_meta":{"w":1.10}},{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"x://a","mimeType":"text/plain","text":"t","size":9007199254740993}},{"type":"resource_link","uri":"x://b","name":"b","size":18446744073709551615},{"type":"hologram","depth":1E+2,"nested":{"z":1,"a":null}}],"structuredContent":{"z":1.10,"a":9007199254740993,"e":1e-7,"big":123456789012345678901234567890,"text":"a\/b"},"_meta":{"vendor/x":{"n":2.50},"vendor/é":[]},"vendorField":{"k":[1.0]}}"#;
/// A tool object with as much.
const TOOL: &str = r#"{"name":"odd","title":"Odd \u00e9","description":"Odd","icons":[{"src":"data:,","sizes":["1x1"]}],"inputSchema":{"type":"object","properties":{"n":{"type":"number","maximum":9007199254740993,"multipleOf":0.10}},"$defs":{"Z":{"const":1.0},"A":{}}},"outputSchema":{"type":"object","properties":{"z":{"type":"number","minimum":1.00}}},"annotations":{"readOnlyHint":true,"title":"Odd","vendor":1.10},"execution":{"taskSupport":"forbidden"},"_meta":{"vendor/t":1.10},"vendorField":"x"}"#;
const ARGUMENTS: &str = r#"{"z":1.10,"a":9007199254740993,"t":"caf\u00e9","deep":[{"b":1e3,"a":[]}]}"#;

fn script(speaks: Speaks) -> TestResult<Script> {
    let mut script = Script { speaks, ..Script::default() }.doing("odd", vec![Step::result(RESULT)?]);
    script.tools = vec![raw(TOOL)?];
    Ok(script.doing("params", vec![Step::EchoParams]).doing(
        "error",
        vec![Step::Error(raw(r#"{"code":-32042,"message":"pay first","data":{"price":1.10,"z":1,"a":2}}"#)?)],
    ))
}

/// The client's ways to reach a server in either lifecycle, attached to the hub and to a foot.
async fn everywhere(tell: impl AsyncFn(&Client, &str) -> TestResult) -> TestResult {
    for way in Way::ALL {
        for speaks in [Speaks::Session, Speaks::Stateless] {
            let stage = McpStage::start().await?;
            let fake = FakeMcp::over_http(&script(speaks)?)?;
            let foot = stage.offer(way, "pack", &fake, json!({})).await?;
            for client in Client::both(&stage.target(OWNER).await?, &json!({})).await? {
                let situation = format!("{way:?}, server {speaks:?}, stateless client {}", client.is_stateless());
                tell(&client, &situation).await.map_err(|error| format!("{situation}: {error}"))?;
            }
            drop(foot);
        }
    }
    Ok(())
}

/// Every field of what was sent arrived as it was; nothing came with it but `more`.
fn same_fields(sent: &str, arrived: &str, more: &[&str], situation: &str) -> TestResult {
    let (sent, arrived) = (Fields::of(&raw(sent)?), Fields::of(&raw(arrived)?));
    let (sent, arrived) = (sent.ok_or("no object")?, arrived.ok_or("no object")?);
    for (name, value) in sent.iter().filter(|(name, _)| !more.contains(name)) {
        let here = arrived.get(name).map(|value| value.get());
        if ["title", "description"].contains(&name) {
            // What people cannot see is taken out of these, so they are written anew.
            let texts = (here.map(serde_json::from_str::<String>).transpose()?, serde_json::from_str(value.get())?);
            assert_eq!(texts.0, Some(texts.1), "`{name}` ({situation})");
            continue;
        }
        assert_eq!(here, Some(value.get()), "`{name}` ({situation})");
    }
    for (name, value) in arrived.iter().filter(|(name, _)| !more.contains(name)) {
        assert!(sent.get(name).is_some(), "`{name}` came from nowhere ({situation}): {value}");
    }
    Ok(())
}

fn result(message: &Message) -> TestResult<&str> {
    let result = message.result.as_ref().ok_or_else(|| message.error_value().to_string())?;
    Ok(result.get())
}

#[tokio::test]
async fn a_result_arrives_byte_for_byte() -> TestResult {
    everywhere(async |client, situation| {
        let answer = client.call("pack__odd", json!({})).await?;
        same_fields(RESULT, result(&answer)?, &["isError", "resultType"], situation)
    })
    .await
}

#[tokio::test]
async fn a_tool_is_listed_as_its_server_lists_it_but_for_its_name() -> TestResult {
    everywhere(async |client, situation| {
        let answer = client.request("tools/list", json!({})).await?;
        #[derive(serde::Deserialize)]
        struct Listed {
            tools: Vec<Box<serde_json::value::RawValue>>,
        }
        let listed: Listed = serde_json::from_str(result(&answer)?)?;
        let tool = listed.tools.iter().find(|tool| tool.get().contains(r#""name":"pack__odd""#));
        let tool = tool.ok_or_else(|| format!("it is not listed ({situation})"))?;
        same_fields(TOOL, tool.get(), &["name"], situation)
    })
    .await
}

#[tokio::test]
async fn arguments_and_what_stands_beside_them_reach_the_server_byte_for_byte() -> TestResult {
    everywhere(async |client, situation| {
        let params = format!(
            r#"{{"name":"pack__params","arguments":{ARGUMENTS},"_meta":{{"vendor/n":1.10,"vendor/z":{{"b":1,"a":2}}}},"vendorField":[1.0]}}"#
        );
        let answer = client.begin_raw("tools/call", &params).await?.1.answer().await?;
        let text = answer.result_value()["content"][0]["text"].as_str().ok_or("no text")?.to_owned();
        same_fields(&params, &text, &["name", "_meta"], situation)?;
        assert!(text.contains(r#""name":"params""#), "{text} ({situation})");
        for kept in [r#""vendor/n":1.10"#, r#""vendor/z":{"b":1,"a":2}"#] {
            assert!(text.contains(kept), "{kept}: {text} ({situation})");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_error_of_a_server_arrives_as_it_is() -> TestResult {
    everywhere(async |client, situation| {
        let answer = client.call("pack__error", json!({})).await?;
        let error = answer.error.as_ref().ok_or_else(|| format!("no error: {}", answer.result_value()))?;
        same_fields(
            r#"{"code":-32042,"message":"pay first","data":{"price":1.10,"z":1,"a":2}}"#,
            error.get(),
            &[],
            situation,
        )
    })
    .await
}

/// H10: what a tool says of its failure is not replaced by what somebody thinks of its result.
#[tokio::test]
async fn results_that_do_not_fit_their_schema_arrive_with_their_text() -> TestResult {
    let results = [
        r#"{"isError":true,"content":[{"type":"text","text":"quota used up until 06:00"}]}"#,
        r#"{"content":[{"type":"text","text":"{\"count\": 3}"}],"structuredContent":{"count":3}}"#,
        r#"{"content":[{"type":"text","text":"three"}],"structuredContent":{"count":"three"}}"#,
    ];
    let schema = r#"{"name":"count_rows","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["count"],"properties":{"count":{"type":"integer"}}}}"#;
    for way in Way::ALL {
        let steps = results.iter().map(|result| Ok(vec![Step::result(result)?])).collect::<TestResult<Vec<_>>>()?;
        let mut script = Script::default().doing_in_turn("count_rows", steps);
        script.tools = vec![raw(schema)?];
        let fake = FakeMcp::new(&script)?;
        let stage = McpStage::start().await?;
        let _foot = stage.offer(way, "db", &fake, json!({ "session": "subject" })).await?;
        let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
        for sent in results {
            let answer = client.call("db__count_rows", json!({})).await?;
            same_fields(sent, result(&answer)?, &["resultType", "isError"], &format!("{way:?}"))?;
            assert_eq!(answer.result_value()["isError"] == true, sent.contains("\"isError\":true"));
        }
        assert_eq!(fake.calls_of("count_rows")?.len(), 3, "nothing is tried again, and no circuit is broken");
    }
    Ok(())
}

/// The judge of this file sees a lost digit.
#[tokio::test]
async fn the_server_itself_sends_what_the_script_says() -> TestResult {
    let fake = FakeMcp::over_http(&script(Speaks::Both)?)?;
    for client in Client::both(&Target::new(fake.url()?, None)?, &json!({})).await? {
        let answer = client.call("odd", json!({})).await?;
        assert_eq!(result(&answer)?, RESULT);
        assert!(result(&client.request("tools/list", json!({})).await?)?.contains("9007199254740993"));
    }
    Ok(())
}
