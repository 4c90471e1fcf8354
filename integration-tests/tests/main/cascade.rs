//! What a name means in every combination of layers, for configured, built-in and client tools.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use footbridge_hub::clock::SystemClock;
use footbridge_hub::domain::document::DocumentPath;
use footbridge_hub::domain::scope::Scope;
use footbridge_hub::store::sqlite::SqliteStore;
use footbridge_hub::store::{Precondition, Store};
use footbridge_shared::id::{ProjectName, TenantName};
use integration_tests::api::Api;
use integration_tests::hub::{Options, TestHub};
use integration_tests::raw_foot::{Identity, RawFoot, simple_tool};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::TestResult;

/// What a layer says of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    Active,
    Disabled,
    Broken,
    /// A file that is no text. What is stored is always text.
    Unreadable,
}

const STATES: [State; 5] = [State::Absent, State::Active, State::Disabled, State::Broken, State::Unreadable];
/// The states that a file can be in, and a stored document.
const IN_FOLDER: usize = STATES.len();
const IN_STORE: usize = STATES.len() - 1;

/// The layers above the bundled one, innermost first, and what each says.
type Layers = [State; 4];
const LAYERS: [&str; 4] = ["project-folder", "project", "tenant-folder", "tenant"];

/// Every combination.
fn combinations() -> impl Iterator<Item = Layers> {
    let level = || (0..IN_FOLDER).flat_map(|folder| (0..IN_STORE).map(move |stored| (STATES[folder], STATES[stored])));
    level().flat_map(move |(pf, p)| level().map(move |(tf, t)| [pf, p, tf, t]))
}

/// A tool that says which layer it comes from.
fn document(state: State, layer: &str) -> Option<String> {
    let tool = |enabled: bool| {
        format!(
            "type: scripted\ndescription: From {layer}.\nenabled: {enabled}\nparameters: {{ inputs: [], source: '\"{layer}\"' }}\n"
        )
    };
    match state {
        State::Absent => None,
        State::Active => Some(tool(true)),
        State::Disabled => Some(tool(false)),
        State::Broken | State::Unreadable => {
            Some(format!("type: scripted\ndescription: From {layer}.\ndescription: twice\n"))
        }
    }
}

/// What a file of the folder holds.
fn file(state: State, layer: &str) -> Option<Vec<u8>> {
    let mut bytes = document(state, layer)?.into_bytes();
    if state == State::Unreadable {
        bytes.push(0xff);
    }
    Some(bytes)
}

/// A name of each kind: nothing below but a foot's tool, a built-in one, a bundled document, and a pack's or foot's `x__y`.
const NAMES: [&str; 3] = ["probe", "whoami", "doc_getting_started"];

/// One project for each pair of project layers, one tenant for each pair of tenant layers.
fn scope_of(layers: Layers) -> TestResult<Scope> {
    let index = |state| STATES.iter().position(|known| *known == state).unwrap_or_default();
    let [pf, p, tf, t] = layers.map(index);
    Ok(Scope::new(TenantName::parse(&format!("t{tf}{t}"))?, ProjectName::parse(&format!("p{pf}{p}"))?))
}

async fn write(store: &dyn Store, folder: &Path, layers: Layers) -> TestResult {
    let scope = scope_of(layers)?;
    let tenant = scope.tenant_layer();
    for name in NAMES {
        let path = format!("server-tools/{name}.yaml");
        for ((layer, state), scope) in LAYERS.iter().zip(layers).zip([&scope, &scope, &tenant, &tenant]) {
            let Some(text) = document(state, layer) else {
                if !layer.ends_with("-folder") {
                    // What was deleted is as absent as what never was.
                    let (path, text) =
                        (DocumentPath::parse(&path)?, document(State::Active, layer).unwrap_or_default());
                    store.put(scope, &path, &text, "test", Precondition::Any).await?;
                    store.delete(scope, &path, "test", Precondition::Any).await?;
                }
                continue;
            };
            if layer.ends_with("-folder") {
                let file = folder.join(scope.to_string()).join(&path);
                fs::create_dir_all(file.parent().ok_or("no folder")?)?;
                fs::write(file, self::file(state, layer).unwrap_or_default())?;
            } else {
                // As an older hub, or another program, might have left it: not through the checks of this one.
                store.put(scope, &DocumentPath::parse(&path)?, &text, "test", Precondition::Any).await?;
            }
        }
    }
    Ok(())
}

