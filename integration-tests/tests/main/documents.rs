//! Documents over HTTP: layers, conditions, versions, the live folder, and no way out of it.

use std::fs;
use std::os::unix::fs::symlink;

use integration_tests::api::send;
use integration_tests::eventually::eventually;
use integration_tests::hub::{Options, TestHub};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::TestResult;

#[tokio::test]
async fn conditions_keep_writers_from_losing_each_others_work() -> TestResult {
    let hub = TestHub::start().await?;
    let api = hub.api()?;
    let path = "documents/documents/plan.md";
    let put = |text: &str, header: Option<(&'static str, String)>| {
        let request = api.scoped(Method::PUT, path).body(text.to_owned());
        send(match header {
            Some((name, value)) => request.header(name, value),
            None => request,
        })
    };
    let first = put("one", Some(("if-none-match", "*".to_owned()))).await?;
    assert_eq!(first.status, StatusCode::CREATED);
    assert_eq!(put("again", Some(("if-none-match", "*".to_owned()))).await?.status, StatusCode::PRECONDITION_FAILED);
    let second = put("two", Some(("if-match", first.etag()))).await?;
    assert_eq!(second.status, StatusCode::OK);
    let stale = put("lost", Some(("if-match", first.etag()))).await?;
    assert_eq!((stale.status, stale.code().as_str()), (StatusCode::PRECONDITION_FAILED, "version_mismatch"));
    let read = api.get(path).await?;
    assert_eq!((read.text.as_str(), read.etag()), ("two", second.etag()));
    assert_eq!(read.headers.get("footbridge-layer").and_then(|v| v.to_str().ok()), Some("project"));
    let unchanged = send(api.scoped(Method::GET, path).header("if-none-match", second.etag())).await?;
    assert_eq!(unchanged.status, StatusCode::NOT_MODIFIED);

    for number in 0..30 {
        put(&format!("text {number}"), None).await?.ok()?;
    }
    let versions = api.get(&format!("{path}?versions=true")).await?.json();
    let versions = versions["versions"].as_array().ok_or("no versions")?;
    assert_eq!(versions.len(), 20, "the last twenty versions are kept");
    assert_eq!((&versions[0]["version"], &versions[0]["createdBy"]), (&json!(32), &json!("root")));
    assert_eq!(api.get(&format!("{path}?version=31")).await?.text, "text 28");

    let gone = send(api.scoped(Method::DELETE, path).header("if-match", first.etag())).await?;
    assert_eq!(gone.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(api.delete(path).await?.status, StatusCode::NO_CONTENT);
    assert_eq!(api.delete(path).await?.status, StatusCode::NOT_FOUND);
    let anew = put("anew", Some(("if-none-match", "*".to_owned()))).await?;
    assert_ne!(anew.etag(), first.etag(), "an old ETag never fits a new document");
    Ok(())
}

#[tokio::test]
async fn a_put_over_an_inherited_document_makes_the_override() -> TestResult {
    let hub = TestHub::start().await?;
    let api = hub.api()?;
    let tool = "server-tools/doc_getting_started";
    let inherited = api.get(tool).await?.ok()?;
    assert_eq!(inherited.json()["layer"], "bundled");
    assert_eq!(api.delete(tool).await?.status, StatusCode::NOT_FOUND, "this layer holds none");
    let own = "type: doc_lookup\ndescription: Ours.\nparameters: { path: documents/ours.md }\n";
    let stale = send(api.scoped(Method::PUT, tool).header("if-match", "\"bundled-0\"").body(own)).await?;
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
    let written = send(api.scoped(Method::PUT, tool).header("if-match", inherited.etag()).body(own)).await?.ok()?;
    assert_eq!(written.json()["layer"], "project");
    assert_eq!(api.get("tools/doc_getting_started").await?.json()["description"], "Ours.");
    assert_eq!(api.in_scope("local/other").get("tools/doc_getting_started").await?.json()["layer"], "bundled");
    api.delete(tool).await?.ok()?;
    assert_eq!(api.get("tools/doc_getting_started").await?.json()["layer"], "bundled", "the bundled one is seen again");
    Ok(())
}

#[tokio::test]
async fn a_put_is_in_force_when_it_returns() -> TestResult {
    let hub = TestHub::start().await?;
    let api = hub.api()?;
    for round in 0..50 {
        let document =
            format!("type: scripted\ndescription: Round {round}.\nparameters:\n  inputs: []\n  source: '{round}'\n");
        let scope = if round % 2 == 0 { "local/main" } else { "local/_tenant" };
        if round % 2 == 1 {
            api.delete("server-tools/rounds").await?.ok()?;
        }
        api.in_scope(scope).put("server-tools/rounds", &document).await?.ok()?;
        assert_eq!(api.call("rounds", json!({})).await?["value"], round, "round {round}");
    }
    Ok(())
}

#[tokio::test]
async fn a_saved_file_is_live_within_a_second_or_so_and_a_broken_one_hides_what_lies_below() -> TestResult {
    let folder = tempfile::tempdir()?;
    let project = folder.path().join("local/main/server-tools");
    fs::create_dir_all(&project)?;
    let options = Options { documents: Some(folder.path().to_owned()), ..Options::default() };
    let hub = TestHub::start_with(options).await?;
    let api = hub.api()?;
    let tool = |value: &str| {
        format!("type: scripted\ndescription: Says {value}.\nparameters:\n  inputs: []\n  source: '{value}'\n")
    };
    api.put("server-tools/number", &tool("1")).await?.ok()?;
    assert_eq!(api.call("number", json!({})).await?["value"], 1);

    let file = project.join("number.yaml");
    fs::write(&file, tool("2"))?;
    let becomes = async |wanted: &str| -> TestResult {
        eventually(&format!("the tool answers {wanted}"), || async {
            let answer = api.invoke("number", json!({})).await?.text;
            Ok(answer.contains(wanted).then_some(()))
        })
        .await?;
        Ok(())
    };
    becomes("\"value\":2").await?;
    let refused = api.put("server-tools/number", &tool("9")).await?;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::CONFLICT, "layer_read_only"));
    // Editors write a new file and move it into place.
    fs::write(project.join(".number.yaml.tmp"), tool("3"))?;
    fs::rename(project.join(".number.yaml.tmp"), &file)?;
    becomes("\"value\":3").await?;
    fs::write(
        &file,
        "type: scripted\ndescription: Twice.\nenabled: false\nparameters: { inputs: [], source: '4' }\nenabled: true\n",
    )?;
    becomes("tool_broken").await?;
    let broken = api.get("tools?prefix=number").await?.json();
    assert_eq!(broken["tools"][0]["state"], "broken");
    let reason = broken["tools"][0]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("enabled") && reason.contains('5'), "the key and its line are named: {reason}");
    // A folder where the file should be is no way through either.
    fs::remove_file(&file)?;
    fs::create_dir(&file)?;
    becomes("tool_broken").await?;
    fs::remove_dir(&file)?;
    becomes("\"value\":1").await?;
    // Nor is a file where the project's folder should be.
    fs::remove_dir_all(folder.path().join("local/main"))?;
    fs::write(folder.path().join("local/main"), "")?;
    becomes("tool_broken").await?;
    fs::remove_file(folder.path().join("local/main"))?;
    becomes("\"value\":1").await?;
    Ok(())
}

