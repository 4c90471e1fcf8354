//! How long connections are kept for MCP sessions, and how many for one subject.

use super::following::{Member, follow, heard, said};
use super::*;
use crate::sources::configured::mcp::followed::{SUBSCRIBE, UNSUBSCRIBE};

fn of(member: &Arc<Member>) -> CallContext {
    let mut ctx = plain("ann");
    ctx.client = Some(member.clone());
    ctx
}

async fn connection(attachment: &Attachment, ctx: &CallContext) -> Json {
    structured(&call(attachment, "echo", json!({}), ctx).await.unwrap())["connection"].clone()
}

#[tokio::test(start_paused = true)]
async fn what_an_mcp_session_has_to_itself_ends_with_it() {
    let lab = Lab::new();
    let attachment = lab.attach(SessionMode::Process);
    ready(&attachment).await;
    let (one, other) = (Member::of("1"), Member::of("2"));
    let (first, second) = (connection(&attachment, &of(&one)).await, connection(&attachment, &of(&other)).await);
    let mut open = lab.fake.open.subscribe();
    assert_eq!((*open.borrow_and_update(), first != second), (3, true));
    one.ended.cancel();
    open.wait_for(|open| *open == 2).await.unwrap();
    assert_eq!(connection(&attachment, &of(&other)).await, second, "another session's stays");
    assert_eq!(attachment.server().take_idle(Duration::ZERO).len(), 1, "there is room again");
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_when_its_session_ends_has_its_connection_to_its_end() {
    let mut lab = Lab::new();
    let attachment = lab.attach(SessionMode::Process);
    ready(&attachment).await;
    let (member, fake) = (Member::of("1"), lab.fake.clone());
    let ctx = of(&member);
    let running = call(&attachment, "wait", json!({}), &ctx);
    let ends = async {
        lab.hears("tools/call").await;
        member.ended.cancel();
        tokio::time::sleep(Duration::from_secs(5)).await;
        fake.answer(1);
    };
    let (output, ()) = futures::join!(running, ends);
    output.unwrap();
    fake.open.subscribe().wait_for(|open| *open == 1).await.unwrap();
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_an_ended_session_followed_keeps_nothing_open() {
    let mut lab = Lab::new();
    let attachment = lab.attach(SessionMode::Process);
    ready(&attachment).await;
    let member = Member::of("1");
    follow(&attachment, &member, true).await;
    assert_eq!(heard(&mut lab).await, said(1, SUBSCRIBE));
    member.ended.cancel();
    let after = heard(&mut lab).await;
    assert!(after.is_empty() || after == said(1, UNSUBSCRIBE), "{after:?}");
    assert_eq!(*lab.fake.open.borrow(), 1, "the one that lists");
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn one_subject_never_has_all_connections() {
    let lab = Lab::new();
    let attachment = lab.attach(SessionMode::Process);
    ready(&attachment).await;
    let server = attachment.server();
    let process = |subject: &str, n: usize| {
        let mut ctx = plain(subject);
        ctx.caller = Arc::new(Caller { process: Some(format!("p{n}")), ..Caller::clone(&ctx.caller) });
        ctx
    };
    let mut used = Vec::new();
    for n in 0..56 {
        used.push(server.session_of(&process("ann", n)).await.ok().unwrap());
    }
    let refused = server.session_of(&process("ann", 56)).await.err().unwrap();
    assert_eq!(refused.code, ErrorCode::Overloaded);
    assert_eq!(refused.message, "all 56 connections to the server that one subject may have are in use");
    assert!(server.session_of(&process("bob", 0)).await.is_ok(), "nobody else is shut out");
    // What a subject does not use makes room for what it needs.
    used.pop();
    assert!(server.session_of(&process("ann", 56)).await.is_ok());
    drop(used);
    lab.end().await;
}
