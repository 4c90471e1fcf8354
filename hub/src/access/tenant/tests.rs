use std::time::Duration;

use footbridge_shared::ErrorCode;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::access::follow::soon;
use crate::clock::manual::ManualClock;
use crate::domain::principal::Role;
use crate::store::memory::MemoryStore;

struct Hub {
    store: Arc<dyn Store>,
    tenants: Arc<Tenants>,
}

impl Hub {
    async fn new() -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(ManualClock::new()));
        let tenants = Tenants::load(store.clone(), ManualClock::new()).await.unwrap();
        Self { store, tenants }
    }

    /// Another hub over the same store.
    async fn other(&self) -> Arc<Tenants> {
        Tenants::load(self.store.clone(), ManualClock::new()).await.unwrap()
    }

    async fn put(&self, name: &str, projects: &[&str], by: &Principal) -> Result<TenantInfo, AccessError> {
        let projects = projects.iter().map(|project| project.parse().unwrap()).collect();
        self.tenants.put(&tenant(name), projects, Precondition::Any, by).await
    }

    async fn delete(&self, name: &str, by: &Principal) -> Result<(), AccessError> {
        self.tenants.delete(&tenant(name), Precondition::Any, by).await
    }

    fn exists(&self, text: &str) -> bool {
        self.tenants.exists(&scope(text))
    }

    fn list(&self, reach: &Reach) -> Vec<String> {
        self.tenants.list(reach).into_iter().map(|tenant| show(&tenant)).collect()
    }
}

/// As `acme: lab main`.
fn show(tenant: &TenantInfo) -> String {
    let projects: Vec<_> = tenant.projects.iter().map(ProjectName::as_str).collect();
    format!("{}: {}", tenant.name, projects.join(" "))
}

fn tenant(name: &str) -> TenantName {
    name.parse().unwrap()
}

fn scope(text: &str) -> Scope {
    let (tenant, project) = text.split_once('/').unwrap();
    Scope::new(tenant.parse().unwrap(), project.parse().unwrap())
}

fn reach(name: &str, projects: Option<&[&str]>) -> Reach {
    let projects = projects.map(|projects| projects.iter().map(|project| project.parse().unwrap()).collect());
    Reach { tenant: Some(tenant(name)), projects }
}

