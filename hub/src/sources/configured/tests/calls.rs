//! What a call of each type does.

use footbridge_shared::{ErrorCode, Outcome};

use super::layers::lookup;
use super::*;

#[tokio::test]
async fn a_lookup_reads_through_the_cascade_at_each_call() {
    let bundled = [("documents/page.md".to_owned(), "Bündel".to_owned())];
    let world = World::new(&bundled).await;
    let own = scope("acme", "main");
    world.put(&own, "page", &lookup("documents/page.md")).await.unwrap();
    let output = world.call(&own, "page", json!({})).await.unwrap();
    assert_eq!(
        structured(&output),
        json!({"path": "documents/page.md", "content": "Bündel", "chars": 6, "layer": "bundled"})
    );

    let tenant = scope("acme", "_tenant");
    world.documents.put(&tenant, &path("documents/page.md"), "tenant's", "ann", &WriteCondition::Any).await.unwrap();
    let output = world.call(&own, "page", json!({})).await.unwrap();
    assert_eq!(
        structured(&output),
        json!({"path": "documents/page.md", "content": "tenant's", "chars": 8, "layer": "tenant"})
    );

    let listing = world.listing(&own).await;
    let refused = listing.tools["page"].schema.as_ref().unwrap().check(&Arguments::new(raw(r#"{"x": 1}"#)));
    assert_eq!(refused.unwrap_err().code, ErrorCode::InvalidArguments, "a lookup takes no arguments");
}

#[tokio::test]
async fn a_lookup_without_its_document_fails_and_one_that_is_led_astray_does_not_run() {
    let world = World::new(&[]).await;
    let own = scope("acme", "main");
    world.put(&own, "page", &lookup("documents/link.md")).await.unwrap();
    let output = world.call(&own, "page", json!({})).await.unwrap();
    assert_eq!((output.is_error, output.code), (true, Some(ErrorCode::NotFound)));

    std::fs::create_dir_all(world.dir.path().join("acme/main/documents")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", world.dir.path().join("acme/main/documents/link.md")).unwrap();
    world.documents.rescan_folder().await.unwrap();
    let failure = world.call(&own, "page", json!({})).await.unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::InvalidPath, Outcome::NotRun));
    assert!(!failure.to_string().contains("/etc"), "{failure}");
}

#[tokio::test]
async fn a_script_gets_its_inputs_in_order_and_all_of_them() {
    let world = World::new(&[]).await;
    let own = scope("acme", "main");
    let text = "
type: scripted
description: Adds.
parameters:
  timeoutMs: 1000
  inputs:
    - {name: b, type: integer}
    - {name: a, type: object, required: false}
  source: |
    b + 1
";
    world.put(&own, "add", text).await.unwrap();
    let output = world.call(&own, "add", json!({"b": 9_007_199_254_740_993_u64})).await.unwrap();
    assert_eq!(structured(&output)["value"], "b + 1\n");
    let requests = world.scripts.0.lock().unwrap();
    let request = &requests[0];
    let inputs: Vec<_> = request.inputs.iter().map(|(name, value)| (name.as_str(), value.get())).collect();
    assert_eq!(inputs, [("b", "9007199254740993"), ("a", "null")]);
    assert_eq!(request.params.get(), r#"{"b":9007199254740993}"#);
    assert_eq!((request.name.as_str(), request.timeout), ("source", Duration::from_secs(1)));
}

#[tokio::test]
async fn a_script_document_is_read_at_each_call() {
    let world = World::new(&[]).await;
    let own = scope("acme", "main");
    let text = "type: scripted\ndescription: d\nparameters: {inputs: [], scriptPath: scripts/a..b.js}\n";
    world.put(&own, "run", text).await.unwrap();
    let missing = world.call(&own, "run", json!({})).await.unwrap();
    assert_eq!(missing.code, Some(ErrorCode::ScriptError));
    for source in ["1", "2"] {
        world.file("acme/_tenant/scripts/a..b.js", source);
        world.documents.rescan_folder().await.unwrap();
        let output = world.call(&own, "run", json!({})).await.unwrap();
        assert_eq!(structured(&output)["value"], source);
    }
    let requests = world.scripts.0.lock().unwrap();
    assert_eq!((requests[1].name.as_str(), requests[1].timeout), ("scripts/a..b.js", Duration::from_secs(5)));
}