/// What a call of a name should come to: a text that its answer holds.
fn expected(name: &str, layers: Layers) -> &'static str {
    let decides = LAYERS.iter().zip(layers).find(|(_, state)| *state != State::Absent);
    match (decides, name) {
        (Some((layer, State::Active)), _) => layer,
        (Some((_, State::Disabled)), _) => "unknown_tool",
        (Some((_, _)), _) => "tool_broken",
        (None, "probe") => "from the foot",
        (None, "whoami") => "\"project\":",
        (None, _) => "bundled",
    }
}

/// The same for the foot's tool under its qualified name: only a document that says "not this tool" reaches that far.
fn expected_qualified(layers: Layers) -> &'static str {
    match expected("probe", layers) {
        refused @ ("unknown_tool" | "tool_broken") => refused,
        _ => "from the foot",
    }
}

/// A foot in a scope that answers every call.
async fn serve(url: String, token: String, scope: Scope) -> TestResult {
    let (mut foot, _) = RawFoot::connect_with(&url, &token, &Identity::new("f")?, |hello| {
        hello["tenant"] = json!(scope.tenant);
        hello["project"] = json!(scope.project);
    })
    .await?;
    foot.offer(1, json!([simple_tool("probe")])).await?;
    loop {
        let call = foot.receive_kind("call").await?;
        foot.answer(&call, "from the foot").await?;
    }
}

