//! For whom a foot works. For everybody else it does not exist.

use footbridge_shared::ErrorCode;
use footbridge_shared::message::Share;
use serde_json::json;

use super::harness::{Hub, Identity, foot_name, hear, scope, subject};
use crate::domain::feet::{FootDirectory as _, FootState, FootSummary};
use crate::domain::tool::ToolSource as _;

fn shown(feet: &[FootSummary]) -> Vec<(&str, &str, FootState, bool)> {
    feet.iter().map(|foot| (foot.name.as_str(), foot.owner.as_str(), foot.state, foot.own)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_foot_is_its_owners_until_it_is_shared() {
    let hub = Hub::new().await;
    let mut own = hub.foot("ada", "dev").await;
    own.offer(1, &["build"]).await;
    let tool = hub.tool("ada", "build").await.unwrap();

    assert!(hub.names("bob").await.is_empty());
    assert!(hub.registry.feet(&hub.scope, &subject("bob")).is_empty());
    assert_eq!(hub.registry.tools_of(&hub.scope, &subject("bob"), &foot_name("dev")).map(|tools| tools.len()), None);
    // Even who holds the tool gets nowhere, and cannot tell why.
    let failure = hub.call_tool("bob", tool, "{}").failure().await;
    assert_eq!((failure.code, failure.message.as_str()), (ErrorCode::UnknownTool, "there is no tool `build` here"));
    // Nor does the owner, from another project.
    assert!(hub.registry.listing(&scope("other"), &subject("ada")).await.unwrap().tools.is_empty());

    let few = Share::Subjects(vec![subject("bob")]);
    let mut shared = hub.foot_as("ada", Identity::new("lab"), |hello| hello.share = few).await;
    shared.offer(1, &["test"]).await;
    assert_eq!(hub.names("bob").await, ["lab__test", "test"]);
    assert!(hub.names("eve").await.is_empty());
    let mut call = hub.call("bob", "lab__test", json!({})).await;
    let asked = hear!(shared, Call);
    assert_eq!(asked.caller.subject.as_str(), "bob", "the foot can check again");
    shared.answer(&asked, "tested").await;
    assert_eq!(call.text().await, "tested");
    assert_eq!(hub.registry.tools_of(&hub.scope, &subject("bob"), &foot_name("lab")).map(|tools| tools.len()), Some(1));
}

#[tokio::test(start_paused = true)]
async fn two_subjects_may_call_their_feet_the_same() {
    let hub = Hub::new().await;
    let share = |hello: &mut footbridge_shared::message::Hello| hello.share = Share::Project;
    let mut adas = hub.foot_as("ada", Identity::with_key("dev", "ada"), share).await;
    adas.offer(1, &["build"]).await;
    assert_eq!(hub.names("eve").await, ["build", "dev__build"], "nothing to tell apart yet");
    let mut bobs = hub.dial(super::harness::principal("bob"), Identity::with_key("dev", "bob"));
    let welcome = bobs.greet(share).await;
    let bobs_seen = welcome.shared_name.unwrap();
    assert!(bobs_seen.as_str().starts_with("dev-"), "{bobs_seen}");
    bobs.offer(1, &["build"]).await;

    // Each owner has the plain name, and the other's under a suffix; for a third both have one.
    let prefix = bobs_seen.tool_prefix();
    assert_eq!(hub.names("ada").await, ["build".to_owned(), "dev__build".to_owned(), format!("{prefix}__build")]);
    let third = hub.names("eve").await;
    assert_eq!(third.len(), 3);
    assert!(third.contains(&format!("{prefix}__build")) && !third.contains(&"dev__build".to_owned()), "{third:?}");

    for (who, name, whose) in
        [("ada", "build", "adas"), ("bob", "build", "bobs"), ("ada", format!("{prefix}__build").as_str(), "bobs")]
    {
        let mut call = hub.call(who, name, json!({})).await;
        let foot = if whose == "adas" { &mut adas } else { &mut bobs };
        let asked = hear!(foot, Call);
        foot.answer(&asked, whose).await;
        assert_eq!(call.text().await, whose);
        hear!(foot, Ack);
    }
    assert_eq!(hub.registry.tools_of(&hub.scope, &subject("ada"), &bobs_seen).map(|tools| tools.len()), Some(1));
}

#[tokio::test(start_paused = true)]
async fn the_directory_shows_each_what_is_theirs() {
    let hub = Hub::new().await;
    let mut dev = hub.foot("ada", "dev").await;
    dev.offer(1, &["b", "a"]).await;
    let away = hub.foot("ada", "away").await;
    drop(away);
    let lab = hub.foot_as("bob", Identity::new("lab"), |hello| hello.share = Share::Project).await;
    hub.settles(|counts| counts.connections == 2).await;

    let feet = hub.registry.feet(&hub.scope, &subject("ada"));
    let expected = [
        ("away", "ada", FootState::Away, true),
        ("dev", "ada", FootState::Connected, true),
        ("lab", "bob", FootState::Connected, false),
    ];
    assert_eq!(shown(&feet), expected);
    let details = feet[1].details.as_ref().unwrap();
    assert_eq!((details.share.as_str(), &details.tools), ("owner", &vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(feet[2].details.as_ref().unwrap().share, "project");

    // An admin sees names, owners and states, and no more.
    let all = hub.registry.list_all(&hub.scope);
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|foot| foot.details.is_none() && !foot.own));

    drop(lab);
    hub.settles(|counts| counts.feet == 1).await;
    let feet = hub.registry.feet(&hub.scope, &subject("ada"));
    assert_eq!(shown(&feet), [("away", "ada", FootState::Offline, true), expected[1]]);
}

#[tokio::test(start_paused = true)]
async fn what_a_foot_says_of_itself_is_cleaned_and_cut() {
    let hub = Hub::new().await;
    let odd = "\u{202e}x\u{1b}".repeat(1_200);
    let _foot = hub
        .foot_as("ada", Identity::new("dev"), |hello| {
            let info = &mut hello.foot;
            for text in [&mut info.version, &mut info.os, &mut info.arch, &mut info.hostname] {
                text.clone_from(&odd);
            }
            info.cwd = Some(odd.clone());
        })
        .await;
    let details = hub.registry.feet(&hub.scope, &subject("ada")).remove(0).details.unwrap();
    for text in [details.version, details.os, details.arch, details.hostname] {
        assert_eq!(text, "x".repeat(256));
    }
    assert_eq!(details.cwd.unwrap(), "x".repeat(1024));
}

#[tokio::test(start_paused = true)]
async fn a_foot_learns_nothing_of_feet_that_nobody_shares() {
    let hub = Hub::new().await;
    let share = |hello: &mut footbridge_shared::message::Hello| hello.share = Share::Project;
    let _private = hub.foot_as("bob", Identity::with_key("dev", "bob"), |_| {}).await;
    let gone = hub.foot_as("eve", Identity::with_key("dev", "eve"), share).await;
    drop(gone);
    hub.settles(|counts| counts.feet == 1).await;
    let mut adas = hub.dial(super::harness::principal("ada"), Identity::with_key("dev", "ada"));
    assert_eq!(adas.greet(share).await.shared_name, None);
    assert_eq!(hub.names("eve").await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_shared_foot_cannot_take_over_calls_of_anothers_own_foot() {
    let hub = Hub::new().await;
    let mut own = hub.foot("ada", "laptop").await;
    own.offer(1, &["file_read"]).await;
    let mut shared = hub.foot_as("mallory", Identity::new("aaa"), |hello| hello.share = Share::Project).await;
    shared.offer(1, &["file_read", "laptop__file_read"]).await;
    for name in ["file_read", "laptop__file_read"] {
        let mut call = hub.call("ada", name, json!({})).await;
        let asked = hear!(own, Call);
        own.answer(&asked, "mine").await;
        assert_eq!(call.text().await, "mine", "{name}");
        hear!(own, Ack);
    }

    // While the own foot is away its names lead nowhere; for others, nothing is held.
    own.to_hub.close_channel();
    let theirs = ["aaa__file_read", "aaa__laptop__file_read"];
    hub.settles(|counts| counts.connections == 1).await;
    assert_eq!(hub.names("ada").await, theirs);
    assert_eq!(hub.names("eve").await.len(), 4);
    let (mut own, _) = own.resume(&hub, "ada", &[]).await;
    assert_eq!(hub.names("ada").await.len(), 4);

    // A new process that offers something else holds the old names no more.
    own.to_hub.close_channel();
    hub.settles(|counts| counts.connections == 1).await;
    let own = own.identity.restarted();
    let _own = hub.foot_as("ada", own, |_| {}).await;
    assert_eq!(hub.names("ada").await.len(), 4, "{theirs:?} and the bare ones");
}

#[tokio::test(start_paused = true)]
async fn the_callers_own_foot_has_the_bare_name() {
    let hub = Hub::new().await;
    let mut shared = hub.foot_as("zoe", Identity::new("aaa"), |hello| hello.share = Share::Project).await;
    shared.offer(1, &["build"]).await;
    let mut own = hub.foot("ada", "zzz").await;
    own.offer(1, &["build"]).await;
    for (who, mine) in [("ada", true), ("eve", false)] {
        let mut call = hub.call(who, "build", json!({})).await;
        let foot = if mine { &mut own } else { &mut shared };
        let asked = hear!(foot, Call);
        foot.answer(&asked, who).await;
        assert_eq!(call.text().await, who);
    }
}
