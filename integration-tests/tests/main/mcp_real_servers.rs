//! Well-known servers, attached to the hub and to a foot, as the official clients see them: every tool is called once.

use std::path::Path;
use std::process::Command;

use integration_tests::clients::judge::{Judge, Seen, judge, node_program, python_program};
use integration_tests::clients::stage::{McpStage, OWNER, Way};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::TestResult;

/// Tools of each server: name, arguments, and what has to come. `{folder}` and `{name}` stand for what a run may use.
const CALLS: &str = include_str!("mcp_real_servers/calls.json");
/// A picture of one dot.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What has to come.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Expected {
    kinds: Vec<String>,
    text: String,
    structured: bool,
    /// What the server asks the client meanwhile.
    asks: Option<String>,
    /// The call fails with a text that holds this.
    error: Option<String>,
}

/// Server, tool, arguments, and what has to come.
type Row = (String, String, Value, Expected);

fn rows(folder: &Path, name: &str) -> TestResult<Vec<Row>> {
    let text = CALLS.replace("{folder}", &folder.to_string_lossy()).replace("{name}", name);
    let servers: serde_json::Map<String, Value> = serde_json::from_str(&text)?;
    let mut rows = Vec::new();
    for (server, calls) in servers {
        let calls: Vec<(String, Value, Expected)> = serde_json::from_value(calls)?;
        rows.extend(calls.into_iter().map(|(tool, arguments, expected)| (server.clone(), tool, arguments, expected)));
    }
    Ok(rows)
}

/// The servers, by the names of their packs.
fn servers(folder: &Path) -> TestResult<Vec<(&'static str, Value)>> {
    let memory = folder.join("memory.jsonl").to_string_lossy().into_owned();
    let session = "subject";
    Ok(vec![
        ("everything", json!({ "command": node_program("mcp-server-everything")?, "session": session })),
        ("files", json!({ "command": node_program("mcp-server-filesystem")?, "args": [folder], "session": session })),
        (
            "memory",
            json!({ "command": node_program("mcp-server-memory")?, "env": { "MEMORY_FILE_PATH": memory }, "session": session }),
        ),
        ("git", json!({ "command": python_program("mcp-server-git")?, "session": session })),
        ("time", json!({ "command": python_program("mcp-server-time")?, "session": session })),
    ])
}

/// A folder with a repository that has a change, and a picture.
fn prepare(folder: &Path) -> TestResult {
    std::fs::create_dir_all(folder)?;
    use base64::Engine as _;
    std::fs::write(folder.join("pixel.png"), base64::engine::general_purpose::STANDARD.decode(PIXEL)?)?;
    std::fs::write(folder.join("tracked.txt"), "first\n")?;
    for arguments in [
        &["init", "--quiet", "--initial-branch", "main"][..],
        &["config", "user.name", "Judge"],
        &["config", "user.email", "judge@example.com"],
        &["add", "tracked.txt"],
        &["commit", "--quiet", "--message", "First"],
    ] {
        let status = Command::new("git").arg("-C").arg(folder).args(arguments).status()?;
        assert!(status.success(), "git {arguments:?}");
    }
    std::fs::write(folder.join("tracked.txt"), "first\nchanged\n")?;
    Ok(())
}

fn check(seen: &Seen, expected: &Expected) -> Result<(), String> {
    let Expected { kinds, text, structured, error, .. } = expected;
    let failure = seen.error.clone().or_else(|| seen.is_error.then(|| seen.text.clone()));
    match (failure, error) {
        (Some(failure), Some(part)) if failure.contains(part) => Ok(()),
        (None, None) if seen.kinds == *kinds && seen.text.contains(text) && (seen.structured || !structured) => Ok(()),
        _ => Err(format!("{seen:?}, not {expected:?}")),
    }
}

