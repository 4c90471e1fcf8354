use std::sync::Arc;

use footbridge_shared::ErrorCode;
use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::access::follow::soon;
use crate::clock::Clock as _;
use crate::clock::manual::ManualClock;
use crate::domain::principal::Role;
use crate::store::memory::MemoryStore;

mod expiry;
mod reach;

/// A store, a clock that stands still, and the service over both.
struct Hub {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    tokens: Arc<Tokens>,
}

impl Hub {
    async fn new() -> Self {
        let clock = ManualClock::new();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
        let tokens = Tokens::load(store.clone(), clock.clone()).await.unwrap();
        Self { store, clock, tokens }
    }

    /// Another hub over the same store.
    async fn other(&self) -> Arc<Tokens> {
        Tokens::load(self.store.clone(), self.clock.clone()).await.unwrap()
    }

    async fn admin(&self, reach: Reach) -> Arc<Principal> {
        self.principal(Role::Admin, reach).await
    }

    async fn principal(&self, role: Role, reach: Reach) -> Arc<Principal> {
        let created = self.tokens.create_first(request(role, reach)).await.unwrap();
        self.tokens.authenticate(created.text.expose()).unwrap()
    }

    /// The records as another process would have left them.
    async fn write(&self, id: &str, value: &str) {
        self.store.put_record("token", id, value, Precondition::Any).await.unwrap();
    }
}

fn request(role: Role, reach: Reach) -> NewToken {
    NewToken {
        name: None,
        subject: "ada".parse().unwrap(),
        roles: vec![role],
        reach,
        act_as: Vec::new(),
        expires_at: None,
    }
}

fn tenant(name: &str) -> Reach {
    Reach { tenant: Some(name.parse().unwrap()), projects: None }
}

fn projects(name: &str, projects: &[&str]) -> Reach {
    Reach { projects: Some(projects.iter().map(|project| project.parse().unwrap()).collect()), ..tenant(name) }
}

#[tokio::test]
async fn a_token_speaks_for_its_subject_until_it_is_revoked() {
    let hub = Hub::new().await;
    let admin = hub.admin(Reach::HUB).await;
    let wanted = NewToken {
        name: Some("laptop".to_owned()),
        roles: vec![Role::Foot, Role::Engine, Role::Foot],
        act_as: vec!["bob".to_owned()],
        ..request(Role::Viewer, projects("acme", &["main", "lab", "main"]))
    };
    let created = hub.tokens.create(wanted, &admin).await.unwrap();

    let principal = hub.tokens.authenticate(created.text.expose()).unwrap();
    assert_eq!((&*principal.token, principal.subject.as_str()), (created.info.id.as_str(), "ada"));
    assert_eq!(principal.roles, [Role::Engine, Role::Foot]);
    assert_eq!(principal.reach, projects("acme", &["lab", "main"]));
    assert_eq!(principal.act_as, ["bob"]);
    assert!(Arc::ptr_eq(&principal, &hub.tokens.authenticate(created.text.expose()).unwrap()));

    hub.tokens.revoke(&created.info.id, &admin).await.unwrap();
    assert!(principal.ended.is_cancelled());
    assert!(hub.tokens.authenticate(created.text.expose()).is_none());
    let again = hub.tokens.revoke(&created.info.id, &admin).await.unwrap_err();
    assert_eq!(again.code(), ErrorCode::NotFound);
    assert!(!admin.ended.is_cancelled());
}

#[tokio::test]
async fn only_the_exact_text_lets_in() {
    let hub = Hub::new().await;
    let text = hub.tokens.create_first(request(Role::Viewer, Reach::HUB)).await.unwrap().text;
    let text = text.expose();
    let last = if text.ends_with('A') { 'B' } else { 'A' };
    for other in [
        String::new(),
        format!("{}{last}", &text[..text.len() - 1]),
        format!("{text} "),
        format!("Bearer {text}"),
        text.to_uppercase(),
        text[4..].to_owned(),
    ] {
        assert!(hub.tokens.authenticate(&other).is_none(), "{other}");
    }
    assert!(hub.tokens.authenticate(text).is_some());
}

