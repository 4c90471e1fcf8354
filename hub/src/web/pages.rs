//! Requests of web pages: whether their site may speak to the hub, and what its browser has to be told so that it may (CORS).
//! The same look at `Host` and `Origin` keeps pages away that reach the hub by a name of their own.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, CONTENT_TYPE, ORIGIN, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use footbridge_mcp::headers::{LAST_EVENT_ID, METHOD, NAME, PARAM_PREFIX, PROTOCOL_VERSION, SESSION_ID};

use super::access::FOOT_SOCKET;
use super::mcp::{ROOT, metadata};
use super::state::AppState;

/// How long a browser need not ask again whether a page may send a request, in seconds.
const PREFLIGHT_LIFE_SECONDS: u64 = 600;
/// Headers for arguments that one preflight names at most.
const MAX_PARAM_HEADERS: usize = 64;
/// What pages send.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

/// What of the hub pages may speak to.
fn is_for_pages(path: &str) -> bool {
    path.starts_with(ROOT) || path.starts_with(metadata::OF_HUB)
}

/// Refuses names and pages that the hub does not know, before anything else is looked at. A browser that asks before it sends
/// has no token yet, and is answered here.
pub(super) async fn guard(State(state): State<Arc<AppState>>, request: Request, next: Next) -> Response {
    // Routes are matched by the path as it is sent, too.
    let path = request.uri().path();
    let for_pages = is_for_pages(path);
    if !for_pages && path != FOOT_SOCKET {
        return next.run(request).await;
    }
    let origin = match state.hosts.check(request.uri(), request.headers()) {
        Ok(origin) => origin.filter(|_| for_pages).cloned(),
        Err(error) => return error.into_response(),
    };
    let asks = origin.is_some()
        && request.method() == Method::OPTIONS
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if asks { preflight(request.headers()) } else { next.run(request).await };
    if for_pages {
        let headers = response.headers_mut();
        headers.append(VARY, HeaderValue::from_name(ORIGIN));
        if let Some(origin) = origin {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            if !asks {
                headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, listed([&SESSION_ID, &WWW_AUTHENTICATE, &RETRY_AFTER]));
            }
        }
    }
    response
}

/// What a page may send.
fn preflight(asked: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed(asked));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from(PREFLIGHT_LIFE_SECONDS));
    response
}

/// The headers that a page may send: those that are read here, and of those for arguments the ones that it asks for.
fn allowed(asked: &HeaderMap) -> HeaderValue {
    let known =
        [&AUTHORIZATION, &CONTENT_TYPE, &ACCEPT, &SESSION_ID, &PROTOCOL_VERSION, &METHOD, &NAME, &LAST_EVENT_ID];
    let asked = asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter().filter_map(|value| value.to_str().ok());
    let params: Vec<HeaderName> = asked
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .filter(|name| name.as_str().starts_with(PARAM_PREFIX))
        .take(MAX_PARAM_HEADERS)
        .collect();
    listed(known.into_iter().chain(&params))
}

fn listed<'a>(names: impl IntoIterator<Item = &'a HeaderName>) -> HeaderValue {
    let names: Vec<&str> = names.into_iter().map(HeaderName::as_str).collect();
    // Names of headers are a header's text.
    HeaderValue::from_str(&names.join(", ")).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_may_send_what_is_read_here_and_nothing_else() {
        let mut asked = HeaderMap::new();
        let wanted = "Authorization, Mcp-Param-City,x-evil, mcp-param-\u{e9}, mcp-param-day";
        asked.insert(ACCESS_CONTROL_REQUEST_HEADERS, HeaderValue::from_str(wanted).unwrap());
        let answered = allowed(&asked).to_str().unwrap_or_default().to_owned();
        assert!(answered.starts_with("authorization, content-type, accept, mcp-session-id, "), "{answered}");
        assert!(!answered.contains("evil"), "{answered}");
        asked.insert(ACCESS_CONTROL_REQUEST_HEADERS, HeaderValue::from_static("Mcp-Param-City,x-evil, mcp-param-day"));
        let answered = allowed(&asked).to_str().unwrap().to_owned();
        assert!(answered.ends_with(", last-event-id, mcp-param-city, mcp-param-day"), "{answered}");
    }
}