async fn judged(way: Way) -> TestResult {
    let work = tempfile::tempdir()?;
    let stage = McpStage::start().await?;
    let all = servers(work.path())?;
    let _foot = match way {
        Way::Hub => {
            for (name, parameters) in &all {
                let document = json!({ "type": "mcp_server", "description": "Well known", "parameters": parameters });
                stage.api.put(&format!("server-tools/{name}"), &document.to_string()).await?.ok()?;
            }
            for (name, _) in &all {
                stage.until_state(name, "ready").await?;
            }
            None
        }
        Way::Foot => {
            let mut entries = serde_json::Map::new();
            for (name, mut parameters) in all {
                parameters["confine"] = json!(false);
                entries.insert(name.to_owned(), parameters);
            }
            let foot = stage.foot("laptop", &Value::Object(entries.clone())).await?;
            for name in entries.keys() {
                stage.until_listed(OWNER, &format!("{name}__")).await?;
            }
            Some(foot)
        }
    };
    let token = stage.hub.token(OWNER, &["engine", "viewer"]).await?;
    let url = format!("{}/mcp/local/main", stage.hub.url);
    let mut heard: Vec<String> = Vec::new();
    for who in Judge::ALL {
        let folder = work.path().join(format!("{who:?}"));
        prepare(&folder)?;
        let rows = rows(&folder, &format!("{who:?}"))?;
        let public = |server: &str, tool: &str| format!("{server}__{}", tool.replace('-', "_"));
        let calls: Vec<(String, Value)> =
            rows.iter().map(|(server, tool, arguments, _)| (public(server, tool), arguments.clone())).collect();
        let report = judge(who, &url, &token, &calls).await?;
        let stateless = who == Judge::Python;
        assert_eq!(report.protocol == "2026-07-28", stateless, "{who:?} spoke {}", report.protocol);
        let mut problems = Vec::new();
        for name in report.listed.iter().filter(|name| name.contains("__") && !report.results.contains_key(*name)) {
            problems.push(format!("{name} is listed, and has no row in calls.json"));
        }
        for (server, tool, _, expected) in &rows {
            let name = public(server, tool);
            if !report.listed.contains(&name) {
                problems.push(format!("{name} is not listed"));
            }
            let seen = report.results.get(&name).cloned().unwrap_or_default();
            if let Err(why) = check(&seen, expected) {
                problems.push(format!("{name}: {why}"));
            }
        }
        let asked: Vec<&String> = rows.iter().filter_map(|(.., expected)| expected.asks.as_ref()).collect();
        for question in asked {
            // A server asks once for a connection, which the clients of one subject may share.
            heard.extend(report.asked.iter().cloned());
            if !heard.contains(question) {
                problems.push(format!("nobody asked {question}"));
            }
        }
        assert!(problems.is_empty(), "{way:?}, {who:?}:\n{}", problems.join("\n"));
    }
    Ok(())
}

#[tokio::test]
async fn the_official_clients_call_every_tool_of_servers_at_the_hub() -> TestResult {
    judged(Way::Hub).await
}

#[tokio::test]
async fn the_official_clients_call_every_tool_of_servers_at_a_foot() -> TestResult {
    judged(Way::Foot).await
}

#[test]
fn a_wrong_result_is_seen() -> TestResult {
    let expected = |text: &str| -> Expected { serde_json::from_str(text).unwrap_or_default() };
    let seen = Seen { kinds: vec!["text".to_owned()], text: "42".to_owned(), ..Seen::default() };
    assert!(check(&seen, &expected(r#"{"kinds":["text"],"text":"42"}"#)).is_ok());
    for wrong in [
        r#"{"kinds":["image"]}"#,
        r#"{"kinds":["text"],"text":"43"}"#,
        r#"{"kinds":["text"],"structured":true}"#,
        r#"{"kinds":["text"],"error":"42"}"#,
    ] {
        assert!(check(&seen, &expected(wrong)).is_err(), "{wrong}");
    }
    let failed = Seen { error: Some("no such tool".to_owned()), ..seen.clone() };
    assert!(check(&failed, &expected(r#"{"kinds":["text"],"text":"42"}"#)).is_err());
    assert!(check(&Seen { is_error: true, ..seen }, &expected(r#"{"kinds":["text"]}"#)).is_err());
    Ok(())
}
