//! Which layer decides what a name means.

use footbridge_shared::ErrorCode;

use super::*;

const LAYERS: [Layer; 5] = [Layer::ProjectFolder, Layer::Project, Layer::TenantFolder, Layer::Tenant, Layer::Bundled];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Holds {
    Nothing,
    Active,
    Disabled,
    Broken,
}

const STATES: [Holds; 4] = [Holds::Nothing, Holds::Active, Holds::Disabled, Holds::Broken];

/// The state of each layer in one of the 4^5 combinations.
fn combination(number: usize) -> Vec<(Layer, Holds)> {
    LAYERS.iter().enumerate().map(|(index, layer)| (*layer, STATES[number >> (2 * index) & 3])).collect()
}

fn document(layer: Layer, holds: Holds, number: usize) -> String {
    let good = format!("type: doc_lookup\ndescription: from {layer}\nparameters: {{path: documents/x.md}}\n");
    match (holds, number % 4) {
        (Holds::Disabled, _) => format!("{good}enabled: false\n"),
        (Holds::Broken, 0) => format!("{good}enabled: false\nenabled: true\n"),
        (Holds::Broken, 1) => good.replace("doc_lookup", "no_such_type"),
        (Holds::Broken, 2) => good.replace("path: documents", "path: ../documents"),
        (Holds::Broken, _) => "type: [".to_owned(),
        _ => good,
    }
}

#[tokio::test]
async fn the_innermost_document_decides_in_every_combination_of_layers_and_states() {
    const COMBINATIONS: usize = 1024;
    let bundled: Vec<_> = (0..COMBINATIONS)
        .filter_map(|number| {
            let (layer, holds) = combination(number)[4];
            let path = format!("server-tools/t{number}.yaml");
            (holds != Holds::Nothing).then(|| (path, document(layer, holds, number)))
        })
        .collect();
    let world = World::new(&bundled).await;
    let (own, tenant) = (scope("acme", "main"), scope("acme", "_tenant"));
    for number in 0..COMBINATIONS {
        for (layer, holds) in combination(number) {
            let (text, place) = (document(layer, holds, number), format!("server-tools/t{number}.yaml"));
            match layer {
                _ if holds == Holds::Nothing => {}
                Layer::ProjectFolder => world.file(&format!("acme/main/{place}"), text),
                Layer::TenantFolder => world.file(&format!("acme/_tenant/{place}"), text),
                Layer::Project => world.put_unchecked(&own, &place, &text).await,
                Layer::Tenant => world.put_unchecked(&tenant, &place, &text).await,
                Layer::Bundled => {}
            }
        }
    }
    world.documents.rescan_folder().await.unwrap();
    for (scope, visible) in [(&own, &LAYERS[..]), (&tenant, &LAYERS[2..])] {
        let listing = world.listing(scope).await;
        for number in 0..COMBINATIONS {
            let name = format!("t{number}");
            let held: Vec<_> = combination(number)
                .into_iter()
                .filter(|(layer, holds)| *holds != Holds::Nothing && visible.contains(layer))
                .collect();
            let tool = listing.tools.get(name.as_str()).map(|tool| tool.spec.description.clone());
            let entry = listing.entries.get(name.as_str());
            let Some((layer, holds)) = held.first() else {
                assert!(tool.is_none() && entry.is_none(), "{name}");
                continue;
            };
            let entry = entry.unwrap();
            assert_eq!((entry.layer, entry.shadows), (*layer, true), "{name}: {held:?}");
            let expected = match (holds, &entry.state) {
                (Holds::Active, EntryState::Active) => Some(format!("from {layer}")),
                (Holds::Disabled, EntryState::Disabled) => None,
                (Holds::Broken, EntryState::Broken { reason }) => {
                    assert!(reason.starts_with(&format!("server-tools/{name}.yaml ({layer}), line ")), "{reason}");
                    None
                }
                (_, state) => panic!("{name}: {held:?} is {state:?}"),
            };
            assert_eq!(tool, expected, "{name}: {held:?}");

            // What `why` says agrees; a sample is enough for that.
            if number % 37 == 0 {
                let entry_name = EntryName::parse(&name).unwrap();
                let explained = world.source.explain(scope, &entry_name).await.unwrap();
                assert_eq!(
                    explained.iter().map(|l| l.layer).collect::<Vec<_>>(),
                    held.iter().map(|h| h.0).collect::<Vec<_>>()
                );
                assert_eq!(explained[0].state, entry.state);
            }
        }
    }
}

