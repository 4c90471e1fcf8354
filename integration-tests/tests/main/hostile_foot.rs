//! Feet that do not behave: names and texts they may not use, frames that are none, sockets that end at the wrong time.

use integration_tests::eventually::eventually;
use integration_tests::hub::{Options, TestHub};
use integration_tests::raw_foot::{Identity, RawFoot, simple_tool};
use serde_json::{Value, json};

use crate::TestResult;

const ROLES: [&str; 3] = ["viewer", "engine", "foot"];

/// A hub whose heartbeats and resume grace are short.
async fn quick_hub() -> TestResult<TestHub> {
    let env = vec![
        ("FOOTBRIDGE_FEET_HEARTBEAT_MS".to_owned(), "500".to_owned()),
        ("FOOTBRIDGE_FEET_RESUME_GRACE_MS".to_owned(), "2000".to_owned()),
    ];
    TestHub::start_with(Options { env, ..Options::default() }).await
}

/// H03: reserved, look-alike and poisoned tools.
#[tokio::test]
async fn registration_is_judged_entry_by_entry() -> TestResult {
    let hub = TestHub::start().await?;
    let token = hub.token("ann", &ROLES).await?;
    let api = hub.api()?.with_token(&token);
    let (mut foot, _) = RawFoot::connect(&hub.url, &token, &Identity::new("laptop-1")?).await?;
    let poisoned = "Free space.\u{e0041}\u{e0042}\u{202e}\u{1b}[2J";
    let mut offered = vec![json!({"name": "disk_free", "description": poisoned, "inputSchema": {"type": "object"}})];
    let bad = [
        "tool_list",
        "tool_description",
        "invoke_tool",
        "tool_search",
        "call_tool",
        "tool_result_read",
        "whoami",
        "doc_write",
        "execute_javascript",
        "read\u{200b}_file",
        "Disk_Free",
        "disk-free",
        "a__b__c",
        "__x",
        "x__",
        "tool_list__x",
        "",
        "аdmin",
        &"x".repeat(65),
    ];
    offered.extend(bad.iter().map(|name| simple_tool(name)));
    let schemas = [json!(true), json!([]), json!({"type": "string"}), json!({"type": "object", "properties": 7})];
    offered.extend(
        schemas
            .iter()
            .enumerate()
            .map(|(i, schema)| json!({"name": format!("odd{i}"), "description": "", "inputSchema": schema})),
    );
    let ack = foot.offer(1, json!(offered)).await?;
    let rejected = ack["rejected"].as_array().ok_or("nothing rejected")?;
    assert_eq!(rejected.len(), bad.len() + schemas.len(), "{ack}");
    let code_of = |name: &str| rejected.iter().find(|entry| entry["tool"] == name).map(|entry| entry["code"].clone());
    assert_eq!(code_of("tool_list"), Some(json!("reserved_name")));
    assert_eq!(code_of("whoami"), Some(json!("shadowed")));
    assert_eq!(code_of("Disk_Free"), Some(json!("invalid_tool_name")));
    assert_eq!(code_of("odd2"), Some(json!("invalid_tool_schema")));

    let shown = api.get("tools/disk_free").await?.ok()?.json();
    assert_eq!(shown["description"], "Free space.[2J");
    assert_eq!(api.call("whoami", json!({})).await?["user"], "ann", "the built-in keeps its calls");
    let calling = async { api.call("disk_free", json!({})).await };
    let answering = async {
        let call = foot.receive_kind("call").await?;
        foot.answer(&call, "plenty").await
    };
    let (result, answered) = tokio::join!(calling, answering);
    answered?;
    assert_eq!(result?["text"], "plenty", "the socket is open and the good entry works");
    Ok(())
}

/// Malformed and oversized frames cost the sender its connection at the third, and nobody else anything.
#[tokio::test]
async fn the_third_bad_frame_ends_the_connection() -> TestResult {
    let hub = TestHub::start().await?;
    let token = hub.token("ann", &ROLES).await?;
    let bad = [
        "{",
        "[]",
        "7",
        "{\"type\": 1}",
        "{\"type\": \"result\"}",
        &format!("{{\"type\":\"ping\",\"x\":\"{}\"}}", "x".repeat(70_000)),
    ];
    for start in 0..bad.len() {
        let (mut foot, _) = RawFoot::connect(&hub.url, &token, &Identity::new(&format!("bad{start}"))?).await?;
        // What a newer foot may say is no fault.
        foot.send(&json!({"type": "fromTheFuture", "x": 1})).await?;
        for frame in bad.iter().cycle().skip(start).take(3) {
            foot.send_text(frame).await?;
        }
        for _ in 0..3 {
            let error = foot.receive_kind("error").await?;
            assert_eq!(error["code"], "bad_frame");
        }
        let close = foot.receive().await?;
        assert_eq!((&close["type"], &close["code"]), (&json!("close"), &json!(4400)), "{close}");
    }
    hub.api()?.call("whoami", json!({})).await?;
    Ok(())
}

