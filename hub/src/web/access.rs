//! Who may do what: one table, walked by a test route by route, and the guard that enforces it.

use std::sync::Arc;

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{MatchedPath, RawPathParams, Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use footbridge_shared::ErrorCode;
use footbridge_shared::id::{ProjectName, TenantName};

use super::bodies::Place;
use super::error::ApiError;
use super::host::base_url;
use super::in_flight::tie;
use super::mcp;
use super::state::AppState;
use crate::api::IDEMPOTENCY_KEY_HEADER;
use crate::domain::principal::{Principal, Role};
use crate::domain::scope::Scope;

/// How far a route reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Everybody, without a token.
    Open,
    /// Any token; the handler narrows what it shows to the token's reach.
    Token,
    /// A token that covers the tenant and project of the path, which must exist.
    Scope,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// HTTP method.
    pub method: &'static str,
    /// The route, as it is mounted.
    pub path: &'static str,
    /// How far it reaches.
    pub reach: Reach,
    /// One of these roles is needed (`admin` includes every other); empty: any token.
    pub roles: &'static [Role],
}

const fn rule(method: &'static str, path: &'static str, reach: Reach, roles: &'static [Role]) -> Rule {
    Rule { method, path, reach, roles }
}

/// The one route that runs tools.
const INVOKE: &str = "/v1/{tenant}/{project}/tools/{name}/invoke";

/// Where feet come in.
pub(super) const FOOT_SOCKET: &str = "/ws/foot";

const READ: &[Role] = &[Role::Viewer, Role::Engine, Role::Configure];
const READ_DOCUMENTS: &[Role] = &[Role::Viewer, Role::Configure];
const CALL: &[Role] = &[Role::Engine];
const CONFIGURE: &[Role] = &[Role::Configure];
const FEET: &[Role] = &[Role::Viewer, Role::Engine, Role::Foot];
const ADMIN: &[Role] = &[Role::Admin];

/// Every route of the hub. A route without a row is refused.
pub const RULES: &[Rule] = &[
    rule("GET", "/healthz", Reach::Open, &[]),
    rule("GET", "/readyz", Reach::Open, &[]),
    rule("GET", "/openapi.json", Reach::Open, &[]),
    rule("GET", mcp::metadata::OF_HUB, Reach::Open, &[]),
    rule("GET", mcp::metadata::OF_ENDPOINT, Reach::Open, &[]),
    rule("GET", FOOT_SOCKET, Reach::Token, &[Role::Foot]),
    rule("GET", mcp::PATH, Reach::Scope, CALL),
    rule("POST", mcp::PATH, Reach::Scope, CALL),
    rule("DELETE", mcp::PATH, Reach::Scope, CALL),
    rule("GET", "/v1/tool-types", Reach::Token, &[]),
    rule("GET", "/v1/tool-types/{id}", Reach::Token, &[]),
    rule("GET", "/v1/tokens", Reach::Token, ADMIN),
    rule("POST", "/v1/tokens", Reach::Token, ADMIN),
    rule("DELETE", "/v1/tokens/{id}", Reach::Token, ADMIN),
    rule("GET", "/v1/tenants", Reach::Token, ADMIN),
    rule("GET", "/v1/tenants/{name}", Reach::Token, ADMIN),
    rule("PUT", "/v1/tenants/{name}", Reach::Token, ADMIN),
    rule("DELETE", "/v1/tenants/{name}", Reach::Token, ADMIN),
    rule("GET", "/v1/{tenant}/{project}/server-tools", Reach::Scope, READ_DOCUMENTS),
    rule("GET", "/v1/{tenant}/{project}/server-tools/{name}", Reach::Scope, READ_DOCUMENTS),
    rule("PUT", "/v1/{tenant}/{project}/server-tools/{name}", Reach::Scope, CONFIGURE),
    rule("DELETE", "/v1/{tenant}/{project}/server-tools/{name}", Reach::Scope, CONFIGURE),
    rule("GET", "/v1/{tenant}/{project}/documents", Reach::Scope, READ_DOCUMENTS),
    rule("GET", "/v1/{tenant}/{project}/documents/{*path}", Reach::Scope, READ_DOCUMENTS),
    rule("PUT", "/v1/{tenant}/{project}/documents/{*path}", Reach::Scope, CONFIGURE),
    rule("DELETE", "/v1/{tenant}/{project}/documents/{*path}", Reach::Scope, CONFIGURE),
    rule("GET", "/v1/{tenant}/{project}/tools", Reach::Scope, READ),
    rule("GET", "/v1/{tenant}/{project}/tools/{name}", Reach::Scope, READ),
    rule("GET", "/v1/{tenant}/{project}/tools/{name}/why", Reach::Scope, READ),
    rule("POST", INVOKE, Reach::Scope, CALL),
    rule("GET", "/v1/{tenant}/{project}/calls", Reach::Scope, READ),
    rule("GET", "/v1/{tenant}/{project}/calls/{id}", Reach::Scope, READ),
    rule("DELETE", "/v1/{tenant}/{project}/calls/{id}", Reach::Scope, CALL),
    rule("GET", "/v1/{tenant}/{project}/packs", Reach::Scope, READ),
    rule("GET", "/v1/{tenant}/{project}/packs/{name}", Reach::Scope, READ),
    rule("POST", "/v1/{tenant}/{project}/packs/{name}/refresh", Reach::Scope, CONFIGURE),
    rule("GET", "/v1/{tenant}/{project}/feet", Reach::Scope, FEET),
    rule("GET", "/v1/{tenant}/{project}/feet/{name}", Reach::Scope, FEET),
    rule("DELETE", "/v1/{tenant}/{project}/feet/{name}", Reach::Scope, &[Role::Foot]),
];