fn principal(role: Role, reach: Reach) -> Principal {
    Principal {
        token: "t".into(),
        subject: "ada".parse().unwrap(),
        roles: vec![role],
        reach,
        act_as: Vec::new(),
        ended: CancellationToken::new(),
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, AccessError>) -> ErrorCode {
    result.unwrap_err().code()
}

#[tokio::test]
async fn a_scope_is_there_from_the_moment_its_tenant_says_so() {
    let hub = Hub::new().await;
    let admin = principal(Role::Admin, Reach::HUB);
    assert!(!hub.exists("acme/main") && !hub.exists("acme/_tenant"));

    let made = hub.put("acme", &["main", "lab", "main"], &admin).await.unwrap();
    assert_eq!((show(&made).as_str(), made.version), ("acme: lab main", Some(1)));
    assert!(hub.exists("acme/main") && hub.exists("acme/lab") && hub.exists("acme/_tenant"));
    assert!(!hub.exists("acme/other") && !hub.exists("other/main") && !hub.exists("other/_tenant"));

    let changed = hub.put("acme", &["other"], &admin).await.unwrap();
    assert_eq!((changed.created_at, changed.version), (made.created_at, Some(2)));
    assert!(hub.exists("acme/other") && hub.exists("acme/_tenant") && !hub.exists("acme/main"));
    assert!(hub.other().await.exists(&scope("acme/other")), "another process reads the same");

    hub.delete("acme", &admin).await.unwrap();
    assert!(!hub.exists("acme/other") && !hub.exists("acme/_tenant"));
    assert_eq!(code(hub.delete("acme", &admin).await), ErrorCode::UnknownScope);
    assert_eq!(code(hub.tenants.get(&tenant("acme"), &Reach::HUB)), ErrorCode::UnknownScope);
}

#[tokio::test]
async fn only_an_admin_of_the_whole_hub_makes_and_deletes_tenants() {
    let hub = Hub::new().await;
    for role in [Role::Viewer, Role::Engine, Role::Configure, Role::Foot] {
        let by = principal(role, Reach::HUB);
        assert_eq!(code(hub.put("acme", &[], &by).await), ErrorCode::Forbidden);
        assert_eq!(code(hub.delete("acme", &by).await), ErrorCode::Forbidden);
    }
    for own in [reach("acme", None), reach("acme", Some(&["main"])), reach("other", None)] {
        let by = principal(Role::Admin, own.clone());
        assert_eq!(code(hub.put("acme", &["main"], &by).await), ErrorCode::UnknownScope, "{own:?}");
    }
    assert_eq!(hub.list(&Reach::HUB), [""; 0]);

    hub.put("acme", &["main"], &principal(Role::Admin, Reach::HUB)).await.unwrap();
    for (own, refused) in [
        (reach("acme", None), ErrorCode::Forbidden),
        (reach("acme", Some(&["main"])), ErrorCode::Forbidden),
        (reach("other", None), ErrorCode::UnknownScope),
    ] {
        assert_eq!(code(hub.delete("acme", &principal(Role::Admin, own.clone())).await), refused, "{own:?}");
    }
    assert!(hub.exists("acme/main"));
}

#[tokio::test]
async fn an_admin_of_a_whole_tenant_says_what_projects_it_has() {
    let hub = Hub::new().await;
    hub.put("acme", &["main"], &principal(Role::Admin, Reach::HUB)).await.unwrap();
    let own = principal(Role::Admin, reach("acme", None));
    assert_eq!(show(&hub.put("acme", &["main", "lab"], &own).await.unwrap()), "acme: lab main");

    for (own, refused) in [
        (reach("acme", Some(&["main", "lab", "_tenant"])), ErrorCode::Forbidden),
        (reach("other", None), ErrorCode::UnknownScope),
    ] {
        assert_eq!(code(hub.put("acme", &[], &principal(Role::Admin, own.clone())).await), refused, "{own:?}");
    }
    assert_eq!(
        code(hub.put("acme", &[], &principal(Role::Configure, reach("acme", None))).await),
        ErrorCode::Forbidden
    );
    own.ended.cancel();
    assert_eq!(code(hub.put("acme", &[], &own).await), ErrorCode::Unauthorized);
    assert_eq!(hub.list(&Reach::HUB), ["acme: lab main"]);
}

#[tokio::test]
async fn a_reach_sees_its_own_part_alone() {
    let hub = Hub::new().await;
    let admin = principal(Role::Admin, Reach::HUB);
    hub.put("other", &["main"], &admin).await.unwrap();
    hub.put("acme", &["main", "lab"], &admin).await.unwrap();
    assert_eq!(hub.list(&Reach::HUB), ["acme: lab main", "other: main"]);
    assert_eq!(hub.list(&reach("acme", None)), ["acme: lab main"]);
    assert_eq!(hub.list(&reach("acme", Some(&["main", "gone"]))), ["acme: main"]);
    assert_eq!(hub.list(&reach("unheard-of", None)), [""; 0]);
    assert_eq!(show(&hub.tenants.get(&tenant("acme"), &reach("acme", Some(&["lab"]))).unwrap()), "acme: lab");
    assert_eq!(code(hub.tenants.get(&tenant("acme"), &reach("other", None))), ErrorCode::UnknownScope);

    let admit = |text: &str, reach: &Reach| hub.tenants.admit(&scope(text), reach).map_err(|error| error.to_string());
    assert_eq!(admit("acme/main", &Reach::HUB), Ok(()));
    assert_eq!(admit("acme/_tenant", &reach("acme", None)), Ok(()));
    assert_eq!(admit("acme/main", &reach("acme", Some(&["main"]))), Ok(()));
    // Not theirs, and not there: nobody can tell which.
    assert_eq!(admit("acme/_tenant", &reach("acme", Some(&["main"]))), admit("acme/gone", &Reach::HUB));
    assert_eq!(admit("acme/main", &reach("other", None)), admit("gone/main", &Reach::HUB));
    assert!(admit("acme/main", &reach("other", None)).is_err());
}

#[tokio::test]
async fn the_documents_folder_brings_scopes_of_its_own() {
    let hub = Hub::new().await;
    let admin = principal(Role::Admin, Reach::HUB);
    hub.put("acme", &["main"], &admin).await.unwrap();
    hub.tenants.set_folder_scopes(vec![scope("acme/lab"), scope("acme/main"), scope("files/_tenant")]);
    assert!(hub.exists("acme/main") && hub.exists("acme/lab") && hub.exists("files/_tenant"));
    assert!(!hub.exists("files/main"));
    assert_eq!(hub.list(&Reach::HUB), ["acme: lab main", "files: "]);
    assert_eq!(hub.tenants.get(&tenant("files"), &Reach::HUB).unwrap().created_at, None);
    assert_eq!(code(hub.delete("files", &admin).await), ErrorCode::LayerReadOnly);

    // An admin of a tenant that is a folder may give it projects beside those of the folder.
    let own = principal(Role::Admin, reach("files", None));
    assert_eq!(show(&hub.put("files", &["main"], &own).await.unwrap()), "files: main");

    hub.delete("acme", &admin).await.unwrap();
    assert!(hub.exists("acme/lab") && hub.exists("acme/main"), "its files are still there");
    hub.tenants.set_folder_scopes(Vec::new());
    assert_eq!(hub.list(&Reach::HUB), ["files: main"]);
}

#[tokio::test]
async fn what_no_tenant_can_have_is_refused() {
    let hub = Hub::new().await;
    let admin = principal(Role::Admin, Reach::HUB);
    let many: Vec<_> = (0..=MAX_PROJECTS).map(|number| format!("p{number}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    for wrong in [&["main", "_tenant"][..], &many] {
        let refused = hub.put("acme", wrong, &admin).await.unwrap_err();
        assert!(matches!(refused, AccessError::Invalid { field: "projects", .. }), "{refused}");
    }
    hub.put("acme", &many[1..], &admin).await.unwrap();
}

#[tokio::test]
async fn a_stale_change_of_a_tenant_is_refused() {
    let hub = Hub::new().await;
    let admin = principal(Role::Admin, Reach::HUB);
    let (acme, main) = (tenant("acme"), || vec!["main".parse().unwrap()]);
    let seen = hub.tenants.put(&acme, main(), Precondition::Absent, &admin).await.unwrap();
    hub.put("acme", &["main", "lab"], &admin).await.unwrap();
    let stale = Precondition::Version(seen.version.unwrap());
    assert_eq!(code(hub.tenants.put(&acme, main(), stale, &admin).await), ErrorCode::VersionMismatch);
    assert_eq!(code(hub.tenants.put(&acme, main(), Precondition::Absent, &admin).await), ErrorCode::VersionMismatch);
    assert_eq!(code(hub.tenants.delete(&acme, stale, &admin).await), ErrorCode::VersionMismatch);
    assert_eq!(hub.list(&Reach::HUB), ["acme: lab main"]);
}

#[tokio::test]
async fn two_hubs_that_start_together_both_get_their_scope() {
    let hub = Hub::new().await;
    let others = [hub.other().await, hub.other().await];
    for (tenants, project) in others.iter().zip(["acme/main", "acme/lab"]) {
        tenants.ensure(&scope(project)).await.unwrap();
        tenants.ensure(&scope(project)).await.unwrap();
    }
    let first = hub.store.record("tenant", "acme").await.unwrap().unwrap();
    assert_eq!(first.version, 2, "what is there is not written again");
    hub.tenants.ensure(&scope("acme/_tenant")).await.unwrap();
    assert!(hub.exists("acme/main") && hub.exists("acme/lab"));
    assert_eq!(hub.store.record("tenant", "acme").await.unwrap().unwrap(), first);
}

#[tokio::test(start_paused = true)]
async fn what_another_hub_does_arrives() {
    let hub = Hub::new().await;
    let (lifecycle, other) = (Lifecycle::new(), hub.other().await);
    other.follow(&lifecycle);
    let admin = principal(Role::Admin, Reach::HUB);
    hub.put("acme", &["main"], &admin).await.unwrap();
    soon(|| other.exists(&scope("acme/main"))).await;
    hub.delete("acme", &admin).await.unwrap();
    soon(|| !other.exists(&scope("acme/main"))).await;
    assert_eq!(lifecycle.shut_down(Duration::from_secs(1)).await, 0);
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_no_tenant_but_can_be_replaced() {
    let hub = Hub::new().await;
    for broken in ["", "{}", r#"{"name":"other","projects":["main"],"createdAt":"2026-11-29T00:00:00Z"}"#] {
        hub.store.put_record("tenant", "acme", broken, Precondition::Any).await.unwrap();
        hub.tenants.refresh().await.unwrap();
        assert!(!hub.exists("acme/main") && !hub.exists("other/main"));
    }
    hub.put("acme", &["main"], &principal(Role::Admin, Reach::HUB)).await.unwrap();
    assert!(hub.exists("acme/main"));
}
