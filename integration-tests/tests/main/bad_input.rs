//! Bad input gets a clear error with a stable code; nothing is lost, nothing else breaks.

use std::process::Command;

use footbridge_hub::web::MAX_CALL_BODY_BYTES;
use integration_tests::api::{Api, send};
use integration_tests::binaries;
use integration_tests::hub::TestHub;
use integration_tests::process::Process;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::TestResult;

#[tokio::test]
async fn each_bad_request_has_its_code_and_says_what_is_wrong() -> TestResult {
    let hub = TestHub::start().await?;
    let api = hub.api()?;
    let invoke = "/v1/local/main/tools/whoami/invoke";
    let big = format!("{{\"arguments\": {{\"x\": \"{}\"}}}}", "x".repeat(MAX_CALL_BODY_BYTES));
    let ask = |method: Method, path: &str, body: &str| send(api.request(method, path).body(body.to_owned()));
    for (method, path, body, status, code) in [
        (Method::POST, invoke, "{", 400, "bad_request"),
        (Method::POST, invoke, "{\"arguments\": {}, \"arguments\": {}}", 400, "bad_request"),
        (Method::POST, invoke, "{\"argument\": {}}", 400, "bad_request"),
        (Method::POST, invoke, "[{}, 5000]", 400, "bad_request"),
        (Method::POST, "/v1/tokens", "[\"x\", [\"engine\"], \"local\"]", 400, "bad_request"),
        (Method::GET, "/v1/local/main/tools/%FF", "", 400, "bad_request"),
        (Method::POST, invoke, "{\"arguments\": [1]}", 422, "invalid_arguments"),
        (Method::POST, invoke, "{\"arguments\": {\"x\": 1}}", 422, "invalid_arguments"),
        (Method::POST, invoke, "{\"timeoutMs\": -1}", 400, "bad_request"),
        (Method::POST, invoke, "{\"timeoutMs\": 0}", 400, "bad_request"),
        (Method::POST, invoke, big.as_str(), 413, "payload_too_large"),
        (Method::POST, "/v1/local/main/tools/nope/invoke", "{}", 404, "unknown_tool"),
        (Method::POST, "/v1/local/main/tools/No%20Pe%00/invoke", "{}", 404, "unknown_tool"),
        (Method::POST, "/v1/local/nowhere/tools/whoami/invoke", "{}", 404, "unknown_scope"),
        (Method::POST, "/v1/nowhere/main/tools/whoami/invoke", "{}", 404, "unknown_scope"),
        (Method::POST, "/v1/LOCAL/main/tools/whoami/invoke", "{}", 404, "unknown_scope"),
        (Method::GET, "/v1/local/main/tools?limit=0", "", 400, "bad_request"),
        (Method::GET, "/v1/local/main/tools?limit=x", "", 400, "bad_request"),
        (Method::GET, "/v1/local/main/tools?cursor=%21", "", 400, "bad_request"),
        (Method::GET, "/v1/local/main/tools?source=feet", "", 400, "bad_request"),
        (Method::GET, "/v1/local/main/tools?nonsense=1", "", 400, "bad_request"),
        (Method::GET, "/v1/local/main/calls/nope", "", 404, "not_found"),
        (Method::GET, "/v1/local/main/feet/nope", "", 404, "not_found"),
        (Method::DELETE, "/v1/local/main/feet/nope", "", 404, "not_found"),
        (Method::GET, "/v1/local/main/documents/a/../b", "", 404, "not_found"),
        (Method::GET, "/v1/local/main/documents/a%2F..%2Fb", "", 400, "invalid_path"),
        (Method::PUT, "/v1/local/main/documents/a%00b", "x", 400, "invalid_path"),
        (Method::GET, "/v1/tool-types/nope", "", 404, "not_found"),
        (Method::PUT, "/v1/local/main/server-tools/Nope", "{}", 400, "invalid_name"),
        (
            Method::PUT,
            "/v1/local/main/server-tools/tool_list",
            "type: doc_lookup\ndescription: x\n",
            422,
            "reserved_name",
        ),
        (Method::PUT, "/v1/local/main/server-tools/x", "type: nope\ndescription: x\n", 422, "unknown_tool_type"),
        (Method::PUT, "/v1/local/main/server-tools/x", "a: 1\na: 2\n", 422, "invalid_document"),
        (Method::PUT, "/v1/local/main/server-tools/x", "", 422, "invalid_document"),
        (Method::PUT, "/v1/local/main/documents/server-tools/x.yaml", "a: 1\na: 2\n", 422, "invalid_document"),
        (Method::POST, "/v1/tokens", "{\"subject\": \"x y\", \"roles\": [\"viewer\"]}", 400, "invalid_name"),
        (Method::POST, "/v1/tokens", "{\"subject\": \"x\", \"roles\": [\"king\"]}", 400, "bad_request"),
        (Method::PUT, "/v1/tenants/tokens", "{\"projects\": []}", 400, "invalid_name"),
        (Method::PUT, "/v1/tenants/x", "{\"projects\": [\"_tenant2\"]}", 400, "invalid_name"),
        (Method::GET, "/v1/nowhere", "", 404, "not_found"),
        (Method::PATCH, "/v1/local/main/tools", "", 405, "method_not_allowed"),
    ] {
        let answer = ask(method.clone(), path, body).await?;
        let shown = body.get(..body.len().min(60)).unwrap_or_default();
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (status, code),
            "{method} {path} {shown}: {}",
            answer.text
        );
        assert_eq!(answer.headers.get("content-type").and_then(|v| v.to_str().ok()), Some("application/problem+json"));
        let problem = answer.json();
        assert_eq!(problem["status"], status);
        assert_eq!(problem["type"], format!("urn:footbridge:error:{code}"));
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{problem}");
    }
    let keyed = api.request(Method::POST, invoke).header("idempotency-key", "k").body("{}");
    assert_eq!(send(keyed).await?.status, StatusCode::OK, "any printable text is a key");
    for odd in ["", "\u{e9}", &"x".repeat(256)] {
        let keyed = api.request(Method::POST, invoke).header("idempotency-key", odd.as_bytes()).body("{}");
        let problem = send(keyed).await?.json();
        assert_eq!((&problem["code"], &problem["outcome"]), (&"bad_request".into(), &"not_run".into()), "{problem}");
    }
    for (token, body) in [("unknown", "{}"), (hub.admin.as_str(), "{")] {
        let refused = send(api.with_token(token).request(Method::POST, invoke).body(body)).await?.json();
        assert_eq!(refused["outcome"], "not_run", "{refused}");
    }
    assert_eq!(ask(Method::POST, invoke, "{}").await?.status, StatusCode::OK, "and the hub serves on");
    Ok(())
}

