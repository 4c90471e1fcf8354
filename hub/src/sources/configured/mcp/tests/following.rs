//! Resources that clients follow: over one connection, and over the next one.

use tokio_util::sync::CancellationToken;

use super::super::session::IDLE;
use super::*;
use crate::sources::configured::mcp::followed::{SUBSCRIBE, UNSUBSCRIBE};

/// An MCP session that ends when it is told to.
pub(super) struct Member {
    session: &'static str,
    capabilities: Raw,
    pub(super) ended: CancellationToken,
}

impl Member {
    pub(super) fn of(session: &'static str) -> Arc<Self> {
        Arc::new(Self { session, capabilities: to_raw_value(&json!({})).unwrap(), ended: CancellationToken::new() })
    }
}

#[async_trait]
impl McpClient for Member {
    fn version(&self) -> Version {
        Version::V2025_06_18
    }
    fn capabilities(&self) -> &Raw {
        &self.capabilities
    }
    fn session(&self) -> Option<&str> {
        Some(self.session)
    }
    fn ended(&self) -> Option<CancellationToken> {
        Some(self.ended.clone())
    }
    async fn request(&self, method: &str, _: Raw) -> Result<Raw, RpcError> {
        crate::domain::mcp::declined(method)
    }
    fn notify(&self, _: &str, _: Raw) {}
}

pub(super) async fn follow(attachment: &Attachment, member: &Arc<Member>, begins: bool) {
    let mut ctx = plain("ann");
    ctx.client = Some(member.clone());
    let params = footbridge_mcp::Fields::of(&to_raw_value(&json!({"uri": "x:y"})).unwrap()).unwrap();
    assert!(attachment.server().follow(&ctx, begins, params).await.is_ok());
}

/// What the server has heard of subscriptions since it was looked at last.
pub(super) async fn heard(lab: &mut Lab) -> Vec<(usize, String)> {
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut heard = Vec::new();
    while let Ok((connection, method, _)) = lab.heard.try_recv() {
        if [SUBSCRIBE, UNSUBSCRIBE, "subscriptions/listen", "notifications/cancelled"].contains(&method.as_str()) {
            heard.push((connection, method));
        }
    }
    heard
}

pub(super) fn said(connection: usize, method: &str) -> Vec<(usize, String)> {
    vec![(connection, method.to_owned())]
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_followed_as_long_as_somebody_does() {
    let mut lab = Lab::new();
    let attachment = lab.attach(SessionMode::Shared);
    ready(&attachment).await;
    let (one, other) = (Member::of("1"), Member::of("2"));
    for member in [&one, &one, &other] {
        follow(&attachment, member, true).await;
    }
    assert_eq!(heard(&mut lab).await, said(0, SUBSCRIBE), "once for all");
    follow(&attachment, &one, false).await;
    follow(&attachment, &one, false).await;
    assert_eq!(heard(&mut lab).await, [], "another one still follows it");
    other.ended.cancel();
    assert_eq!(heard(&mut lab).await, said(0, UNSUBSCRIBE), "the end of a session is one of its subscriptions");
    follow(&attachment, &one, true).await;
    assert_eq!(heard(&mut lab).await, said(0, SUBSCRIBE));
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_followed_is_followed_again_over_the_next_connection_and_keeps_it_open() {
    let mut lab = Lab::new();
    let attachment = lab.attach(SessionMode::Subject);
    ready(&attachment).await;
    let member = Member::of("1");
    follow(&attachment, &member, true).await;
    assert_eq!(heard(&mut lab).await, said(1, SUBSCRIBE));
    assert!(attachment.server().take_idle(Duration::ZERO).is_empty());
    tokio::time::sleep(2 * IDLE).await;
    assert_eq!(*lab.fake.open.borrow(), 2, "the one that lists, and this one");
    let mut notes = attachment.server().notes();
    let mut ctx = plain("ann");
    ctx.client = Some(member.clone());
    call(&attachment, "die", json!({}), &ctx).await.unwrap_err();
    assert_eq!(heard(&mut lab).await, said(2, SUBSCRIBE));
    let Ok(McpNote::Told { method, params, .. }) = notes.recv().await else { panic!("no note") };
    assert_eq!((method.as_str(), params.get()), ("notifications/resources/updated", r#"{"uri":"x:y"}"#));
    follow(&attachment, &member, false).await;
    assert_eq!(heard(&mut lab).await, said(2, UNSUBSCRIBE));
    assert_eq!(attachment.server().take_idle(Duration::ZERO).len(), 1, "now it is idle");
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_sessions_is_listened_to() {
    let mut lab = Lab::with(|fake| fake.stateless = true);
    let attachment = lab.attach(SessionMode::Shared);
    ready(&attachment).await;
    let (one, other) = (Member::of("1"), Member::of("2"));
    follow(&attachment, &one, true).await;
    follow(&attachment, &other, true).await;
    let (_, asked) = lab.hears("subscriptions/listen").await;
    assert_eq!(asked["notifications"], json!({"resourceSubscriptions": ["x:y"]}));
    follow(&attachment, &one, false).await;
    assert_eq!(heard(&mut lab).await, []);
    let listings = lab.fake.listings.load(Ordering::Relaxed);
    let accepted = json!({"notifications": {"resourceSubscriptions": ["x:y"]}});
    lab.fake
        .say(0, json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": accepted}));
    follow(&attachment, &other, false).await;
    assert_eq!(heard(&mut lab).await, said(0, "notifications/cancelled"));
    assert_eq!(lab.fake.listings.load(Ordering::Relaxed), listings, "that is no news of its lists");
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_let_go_while_the_server_is_away_is_not_followed_again() {
    let mut lab = Lab::new();
    let attachment = lab.attach(SessionMode::Subject);
    ready(&attachment).await;
    let member = Member::of("1");
    follow(&attachment, &member, true).await;
    assert_eq!(heard(&mut lab).await, said(1, SUBSCRIBE));
    *lab.fake.up.lock() = false;
    call(&attachment, "die", json!({}), &plain("ann")).await.unwrap_err();
    follow(&attachment, &member, false).await;
    *lab.fake.up.lock() = true;
    tokio::time::sleep(2 * IDLE).await;
    assert_eq!(heard(&mut lab).await, []);
    assert_eq!(*lab.fake.open.borrow(), 1, "nor is it connected to for that: this is the one that lists");
    lab.end().await;
}
