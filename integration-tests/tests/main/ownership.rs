//! A foot serves its owner, and others only when its own configuration says so.

use integration_tests::api::Api;
use integration_tests::foot::TestFoot;
use integration_tests::hub::TestHub;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::TestResult;

/// Every role there is, but not admin.
const ALL_BUT_ADMIN: [&str; 4] = ["viewer", "engine", "configure", "foot"];

/// Whether a subject can reach the tools of another one's foot, asked on every path there is. Answers the paths that lead
/// there.
async fn paths_that_lead_there(api: &Api) -> TestResult<Vec<&'static str>> {
    let mut found = Vec::new();
    let listed = api.get("tools?limit=1000").await?.ok()?.text;
    if listed.contains("file_read") {
        found.push("tools");
    }
    for (path, tool) in [("tool bare", "file_read"), ("tool qualified", "laptop__file_read")] {
        if api.get(&format!("tools/{tool}")).await?.status.is_success() {
            found.push(path);
        }
    }
    for (path, tool) in [("invoke bare", "file_read"), ("invoke qualified", "laptop__file_read")] {
        if api.invoke(tool, json!({"path": "secret.txt"})).await?.text.contains("the content") {
            found.push(path);
        }
    }
    let why = api.get("tools/file_read/why").await?.ok()?.json();
    if why["callable"] == true || why["layers"].as_array().is_some_and(|layers| !layers.is_empty()) {
        found.push("why");
    }
    if api.get("feet").await?.ok()?.text.contains("laptop") {
        found.push("feet");
    }
    if api.get("feet/laptop").await?.status.is_success() {
        found.push("foot");
    }
    for (path, tool, arguments, sign) in [
        ("foot_list", "foot_list", json!({}), "laptop"),
        ("tool_list", "tool_list", json!({}), "file_read"),
        (
            "tool_description",
            "tool_description",
            json!({"names": ["file_read", "laptop__file_read", "whoami"]}),
            "\"name\":\"file_read\"",
        ),
        (
            "invoke_tool",
            "invoke_tool",
            json!({"name": "laptop__file_read", "params": {"path": "secret.txt"}}),
            "the content",
        ),
        ("script has", "execute_javascript", json!({"code": "String(vance.tools.has('file_read'))"}), "true"),
        ("script list", "execute_javascript", json!({"code": "JSON.stringify(vance.tools.list())"}), "file_read"),
        (
            "script call",
            "execute_javascript",
            json!({"code": "try { JSON.stringify(vance.tools.call('file_read', {path: 'secret.txt'})) } catch (e) { e.code }"}),
            "the content",
        ),
        ("scripted tool", "reader", json!({}), "the content"),
        ("foot pack", "box__file_read", json!({"path": "secret.txt"}), "the content"),
    ] {
        if api.invoke(tool, arguments).await?.text.contains(sign) {
            found.push(path);
        }
    }
    Ok(found)
}

async fn offer_detours(api: &Api) -> TestResult {
    let scripted = "type: scripted\ndescription: Reads through a sibling.\nparameters:\n  inputs: []\n  source: |\n    \
                    let out; try { out = vance.tools.call('laptop__file_read', {path: 'secret.txt'}).content } catch (e) { out = e.code } out\n";
    api.put("server-tools/reader", scripted).await?.ok()?;
    api.put("server-tools/box", "type: foot\ndescription: The laptop.\nparameters: { foot: laptop }\n").await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn a_foot_is_its_owners_alone_until_it_is_shared() -> TestResult {
    let hub = TestHub::start().await?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("secret.txt"), "the content")?;
    let owner = hub.api()?.with_token(&hub.token("ann", &ALL_BUT_ADMIN).await?);
    let other = hub.api()?.with_token(&hub.token("bob", &ALL_BUT_ADMIN).await?);
    offer_detours(&owner).await?;

    let mut foot = TestFoot::start(&hub, "ann", "laptop", folder.path(), &[]).await?;
    let all = paths_that_lead_there(&owner).await?;
    assert_eq!(all.len(), 17, "the owner gets there on every path: {all:?}");
    assert_eq!(paths_that_lead_there(&other).await?, [""; 0], "another subject gets there on none");
    let denied = other.invoke("laptop__file_read", json!({"path": "secret.txt"})).await?;
    let nothing = other.invoke("laptop__file_nope", json!({"path": "secret.txt"})).await?;
    assert_eq!(denied.status, StatusCode::NOT_FOUND);
    assert_eq!(denied.text.replace("file_read", "file_nope"), nothing.text, "and cannot tell that it exists");

    // An admin sees that there is a foot, whose it is and whether it is here; never its tools.
    let feet = hub.api()?.get("feet").await?.ok()?.json();
    let seen =
        feet["feet"].as_array().and_then(|feet| feet.iter().find(|foot| foot["name"] == "laptop")).ok_or("not seen")?;
    assert_eq!((&seen["owner"], &seen["state"], &seen["own"]), (&json!("ann"), &json!("connected"), &json!(false)));
    assert_eq!((&seen["tools"], &seen["cwd"], &seen["hostname"]), (&Value::Null, &Value::Null, &Value::Null));
    assert!(!hub.api()?.get("tools?limit=1000").await?.text.contains("file_read"));
    assert_eq!(hub.api()?.invoke("laptop__file_read", json!({"path": "secret.txt"})).await?.code(), "unknown_tool");

    foot.process.kill()?;
    drop(foot);
    send_release(&owner).await?;
    let _foot = TestFoot::start(&hub, "ann", "laptop", folder.path(), &["--share", "project"]).await?;
    let all = paths_that_lead_there(&other).await?;
    assert_eq!(all.len(), 17, "shared with the project, everybody in it gets there: {all:?}");
    Ok(())
}

/// A new key under a bound name is refused until the name is released, so the second start of this test needs that.
async fn send_release(owner: &Api) -> TestResult {
    owner.delete("feet/laptop").await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn a_foot_can_be_shared_with_named_subjects() -> TestResult {
    let hub = TestHub::start().await?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("secret.txt"), "the content")?;
    let _foot = TestFoot::start(&hub, "ann", "laptop", folder.path(), &["--share", "bob"]).await?;
    for (subject, may) in [("ann", true), ("bob", true), ("eve", false)] {
        let api = hub.api()?.with_token(&hub.token(subject, &["engine", "viewer"]).await?);
        let read = api.invoke("file_read", json!({"path": "secret.txt"})).await?.text.contains("the content");
        assert_eq!(read, may, "{subject}");
    }
    Ok(())
}