#[tokio::test]
async fn a_handshake_that_is_not_right_is_refused_with_its_reason() -> TestResult {
    let hub = TestHub::start().await?;
    hub.put_tenant("alpha", &["p"]).await?;
    let token = hub.token("ann", &ROLES).await?;
    type Spoil = fn(&mut Value);
    let spoil: [(&str, u64, Spoil); 5] = [
        ("a wrong proof", 4403, |hello| hello["proof"] = json!("A".repeat(86))),
        ("another's key", 4403, |hello| hello["foot"]["id"] = json!("A".repeat(43))),
        ("another tenant", 4403, |hello| {
            hello["tenant"] = json!("alpha");
            hello["project"] = json!("p");
        }),
        ("no such project", 4403, |hello| hello["project"] = json!("nowhere")),
        ("the tenant's layer", 4403, |hello| hello["project"] = json!("_tenant")),
    ];
    for (what, code, spoil) in spoil {
        let mut foot = RawFoot::dial(&hub.url, &token).await?;
        let challenge = foot.receive_kind("challenge").await?;
        let mut hello = Identity::new("laptop")?.hello(challenge["nonce"].as_str().ok_or("no nonce")?);
        spoil(&mut hello);
        foot.send(&hello).await?;
        let error = foot.receive().await?;
        assert_eq!(error["type"], "error", "{what}: {error}");
        let close = foot.receive().await?;
        assert_eq!(close["code"], code, "{what}: {close}");
    }
    // A name is bound to the key that used it first, until it is released.
    let first = Identity::new("laptop")?;
    let (_open, _) = RawFoot::connect(&hub.url, &token, &first).await?;
    let mut thief = RawFoot::dial(&hub.url, &token).await?;
    let challenge = thief.receive_kind("challenge").await?;
    thief.send(&Identity::new("laptop")?.hello(challenge["nonce"].as_str().ok_or("no nonce")?)).await?;
    assert_eq!(thief.receive_kind("error").await?["code"], "name_taken");
    assert_eq!(thief.receive().await?["code"], 4409);
    // A token that is revoked ends what lives on it.
    let body = json!({"subject": "zoe", "roles": ["foot"], "tenant": "local"});
    let made = hub.api()?.request(reqwest::Method::POST, "/v1/tokens").json(&body);
    let made = integration_tests::api::send(made).await?.json();
    let (mut doomed, _) =
        RawFoot::connect(&hub.url, made["token"].as_str().ok_or("no token")?, &Identity::new("doomed")?).await?;
    let id = made["id"].as_str().ok_or("no id")?;
    integration_tests::api::send(hub.api()?.request(reqwest::Method::DELETE, &format!("/v1/tokens/{id}")))
        .await?
        .ok()?;
    let end = loop {
        let frame = doomed.receive().await?;
        if frame["type"] == "close" {
            break frame;
        }
    };
    assert_eq!(end["code"], 4401);
    Ok(())
}

/// H16: a late close of the old connection removes nothing of the new one.
#[tokio::test]
async fn a_late_close_touches_nothing_of_the_new_connection() -> TestResult {
    let hub = TestHub::start().await?;
    let token = hub.token("ann", &ROLES).await?;
    let api = hub.api()?.with_token(&token);
    let identity = Identity::new("dev-1")?;
    let (mut old, _) = RawFoot::connect(&hub.url, &token, &identity).await?;
    old.offer(1, json!([simple_tool("disk_free")])).await?;
    let (mut new, welcome) = RawFoot::connect(&hub.url, &token, &identity.restarted()).await?;
    assert_eq!(welcome["resumed"], false);
    assert!(api.get("tools/disk_free").await?.status.is_success(), "no moment without the tool");
    new.offer(1, json!([simple_tool("disk_free"), simple_tool("uptime")])).await?;
    old.receive_kind("superseded").await?;
    drop(old);
    for _ in 0..3 {
        for tool in ["disk_free", "uptime", "dev_1__uptime"] {
            let (result, answered) = tokio::join!(api.call(tool, json!({})), async {
                let call = new.receive_kind("call").await?;
                new.answer(&call, "new").await
            });
            answered?;
            assert_eq!(result?["text"], "new", "{tool}");
        }
    }
    Ok(())
}

