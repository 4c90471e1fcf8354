//! A model with `doc_write` cannot change what tools exist: every configuration path is refused, by every route to it.

use integration_tests::hub::TestHub;
use serde_json::{Value, json};

use crate::TestResult;

const CONFIG: [&str; 8] = [
    "server-tools/evil.yaml",
    "server-tools/deeper/evil.yaml",
    "Server-Tools/evil.yaml",
    "SERVER-TOOLS/evil.yaml",
    "recipes/default.yaml",
    "model/openai/_provider.yaml",
    "scripts/evil.js",
    "SCRIPTS/evil.js",
];
/// Other spellings of such paths, refused as paths.
const DETOURS: [&str; 7] = [
    "documents/../server-tools/evil.yaml",
    "./server-tools/evil.yaml",
    "/server-tools/evil.yaml",
    "server-tools//evil.yaml",
    "server-tools\\evil.yaml",
    "server%2dtools%2fevil.yaml",
    "server-tools\u{200b}/evil.yaml",
];

fn writes(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        (
            "doc_write",
            json!({"path": path, "content": "type: doc_lookup\ndescription: x\nparameters: {path: documents/x.md}\n"}),
        ),
        ("doc_edit", json!({"path": path, "oldText": "a", "newText": "b"})),
        ("doc_delete", json!({"path": path})),
        ("file_pull", json!({"path": "a.yaml", "document": path})),
    ]
}

#[tokio::test]
async fn tools_do_not_write_configuration() -> TestResult {
    let hub = TestHub::start().await?;
    // Not even for an admin's direct call: a direct call carries no process roles.
    let api = hub.api()?;
    let existing = "type: doc_lookup\ndescription: An a.\nparameters: { path: documents/x.md }\n";
    api.put("server-tools/evil", existing).await?.ok()?;
    api.put("documents/scripts/evil.js", "1 + 1 // a").await?.ok()?;
    let revision = api.get("documents?limit=1000").await?.text;
    let forwarder = "type: scripted\ndescription: Calls anything.\nparameters:\n  inputs:\n    - { name: tool, type: string }\n    \
                     - { name: args, type: object }\n  source: |\n    let out; try { out = vance.tools.call(tool, args) } catch (e) { out = e.code } out\n";
    api.put("server-tools/forwarder", forwarder).await?.ok()?;
    let mut refused = 0;
    for (paths, code) in [(&CONFIG[..], "config_path"), (&DETOURS[..], "invalid_path")] {
        for path in paths {
            for (tool, arguments) in writes(path) {
                let script = format!(
                    "let out; try {{ out = vance.tools.call({}, {arguments}) }} catch (e) {{ out = e.code }} out",
                    json!(tool)
                );
                let nested = json!({"name": "invoke_tool", "params": {"name": tool, "params": arguments}});
                for (route, by, body) in [
                    ("direct", tool, arguments.clone()),
                    ("invoke_tool", "invoke_tool", json!({"name": tool, "params": arguments})),
                    ("execute_javascript", "execute_javascript", json!({"code": script})),
                    ("scripted", "forwarder", json!({"tool": tool, "args": arguments})),
                    (
                        "script in invoke_tool",
                        "invoke_tool",
                        json!({"name": "execute_javascript", "params": {"code": script}}),
                    ),
                    (
                        "invoke_tool in a script",
                        "forwarder",
                        json!({"tool": "invoke_tool", "args": {"name": tool, "params": arguments}}),
                    ),
                    ("invoke_tool in itself", "invoke_tool", nested),
                ] {
                    let answer = api.invoke(by, body).await?;
                    let expected = if route == "invoke_tool in itself" { "invalid_arguments" } else { code };
                    assert!(answer.text.contains(expected), "{route} {tool} {path}: {} {}", answer.status, answer.text);
                    refused += 1;
                }
            }
        }
    }
    assert_eq!(refused, (CONFIG.len() + DETOURS.len()) * 4 * 7);
    api.delete("server-tools/forwarder").await?.ok()?;
    assert_eq!(api.get("documents?limit=1000").await?.text, revision, "nothing was written");
    Ok(())
}

/// Writing documents elsewhere is what these tools are for.
#[tokio::test]
async fn tools_write_other_documents_with_care() -> TestResult {
    let hub = TestHub::start().await?;
    let api = hub.api()?;
    let written = api.call("doc_write", json!({"path": "documents/a.md", "content": "one two\n"})).await?;
    let etag = written["etag"].clone();
    api.call("doc_edit", json!({"path": "documents/a.md", "oldText": "two", "newText": "three"})).await?;
    let stale = api.invoke("doc_write", json!({"path": "documents/a.md", "content": "lost", "etag": etag})).await?;
    assert_eq!(stale.code(), "version_mismatch", "{}", stale.text);
    let read = api.call("doc_read", json!({"path": "documents/a.md", "maxChars": 4, "offset": 4})).await?;
    assert_eq!((&read["content"], &read["hasMore"]), (&json!("thre"), &json!(true)));
    assert_eq!(
        api.invoke("doc_write", json!({"path": "documents/a.md", "content": "x", "create": true})).await?.code(),
        "version_mismatch"
    );
    api.call("doc_delete", json!({"path": "documents/a.md"})).await?;
    assert_eq!(api.invoke("doc_read", json!({"path": "documents/a.md"})).await?.code(), "not_found");
    let listed = api.call("doc_list", json!({"prefix": "documents/footbridge/"})).await?;
    assert!(listed["documents"].as_array().is_some_and(|documents| documents.len() > 3), "{listed}");
    Ok(())
}
