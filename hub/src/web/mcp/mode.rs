//! Which lifecycle and version a request follows, and whether what it says of that fits together.

use std::sync::Arc;

use axum::http::HeaderMap;
use footbridge_mcp::headers::PROTOCOL_VERSION;
use footbridge_mcp::{Fields, Lifecycle, Raw, RpcError, Version, codes, meta as names};

use super::headers;
use super::hello::{VERSIONS, unsupported};
use super::message::{Incoming, Refusal, Request};
use super::session::Session;

/// How a message is taken.
pub(super) enum Mode {
    /// It opens a session.
    Opens,
    /// In a session.
    Session(Arc<Session>),
    /// As of a version with sessions, without one.
    Plain(Version),
    /// Of a version without sessions.
    Stateless,
}

/// The version that the header names. `None`: there is no such header.
pub(super) fn header_version(headers: &HeaderMap) -> Result<Option<&str>, RpcError> {
    let mut values = headers.get_all(&PROTOCOL_VERSION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match value.to_str() {
        Ok(version) if values.next().is_none() => Ok(Some(version.trim())),
        _ => Err(headers::mismatch("MCP-Protocol-Version is no single version")),
    }
}

/// Checks the version of what is no message. Whether it is one with sessions.
pub(super) fn check_version(headers: &HeaderMap) -> Result<bool, RpcError> {
    match header_version(headers)? {
        Some(version) if version != Version::V2024_11_05.as_str() => {
            Ok(spoken(version)?.lifecycle() == Lifecycle::Session)
        }
        _ => Ok(true),
    }
}

/// A version by its name, if it is spoken here.
fn spoken(name: &str) -> Result<Version, RpcError> {
    Version::parse(name).filter(|version| VERSIONS.contains(version)).ok_or_else(|| unsupported(name))
}

/// How a message is taken. `session` is the one that its header names.
pub(super) fn of(headers: &HeaderMap, message: &Incoming, session: Option<Arc<Session>>) -> Result<Mode, Refusal> {
    let request = match message {
        Incoming::Request(request) => request,
        Incoming::Notification { method, .. } => {
            let version = header_version(headers).map_err(Refusal::bad)?;
            if version == Some(Version::V2026_07_28.as_str()) {
                headers::check_method(headers, method).map_err(Refusal::bad)?;
                return Ok(Mode::Stateless);
            }
            return by_header(version, session).map_err(Refusal::bad);
        }
        Incoming::Response { .. } => {
            let version = header_version(headers).map_err(Refusal::bad)?;
            return by_header(version, session).map_err(Refusal::bad);
        }
    };
    of_request(headers, request, session).map_err(|error| Refusal::to(&request.id, error))
}

fn of_request(headers: &HeaderMap, request: &Request, session: Option<Arc<Session>>) -> Result<Mode, RpcError> {
    let header = header_version(headers)?;
    let stated: Option<String> = request.meta.read(names::PROTOCOL_VERSION);
    if request.method == "initialize" && stated.is_none() {
        if session.is_some() {
            return Err(RpcError::new(codes::INVALID_REQUEST, "the session is open already"));
        }
        let wanted: Option<String> = request.params.read("protocolVersion");
        let Some(wanted) = wanted else {
            return Err(RpcError::new(codes::INVALID_PARAMS, "`protocolVersion` is missing"));
        };
        if header.is_some_and(|header| header != wanted) {
            return Err(RpcError::new(
                codes::INVALID_REQUEST,
                "the header MCP-Protocol-Version is not `params.protocolVersion`",
            ));
        }
        headers::check_method_if_there(headers, &request.method)?;
        return Ok(Mode::Opens);
    }
    let inline =
        stated.is_some() || request.method == "server/discover" || header == Some(Version::V2026_07_28.as_str());
    if !inline {
        return by_header(header, session);
    }
    let missing: Vec<&str> = [
        (names::PROTOCOL_VERSION, stated.is_some()),
        (names::CLIENT_CAPABILITIES, capabilities(&request.meta).is_some()),
    ]
    .into_iter()
    .filter(|(_, there)| !there)
    .map(|(name, _)| name)
    .collect();
    let Some(stated) = stated.filter(|_| missing.is_empty()) else {
        let message = format!("`params._meta` lacks {}, or it is of another kind", missing.join(", "));
        return Err(RpcError::new(codes::INVALID_PARAMS, message));
    };
    match header {
        None => return Err(headers::mismatch("MCP-Protocol-Version is missing")),
        Some(header) if header != stated => {
            return Err(headers::mismatch("MCP-Protocol-Version is not the version of `params._meta`"));
        }
        Some(_) => {}
    }
    match spoken(&stated)?.lifecycle() {
        Lifecycle::Stateless => {
            headers::check(headers, request)?;
            Ok(Mode::Stateless)
        }
        Lifecycle::Session if request.method == "server/discover" => Ok(Mode::Stateless),
        Lifecycle::Session => by_header(header, session),
    }
}

fn by_header(version: Option<&str>, session: Option<Arc<Session>>) -> Result<Mode, RpcError> {
    let version = match version {
        // The version that did not have the header yet.
        None => Version::V2025_03_26,
        // Clients of the first version are served as those of the next one.
        Some(version) if version == Version::V2024_11_05.as_str() => Version::V2025_03_26,
        Some(version) => spoken(version)?,
    };
    Ok(match session {
        Some(session) => Mode::Session(session),
        None if version.lifecycle() == Lifecycle::Stateless => Mode::Stateless,
        None => Mode::Plain(version),
    })
}

/// The capabilities that a request states.
pub(super) fn capabilities(meta: &Fields) -> Option<Raw> {
    meta.get(names::CLIENT_CAPABILITIES).filter(|raw| raw.get().starts_with('{')).cloned()
}

/// From which level on a request wants log messages.
pub(super) fn log_level(meta: &Fields) -> Option<super::level::Level> {
    meta.read(names::LOG_LEVEL)
}