/// H24: nothing outside the root is read, whatever the path looks like.
#[tokio::test]
async fn a_lookup_does_not_leave_its_root() -> TestResult {
    let folder = tempfile::tempdir()?;
    let outside = tempfile::tempdir()?;
    fs::write(outside.path().join("hostname"), "OUTSIDE")?;
    for (scope, text) in [("local/main", "main"), ("local/other", "OTHER PROJECT"), ("alpha/main", "OTHER TENANT")] {
        fs::create_dir_all(folder.path().join(scope).join("documents"))?;
        fs::create_dir_all(folder.path().join(scope).join("scripts"))?;
        fs::write(folder.path().join(scope).join("documents/own.md"), text)?;
        fs::write(folder.path().join(scope).join("scripts/own.js"), format!("'{text}'"))?;
    }
    let main = folder.path().join("local/main");
    fs::create_dir_all(main.join("documents-private"))?;
    fs::write(main.join("documents-private/x.md"), "PRIVATE")?;
    fs::write(main.join("documents/a..b.md"), "legitimate")?;
    fs::write(main.join("scripts/a..b.js"), "'legitimate'")?;
    for (kind, extension) in [("documents", "md"), ("scripts", "js")] {
        let links = main.join(kind);
        symlink(outside.path().join("hostname"), links.join(format!("link.{extension}")))?;
        symlink(format!("../../other/{kind}/own.{extension}"), links.join(format!("project.{extension}")))?;
        symlink(format!("../../../alpha/main/{kind}/own.{extension}"), links.join(format!("tenant.{extension}")))?;
        symlink(outside.path(), links.join("folder"))?;
    }
    symlink("/etc", main.join("documents/etc"))?;
    let options = Options { documents: Some(folder.path().to_owned()), ..Options::default() };
    let hub = TestHub::start_with(options).await?;
    let api = hub.api()?;
    let paths = |root: &str, extension: &str| {
        [
            format!("{root}/../../../etc/hostname"),
            "/etc/hostname".to_owned(),
            format!("{root}/%2e%2e/%2e%2e/etc/hostname"),
            format!("{root}\\..\\..\\etc\\hostname"),
            format!("{root}/x.{extension}\u{0}.png"),
            format!("{root}/link.{extension}"),
            format!("{root}/project.{extension}"),
            format!("{root}/tenant.{extension}"),
            format!("{root}/folder/hostname"),
            format!("{root}/etc/hostname"),
            format!("{root}-private/x.md"),
            format!("../other/{root}/own.{extension}"),
            "file:///etc/hostname".to_owned(),
        ]
    };
    let shown = outside.path().to_string_lossy().into_owned();
    for (kind, root, extension) in [("doc_lookup", "documents", "md"), ("scripted", "scripts", "js")] {
        for path in paths(root, extension) {
            let parameters =
                if kind == "doc_lookup" { json!({"path": path}) } else { json!({"inputs": [], "scriptPath": path}) };
            let document = json!({"type": kind, "description": "Peeks.", "parameters": parameters}).to_string();
            let written = api.put("server-tools/peek", &document).await?;
            let answer = if written.status.is_success() { api.invoke("peek", json!({})).await? } else { written };
            for secret in ["OUTSIDE", "OTHER", "PRIVATE", shown.as_str()] {
                assert!(!answer.text.contains(secret), "{kind} {path}: {}", answer.text);
            }
            let json = answer.json();
            assert!(!answer.status.is_success() || json["isError"] == true, "{kind} {path}: {}", answer.text);
        }
        let path = format!("{root}/a..b.{extension}");
        let parameters =
            if kind == "doc_lookup" { json!({"path": path}) } else { json!({"inputs": [], "scriptPath": path}) };
        let document = json!({"type": kind, "description": "Reads.", "parameters": parameters}).to_string();
        api.put("server-tools/peek", &document).await?.ok()?;
        assert!(api.invoke("peek", json!({})).await?.text.contains("legitimate"), "{kind}");
    }
    Ok(())
}