#[tokio::test]
async fn the_text_is_nowhere_but_in_the_answer() {
    let hub = Hub::new().await;
    let admin = hub.admin(Reach::HUB).await;
    let created = hub.tokens.create(request(Role::Viewer, Reach::HUB), &admin).await.unwrap();
    let random = &created.text.expose()[4..];
    for record in hub.store.records("token", "").await.unwrap() {
        assert!(!record.value.contains(random));
    }
    let listed = serde_json::to_string(&hub.tokens.list(&admin).unwrap()).unwrap();
    assert!(!listed.contains(random) && !listed.contains("hash"), "{listed}");
    assert!(!format!("{created:?}").contains(random));
}

#[tokio::test]
async fn tokens_outlive_the_process() {
    let hub = Hub::new().await;
    let admin = hub.admin(Reach::HUB).await;
    let wanted = NewToken {
        name: Some("é".repeat(MAX_TOKEN_NAME_CHARS)),
        expires_at: Some(hub.clock.now() + SignedDuration::from_secs(60)),
        act_as: vec![ANYBODY.to_owned()],
        ..request(Role::Engine, projects("acme", &["main"]))
    };
    let created = hub.tokens.create(wanted, &admin).await.unwrap();
    let restarted = hub.other().await;
    let (before, after) = (
        hub.tokens.authenticate(created.text.expose()).unwrap(),
        restarted.authenticate(created.text.expose()).unwrap(),
    );
    assert_eq!((&before.token, &before.subject, &before.roles), (&after.token, &after.subject, &after.roles));
    assert_eq!((&before.reach, &before.act_as), (&after.reach, &after.act_as));
    assert_eq!(restarted.list(&admin).unwrap(), hub.tokens.list(&admin).unwrap());
    assert!(restarted.list(&admin).unwrap().contains(&created.info));
}

#[tokio::test]
async fn what_cannot_be_a_token_is_refused_by_the_part_that_is_wrong() {
    let hub = Hub::new().await;
    let valid = || request(Role::Engine, tenant("acme"));
    let many = |count: usize| (0..count).map(|number| format!("s{number}")).collect::<Vec<_>>();
    for (field, wrong) in [
        ("name", NewToken { name: Some(String::new()), ..valid() }),
        ("name", NewToken { name: Some("x".repeat(MAX_TOKEN_NAME_CHARS + 1)), ..valid() }),
        ("name", NewToken { name: Some("la\u{202e}ptop".to_owned()), ..valid() }),
        ("name", NewToken { name: Some("two\nlines".to_owned()), ..valid() }),
        ("roles", NewToken { roles: Vec::new(), ..valid() }),
        ("projects", NewToken { reach: projects("acme", &[]), ..valid() }),
        ("projects", NewToken { reach: Reach { tenant: None, ..projects("acme", &["main"]) }, ..valid() }),
        ("projects", NewToken { reach: projects("acme", &["main"; MAX_TOKEN_PROJECTS + 1]), ..valid() }),
        ("actAs", NewToken { act_as: vec!["not a subject".to_owned()], ..valid() }),
        ("actAs", NewToken { act_as: many(MAX_ACT_AS + 1), ..valid() }),
        ("actAs", NewToken { act_as: many(1), ..request(Role::Viewer, tenant("acme")) }),
        ("expiresAt", NewToken { expires_at: Some(hub.clock.now()), ..valid() }),
        ("expiresAt", NewToken { expires_at: Some(Timestamp::UNIX_EPOCH), ..valid() }),
    ] {
        let refused = hub.tokens.create_first(wrong.clone()).await.unwrap_err();
        assert!(matches!(refused, AccessError::Invalid { field: f, .. } if f == field), "{wrong:?}: {refused}");
        assert_eq!(refused.code(), ErrorCode::BadRequest);
    }
    assert_eq!(hub.store.records("token", "").await.unwrap(), []);
    hub.tokens.create_first(NewToken { act_as: many(MAX_ACT_AS), ..valid() }).await.unwrap();
}

#[tokio::test]
async fn everybody_stands_for_each_of_them() {
    let hub = Hub::new().await;
    let act_as = vec!["bob".to_owned(), ANYBODY.to_owned()];
    let created = hub.tokens.create_first(NewToken { act_as, ..request(Role::Engine, Reach::HUB) }).await.unwrap();
    assert_eq!(created.info.act_as, [ANYBODY]);
}