/// The tenant has a working tool, the project a document that says two things.
#[tokio::test]
async fn a_key_that_stands_twice_is_refused_on_write_and_hides_the_tenants_tool_on_load() {
    let world = World::new(&[]).await;
    let (own, tenant) = (scope("acme", "main"), scope("acme", "_tenant"));
    let good = "type: scripted\ndescription: Danger\nparameters:\n  inputs: []\n  source: '1'\n";
    world.put(&tenant, "drop_table", good).await.unwrap();
    world.put(&tenant, "other", good).await.unwrap();
    assert!(world.listing(&own).await.tools.contains_key("drop_table"));

    let root = "type: scripted\ndescription: Danger\nenabled: false\nparameters:\n  inputs: []\n  source: '1'\nenabled: true\n";
    let nested = "type: scripted\ndescription: Danger\nparameters: {inputs: [], source: dry, source: real}\n";
    for (text, line, key) in [(root, 7, "enabled"), (nested, 3, "parameters.source")] {
        let refused = world.put(&own, "drop_table", text).await.unwrap_err();
        let DocumentsError::Invalid(errors) = &refused else { panic!("{refused:?}") };
        assert_eq!(
            (errors[0].line, errors[0].key.as_deref(), errors[0].layer),
            (line, Some(key), Some(Layer::Project))
        );
        assert_eq!(errors[0].document, "server-tools/drop_table.yaml");
        assert!(world.listing(&own).await.tools.contains_key("drop_table"), "nothing was written");
    }
    for text in [root, nested] {
        world.file("acme/main/server-tools/drop_table.yaml", text);
        world.documents.rescan_folder().await.unwrap();
        let listing = world.listing(&own).await;
        assert!(!listing.tools.contains_key("drop_table"));
        assert!(matches!(state(&listing, "drop_table"), EntryState::Broken { reason } if reason.contains("twice")));
        assert!(listing.tools.contains_key("other"), "other documents load");
        assert!(world.listing(&tenant).await.tools.contains_key("drop_table"), "the tenant itself is not affected");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_breaks_its_name_alone() {
    let bundled = [("server-tools/page.yaml".to_owned(), lookup("documents/x.md"))];
    let world = World::new(&bundled).await;
    let own = scope("acme", "main");
    world.file("acme/main/server-tools/page.yaml", b"type: doc_lookup\xff");
    world.file("acme/main/server-tools/fine.yaml", lookup("documents/x.md"));
    world.documents.rescan_folder().await.unwrap();
    let listing = world.listing(&own).await;
    assert_eq!(
        state(&listing, "page"),
        &EntryState::Broken { reason: "server-tools/page.yaml (project-folder): it is not UTF-8 text".to_owned() }
    );
    assert!(listing.tools.contains_key("fine") && !listing.tools.contains_key("page"));
}

#[tokio::test]
async fn names_of_meta_tools_cannot_be_taken_and_hide_nothing() {
    let world = World::new(&[]).await;
    let own = scope("acme", "main");
    for name in crate::domain::tool::RESERVED_NAMES {
        let refused = world.put(&own, name, &lookup("documents/x.md")).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::ReservedName, "{name}");
        world.file(&format!("acme/main/server-tools/{name}.yaml"), lookup("documents/x.md"));
    }
    world.documents.rescan_folder().await.unwrap();
    let listing = world.listing(&own).await;
    assert!(listing.tools.is_empty());
    for name in crate::domain::tool::RESERVED_NAMES {
        let entry = &listing.entries[name];
        assert!(matches!(entry.state, EntryState::Broken { .. }) && !entry.shadows, "{entry:?}");
    }
}

#[tokio::test]
async fn only_yaml_files_directly_in_the_folder_are_tools() {
    let world = World::new(&[]).await;
    let own = scope("acme", "main");
    let text = lookup("documents/x.md");
    for (place, code) in [
        ("server-tools/page.yml", ErrorCode::InvalidDocument),
        ("server-tools/page", ErrorCode::InvalidDocument),
        ("server-tools/deep/page.yaml", ErrorCode::InvalidDocument),
        ("server-tools/Page.yaml", ErrorCode::InvalidName),
        ("server-tools/crm__eu.yaml", ErrorCode::InvalidName),
        ("Server-Tools/page.yaml", ErrorCode::InvalidDocument),
    ] {
        let refused = world.documents.put(&own, &path(place), &text, "ann", &WriteCondition::Any).await.unwrap_err();
        assert_eq!(refused.code(), code, "{place}");
        assert!(refused.hint().is_some(), "{place}");
        world.file(&format!("acme/main/{place}"), &text);
    }
    world.documents.rescan_folder().await.unwrap();
    assert!(world.listing(&own).await.entries.is_empty());
    let ignored = world.source.problems(&own).await.unwrap();
    assert_eq!(ignored.len(), 5, "{ignored:?}");
    // A text that is no tool at all is nobody's business elsewhere.
    let elsewhere = path("documents/x.yaml");
    assert!(world.documents.put(&own, &elsewhere, "[", "ann", &WriteCondition::Any).await.is_ok());
}

#[tokio::test]
async fn what_was_left_out_of_a_scopes_folders_is_among_its_problems() {
    let world = World::new(&[]).await;
    world.file("acme/main/server-tools/deep/page.yaml", "x");
    world.file("acme/main/documents/latin.md", b"\xe9");
    world.file("acme/other/documents/latin.md", b"\xe9");
    std::os::unix::fs::symlink(world.dir.path().join("acme/main"), world.dir.path().join("acme/_tenant")).unwrap();
    world.documents.rescan_folder().await.unwrap();
    let problems = world.source.problems(&scope("acme", "main")).await.unwrap();
    let places: Vec<_> = problems.iter().map(|problem| (problem.document.as_str(), problem.layer)).collect();
    assert_eq!(
        places,
        [
            ("/", Some(Layer::TenantFolder)),
            ("documents/latin.md", Some(Layer::ProjectFolder)),
            ("server-tools/deep/page.yaml", Some(Layer::ProjectFolder)),
        ]
    );
}

#[tokio::test]
async fn a_check_says_what_a_write_would_say() {
    let world = World::new(&[]).await;
    let page = path("server-tools/page.yaml");
    assert!(world.documents.check(&scope("acme", "main"), &page, &lookup("documents/x.md")).await.is_ok());
    let wrong = "type: rest\nlabel: x";
    let tenant = scope("acme", "_tenant");
    let refused = world.documents.check(&tenant, &page, wrong).await.unwrap_err();
    let DocumentsError::Invalid(errors) = refused else { panic!("{refused:?}") };
    assert_eq!(
        serde_json::to_value(&errors).unwrap(),
        json!([
            {"document": "server-tools/page.yaml", "layer": "tenant", "line": 1, "column": 1, "code": "invalid_document",
             "message": "the key `description` is missing"},
            {"document": "server-tools/page.yaml", "layer": "tenant", "line": 1, "column": 7, "key": "type",
             "code": "unknown_tool_type", "message": "there is no tool type `rest`",
             "hint": "the types are doc_lookup, foot, mcp, mcp_server, scripted"},
            {"document": "server-tools/page.yaml", "layer": "tenant", "line": 2, "column": 1, "key": "label",
             "code": "invalid_document", "message": "there is no key `label` here", "hint": "did you mean `labels`?"},
        ])
    );
}

#[tokio::test]
async fn every_bundled_tool_works_and_leads_to_a_document() {
    let clock: SharedClock = Arc::new(SystemClock);
    let lifecycle = Lifecycle::new();
    let checker = Checker::new(Registry::new().unwrap());
    let parts = DocumentParts {
        store: Arc::new(MemoryStore::new(clock.clone())),
        folder: None,
        bundled: Bundled::compiled(),
        validators: Vec::new(),
        clock,
    };
    let documents = Documents::open(parts, &lifecycle).await.unwrap();
    let deps = Dependencies {
        documents: Arc::new(documents.clone()),
        scripts: Arc::new(Recorder::default()),
        feet: Arc::new(KnownFeet::default()),
        servers: no_programs(&lifecycle),
    };
    let source = ConfiguredSource::new(documents, checker, deps, &lifecycle);
    let own = scope("acme", "main");
    let listing = source.listing(&own, &subject("ann")).await.unwrap();
    assert_eq!(source.problems(&own).await.unwrap(), []);
    for (name, entry) in &listing.entries {
        assert_eq!(entry.state, EntryState::Active, "{name}");
    }
    for (name, tool) in &listing.tools {
        let is_lookup = matches!(tool.spec.origin, Origin::Configured { type_id: "doc_lookup", .. });
        if is_lookup {
            let output = tool.handler.invoke(Arguments::empty(), &context(&own)).await.unwrap();
            assert!(!output.is_error, "{name}: {}", output.joined_text());
            assert_eq!(structured(&output)["layer"], "bundled", "{name}");
        }
    }
    lifecycle.soft().cancel();
}

pub(super) fn lookup(path: &str) -> String {
    format!("type: doc_lookup\ndescription: A page.\nparameters: {{path: '{path}'}}\n")
}