async fn check(api: &Api, layers: Layers) -> TestResult {
    let listed = api.get("tools?limit=1000").await?.ok()?.json();
    let find = |name: &str| {
        listed["tools"].as_array().and_then(|tools| tools.iter().find(|tool| tool["name"] == name)).cloned()
    };
    for name in NAMES.into_iter().chain(["f__probe"]) {
        let wanted = if name == "f__probe" { expected_qualified(layers) } else { expected(name, layers) };
        let direct = api.invoke(name, json!({})).await?.text;
        assert!(direct.contains(wanted), "{layers:?} {name}: wanted {wanted}, got {direct}");
        let delegated = api.invoke("invoke_tool", json!({"name": name})).await?.text;
        assert!(delegated.contains(wanted), "{layers:?} invoke_tool {name}: wanted {wanted}, got {delegated}");
        let entry = find(name);
        match wanted {
            "unknown_tool" => assert_eq!(entry, None, "{layers:?} {name} is not listed"),
            "tool_broken" if name == "f__probe" => assert_eq!(entry, None, "{layers:?} {name} is not listed"),
            "tool_broken" => {
                let entry = entry.ok_or_else(|| format!("{layers:?} {name} is not listed as broken"))?;
                assert_eq!(entry["state"], "broken");
                assert!(
                    entry["reason"]
                        .as_str()
                        .is_some_and(|reason| reason.contains("description") || reason.contains("UTF-8")),
                    "{entry}"
                );
            }
            _ => assert_eq!(entry.map(|entry| entry["state"].clone()), Some(json!("active")), "{layers:?} {name}"),
        }
        if name == "f__probe" {
            continue;
        }
        let why = api.get(&format!("tools/{name}/why")).await?.ok()?.json();
        let seen: Vec<Value> =
            why["layers"].as_array().into_iter().flatten().map(|layer| layer["layer"].clone()).collect();
        let mut there: Vec<Value> = LAYERS
            .iter()
            .zip(layers)
            .filter(|(_, state)| *state != State::Absent)
            .map(|(layer, _)| json!(layer))
            .collect();
        there.push(json!(match name {
            "probe" => "foot:f",
            "whoami" => "built-in",
            _ => "bundled",
        }));
        // A foot's tool stands under the bare and the qualified name; `why` may show it once more.
        assert_eq!(seen.get(..there.len()), Some(&there[..]), "{layers:?} {name}: {why}");
        let winners: Vec<bool> =
            why["layers"].as_array().into_iter().flatten().map(|layer| layer["winner"] == true).collect();
        assert!(winners[0] && winners[1..].iter().all(|winner| !winner), "{layers:?} {name}: {why}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_combination_of_layers_means_what_it_should() -> TestResult {
    let (folder, documents) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let data = folder.path().join("data");
    fs::create_dir_all(&data)?;
    {
        let store = SqliteStore::open(&data, Arc::new(SystemClock))?;
        for layers in combinations() {
            write(&store, documents.path(), layers).await?;
        }
        store.close().await?;
    }
    let options = Options { documents: Some(documents.path().to_owned()), ..Options::default() };
    let hub = TestHub::start_on(folder, options).await?;
    let pairs = || (0..IN_FOLDER * IN_STORE).map(|n| format!("{}{}", n / IN_STORE, n % IN_STORE));
    let projects: Vec<String> = pairs().map(|pair| format!("p{pair}")).collect();
    let projects: Vec<&str> = projects.iter().map(String::as_str).collect();
    for pair in pairs() {
        hub.put_tenant(&format!("t{pair}"), &projects).await?;
    }
    let token = hub.token_with(json!({"subject": "ann", "roles": ["engine", "viewer", "foot"]})).await?;
    let api = Api::new(&hub.url, Some(&token))?;
    let mut feet = JoinSet::new();
    let mut checked = 0;
    for layers in combinations() {
        let scope = scope_of(layers)?;
        feet.spawn(serve(hub.url.clone(), token.clone(), scope.clone()));
        let api = api.in_scope(&scope.to_string());
        integration_tests::eventually::eventually("the foot is there", || async {
            let feet = api.get("feet").await?.text;
            Ok(feet.contains("\"probe\"").then_some(()))
        })
        .await?;
        check(&api, layers).await?;
        checked += 1;
    }
    assert_eq!(checked, 400);
    Ok(())
}

/// Reserved names: refused on write; found on load, broken and hiding nothing.
#[tokio::test]
async fn a_document_with_a_reserved_name_is_broken_and_hides_nothing() -> TestResult {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    fs::create_dir_all(&data)?;
    let reserved = ["tool_list", "tool_description", "invoke_tool", "tool_search", "call_tool", "tool_result_read"];
    {
        let store = SqliteStore::open(&data, Arc::new(SystemClock))?;
        let scope = Scope::new(TenantName::parse("local")?, ProjectName::parse("main")?);
        for name in reserved {
            let path = DocumentPath::parse(&format!("server-tools/{name}.yaml"))?;
            let text = document(State::Active, "project").ok_or("no text")?;
            store.put(&scope, &path, &text, "test", Precondition::Any).await?;
        }
        store.close().await?;
    }
    let hub = TestHub::start_on(folder, Options::default()).await?;
    let api = hub.api()?;
    for name in reserved {
        let refused =
            api.put(&format!("server-tools/{name}"), &document(State::Active, "project").ok_or("no text")?).await?;
        assert_eq!(refused.code(), "reserved_name", "{name}");
        let shown = api.get(&format!("server-tools/{name}")).await?.ok()?.json();
        assert_eq!(shown["state"], "broken", "{name}");
    }
    assert!(api.call("tool_list", json!({})).await?["count"].as_u64().is_some_and(|count| count > 10));
    assert_eq!(api.invoke("tool_search", json!({})).await?.code(), "unknown_tool");
    Ok(())
}

/// A foot that answers every call, in the scope that a new hub has.
async fn with_foot(hub: &TestHub) -> TestResult<(Api, JoinSet<TestResult>)> {
    let token = hub.token_with(json!({"subject": "ann", "roles": ["engine", "viewer", "foot", "configure"]})).await?;
    let api = Api::new(&hub.url, Some(&token))?;
    let mut feet = JoinSet::new();
    feet.spawn(serve(hub.url.clone(), token, Scope::new(TenantName::parse("local")?, ProjectName::parse("main")?)));
    integration_tests::eventually::eventually("the foot is there", || async {
        Ok(api.get("feet").await?.text.contains("\"probe\"").then_some(()))
    })
    .await?;
    Ok((api, feet))
}

/// Nobody knows what lies in a folder that is not read, so nothing below it shines through.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_cannot_be_looked_into_hides_what_lies_below_it() -> TestResult {
    let (folder, documents) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let elsewhere = documents.path().join("elsewhere/x");
    fs::create_dir_all(&elsewhere)?;
    fs::create_dir_all(documents.path().join("local/_tenant"))?;
    std::os::unix::fs::symlink(&elsewhere, documents.path().join("local/_tenant/server-tools"))?;
    let options = Options { documents: Some(documents.path().to_owned()), ..Options::default() };
    let hub = TestHub::start_on(folder, options).await?;
    let (api, _feet) = with_foot(&hub).await?;
    let hidden = ["whoami", "execute_javascript", "doc_getting_started", "probe", "f__probe", "never_was"];
    let listed = api.get("tools?limit=1000").await?.ok()?.json();
    for name in hidden {
        let answer = api.invoke(name, json!({})).await?;
        assert_eq!(answer.code(), "tool_broken", "{name}: {}", answer.text);
        assert!(answer.text.contains("server-tools/ (tenant-folder)") || name == "doc_getting_started", "{answer:?}");
        let delegated = api.invoke("invoke_tool", json!({"name": name})).await?;
        assert!(delegated.text.contains("tool_broken"), "{name}: {}", delegated.text);
        let active = |tool: &&Value| tool["name"] == name && tool["state"] == "active";
        assert!(!listed["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| active(&tool))), "{name}");
        let why = api.get(&format!("tools/{name}/why")).await?.ok()?.json();
        assert_eq!((&why["callable"], &why["layers"][0]["layer"]), (&json!(false), &json!("tenant-folder")), "{why}");
        assert_eq!(
            (&why["layers"][0]["state"], &why["layers"][0]["winner"]),
            (&json!("broken"), &json!(true)),
            "{why}"
        );
    }
    assert!(api.call("tool_list", json!({})).await?["count"].as_u64().is_some(), "meta tools are never hidden");

    // What a layer above says is known, and holds.
    api.put("server-tools/whoami", &document(State::Active, "project").ok_or("no text")?).await?.ok()?;
    assert!(api.invoke("whoami", json!({})).await?.text.contains("project"));
    assert_eq!(api.invoke("probe", json!({})).await?.code(), "tool_broken");
    Ok(())
}

/// A document named like a foot takes the whole foot's qualified names; what a model and a script see agrees.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_named_like_a_foot_hides_its_qualified_names_in_every_view() -> TestResult {
    let (folder, documents) = (tempfile::tempdir()?, tempfile::tempdir()?);
    fs::create_dir_all(documents.path().join("local/main/server-tools"))?;
    let options = Options { documents: Some(documents.path().to_owned()), ..Options::default() };
    let hub = TestHub::start_on(folder, options).await?;
    let (api, _feet) = with_foot(&hub).await?;
    let place = documents.path().join("local/main/server-tools/f.yaml");
    for (state, wanted) in [
        (State::Absent, "from the foot"),
        (State::Active, "unknown_tool"),
        (State::Disabled, "unknown_tool"),
        (State::Broken, "tool_broken"),
        (State::Unreadable, "tool_broken"),
    ] {
        if let Some(bytes) = file(state, "project-folder") {
            fs::write(&place, bytes)?;
        }
        integration_tests::eventually::eventually("the file is in force", || async {
            Ok(api.invoke("f__probe", json!({})).await?.text.contains(wanted).then_some(()))
        })
        .await?;
        let script = "try { vance.tools.call('f__probe', {}) } catch (error) { error.code || String(error) }";
        let scripted = api.invoke("execute_javascript", json!({"code": script})).await?.text;
        assert!(scripted.contains(wanted), "{state:?}: {scripted}");
        let described = api.invoke("tool_description", json!({"names": ["f__probe", "whoami"]})).await?.json();
        let listed = api.invoke("tool_list", json!({"prefix": "f__"})).await?.text;
        let visible = state == State::Absent;
        assert_eq!(
            described["structured"]["tools"].as_array().map(Vec::len),
            Some(if visible { 2 } else { 1 }),
            "{described}"
        );
        assert_eq!(listed.contains("f__probe"), visible, "{state:?}: {listed}");
        assert!(api.invoke("probe", json!({})).await?.text.contains("from the foot"), "the bare name is another's");
    }
    Ok(())
}