#[tokio::test]
async fn a_record_that_this_build_does_not_understand_lets_nobody_in() {
    let hub = Hub::new().await;
    let (admin, of_tenant) = (hub.admin(Reach::HUB).await, hub.admin(tenant("acme")).await);
    let created = hub.tokens.create(request(Role::Engine, tenant("acme")), &admin).await.unwrap();
    let (id, text) = (created.info.id.as_str(), created.text.expose());
    let value = hub.store.record("token", id).await.unwrap().unwrap().value;
    let principal = hub.tokens.authenticate(text).unwrap();

    for broken in [
        value.replace("\"roles\"", "\"readOnly\":true,\"roles\""),
        value.replace("engine", "omnipotent"),
        value.replace("\"tenant\":\"acme\",\"projects\":null", "\"tenant\":null,\"projects\":[\"main\"]"),
        value.replace(id, "another"),
        String::new(),
    ] {
        assert_ne!(broken, value);
        hub.write(id, &broken).await;
        hub.tokens.refresh().await.unwrap();
        assert!(hub.tokens.authenticate(text).is_none(), "{broken}");
        assert!(hub.other().await.authenticate(text).is_none(), "{broken}");
    }
    assert!(principal.ended.is_cancelled(), "what it was before has ended");

    // Nobody can tell whose it was, so only whoever has everything can be rid of it.
    let refused = hub.tokens.revoke(id, &of_tenant).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::NotFound);
    hub.tokens.revoke(id, &admin).await.unwrap();
    assert_eq!(hub.store.record("token", id).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn what_another_hub_does_arrives_and_ends_nothing_else() {
    let hub = Hub::new().await;
    let admin = hub.admin(Reach::HUB).await;
    let kept = hub.tokens.create(request(Role::Viewer, Reach::HUB), &admin).await.unwrap();
    let (lifecycle, other) = (Lifecycle::new(), hub.other().await);
    other.follow(&lifecycle);
    let before = other.authenticate(kept.text.expose()).unwrap();

    let created = hub.tokens.create(request(Role::Viewer, Reach::HUB), &admin).await.unwrap();
    soon(|| other.authenticate(created.text.expose()).is_some()).await;
    let principal = other.authenticate(created.text.expose()).unwrap();
    hub.tokens.revoke(&created.info.id, &admin).await.unwrap();
    soon(|| principal.ended.is_cancelled()).await;
    assert!(other.authenticate(created.text.expose()).is_none());
    let after = other.authenticate(kept.text.expose()).unwrap();
    assert!(Arc::ptr_eq(&before, &after) && !after.ended.is_cancelled());
    assert_eq!(lifecycle.shut_down(Duration::from_secs(1)).await, 0);
}

#[tokio::test]
async fn a_token_can_be_revoked_where_it_is_not_known_yet() {
    let hub = Hub::new().await;
    let other = hub.other().await;
    let admin = hub.admin(Reach::HUB).await;
    let created = hub.tokens.create(request(Role::Viewer, Reach::HUB), &admin).await.unwrap();
    other.revoke(&created.info.id, &admin).await.unwrap();
    assert!(hub.other().await.authenticate(created.text.expose()).is_none());
}

#[tokio::test]
async fn an_older_reading_never_takes_the_place_of_a_newer() {
    let hub = Hub::new().await;
    let admin = hub.admin(Reach::HUB).await;
    // Reading and installing are one turn, as writing and installing are: none comes in between another.
    let turn = hub.tokens.turn.lock().await;
    let (mut refresh, mut create, mut revoke) = (
        Box::pin(hub.tokens.refresh()),
        Box::pin(hub.tokens.create(request(Role::Viewer, Reach::HUB), &admin)),
        Box::pin(hub.tokens.revoke("0123456789abcdef", &admin)),
    );
    assert!(futures::poll!(&mut refresh).is_pending());
    assert!(futures::poll!(&mut create).is_pending());
    assert!(futures::poll!(&mut revoke).is_pending());
    drop(turn);
    refresh.await.unwrap();
    create.await.unwrap();
    revoke.await.unwrap_err();
}