/// The row of a route. `HEAD` reads like `GET`.
fn rule_of(method: &Method, path: &str) -> Option<&'static Rule> {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    RULES.iter().find(|rule| rule.path == path && rule.method == method)
}

/// Authenticates a request, checks its scope and role, and hands both on as extensions: `Arc<Principal>` and, for scoped
/// routes, `Arc<Scope>`.
pub(super) async fn guard(
    State(state): State<Arc<AppState>>,
    matched: MatchedPath,
    params: Result<RawPathParams, RawPathParamsRejection>,
    mut request: Request,
    next: Next,
) -> Response {
    let path = matched.as_str();
    match admit(&state, path, params, &mut request) {
        Ok(()) => {
            let place = Place::default();
            request.extensions_mut().insert(place.clone());
            let response = next.run(request).await;
            if place.is_taken() { tie(response, place) } else { response }
        }
        // Its client may know how to get a token.
        Err(error) if path == mcp::PATH && error.0.code == ErrorCode::Unauthorized => {
            let place = format!(
                "{}{}{}",
                base_url(&state.hosts, request.headers()),
                mcp::metadata::OF_HUB,
                quotable(request.uri().path())
            );
            let mut response = error.into_response();
            if let Ok(value) =
                HeaderValue::from_str(&format!("Bearer realm=\"footbridge\", resource_metadata=\"{place}\""))
            {
                response.headers_mut().insert(WWW_AUTHENTICATE, value);
            }
            response
        }
        // Of a call with a key an earlier try may have run: who may not call is not told about it.
        Err(error) if path == INVOKE && !request.headers().contains_key(IDEMPOTENCY_KEY_HEADER) => {
            error.not_run().into_response()
        }
        Err(error) => error.into_response(),
    }
}

/// A path without what would end the text that it is quoted in, or mean something to whoever takes the header apart.
fn quotable(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/%-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

fn admit(
    state: &AppState,
    path: &str,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: &mut Request,
) -> Result<(), ApiError> {
    let Some(rule) = rule_of(request.method(), path) else {
        // A verb that this path does not have is answered as such; it needs no token to learn that.
        let path_is_known = RULES.iter().any(|rule| rule.path == path);
        let code = if path_is_known { ErrorCode::MethodNotAllowed } else { ErrorCode::Internal };
        return Err(ApiError::new(code, format!("this path has no `{}`", request.method())));
    };
    if rule.reach == Reach::Open {
        return Ok(());
    }
    let principal = authenticate(state, request)?;
    let params = params.map_err(|_| ApiError::new(ErrorCode::BadRequest, "the path is not UTF-8 text"))?;
    if rule.reach == Reach::Scope {
        let scope = scope_of(&params).ok_or_else(ApiError::unknown_scope)?;
        if !principal.reach.covers(&scope) || !state.tenants.exists(&scope) {
            return Err(ApiError::unknown_scope());
        }
        request.extensions_mut().insert(Arc::new(scope));
    }
    if !rule.roles.is_empty() && !rule.roles.iter().any(|role| principal.has(*role)) {
        let wanted: Vec<&str> = rule.roles.iter().map(|role| role.as_str()).collect();
        return Err(ApiError::new(ErrorCode::Forbidden, "the token's roles do not allow this")
            .hint(format!("it takes the role {}", wanted.join(" or "))));
    }
    request.extensions_mut().insert(principal);
    Ok(())
}

fn authenticate(state: &AppState, request: &Request) -> Result<Arc<Principal>, ApiError> {
    let missing = || {
        ApiError::new(ErrorCode::Unauthorized, "this needs a token")
            .hint("send `Authorization: Bearer <token>`; `footbridge token create` makes one")
    };
    let header = request.headers().get(AUTHORIZATION).ok_or_else(missing)?;
    let text = header.to_str().map_err(|_| missing())?;
    let (scheme, token) = text.split_once(' ').ok_or_else(missing)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(missing());
    }
    state.tokens.authenticate(token.trim()).ok_or_else(|| {
        ApiError::new(ErrorCode::Unauthorized, "the token is unknown, revoked or expired")
            .hint("`footbridge token create` makes a new one")
    })
}

fn scope_of(params: &RawPathParams) -> Option<Scope> {
    let find = |wanted: &str| params.iter().find(|(key, _)| *key == wanted).map(|(_, value)| value);
    let tenant = TenantName::parse(find("tenant")?).ok()?;
    let project = ProjectName::parse(find("project")?).ok()?;
    Some(Scope::new(tenant, project))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_and_the_described_routes_are_the_same() {
        let table: BTreeSet<(String, String)> = RULES
            .iter()
            .filter(|rule| {
                let others =
                    ["/openapi.json", FOOT_SOCKET, mcp::PATH, mcp::metadata::OF_HUB, mcp::metadata::OF_ENDPOINT];
                !others.contains(&rule.path)
            })
            .map(|rule| (rule.method.to_owned(), rule.path.replace("{*", "{")))
            .collect();
        let described: BTreeSet<(String, String)> = super::super::described_routes().into_iter().collect();
        assert_eq!(table, described);
    }

    #[test]
    fn a_path_is_quoted_whatever_is_in_it() {
        assert_eq!(quotable("/mcp/acme/web-2.x_y~"), "/mcp/acme/web-2.x_y~");
        assert_eq!(quotable("/mcp/a\"b,x=\"y/b%20\\é"), "/mcp/a%22b%2Cx%3D%22y/b%20%5C%C3%A9");
    }

    #[test]
    fn no_route_stands_twice() {
        let rows: BTreeSet<_> = RULES.iter().map(|rule| (rule.method, rule.path)).collect();
        assert_eq!(rows.len(), RULES.len());
    }
}
