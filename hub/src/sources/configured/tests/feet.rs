//! A foot's tools as a pack.

use super::*;

const PACK: &str = "
type: foot
description: The build machine.
labels: [build]
promptHint: Use it for builds.
disabledSubTools: [exec_run]
requiresRoles: [ops]
parameters: {foot: build-box}
";

fn names(listing: &Listing) -> Vec<&str> {
    listing.tools.keys().map(ToolName::as_str).collect()
}

#[tokio::test]
async fn a_foot_shows_under_the_packs_name_for_whom_it_works() {
    let world = World::new(&[]).await;
    let own = scope("acme", "main");
    world.put(&own, "builder", PACK).await.unwrap();
    assert_eq!(names(&*world.listing(&own).await), [""; 0], "it is away");
    assert_eq!(state(&*world.listing(&own).await, "builder"), &EntryState::Active);

    world.feet.set("ann", "build-box", &["file_read", "exec_run", "git__log"]);
    let listing = world.listing(&own).await;
    assert_eq!(names(&listing), ["builder__file_read", "builder__git__log"]);
    let spec = &listing.tools["builder__git__log"].spec;
    assert_eq!(spec.original_name.as_deref(), Some("git__log"));
    assert_eq!((spec.labels.as_slice(), spec.primary), (&["build".to_owned(), "read-only".to_owned()][..], false));
    assert_eq!(
        (spec.requires_roles.as_slice(), spec.prompt_hint.as_deref()),
        (&["ops".to_owned()][..], Some("Use it for builds."))
    );
    assert!(matches!(&spec.origin, Origin::Configured { entry, type_id: "foot", .. } if entry.as_str() == "builder"));
    let output = world.call(&own, "builder__git__log", json!({})).await.unwrap();
    assert_eq!(output.joined_text(), "git__log", "the call reaches the tool itself");

    let others = world.source.listing(&own, &subject("bob")).await.unwrap();
    assert!(others.tools.is_empty(), "bob has no such foot");

    world.feet.remove("build-box");
    assert!(world.listing(&own).await.tools.is_empty());
}

#[tokio::test]
async fn only_the_exposed_tools_are_offered() {
    let world = World::new(&[]).await;
    let own = scope("acme", "main");
    world.feet.set("ann", "build-box", &["file_read", "exec_run", "file_list"]);
    let narrowed = PACK.replace("{foot: build-box}", "{foot: build-box, exposedTools: [file_list, exec_run]}");
    world.put(&own, "builder", &narrowed).await.unwrap();
    assert_eq!(names(&*world.listing(&own).await), ["builder__file_list"]);
    let closed = PACK.replace("{foot: build-box}", "{foot: build-box, exposedTools: []}");
    world.put(&own, "builder", &closed).await.unwrap();
    assert_eq!(names(&*world.listing(&own).await), [""; 0], "an empty list offers nothing");
}

/// Whoever knows a tool by its public name finds it there whatever else is taken out of its pack.
#[tokio::test]
async fn leaving_out_a_tool_renames_no_other() {
    let world = World::new(&[]).await;
    let own = scope("acme", "main");
    // In form both are `git_log`, and get a suffix.
    world.feet.set("ann", "build-box", &["git_log", "git_log_", "ping"]);
    world.put(&own, "builder", "type: foot\ndescription: d\nparameters: {foot: build-box}").await.unwrap();
    let all = world.listing(&own).await;
    for narrowed in [
        "disabledSubTools: [git_log]\nparameters: {foot: build-box}",
        "parameters: {foot: build-box, exposedTools: [git_log_, ping]}",
    ] {
        world.put(&own, "builder", &format!("type: foot\ndescription: d\n{narrowed}")).await.unwrap();
        let fewer = world.listing(&own).await;
        let left: Vec<_> = names(&all).into_iter().filter(|name| *name != "builder__git_log").collect();
        assert_eq!((names(&fewer), left.len()), (left.clone(), 2), "{narrowed}");
    }
}

#[tokio::test]
async fn a_listing_is_made_anew_only_when_something_changed() {
    let world = World::new(&[]).await;
    let own = scope("acme", "main");
    let same = async |before: &Arc<Listing>| Arc::ptr_eq(before, &world.listing(&own).await);
    let without_packs = world.listing(&own).await;
    assert!(same(&without_packs).await);

    world.put(&own, "builder", PACK).await.unwrap();
    world.feet.set("ann", "build-box", &["file_read"]);
    let with_foot = world.listing(&own).await;
    assert!(same(&with_foot).await);
    world.source.listing(&own, &subject("bob")).await.unwrap();
    assert!(same(&with_foot).await);
    world.feet.set("ann", "build-box", &["file_read"]);
    assert!(!same(&with_foot).await, "the foot registered its tools again");
    let again = world.listing(&own).await;
    let elsewhere = scope("acme", "other");
    world.documents.put(&elsewhere, &path("documents/x.md"), "x", "ann", &WriteCondition::Any).await.unwrap();
    assert!(same(&again).await, "another project is none of its business");
}