/// The documents of the cases: H19, duplicate keys at the root and deeper.
#[tokio::test]
async fn an_error_in_a_document_names_its_place() -> TestResult {
    let hub = TestHub::start().await?;
    let api = hub.api()?;
    let tenant = "type: scripted\ndescription: Below.\nparameters: { inputs: [], source: '1' }\n";
    api.in_scope("local/_tenant").put("server-tools/spin", tenant).await?.ok()?;
    for (document, line, key) in [
        (
            "type: scripted\ndescription: x\nenabled: false\nparameters: { inputs: [], source: '1' }\nenabled: true\n",
            5,
            "enabled",
        ),
        (
            "type: scripted\ndescription: x\nparameters:\n  inputs: []\n  source: '1'\n  source: '2'\n",
            6,
            "parameters.source",
        ),
        ("type: scripted\ndescription: x\nparameters:\n  inputs: []\n  sorce: '1'\n", 5, "parameters.sorce"),
        ("type: scripted\ndescription: x\nenabled: yes\nparameters: { inputs: [], source: '1' }\n", 3, "enabled"),
        ("type: scripted\ndescription: 1.10\nparameters: { inputs: [], source: '1' }\n", 2, "description"),
        ("type: scripted\nlables: []\ndescription: x\nparameters: { inputs: [], source: '1' }\n", 2, "lables"),
    ] {
        let answer = api.put("server-tools/spin", document).await?;
        assert_eq!(answer.code(), "invalid_document", "{document}: {}", answer.text);
        let problem = answer.json();
        let error = &problem["errors"][0];
        assert_eq!((&error["line"], &error["key"]), (&json!(line), &json!(key)), "{document}: {}", answer.text);
        let checked = api.put("server-tools/spin?validate=true", document).await?;
        assert_eq!(checked.code(), "invalid_document");
    }
    assert!(
        api.put("server-tools/spin", "type: scripted\nlables: []\ndescription: x\n").await?.text.contains("labels"),
        "did you mean"
    );
    assert_eq!(api.put("server-tools/spin?validate=true", tenant).await?.json()["valid"], true);
    assert_eq!(api.get("server-tools/spin").await?.json()["layer"], "tenant", "a check writes nothing");
    Ok(())
}

