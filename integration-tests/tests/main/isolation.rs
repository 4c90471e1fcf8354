//! Who may do what, route by route, and nobody across tenants or projects.

use footbridge_hub::domain::principal::Role;
use footbridge_hub::web::access::{RULES, Reach, Rule};
use integration_tests::api::{Answer, Api, send};
use integration_tests::hub::TestHub;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::TestResult;

/// A route with its places filled in. What it names does not exist, so that a walk changes nothing.
fn filled(rule: &Rule, scope: &str) -> String {
    let (tenant, project) = scope.split_once('/').unwrap_or((scope, "main"));
    rule.path
        .replace("{tenant}", tenant)
        .replace("{project}", project)
        .replace("{name}", "nothing_here")
        .replace("{id}", "nothing-here")
        .replace("{*path}", "documents/nothing.md")
}

async fn ask(api: &Api, rule: &Rule, scope: &str) -> TestResult<Answer> {
    let method = Method::from_bytes(rule.method.as_bytes())?;
    let mut request = api.request(method, &filled(rule, scope));
    if rule.method == "PUT" || rule.method == "POST" {
        request = request.body("{}");
    }
    send(request).await
}

#[tokio::test]
async fn every_route_asks_for_a_token_and_a_role() -> TestResult {
    let hub = TestHub::start().await?;
    let nobody = Api::new(&hub.url, None)?;
    let stranger = nobody.with_token("fbt_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    for rule in RULES.iter().filter(|rule| rule.reach != Reach::Open) {
        for api in [&nobody, &stranger] {
            let answer = ask(api, rule, "local/main").await?;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{rule:?}: {}", answer.text);
            assert_eq!(answer.code(), "unauthorized");
            assert!(answer.headers.contains_key("www-authenticate"), "{rule:?}");
        }
    }
    let mut asked = 0;
    for role in Role::ALL {
        let token = hub.token_with(json!({"subject": "walker", "roles": [role]})).await?;
        let api = nobody.with_token(&token);
        for rule in RULES.iter().filter(|rule| rule.reach != Reach::Open) {
            let answer = ask(&api, rule, "local/main").await?;
            let may = role == Role::Admin || rule.roles.is_empty() || rule.roles.contains(&role);
            let refused = answer.status == StatusCode::FORBIDDEN && answer.code() == "forbidden";
            assert_eq!(refused, !may, "{role:?} on {rule:?}: {} {}", answer.status, answer.text);
            assert_ne!(answer.status, StatusCode::UNAUTHORIZED, "{rule:?}");
            assert!(answer.status.as_u16() < 500, "{rule:?}: {} {}", answer.status, answer.text);
            asked += 1;
        }
    }
    assert!(asked > 100, "only {asked} questions were asked");
    Ok(())
}

/// A tenant or project that a token does not reach is answered exactly like one that does not exist.
#[tokio::test]
async fn nothing_is_seen_across_tenants_or_projects() -> TestResult {
    let hub = TestHub::start().await?;
    hub.put_tenant("alpha", &["p", "q"]).await?;
    hub.put_tenant("beta", &["p", "q"]).await?;
    let scopes = ["alpha/p", "alpha/q", "beta/p"];
    let root = hub.api()?;
    for scope in scopes {
        let api = root.in_scope(scope);
        api.put("documents/documents/own.md", scope).await?.ok()?;
        let tool = "type: doc_lookup\ndescription: Own page.\nparameters: { path: documents/own.md }\n";
        api.put("server-tools/own_page", tool).await?.ok()?;
    }
    let mut tokens = Vec::new();
    for scope in scopes {
        let (tenant, project) = scope.split_once('/').ok_or("no scope")?;
        let all = json!(["viewer", "engine", "configure", "foot", "admin"]);
        let body = json!({"subject": "same", "roles": all, "tenant": tenant, "projects": [project]});
        tokens.push((scope, hub.token_with(body).await?));
    }
    for (own, token) in &tokens {
        let api = root.with_token(token);
        assert_eq!(api.in_scope(own).call("own_page", json!({})).await?["content"], *own);
        for other in scopes.iter().chain(&["alpha/_tenant", "beta/_tenant", "local/main"]).filter(|other| *other != own)
        {
            for rule in RULES.iter().filter(|rule| rule.reach == Reach::Scope) {
                let there = ask(&api, rule, other).await?;
                let nowhere = ask(&api, rule, "gamma/p").await?;
                assert_eq!(there.status, StatusCode::NOT_FOUND, "{own} → {other}: {rule:?}: {}", there.text);
                assert_eq!(there.text, nowhere.text, "{own} → {other}: {rule:?}");
            }
        }
        // What lists across scopes shows the own one alone.
        let tenants = send(api.request(Method::GET, "/v1/tenants")).await?.json();
        let names: Vec<&Value> = tenants["tenants"].as_array().into_iter().flatten().map(|t| &t["name"]).collect();
        let own_tenant = own.split('/').next().unwrap_or_default();
        assert!(names.iter().all(|name| *name == own_tenant), "{tenants}");
        let listed = send(api.request(Method::GET, "/v1/tokens")).await?.json();
        let listed = listed["tokens"].as_array().ok_or("no tokens")?;
        assert_eq!(listed.len(), 1, "{listed:?}");
    }
    Ok(())
}

/// A token makes tokens within its own reach, revokes those, and no others.
#[tokio::test]
async fn tokens_do_not_grow() -> TestResult {
    let hub = TestHub::start().await?;
    hub.put_tenant("alpha", &["p", "q"]).await?;
    hub.put_tenant("beta", &["p"]).await?;
    let root = hub.api()?;
    let body = json!({"subject": "chief", "roles": ["admin"], "tenant": "alpha", "projects": ["p"]});
    let chief = root.with_token(&hub.token_with(body).await?);
    let beta = send(
        root.request(Method::POST, "/v1/tokens").json(&json!({"subject": "b", "roles": ["viewer"], "tenant": "beta"})),
    )
    .await?
    .ok()?
    .json();
    let make = |body: Value| send(chief.request(Method::POST, "/v1/tokens").json(&body));
    for wide in [
        json!({"subject": "x", "roles": ["viewer"]}),
        json!({"subject": "x", "roles": ["viewer"], "tenant": "alpha"}),
        json!({"subject": "x", "roles": ["viewer"], "tenant": "alpha", "projects": ["p", "q"]}),
        json!({"subject": "x", "roles": ["viewer"], "tenant": "beta", "projects": ["p"]}),
    ] {
        let answer = make(wide.clone()).await?;
        assert!([StatusCode::FORBIDDEN, StatusCode::NOT_FOUND].contains(&answer.status), "{wide}: {}", answer.text);
    }
    let made =
        make(json!({"subject": "x", "roles": ["viewer"], "tenant": "alpha", "projects": ["p"]})).await?.ok()?.json();
    let text = made["token"].as_str().ok_or("no token")?;
    let api = root.with_token(text).in_scope("alpha/p");
    api.get("tools").await?.ok()?;
    let revoke =
        |id: &Value| send(chief.request(Method::DELETE, &format!("/v1/tokens/{}", id.as_str().unwrap_or("none"))));
    assert_eq!(revoke(&beta["id"]).await?.status, StatusCode::NOT_FOUND);
    revoke(&made["id"]).await?.ok()?;
    assert_eq!(api.get("tools").await?.status, StatusCode::UNAUTHORIZED, "a revoked token is dead at once");
    let listed = send(root.request(Method::GET, "/v1/tokens")).await?;
    assert!(!listed.text.contains(text) && !listed.text.contains("fbt_"), "no listing shows a secret");
    Ok(())
}
