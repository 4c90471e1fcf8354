//! How a model finds tools: names, labels, pack hints, descriptions in batches.

use integration_tests::foot::TestFoot;
use integration_tests::hub::TestHub;
use serde_json::{Value, json};

use crate::TestResult;

fn names(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[tokio::test]
async fn tool_list_names_what_is_in_context_and_what_is_available_with_a_hint_per_pack() -> TestResult {
    let hub = TestHub::start().await?;
    let folder = tempfile::tempdir()?;
    let _foot = TestFoot::start(&hub, "root", "laptop", folder.path(), &[]).await?;
    let api = hub.api()?;
    let pack =
        "type: foot\ndescription: The build box.\npromptHint: Ask before you build.\nparameters: { foot: laptop }\n";
    api.put("server-tools/box", pack).await?.ok()?;
    let list = api.call("tool_list", json!({})).await?;
    let (shown, available) = (names(&list["inContext"]), names(&list["available"]));
    for floor in ["tool_list", "tool_description", "invoke_tool", "file_read", "file_list", "file_grep"] {
        assert!(shown.contains(&floor), "{floor} is in context: {shown:?}");
    }
    for deferred in ["whoami", "doc_read", "box__file_read", "laptop__file_read", "doc_getting_started"] {
        assert!(available.contains(&deferred), "{deferred} is available: {available:?}");
    }
    assert_eq!(list["count"], shown.len() + available.len());
    assert!(shown.iter().all(|name| !available.contains(name)), "no name stands twice");
    assert!(shown.is_sorted() && available.is_sorted(), "both lists are sorted");
    assert_eq!(list["packHints"], json!({"box": "Ask before you build."}));
    let some = api.call("tool_list", json!({"prefix": "BOX__"})).await?;
    assert!(names(&some["available"]).iter().all(|name| name.starts_with("box__")) && some["count"] != 0, "{some}");
    Ok(())
}

#[tokio::test]
async fn tool_description_takes_many_spellings_of_a_list_and_at_most_25_names() -> TestResult {
    let hub = TestHub::start().await?;
    let api = hub.api()?;
    for spelling in [
        json!(["whoami", "doc_read", "nope"]),
        json!("whoami, doc_read ,nope"),
        json!("[\"whoami\",\"doc_read\",\"nope\"]"),
    ] {
        let described = api.call("tool_description", json!({ "names": spelling })).await?;
        let tools: Vec<&str> =
            described["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!((tools, names(&described["unknown"])), (vec!["whoami", "doc_read"], vec!["nope"]), "{spelling}");
        assert_eq!(described["tools"][1]["inputSchema"]["required"], json!(["path"]), "the schema comes whole");
    }
    let many: Vec<String> = (0..30).map(|n| format!("none{n}")).chain(["whoami".to_owned()]).collect();
    let none = api.invoke("tool_description", json!({ "names": many })).await?.json();
    assert_eq!((&none["isError"], &none["code"]), (&json!(true), &json!("unknown_tool")), "nothing resolves: {none}");
    let front: Vec<String> = ["whoami".to_owned()].into_iter().chain((0..30).map(|n| format!("none{n}"))).collect();
    let cut = api.call("tool_description", json!({ "names": front })).await?;
    assert_eq!((names(&cut["unknown"]).len(), names(&cut["skipped"]).len()), (24, 6));
    Ok(())
}

#[tokio::test]
async fn listings_are_filtered_by_label_source_and_prefix_and_come_in_pages() -> TestResult {
    let hub = TestHub::start().await?;
    let api = hub.api()?;
    let listed = async |query: &str| -> TestResult<Vec<String>> {
        let page = api.get(&format!("tools?{query}")).await?.ok()?.json();
        let tools = page["tools"].as_array().ok_or("no tools")?;
        Ok(tools.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect())
    };
    let labelled = listed("label=write").await?;
    assert_eq!(labelled, ["doc_delete", "doc_edit", "doc_write", "file_pull", "file_push"]);
    assert!(listed("source=configured").await?.iter().all(|name| name.starts_with("doc_")));
    assert_eq!(listed("prefix=tool_&source=built-in").await?, ["tool_description", "tool_list"]);
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = api.get(&format!("tools?limit=3{cursor}")).await?.ok()?.json();
        let tools = page["tools"].as_array().ok_or("no tools")?;
        all.extend(tools.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned));
        let Some(next) = page["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(all, listed("limit=1000").await?, "pages follow each other without gap or overlap");
    Ok(())
}

#[tokio::test]
async fn the_api_describes_itself() -> TestResult {
    let hub = TestHub::start().await?;
    let described =
        integration_tests::api::send(hub.api()?.request(reqwest::Method::GET, "/openapi.json")).await?.ok()?.json();
    assert!(
        described["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")),
        "{}",
        described["openapi"]
    );
    let paths = described["paths"].as_object().ok_or("no paths")?;
    assert!(paths.len() > 15 && paths.keys().all(|path| !path.contains('*')), "{:?}", paths.keys());
    for (path, item) in paths {
        for (verb, operation) in item.as_object().into_iter().flatten() {
            assert!(operation["responses"].as_object().is_some_and(|all| !all.is_empty()), "{verb} {path}");
            assert!(operation["description"].is_string() || operation["summary"].is_string(), "{verb} {path}");
        }
    }
    Ok(())
}