/// A full disk: the write is refused as such, what was there stays, and there is room again when there is room.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_loses_nothing() -> TestResult {
    let mount = tempfile::tempdir()?;
    // A small disk of its own, in a mount namespace of its own, so that this needs no clean-up.
    let script = format!(
        "mount -t tmpfs -o size=6m tmpfs {0} && \
         {1} token create --subject root --role admin --json --data {0}/data && \
         exec {1} serve --listen 127.0.0.1:0 --data {0}/data",
        mount.path().display(),
        binaries::footbridge()?.display(),
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", &script]);
    let mut process = Process::spawn(&mut command)?;
    let line = process.line_with("listening on http://")?;
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).ok_or("no address")?.to_owned();
    let token = process.output();
    let token = token.split('"').find(|word| word.starts_with("fbt_")).ok_or("no token")?;
    let api = Api::new(&url, Some(token))?;
    send(api.request(Method::PUT, "/v1/tenants/local").json(&json!({"projects": ["main"]}))).await?.ok()?;
    let text = "x".repeat(200_000);
    let mut written = 0;
    let full = loop {
        let answer = api.put(&format!("documents/documents/{written}.md"), &text).await?;
        if !answer.status.is_success() {
            break answer;
        }
        written += 1;
        assert!(written < 100, "a disk of 6 MB holds no 20 MB");
    };
    assert_eq!(
        (full.status, full.code().as_str()),
        (StatusCode::INSUFFICIENT_STORAGE, "storage_full"),
        "{}",
        full.text
    );
    assert!(written > 3);
    for number in 0..written {
        assert_eq!(api.get(&format!("documents/documents/{number}.md")).await?.text, text);
    }
    api.call("whoami", json!({})).await?;
    assert_eq!(
        api.get(&format!("documents/documents/{written}.md")).await?.status,
        StatusCode::NOT_FOUND,
        "no half of it"
    );
    Ok(())
}

/// A log that cannot be written costs the log and nothing else.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_hub_that_cannot_log_serves_on() -> TestResult {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let token = integration_tests::hub::first_token(&data)?;
    let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full")?;
    let mut command = Command::new(binaries::footbridge()?);
    command.args(["serve", "--log", "trace", "--listen", &address.to_string(), "--data"]).arg(&data).stderr(full);
    let mut hub = command.spawn()?;
    let api = Api::new(&format!("http://{address}"), Some(&token))?;
    let made = integration_tests::eventually::eventually("the hub is up", || async {
        let request = api.request(Method::PUT, "/v1/tenants/local").json(&json!({"projects": ["main"]}));
        Ok(send(request).await?.ok().ok())
    })
    .await;
    let called = api.call("execute_javascript", json!({"code": "vance.log('info', 'x'); 1 + 1"})).await;
    let _ = hub.kill();
    hub.wait()?;
    made?;
    assert_eq!(called?["value"], 2);
    Ok(())
}

/// Half a request is no work: a hub that goes down waits for no rest of it.
#[tokio::test]
async fn half_a_request_does_not_hold_the_hub() -> TestResult {
    use std::io::Write as _;
    let mut hub = TestHub::start().await?;
    let address = hub.url.trim_start_matches("http://").to_owned();
    let mut half = std::net::TcpStream::connect(address)?;
    half.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")?;
    // The hub has taken it in once it answers somebody who came later.
    hub.api()?.call("whoami", json!({})).await?;
    let begun = std::time::Instant::now();
    hub.process.signal(rustix::process::Signal::TERM)?;
    assert!(hub.process.wait()?.success());
    let took = begun.elapsed();
    assert!(took < std::time::Duration::from_secs(15), "the drain took {took:?}, all the time that work may have");
    Ok(())
}