/// H17: what becomes of a call whose foot is cut off: (a) it resumes with the result, (b) it resumes and never saw the call,
/// (c) it comes back as another process, (d) nobody comes back.
#[tokio::test]
async fn a_call_whose_foot_is_cut_off_has_a_known_fate() -> TestResult {
    let hub = quick_hub().await?;
    let token = hub.token("ann", &ROLES).await?;
    let api = hub.api()?.with_token(&token);
    for run in ["a", "b", "c", "d"] {
        let identity = Identity::new(&format!("cut-{run}"))?;
        let (mut foot, welcome) = RawFoot::connect(&hub.url, &token, &identity).await?;
        foot.offer(1, json!([simple_tool("build")])).await?;
        let calling = {
            let (api, tool) = (api.clone(), format!("cut_{run}__build"));
            async move { api.invoke(&tool, json!({})).await }
        };
        let fate = async {
            let call = foot.receive_kind("call").await?;
            drop(foot);
            let resume = json!({"session": welcome["session"]});
            match run {
                "a" | "b" => {
                    let in_flight = if run == "a" {
                        json!([{"call": call["call"], "state": "done", "origin": call["origin"]}])
                    } else {
                        json!([])
                    };
                    let (mut foot, welcome) = RawFoot::connect_with(&hub.url, &token, &identity, |hello| {
                        hello["resume"] = resume;
                        hello["inFlight"] = in_flight;
                    })
                    .await?;
                    assert_eq!(welcome["resumed"], true);
                    if run == "b" {
                        // It need not wait for the tools to be offered again.
                        let again = foot.receive_kind("call").await?;
                        assert_eq!(again["call"], call["call"], "the very call is sent again");
                    }
                    foot.offer(2, json!([simple_tool("build")])).await?;
                    foot.answer(&call, run).await?;
                    foot.receive_kind("ack").await?;
                    // A result that nobody waits for is dropped, and the foot may forget it too.
                    foot.answer(&call, "again").await?;
                    foot.receive_kind("ack").await?;
                }
                "c" => {
                    RawFoot::connect(&hub.url, &token, &identity.restarted()).await?;
                }
                _ => {}
            }
            TestResult::<()>::Ok(())
        };
        let (answer, fate) = tokio::join!(calling, fate);
        fate?;
        let answer = answer?.json();
        match run {
            "a" | "b" => assert_eq!(answer["structured"]["text"], run, "{answer}"),
            "c" => assert_eq!(
                (&answer["code"], &answer["outcome"]),
                (&json!("foot_restarted"), &json!("unknown")),
                "{answer}"
            ),
            _ => {
                assert_eq!((&answer["code"], &answer["outcome"]), (&json!("foot_gone"), &json!("unknown")), "{answer}")
            }
        }
    }
    assert_eq!(api.running_calls().await?, 0);
    Ok(())
}

/// A foot that says the same thing for ever grows nothing and stops nobody.
#[tokio::test]
async fn a_foot_that_floods_is_only_noise() -> TestResult {
    let hub = TestHub::start().await?;
    let token = hub.token("ann", &ROLES).await?;
    let api = hub.api()?.with_token(&token);
    let (mut foot, _) = RawFoot::connect(&hub.url, &token, &Identity::new("loud")?).await?;
    foot.offer(1, json!([simple_tool("talk")])).await?;
    let (result, flooded) = tokio::join!(api.call("talk", json!({})), async {
        let call = foot.receive_kind("call").await?;
        for number in 0..20_000 {
            foot.send(
                &json!({"type": "progress", "call": call["call"], "progress": number, "message": "x".repeat(100)}),
            )
            .await?;
            foot.send(&json!({"type": "result", "call": format!("nobody{number}"), "origin": "x", "content": [], "isError": false})).await?;
        }
        foot.answer(&call, "done").await
    });
    flooded?;
    assert_eq!(result?["text"], "done");
    #[cfg(target_os = "linux")]
    assert!(resident_kib(&hub)? < 300_000, "the hub holds {} KiB after a flood", resident_kib(&hub)?);
    eventually("the hub still serves", || async { Ok(api.call("whoami", json!({})).await.ok()) }).await?;
    Ok(())
}

/// Memory of a hub, KiB.
#[cfg(target_os = "linux")]
fn resident_kib(hub: &TestHub) -> TestResult<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", hub.process.pid()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().next().ok_or("an empty VmRSS")?.parse()?)
}
