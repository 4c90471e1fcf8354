//! MCP over HTTP as it is on the wire, version by version: what is refused, what is resumed, what has an end.

use integration_tests::clients::exchange::Exchange;
use integration_tests::clients::raw::{Client, SESSION_VERSION, STATELESS_VERSION, Target};
use integration_tests::clients::stage::{McpStage, OWNER};
use integration_tests::eventually::eventually;
use integration_tests::fake_mcp::FakeMcp;
use integration_tests::fake_mcp::message;
use integration_tests::fake_mcp::script::{Script, Speaks, Step, tool};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::TestResult;

/// Versions with sessions.
const WITH_SESSIONS: [&str; 3] = ["2025-03-26", "2025-06-18", SESSION_VERSION];
const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;
const HEADER_MISMATCH: i64 = -32020;
/// Larger than an answer to a request's head.
const MUCH: usize = 64 * 1024;

/// The body of an answer that is no stream.
async fn whole(mut exchange: Exchange) -> TestResult<Value> {
    Ok(serde_json::from_str(&exchange.next_text().await?.unwrap_or_default()).unwrap_or_default())
}

/// Posts a text as a client without a session and version.
async fn posted(target: &Target, text: &str, headers: &[(&str, &str)]) -> TestResult<(u16, Value)> {
    let mut request = target.request(Method::POST).body(text.to_owned());
    for (name, value) in [("content-type", "application/json"), ("accept", "application/json, text/event-stream")] {
        request = request.header(name, value);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await?;
    let status = response.status().as_u16();
    Ok((status, serde_json::from_str(&response.text().await?).unwrap_or_default()))
}

/// Gets what lies there for everybody.
async fn got(url: String) -> TestResult<reqwest::Response> {
    Ok(Target::new(&url, None)?.request(Method::GET).send().await?)
}

/// A request whose end the test holds, and its client's stream, which has begun.
async fn under_way(client: &Client, tool: &str) -> TestResult<(String, Exchange)> {
    let params = json!({ "name": tool, "arguments": {}, "_meta": { "progressToken": 1 } });
    let (id, mut exchange) = client.begin("tools/call", params).await?;
    exchange.until("notifications/progress").await?;
    Ok((id, exchange))
}

/// A server with a tool that tells progress and then waits for its gate.
fn gated() -> Script {
    Script { speaks: Speaks::Both, ..Script::default() }
        .doing("slow", vec![Step::Progress { times: 1, every_ms: 1 }, Step::Gate("go".to_owned()), Step::text("whole")])
}

/// Only versions that know it get an event without a message, on every kind of stream.
#[tokio::test]
async fn a_stream_begins_as_its_version_has_it() -> TestResult {
    let fake = FakeMcp::new(&gated())?;
    let stage = McpStage::start().await?;
    stage.attach("lab", &fake, json!({ "session": "subject" })).await?;
    let target = stage.target(OWNER).await?;
    for version in WITH_SESSIONS {
        let client = Client::open_with(&target, version, json!({})).await?;
        let (_, exchange) = under_way(&client, "lab__slow").await?;
        let last = exchange.last_event.clone().ok_or("events have no ids")?;
        drop(exchange);
        let id = client.session().ok_or("no session")?;
        fake.open_gate("go")?;
        let get = target.request(Method::GET).header("accept", "text/event-stream");
        let get = get.header("mcp-session-id", id).header("last-event-id", &last);
        let mut response = get.send().await?;
        let first = response.chunk().await?.ok_or("the stream is empty")?;
        let primes = String::from_utf8_lossy(&first).contains("retry:");
        assert_eq!(primes, version == SESSION_VERSION, "{version}");
    }
    Ok(())
}

#[tokio::test]
async fn only_own_events_that_were_are_resumed() -> TestResult {
    let fake = FakeMcp::new(&gated())?;
    let stage = McpStage::start().await?;
    stage.attach("lab", &fake, json!({ "session": "subject" })).await?;
    let target = stage.target(OWNER).await?;
    let client = Client::open(&target, json!({})).await?;
    let (_, exchange) = under_way(&client, "lab__slow").await?;
    let last = exchange.last_event.clone().ok_or("events have no ids")?;
    let other = Client::open(&target, json!({})).await?;
    let (stream, _) = last.split_once('-').ok_or("an id of another form")?;
    assert!(other.listen(Some(&last)).await.is_err(), "of another session");
    for made_up in
        [&format!("{stream}-999"), "0-1", "77-1", "1", "-", "x-y", "1-1-1", "-1-0", "99999999999999999999-1", ""]
    {
        assert!(client.listen(Some(made_up)).await.is_err(), "{made_up}");
    }
    assert!(client.listen(Some(&last)).await.is_ok());
    Ok(())
}

/// Who says nothing of what it has seen hears what comes, and nothing that was.
#[tokio::test]
async fn a_stream_of_a_session_begins_now() -> TestResult {
    let more = |name: &str| vec![Step::ReplaceTools(vec![tool("more"), tool("most"), tool(name)]), Step::text("done")];
    let script = Script::default().doing("more", more("x")).doing("most", more("y"));
    let fake = FakeMcp::new(&script)?;
    let stage = McpStage::start().await?;
    // One process for all: each process has a list of its own.
    stage.attach("lab", &fake, json!({ "session": "shared" })).await?;
    let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    client.tool_names().await?;
    let mut events = Vec::new();
    for tool in ["lab__more", "lab__most"] {
        let mut told = client.listen(None).await?;
        client.call(tool, json!({})).await?;
        told.until("notifications/tools/list_changed").await.map_err(|error| format!("{tool}: {error}"))?;
        events.push(told.last_event.clone().ok_or("events have no ids")?);
    }
    assert_eq!(events, ["0-1", "0-2"], "the first is not told again");
    Ok(())
}

#[tokio::test]
async fn headers_and_bodies_say_the_same() -> TestResult {
    let stage = McpStage::start().await?;
    let target = stage.target(OWNER).await?;
    let initialize = |version: &str| {
        message::request("1", "initialize", &json!({ "protocolVersion": version, "capabilities": {} }).to_string())
    };
    for version in WITH_SESSIONS {
        let (status, answer) = posted(&target, &initialize(version), &[("mcp-protocol-version", "2024-11-05")]).await?;
        assert_eq!((status, answer["error"]["code"].as_i64()), (400, Some(INVALID_REQUEST)), "{version}");
        let list = message::request("1", "tools/list", "{}");
        let (status, answer) = posted(&target, &list, &[("mcp-protocol-version", version)]).await?;
        assert!(status == 200 && answer["result"]["tools"].is_array(), "{version} without a session: {answer}");
    }
    let meta = |version: &str| {
        json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientInfo": { "name": "story", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {} } })
        .to_string()
    };
    let list = message::request("1", "tools/list", &meta(STATELESS_VERSION));
    let version = ("mcp-protocol-version", STATELESS_VERSION);
    for (headers, status, code) in [
        (vec![version, ("mcp-method", "tools/list")], 200, None),
        (vec![version], 400, Some(HEADER_MISMATCH)),
        (vec![version, ("mcp-method", "tools/call")], 400, Some(HEADER_MISMATCH)),
        (vec![("mcp-method", "tools/list")], 400, Some(HEADER_MISMATCH)),
        (vec![("mcp-protocol-version", SESSION_VERSION), ("mcp-method", "tools/list")], 400, Some(HEADER_MISMATCH)),
    ] {
        let (was, answer) = posted(&target, &list, &headers).await?;
        assert_eq!((was, answer["error"]["code"].as_i64()), (status, code), "{headers:?}: {answer}");
    }
    let (status, answer) = posted(&target, &list, &[("mcp-session-id", "made-up")]).await?;
    assert_eq!((status, answer["code"].as_str()), (404, Some("not_found")), "{answer}");
    Ok(())
}

#[tokio::test]
async fn pages_and_names_that_the_hub_does_not_know_are_told_what_to_change() -> TestResult {
    let stage = McpStage::start().await?;
    let target = stage.target(OWNER).await?;
    let list = message::request("1", "tools/list", "{}");
    for (header, setting) in [(("host", "evil.example"), "allowedHosts"), (("origin", "null"), "allowedOrigins")] {
        let (status, problem) = posted(&target, &list, &[header]).await?;
        assert_eq!((status, problem["code"].as_str()), (403, Some("forbidden")));
        assert!(problem["hint"].as_str().is_some_and(|hint| hint.contains(setting)), "{problem}");
        assert!(!problem.to_string().contains("role"), "{problem}");
    }
    Ok(())
}

#[tokio::test]
async fn whoever_has_no_token_is_led_to_what_describes_the_endpoint() -> TestResult {
    let stage = McpStage::start().await?;
    let url = format!("{}/mcp/local/main", stage.hub.url);
    let answer = Target::new(&url, None)?.request(Method::POST).body("{}").send().await?;
    assert_eq!(answer.status(), 401);
    let challenge = answer.headers()["www-authenticate"].to_str()?.to_owned();
    let place = challenge.split("resource_metadata=\"").nth(1).and_then(|rest| rest.split('"').next());
    let described = got(place.ok_or(challenge.clone())?.to_owned()).await?;
    assert_eq!(described.status(), 200);
    assert_eq!(serde_json::from_str::<Value>(&described.text().await?)?["resource"], url);
    let known = format!("{}/.well-known/oauth-protected-resource/mcp", stage.hub.url);
    for hostile in ["a%22b/main", "%2e%2e%2f/main", "%0d%0ax/main", "%ff/main", "local/%3Cscript%3E"] {
        let answer = got(format!("{known}/{hostile}")).await?;
        assert!(answer.status().is_client_error(), "{hostile}: {}", answer.status());
    }
    // Nobody learns there which tenants are.
    let nobody = got(format!("{known}/nobody/nothing")).await?;
    assert_eq!(nobody.status(), 200);
    Ok(())
}

#[tokio::test]
async fn batches_are_of_one_version_and_have_an_end() -> TestResult {
    let stage = McpStage::start().await?;
    let target = stage.target(OWNER).await?;
    let batch = |count: usize| {
        let pings: Vec<String> = (0..count).map(|n| message::request(&n.to_string(), "ping", "{}")).collect();
        format!("[{}]", pings.join(","))
    };
    for version in WITH_SESSIONS {
        let client = Client::open_with(&target, version, json!({})).await?;
        let exchange = client.post(batch(100), &[]).await?;
        if version == "2025-03-26" {
            assert_eq!(whole(exchange).await?.as_array().map(Vec::len), Some(100));
        } else {
            assert_eq!(whole(exchange).await?["error"]["code"], INVALID_REQUEST, "{version}");
        }
    }
    for (text, status) in [(batch(100), 200), (batch(101), 400), (batch(10_000), 400), (batch(0), 400)] {
        assert_eq!(posted(&target, &text, &[]).await?.0, status, "{} bytes", text.len());
    }
    let mixed = format!("[{},7,{{}}]", message::request("1", "initialize", "{}"));
    let (_, answers) = posted(&target, &mixed, &[]).await?;
    let errors = answers.as_array().map(|all| all.iter().filter(|one| one["error"]["code"].is_i64()).count());
    assert_eq!(errors, Some(3), "{answers}");
    Ok(())
}

#[tokio::test]
async fn what_a_client_says_has_limits_and_the_hub_lives_on() -> TestResult {
    let fake = FakeMcp::new(&gated())?;
    let stage = McpStage::start().await?;
    stage.attach("lab", &fake, json!({ "session": "subject" })).await?;
    let target = stage.target(OWNER).await?;
    let client = Client::open(&target, json!({})).await?;
    for (id, fits) in [
        ("-7", true),
        ("1.5", true),
        ("\"\"", true),
        (&format!("\"{}\"", "x".repeat(254)), true),
        (&format!("\"{}\"", "x".repeat(255)), false),
        (&"9".repeat(300), false),
        ("null", false),
        ("{}", false),
        ("[1]", false),
        ("true", false),
    ] {
        let answer = whole(client.post(message::request(id, "ping", "{}"), &[]).await?).await?;
        assert_eq!(answer["result"].is_object(), fits, "{id}: {answer}");
        assert!(fits || answer["error"]["code"] == INVALID_REQUEST, "{id}: {answer}");
    }
    let (id, exchange) = under_way(&client, "lab__slow").await?;
    let again = whole(client.post(message::request(&id, "ping", "{}"), &[]).await?).await?;
    assert_eq!(again["error"]["code"], INVALID_REQUEST, "an id in use");
    drop(exchange);
    let large =
        json!({ "protocolVersion": SESSION_VERSION, "capabilities": { "experimental": { "x": "y".repeat(70_000) } } });
    let (status, answer) = posted(&target, &message::request("1", "initialize", &large.to_string()), &[]).await?;
    assert_eq!((status, answer["error"]["code"].as_i64()), (400, Some(INVALID_PARAMS)));
    assert!(answer["error"]["data"]["hint"].is_string(), "{answer}");
    // Deep, wide, and no JSON at all.
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let wide: Vec<String> = (0..100_000).map(|n| format!("\"f{n}\":{n}")).collect();
    for params in [format!(r#"{{"x":{deep}}}"#), format!("{{{}}}", wide.join(","))] {
        for text in [
            message::request("1", "ping", &params),
            message::request("1", "tools/call", &format!(r#"{{"name":"tool_list","arguments":{params}}}"#)),
        ] {
            assert!(posted(&target, &text, &[]).await?.0 < 500, "{}", &text[..80]);
        }
    }
    assert!(posted(&target, &deep, &[]).await?.1[0]["error"]["code"].is_i64(), "a batch of one that is no message");
    assert_eq!(posted(&target, "{", &[]).await?.0, 400);
    assert_eq!(client.begin("ping", json!({})).await?.1.status, 200);
    Ok(())
}

#[tokio::test]
async fn a_name_that_is_close_is_guessed() -> TestResult {
    let fake = FakeMcp::new(&Script::with_tools(&["get-sum"]))?;
    let stage = McpStage::start().await?;
    stage.attach("every", &fake, json!({})).await?;
    let answer = Client::open(&stage.target(OWNER).await?, json!({})).await?.call("every__get-sum", json!({})).await?;
    let error = answer.error_value();
    assert_eq!(error["data"]["hint"], "did you mean `every__get_sum`?", "{error}");
    let (status, problem) =
        posted(&stage.target_of(OWNER, "?pack=evry").await?, &message::request("1", "ping", "{}"), &[]).await?;
    assert_eq!((status, problem["hint"].as_str()), (404, Some("did you mean `every`?")), "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("`every`")), "{problem}");
    Ok(())
}

/// Sends the head of a request and a little of its body.
async fn unfinished(stage: &McpStage, path: &str, token: &str, length: usize) -> TestResult<TcpStream> {
    let address = stage.hub.url.trim_start_matches("http://");
    let mut socket = TcpStream::connect(address).await?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\naccept: application/json, \
         text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{{"
    );
    socket.write_all(head.as_bytes()).await?;
    Ok(socket)
}

/// What comes back until the other side ends it, or there is much of it.
async fn answered(mut socket: TcpStream) -> TestResult<String> {
    let mut text = Vec::new();
    while text.len() < MUCH && socket.read_buf(&mut text).await? > 0 {
        if String::from_utf8_lossy(&text).contains("}") {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A client that announces bodies and sends none takes its own room, and no one else's.
#[tokio::test]
async fn bodies_that_do_not_come_leave_room_for_others() -> TestResult {
    const BODY: usize = 16 * 1024 * 1024;
    let stage = McpStage::start().await?;
    let token = stage.hub.token("ben", &["engine"]).await?;
    for path in ["/mcp/local/main", "/v1/local/main/tools/tool_list/invoke"] {
        let mut waiting = Vec::new();
        for _ in 0..96 / 16 {
            waiting.push(unfinished(&stage, path, &token, BODY).await?);
        }
        // Of the seven one too many is refused, whichever came last.
        let last = unfinished(&stage, path, &token, BODY).await?;
        waiting.push(last);
        let answers = waiting.into_iter().map(|socket| Box::pin(answered(socket)));
        let (first, _, others) = futures::future::select_all(answers).await;
        let text = first?;
        assert!(text.contains("503") && text.contains("overloaded"), "{path}: {text}");
        assert!(text.to_lowercase().contains("retry-after: 1"), "{path}: {text}");
        let list = message::request("1", "tools/list", "{}");
        assert_eq!(posted(&stage.target(OWNER).await?, &list, &[]).await?.0, 200, "somebody else is served");
        drop(others);
        let own = Target::new(&format!("{}/mcp/local/main", stage.hub.url), Some(&token))?;
        eventually("there is room again", || async { Ok((posted(&own, &list, &[]).await?.0 == 200).then_some(())) })
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_body_that_is_not_there_does_not_hold_up_the_end() -> TestResult {
    let mut stage = McpStage::start().await?;
    let token = stage.hub.token(OWNER, &["engine"]).await?;
    let mut sockets = Vec::new();
    for path in ["/mcp/local/main", "/v1/local/main/tools/tool_list/invoke"] {
        sockets.push(unfinished(&stage, path, &token, 1_000).await?);
    }
    // A request that came later has been answered: those before it are being read.
    assert_eq!(posted(&stage.target(OWNER).await?, &message::request("1", "ping", "{}"), &[]).await?.0, 200);
    stage.hub.process.signal(Signal::TERM)?;
    for socket in sockets {
        let text = answered(socket).await?;
        assert!(text.contains("503") && text.contains("draining"), "{text}");
    }
    assert!(stage.hub.process.wait()?.success());
    Ok(())
}

/// At the hard end of the hub whoever waits is told that the call was cut off, in a session and without.
#[tokio::test]
async fn what_the_end_of_the_hub_cuts_off_is_answered() -> TestResult {
    let fake = FakeMcp::new(&gated())?;
    let stage = McpStage::start().await?;
    stage.attach("lab", &fake, json!({ "session": "subject" })).await?;
    let target = stage.target(OWNER).await?;
    let mut waiting = Vec::new();
    for client in Client::both(&target, &json!({})).await? {
        waiting.push(under_way(&client, "lab__slow").await?);
    }
    stage.hub.process.signal(Signal::TERM)?;
    let address = stage.hub.url.trim_start_matches("http://").to_owned();
    eventually("the hub takes no connection", || async {
        Ok(TcpStream::connect(&address).await.is_err().then_some(()))
    })
    .await?;
    stage.hub.process.signal(Signal::TERM)?;
    for (id, mut exchange) in waiting {
        let answer = exchange.answer().await?;
        let text = answer.to_string_lossy();
        assert_eq!(answer.id_text(), id, "{text}");
        assert!(text.contains("draining") && text.contains("unknown"), "{text}");
    }
    Ok(())
}

/// What waits for its client ends with the token that began it, also for the same person with another.
#[tokio::test]
async fn a_ticket_ends_with_its_token() -> TestResult {
    let fake = FakeMcp::new(&Script::default().doing("ask", vec![Step::elicit("who are you?"), Step::EchoAnswers]))?;
    let stage = McpStage::start().await?;
    stage.attach("crm", &fake, json!({ "session": "subject" })).await?;
    let body = json!({ "subject": OWNER, "roles": ["engine"], "tenant": "local" });
    let made =
        integration_tests::api::send(stage.api.request(Method::POST, "/v1/tokens").json(&body)).await?.ok()?.json();
    let target = Target::new(&format!("{}/mcp/local/main", stage.hub.url), made["token"].as_str())?;
    let capabilities = json!({ "elicitation": {} });
    let client = Client::stateless(&target, capabilities.clone()).await?;
    let asked = client.call("crm__ask", json!({})).await?.result_value();
    let state = asked["requestState"]
        .as_str()
        .filter(|state| state.starts_with("footbridge-ticket:"))
        .ok_or_else(|| asked.to_string())?
        .to_owned();
    let id = made["id"].as_str().ok_or("no id")?;
    integration_tests::api::send(stage.api.request(Method::DELETE, &format!("/v1/tokens/{id}"))).await?.ok()?;
    let again = Client::stateless(&stage.target(OWNER).await?, capabilities).await?;
    let params = json!({ "name": "crm__ask", "arguments": {}, "requestState": state,
        "inputResponses": { "input_1": { "action": "decline" } } });
    let answer = again.request("tools/call", params).await?;
    assert_eq!(answer.error_value()["code"], INVALID_PARAMS, "{}", answer.to_string_lossy());
    Ok(())
}

/// Whoever wants to hear of progress may say so with the answers to what it was asked.
#[tokio::test]
async fn progress_is_told_under_a_token_that_comes_with_the_answers() -> TestResult {
    let steps = vec![
        Step::elicit("who are you?"),
        Step::Progress { times: 3, every_ms: 1 },
        Step::Gate("go".to_owned()),
        Step::EchoAnswers,
    ];
    let fake = FakeMcp::new(&Script::default().doing("ask", steps))?;
    let stage = McpStage::start().await?;
    stage.attach("crm", &fake, json!({ "session": "subject" })).await?;
    let client = Client::stateless(&stage.target(OWNER).await?, json!({ "elicitation": {} })).await?;
    let asked = client.call("crm__ask", json!({})).await?.result_value();
    let params = json!({ "name": "crm__ask", "arguments": {}, "requestState": asked["requestState"],
        "inputResponses": { "input_1": { "action": "decline" } }, "_meta": { "progressToken": "later" } });
    let (_, mut exchange) = client.begin("tools/call", params).await?;
    let told = exchange.until("notifications/progress").await?.params_value();
    assert_eq!(told["progressToken"], "later");
    fake.open_gate("go")?;
    assert!(exchange.answer().await?.to_string_lossy().contains("decline"));
    Ok(())
}
