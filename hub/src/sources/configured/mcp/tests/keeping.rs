//! How a server's listing is kept, and what becomes of a server.

use super::*;

fn names(attachment: &Attachment) -> Vec<String> {
    attachment.server().listed().tools.iter().filter_map(|tool| tool.spec.original_name.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn all_pages_are_read_in_the_servers_order() {
    let tools: Vec<Json> =
        (0..1_000).rev().map(|n| json!({"name": format!("tool {n}"), "inputSchema": {"type": "object"}})).collect();
    let lab = Lab::with(|fake| {
        fake.page = 200;
        fake.tools = tools.clone().into();
    });
    let attachment = lab.attach(SessionMode::Shared);
    assert_eq!(attachment.server().status().state, PackState::Connecting);
    ready(&attachment).await;
    assert_eq!(names(&attachment), tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>());
    let status = attachment.server().status();
    assert_eq!((status.server.as_deref(), status.protocol.as_deref()), (Some("fake 1"), Some("2025-06-18")));
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_has_failed_and_is_tried_again() {
    let lab = Lab::with(|fake| fake.mute = true);
    let attachment = lab.attach(SessionMode::Shared);
    let status = when(attachment.server(), |status| status.error.is_some()).await;
    assert_eq!(status.state, PackState::Failed);
    assert!(status.error.unwrap().message.contains("10s"));
    let mut attempts = attachment.server().attempts();
    attempts.mark_unchanged();
    attempts.changed().await.unwrap();
    assert!(lab.fake.clients.lock().len() > 1);
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_late_server_is_there_without_anybody_asking_and_that_is_told_once() {
    let lab = Lab::with(|fake| fake.up = false.into());
    let changes = lab.changes.follow();
    let attachment = lab.attach(SessionMode::Shared);
    when(attachment.server(), |status| status.state == PackState::Failed).await;
    assert!(!changes.has_changed().unwrap());
    *lab.fake.up.lock() = true;
    ready(&attachment).await;
    assert_eq!(*changes.borrow(), 1);
    assert_eq!(names(&attachment).len(), 5);
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_changes_is_one_listing() {
    let mut lab = Lab::new();
    let attachment = lab.attach(SessionMode::Shared);
    let mut notes = attachment.server().notes();
    ready(&attachment).await;
    assert!(matches!(notes.recv().await, Ok(McpNote::ListChanged)));
    lab.fake.tools.lock().truncate(1);
    for _ in 0..50 {
        lab.fake.say(0, json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    }
    assert!(matches!(notes.recv().await, Ok(McpNote::ListChanged)));
    assert_eq!(names(&attachment), ["echo"]);
    // All that was said has been heard: what comes behind it is answered.
    call(&attachment, "echo", json!({}), &plain("ann")).await.unwrap();
    lab.hears("tools/call").await;
    // Whatever is left to do because of it is done.
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(lab.fake.listings.load(Ordering::Relaxed), 2);
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_is_stale_and_comes_back() {
    let lab = Lab::new();
    let attachment = lab.attach(SessionMode::Shared);
    ready(&attachment).await;
    let before = attachment.server().listed().tools.clone();
    *lab.fake.up.lock() = false;
    let failure = call(&attachment, "die", json!({}), &plain("ann")).await.unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::ServerUnavailable, Outcome::Unknown));
    let status = when(attachment.server(), |status| status.state == PackState::Stale).await;
    assert!(status.next_try_at.is_some());
    assert!(Arc::ptr_eq(&before, &attachment.server().listed().tools), "the last good listing is served");
    let failure = call(&attachment, "echo", json!({}), &plain("ann")).await.unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::ServerUnavailable, Outcome::NotRun));
    *lab.fake.up.lock() = true;
    ready(&attachment).await;
    assert!(Arc::ptr_eq(&before, &attachment.server().listed().tools), "it is what it was");
    call(&attachment, "echo", json!({}), &plain("ann")).await.unwrap();
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_refresh_by_a_person_accepts_what_changed() {
    let lab = Lab::new();
    let attachment = lab.attach(SessionMode::Shared);
    ready(&attachment).await;
    lab.fake.tools.lock()[0]["description"] = "another".into();
    lab.fake.say(0, json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    let status = when(attachment.server(), |status| !status.changed.is_empty()).await;
    assert_eq!(status.changed, ["echo"]);
    attachment.server().refresh().await;
    assert!(attachment.server().status().changed.is_empty());
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_fails_accepts_nothing_that_comes_later() {
    let lab = Lab::new();
    let attachment = lab.attach(SessionMode::Shared);
    ready(&attachment).await;
    lab.fake.failing.lock().push("tools/list");
    attachment.server().refresh().await;
    assert_eq!(attachment.server().status().state, PackState::Stale);
    lab.fake.tools.lock()[0]["description"] = "another".into();
    lab.fake.failing.lock().clear();
    let status = when(attachment.server(), |status| status.state == PackState::Ready).await;
    assert_eq!(status.changed, ["echo"]);
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_costs_itself_and_is_tried_again() {
    let prompts = || json!({"prompts": {}, "tools": {"listChanged": true}});
    let lab = Lab::with(|fake| fake.capabilities = prompts());
    lab.fake.prompts.lock().push(json!({"name": "old"}));
    let attachment = lab.attach(SessionMode::Shared);
    ready(&attachment).await;
    lab.fake.failing.lock().push("prompts/list");
    lab.fake.tools.lock().truncate(1);
    lab.fake.say(0, json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    let status = when(attachment.server(), |status| status.note.is_some()).await;
    assert_eq!((status.state, status.prompts), (PackState::Ready, 1), "what it said before stays");
    assert!(status.note.unwrap().starts_with("`prompts/list` failed: no such method (-32603)"));
    assert_eq!(names(&attachment), ["echo"]);
    lab.fake.failing.lock().clear();
    lab.fake.prompts.lock().clear();
    let status = when(attachment.server(), |status| status.note.is_none()).await;
    assert_eq!((status.prompts, *lab.fake.open.borrow()), (0, 1));
    lab.end().await;

    let lab = Lab::with(|fake| fake.capabilities = prompts());
    lab.fake.failing.lock().push("prompts/list");
    let attachment = lab.attach(SessionMode::Shared);
    let status = when(attachment.server(), |status| status.listed_at.is_some()).await;
    assert!(status.state == PackState::Ready && status.note.is_some());
    assert_eq!(names(&attachment).len(), 5, "also the first time");
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_fails_disturbs_no_call() {
    let mut lab = Lab::new();
    let attachment = lab.attach(SessionMode::Shared);
    ready(&attachment).await;
    let (ctx, fake) = (plain("ann"), lab.fake.clone());
    let running = call(&attachment, "wait", json!({}), &ctx);
    let meanwhile = async {
        lab.hears("tools/call").await;
        fake.failing.lock().push("tools/list");
        fake.say(0, json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
        when(attachment.server(), |status| status.state == PackState::Stale).await;
        fake.answer(0);
    };
    let (output, ()) = futures::join!(running, meanwhile);
    output.unwrap();
    fake.failing.lock().clear();
    ready(&attachment).await;
    assert_eq!(fake.clients.lock().len(), 1, "over one connection");
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_let_go_ends_with_the_last_call_on_it() {
    let mut lab = Lab::new();
    let attachment = lab.attach(SessionMode::Shared);
    ready(&attachment).await;
    let (ctx, fake) = (plain("ann"), lab.fake.clone());
    let running = call(&attachment, "wait", json!({}), &ctx);
    let meanwhile = async {
        lab.hears("tools/call").await;
        let session = attachment.server().session_of(&ctx).await.ok().unwrap();
        let live = session.live(attachment.server(), super::server::nothing()).await.ok().unwrap();
        session.discard(&live);
        drop(live);
        let mut open = fake.open.subscribe();
        open.wait_for(|open| *open == 2).await.unwrap();
        // The next one to come has another connection, and the one that runs keeps its own.
        fake.answer(0);
    };
    let (output, ()) = futures::join!(running, meanwhile);
    output.unwrap();
    fake.open.subscribe().wait_for(|open| *open == 1).await.unwrap();
    let again = structured(&call(&attachment, "echo", json!({}), &plain("bob")).await.unwrap());
    assert_eq!(again["connection"], 1);
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn projects_share_the_server_of_their_tenants_document_and_it_ends_with_the_last() {
    let lab = Lab::new();
    let one = lab.attach_as("main", Layer::Tenant, SessionMode::Shared);
    let other = lab.attach_as("beta", Layer::Tenant, SessionMode::Shared);
    assert!(Arc::ptr_eq(&one, &other));
    let own = lab.attach_as("main", Layer::Project, SessionMode::Shared);
    assert!(!Arc::ptr_eq(&one, &own), "a document of the project's own is another one");
    ready(&one).await;
    ready(&own).await;
    let mut open = lab.fake.open.subscribe();
    let held = tool(&one, "echo");
    drop(one);
    assert_eq!(*open.borrow_and_update(), 2);
    drop(other);
    open.wait_for(|open| *open == 1).await.unwrap();
    // Whoever still has the tool is told.
    let failure = held.handler.invoke(Arguments::empty(), &plain("ann")).await.unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::ServerUnavailable, Outcome::NotRun));
    drop(own);
    open.wait_for(|open| *open == 0).await.unwrap();
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn another_configuration_of_a_server_shows_what_it_offered_until_it_is_listed() {
    let lab = Lab::new();
    let old = lab.attach(SessionMode::Shared);
    ready(&old).await;
    lab.fake.tools.lock()[0]["description"] = "another".into();
    lab.fake.say(0, json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    when(old.server(), |status| !status.changed.is_empty()).await;
    *lab.fake.up.lock() = false;
    let attach = |digest: u8, command: &str| {
        lab.attach_with("main", Layer::Project, SessionMode::Shared, |config| {
            config.digest = [digest; 32];
            config.call_timeout = Some(Duration::from_secs(7));
            if let Target::Stdio(program) = &mut config.target {
                program.command = command.to_owned();
                program.env = vec![("KEY".to_owned(), "another".to_owned())];
            }
        })
    };
    assert_eq!(names(&attach(2, "another program")), [""; 0]);
    let new = attach(1, "fake");
    let before = (names(&old), old.server().listed());
    drop(old);
    assert_eq!(names(&new), before.0);
    let status = new.server().status();
    assert_eq!((status.state, &*status.changed), (PackState::Connecting, &["echo".to_owned()][..]));
    assert_eq!(tool(&new, "ask").spec.timeout, Some(Duration::from_secs(7)));
    when(new.server(), |status| status.state == PackState::Stale).await;
    *lab.fake.up.lock() = true;
    ready(&new).await;
    assert_eq!(names(&new), before.0);
    assert_eq!(new.server().status().changed, ["echo"], "nobody has looked at it");
    call(&new, "echo", json!({}), &plain("ann")).await.unwrap();
    lab.end().await;
}
