use super::*;
use crate::domain::principal::Role;
use crate::domain::scope::Scope;

fn request() -> CreateToken {
    CreateToken {
        subject: "root".to_owned(),
        roles: vec![Role::Admin],
        tenant: None,
        projects: None,
        name: None,
        act_as: Vec::new(),
        expires_in_seconds: None,
    }
}

/// What a hub on this folder would make of a token.
async fn reach(data: &Path, token: &str) -> Option<Reach> {
    let clock = Arc::new(SystemClock);
    let store = Arc::new(SqliteStore::open(data, clock.clone()).unwrap());
    let tokens = Tokens::load(store.clone(), clock).await.unwrap();
    let reach = tokens.authenticate(token).map(|principal| principal.reach.clone());
    store.close().await.unwrap();
    reach
}

#[tokio::test]
async fn the_first_token_is_in_force_when_the_hub_starts() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let created = create(&data, request()).await.unwrap();
    assert_eq!(created.view.roles, [Role::Admin]);
    assert_eq!(reach(&data, &created.token).await, Some(Reach::HUB));

    let narrow = CreateToken {
        tenant: Some("acme".to_owned()),
        projects: Some(vec!["beta".to_owned()]),
        expires_in_seconds: Some(3600),
        ..request()
    };
    let created = create(&data, narrow).await.unwrap();
    assert!(created.view.expires_at.is_some_and(|at| at > created.view.created_at));
    let scope = |project: &str| Scope::new(TenantName::parse("acme").unwrap(), ProjectName::parse(project).unwrap());
    let reach = reach(&data, &created.token).await.unwrap();
    assert!(reach.covers(&scope("beta")) && !reach.covers(&scope("main")));
}

#[tokio::test]
async fn a_running_hub_is_named_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let _hub = DataLock::acquire(dir.path()).unwrap();
    let refused = create(dir.path(), request()).await.unwrap_err().told(crate::cli::out::Format::Text);
    assert!(refused.contains(&std::process::id().to_string()) && refused.contains("stop it"), "{refused}");
    assert!(!dir.path().join(crate::store::sqlite::DATA_FILE).exists());
}

#[tokio::test]
async fn names_are_checked_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    for wrong in [
        CreateToken { subject: "two words".to_owned(), ..request() },
        CreateToken { tenant: Some("Acme".to_owned()), ..request() },
        CreateToken { expires_in_seconds: Some(u64::MAX), ..request() },
    ] {
        assert!(matches!(create(&data, wrong).await, Err(CliError::Usage { .. })));
    }
    assert!(!data.exists());
}
