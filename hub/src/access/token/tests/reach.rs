//! Who may make, see and revoke which tokens.

use super::*;

/// Every way to reach, from the whole hub down, with what lies within it (by index).
fn reaches() -> [(Reach, &'static [usize]); 6] {
    [
        (Reach::HUB, &[0, 1, 2, 3, 4, 5]),
        (tenant("acme"), &[1, 2, 3]),
        (projects("acme", &["lab", "main"]), &[2, 3]),
        (projects("acme", &["main"]), &[3]),
        (tenant("other"), &[4, 5]),
        (projects("other", &["main"]), &[5]),
    ]
}

#[tokio::test]
async fn an_admin_makes_tokens_within_its_own_reach_alone() {
    let hub = Hub::new().await;
    for (own, within) in reaches() {
        let by = hub.admin(own.clone()).await;
        for (index, (wanted, _)) in reaches().into_iter().enumerate() {
            for role in Role::ALL {
                let created = hub.tokens.create(request(role, wanted.clone()), &by).await;
                assert_eq!(created.is_ok(), within.contains(&index), "{own:?} makes {wanted:?}");
                if let Err(refused) = created {
                    assert_eq!(refused.code(), ErrorCode::Forbidden);
                }
            }
        }
    }
}

#[tokio::test]
async fn without_the_role_admin_tokens_are_out_of_sight() {
    let hub = Hub::new().await;
    let own = hub.tokens.create_first(request(Role::Viewer, Reach::HUB)).await.unwrap();
    for role in [Role::Viewer, Role::Engine, Role::Configure, Role::Foot] {
        let by = hub.principal(role, Reach::HUB).await;
        let refused = [
            hub.tokens.create(request(role, tenant("acme")), &by).await.unwrap_err(),
            hub.tokens.list(&by).unwrap_err(),
            hub.tokens.revoke(&own.info.id, &by).await.unwrap_err(),
            hub.tokens.revoke("unknown", &by).await.unwrap_err(),
        ];
        assert!(refused.iter().all(|error| error.code() == ErrorCode::Forbidden), "{role:?}: {refused:?}");
    }
    assert!(hub.tokens.authenticate(own.text.expose()).is_some());
}

#[tokio::test]
async fn an_admin_sees_and_revokes_what_lies_within_its_reach_alone() {
    let hub = Hub::new().await;
    let hub_admin = hub.admin(Reach::HUB).await;
    for (own, within) in reaches() {
        let by = hub.admin(own.clone()).await;
        for (index, (theirs, _)) in reaches().into_iter().enumerate() {
            let created = hub.tokens.create(request(Role::Viewer, theirs.clone()), &hub_admin).await.unwrap();
            let listed = hub.tokens.list(&by).unwrap().contains(&created.info);
            assert_eq!(listed, within.contains(&index), "{own:?} sees {theirs:?}");
            let revoked = hub.tokens.revoke(&created.info.id, &by).await;
            assert_eq!(revoked.is_ok(), within.contains(&index), "{own:?} revokes {theirs:?}");
            if let Err(refused) = revoked {
                let unheard_of = hub.tokens.revoke("0123456789abcdef", &by).await.unwrap_err();
                assert_eq!(refused.code(), ErrorCode::NotFound);
                assert_eq!(refused.to_string(), unheard_of.to_string(), "nothing tells that it is there");
                assert!(hub.tokens.authenticate(created.text.expose()).is_some());
            }
        }
    }
}

#[tokio::test]
async fn a_token_that_was_revoked_leaves_none_behind() {
    let hub = Hub::new().await;
    let (admin, leaked) = (hub.admin(Reach::HUB).await, hub.admin(Reach::HUB).await);
    // Both are on their way; the revocation has its turn first.
    let turn = hub.tokens.turn.lock().await;
    let revoke = hub.tokens.revoke(&leaked.token, &admin);
    let create = hub.tokens.create(request(Role::Admin, Reach::HUB), &leaked);
    let mut both = Box::pin(async { tokio::join!(revoke, create) });
    assert!(futures::poll!(&mut both).is_pending());
    drop(turn);
    let (revoked, created) = both.await;
    revoked.unwrap();
    assert_eq!(created.unwrap_err().code(), ErrorCode::Unauthorized);
    assert_eq!(hub.tokens.list(&leaked).unwrap_err().code(), ErrorCode::Unauthorized);
    assert_eq!(hub.tokens.list(&admin).unwrap().len(), 1);
}
