//! What a client sees of all attached servers, when it is told that this changed, and what it does not get to see.

use integration_tests::api::send;
use integration_tests::clients::raw::{Client, Target, capable};
use integration_tests::clients::stage::{FootStage, McpStage, OWNER, Way};
use integration_tests::eventually::eventually;
use integration_tests::fake_mcp::FakeMcp;
use integration_tests::fake_mcp::message::raw;
use integration_tests::fake_mcp::script::{Script, Step};
use reqwest::Method;
use serde_json::{Value, json};

use crate::TestResult;

const CHANGED: &str = "notifications/tools/list_changed";

/// A server with everything, whose texts say which it is.
fn everything(name: &str) -> TestResult<Script> {
    let mut script = Script::with_tools(&["find"]);
    script.capabilities = Some(raw(r#"{"tools":{},"resources":{},"prompts":{},"completions":{}}"#)?);
    script
        .answering("resources/list", r#"{"resources":[{"uri":"x://a?q=%20","name":"a","size":9007199254740993}]}"#)?
        .answering("resources/templates/list", r#"{"resourceTemplates":[{"uriTemplate":"x://t/{id}","name":"t"}]}"#)?
        .answering("prompts/list", r#"{"prompts":[{"name":"greet","arguments":[{"name":"who"}]}]}"#)?
        .answering(
            "resources/read",
            &format!(r#"{{"contents":[{{"uri":"x://a?q=%20","text":"of {name}","n":1.10}}]}}"#),
        )?
        .answering(
            "prompts/get",
            &format!(r#"{{"messages":[{{"role":"user","content":{{"type":"text","text":"of {name}"}}}}]}}"#),
        )?
        .answering("completion/complete", &format!(r#"{{"completion":{{"values":["of {name}"],"total":1.0}}}}"#))
}

async fn two_servers(way: Way) -> TestResult<(McpStage, [FakeMcp; 2], Option<FootStage>)> {
    let stage = McpStage::start().await?;
    let fakes = [FakeMcp::new(&everything("one")?)?, FakeMcp::new(&everything("two")?)?];
    let foot = match way {
        Way::Hub => {
            for (name, fake) in ["one", "two"].into_iter().zip(&fakes) {
                stage.attach(name, fake, json!({ "session": "subject" })).await?;
            }
            None
        }
        Way::Foot => {
            let [one, two] = &fakes;
            let entry = |fake| integration_tests::clients::stage::on_foot(fake, json!({ "session": "subject" }));
            let foot = stage.foot("laptop", &json!({ "one": entry(one)?, "two": entry(two)? })).await?;
            for name in ["one__", "two__"] {
                stage.until_listed(OWNER, name).await?;
            }
            Some(foot)
        }
    };
    Ok((stage, fakes, foot))
}

fn of_server<'a>(all: &'a [Value], field: &str, server: &str) -> TestResult<&'a str> {
    let found = all.iter().filter_map(|thing| thing[field].as_str()).find(|name| name.contains(server));
    found.ok_or_else(|| format!("none of {server}: {all:?}").into())
}

#[tokio::test]
async fn resources_prompts_and_completions_lead_to_their_own_server() -> TestResult {
    for way in Way::ALL {
        let (stage, _fakes, _foot) = two_servers(way).await?;
        for client in Client::both(&stage.target(OWNER).await?, &json!({})).await? {
            let situation = format!("{way:?}, stateless {}", client.is_stateless());
            let resources = eventually("both are heard of", || async {
                let all = client.list("resources/list", "resources").await?;
                let both = ["one", "two"].map(|name| of_server(&all, "uri", name).is_ok());
                Ok((both == [true, true]).then_some(all))
            })
            .await
            .map_err(|error| format!("{situation}: {error}"))?;
            let templates = client.list("resources/templates/list", "resourceTemplates").await?;
            let prompts = client.list("prompts/list", "prompts").await?;
            for name in ["one", "two"] {
                let expected = format!("of {name}");
                let uri = of_server(&resources, "uri", name)?;
                let answer = client.request("resources/read", json!({ "uri": uri })).await?;
                let text = answer.to_string_lossy();
                assert!(text.contains(&expected) && text.contains("1.10"), "{situation}: {text}");
                let prompt = of_server(&prompts, "name", name)?;
                let answer = client.request("prompts/get", json!({ "name": prompt, "arguments": {} })).await?;
                assert!(answer.to_string_lossy().contains(&expected), "{situation}: {}", answer.to_string_lossy());
                let template = of_server(&templates, "uriTemplate", name)?;
                for reference in [
                    json!({ "type": "ref/prompt", "name": prompt }),
                    json!({ "type": "ref/resource", "uri": template }),
                ] {
                    let params = json!({ "ref": reference, "argument": { "name": "who", "value": "o" } });
                    let answer = client.request("completion/complete", params).await?;
                    let text = answer.to_string_lossy();
                    assert!(text.contains(&expected) && text.contains("1.0"), "{situation}: {text}");
                }
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_servers_own_names_reach_it_and_a_pack_alone_shows_them() -> TestResult {
    for way in Way::ALL {
        let (stage, [one, two], _foot) = two_servers(way).await?;
        let client = Client::open(&stage.target_of(OWNER, "?pack=one").await?, json!({})).await?;
        assert_eq!(client.tool_names().await?, ["find"], "{way:?}");
        let resources = client.list("resources/list", "resources").await?;
        assert_eq!(resources[0]["uri"], "x://a?q=%20", "{way:?}");
        assert_eq!(client.list("prompts/list", "prompts").await?[0]["name"], "greet", "{way:?}");
        assert!(client.call("find", json!({})).await?.result.is_some(), "{way:?}");
        client.request("resources/read", json!({ "uri": "x://a?q=%20" })).await?;
        client.request("prompts/get", json!({ "name": "greet" })).await?;
        assert_eq!(one.received("resources/read")?[0].json()["params"]["uri"], "x://a?q=%20");
        assert_eq!(one.received("prompts/get")?[0].json()["params"]["name"], "greet");
        assert_eq!(one.calls_of("find")?.len(), 1, "{way:?}");
        assert!(two.received("resources/read")?.is_empty() && two.calls_of("find")?.is_empty(), "{way:?}");
    }
    Ok(())
}

#[tokio::test]
async fn documents_of_the_project_are_resources() -> TestResult {
    let stage = McpStage::start().await?;
    stage.api.put("documents/documents/notes/a b.md", "# Notes\n").await?.ok()?;
    for client in Client::both(&stage.target(OWNER).await?, &json!({})).await? {
        let all = client.list("resources/list", "resources").await?;
        let notes = of_server(&all, "uri", "notes")?;
        let answer = client.request("resources/read", json!({ "uri": notes })).await?.result_value();
        assert_eq!(answer["contents"][0]["text"], "# Notes\n");
        assert!(of_server(&all, "uri", "server-tools").is_err(), "configuration is none: {all:?}");
        let answer = client.request("resources/read", json!({ "uri": "doc:///documents/none.md" })).await?;
        assert!(answer.error.is_some(), "{}", answer.to_string_lossy());
    }
    Ok(())
}

#[tokio::test]
async fn whoever_listens_is_told_that_the_surface_changed() -> TestResult {
    let stage = McpStage::start().await?;
    let fake = FakeMcp::new(&Script::with_tools(&["a"]))?;
    for client in Client::both(&stage.target(OWNER).await?, &json!({})).await? {
        let mut told = client.listen(None).await?;
        let before = client.tool_names().await?;
        stage.attach("added", &fake, json!({})).await?;
        told.until(CHANGED).await?;
        assert!(client.tool_names().await?.contains(&"added__a".to_owned()));
        stage.api.delete("server-tools/added").await?.ok()?;
        told.until(CHANGED).await?;
        assert_eq!(client.tool_names().await?, before);

        let foot = stage.foot(if client.is_stateless() { "desk" } else { "laptop" }, &json!({})).await?;
        told.until(CHANGED).await?;
        assert!(client.tool_names().await?.len() > before.len());
        foot.foot.process.signal(rustix::process::Signal::TERM)?;
        told.until(CHANGED).await?;
        eventually("its tools are gone", || async { Ok((client.tool_names().await? == before).then_some(())) }).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_stream_that_broke_is_resumed_where_it_broke() -> TestResult {
    for way in Way::ALL {
        let steps = vec![Step::Progress { times: 2, every_ms: 1 }, Step::Gate("go".to_owned()), Step::text("whole")];
        let fake = FakeMcp::new(&Script::default().doing("slow", steps))?;
        let stage = McpStage::start().await?;
        let _foot = stage.offer(way, "lab", &fake, json!({ "session": "subject" })).await?;
        let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
        let params = json!({ "name": "lab__slow", "arguments": {}, "_meta": { "progressToken": 5 } });
        let (id, mut exchange) = client.begin("tools/call", params).await?;
        exchange.until("notifications/progress").await?;
        let last = exchange.last_event.clone().ok_or("events have no ids")?;
        drop(exchange);
        // The call goes on without its client, and its answer waits.
        fake.open_gate("go")?;
        let mut again = client.listen(Some(&last)).await?;
        let answer = again.answer().await?;
        assert_eq!(answer.id_text(), id, "{way:?}");
        assert_eq!(answer.result_value()["content"][0]["text"], "whole", "{way:?}: {}", answer.to_string_lossy());
        assert_eq!(fake.calls_of("slow")?.len(), 1, "{way:?}: it ran once");
    }
    Ok(())
}

/// A stream ends with the token that reads it, also where the session was opened with another.
#[tokio::test]
async fn a_stream_ends_with_the_token_that_reads_it_and_knows_no_future() -> TestResult {
    let stage = McpStage::start().await?;
    let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    let body = json!({ "subject": OWNER, "roles": ["engine"], "tenant": "local" });
    let made = send(stage.api.request(Method::POST, "/v1/tokens").json(&body)).await?.ok()?.json();
    let token = made["token"].as_str().ok_or_else(|| made.to_string())?;
    let target = Target::new(&format!("{}/mcp/local/main", stage.hub.url), Some(token))?;
    let reader = client.as_seen_by(&target);
    assert!(reader.listen(Some("0-999999")).await.is_err(), "nothing of that number was said");
    let mut told = reader.listen(None).await?;
    let id = made["id"].as_str().ok_or("no id")?;
    send(stage.api.request(Method::DELETE, &format!("/v1/tokens/{id}"))).await?.ok()?;
    while told.next().await?.is_some() {}
    assert!(client.tool_names().await?.contains(&"tool_list".to_owned()), "the session goes on with its own token");
    Ok(())
}

#[tokio::test]
async fn a_session_belongs_to_its_subject() -> TestResult {
    let stage = McpStage::start().await?;
    let ada = stage.target(OWNER).await?;
    let ben = stage.target("ben").await?;
    let client = Client::open(&ada, capable()).await?;
    let stranger = client.as_seen_by(&ben);
    assert_eq!(stranger.begin("tools/list", json!({})).await?.1.status, 404);
    assert!(stranger.listen(None).await.is_err());
    assert_eq!(stranger.end().await?, 404);
    assert_eq!(client.begin("tools/list", json!({})).await?.1.status, 200, "it lives on");
    // The same subject with another token is the same subject.
    let again = client.as_seen_by(&stage.target(OWNER).await?);
    assert_eq!(again.begin("tools/list", json!({})).await?.1.status, 200);
    assert!(client.end().await?.is_success());
    assert_eq!(client.begin("tools/list", json!({})).await?.1.status, 404, "it is over");
    Ok(())
}

#[tokio::test]
async fn the_servers_of_a_foot_are_its_owners() -> TestResult {
    let fake = FakeMcp::new(&everything("mine")?)?;
    let stage = McpStage::start().await?;
    let _foot = stage.offer(Way::Foot, "mine", &fake, json!({ "session": "subject" })).await?;
    for client in Client::both(&stage.target("ben").await?, &json!({})).await? {
        let names = client.tool_names().await?;
        assert!(!names.iter().any(|name| name.contains("mine")), "{names:?}");
        for (method, field) in [
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
            ("prompts/list", "prompts"),
        ] {
            // Who sees nobody that has prompts is told that there is no such method.
            let told = match client.list(method, field).await {
                Ok(all) => json!(all).to_string(),
                Err(error) if error.to_string().contains("-32601") => String::new(),
                Err(error) => return Err(error),
            };
            assert!(!told.contains("mine"), "{told}");
        }
        let unknown = client.call("no_such_tool", json!({})).await?.to_string_lossy();
        let hidden = client.call("mine__find", json!({})).await?.to_string_lossy();
        let same = |text: &str| text.replace("mine__find", "X").replace("no_such_tool", "X");
        let (hidden, unknown) = (same(&hidden), same(&unknown));
        assert_eq!(strip_id(&hidden), strip_id(&unknown), "it is as if it did not exist");
        for (method, params) in [
            ("resources/read", json!({ "uri": "mcp:mine:x://a?q=%20" })),
            ("prompts/get", json!({ "name": "mine__greet" })),
        ] {
            assert!(client.request(method, params).await?.error.is_some(), "{method}");
        }
    }
    assert!(fake.calls_of("find")?.is_empty() && fake.received("resources/read")?.is_empty());
    // Its owner's other client sees it.
    let owner = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    assert!(owner.tool_names().await?.contains(&"mine__find".to_owned()));
    Ok(())
}

fn strip_id(text: &str) -> String {
    let mut message: Value = serde_json::from_str(text).unwrap_or_default();
    message["id"] = Value::Null;
    message.to_string()
}
