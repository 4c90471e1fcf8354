//! Several messages in one body.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use footbridge_mcp::{RpcError, Version, codes, response_text};
use futures::FutureExt as _;
use futures::future::join_all;

use super::message::{Incoming, Refusal};
use super::mode;
use super::post::{Sender, alone, in_session, notified};
use super::serve::{Answers, serve};
use super::session::Session;
use super::stream::Stream;

/// A batch, as 2025-03-26 has it.
pub(super) async fn many(
    sender: &Sender,
    headers: &HeaderMap,
    session: Option<Arc<Session>>,
    batch: Vec<Result<Incoming, Refusal>>,
) -> Response {
    let version = match (&session, mode::header_version(headers)) {
        (Some(session), _) => Some(session.version),
        (None, Ok(None)) => Some(Version::V2025_03_26),
        (None, Ok(Some(version))) => Version::parse(version),
        (None, Err(_)) => None,
    };
    if version != Some(Version::V2025_03_26) {
        let error = RpcError::new(codes::INVALID_REQUEST, "this version has no batches");
        return Refusal::bad(error).into_response();
    }
    let peer = sender.peer(Version::V2025_03_26, session.clone());
    let stream = Arc::new(Stream::default());
    let (mut works, mut asked) = (Vec::new(), Vec::new());
    for message in batch {
        match message {
            Err(Refusal { id, error, .. }) => {
                works.push(std::future::ready(Some(response_text(id.as_ref(), Err(&error)))).boxed());
            }
            Ok(Incoming::Request(request)) if request.method == "initialize" => {
                let error = RpcError::new(codes::INVALID_REQUEST, "`initialize` stands alone");
                works.push(std::future::ready(Some(response_text(Some(&request.id), Err(&error)))).boxed());
            }
            Ok(Incoming::Request(request)) if session.is_some() => {
                asked.push(request.id.clone());
                works.push(in_session(&peer, sender.accepts, &stream, request));
            }
            Ok(Incoming::Request(request)) => {
                asked.push(request.id.clone());
                works.push(alone(&peer, sender.accepts, &stream, request));
            }
            Ok(Incoming::Notification { method, params }) => {
                if let Some(session) = &session {
                    notified(session, &method, &params);
                }
            }
            Ok(Incoming::Response { id, outcome }) => {
                if let (Some(session), Some(id)) = (&session, id)
                    && let Err(error) = session.answered(&id, outcome)
                {
                    works.push(std::future::ready(Some(response_text(None, Err(&error)))).boxed());
                }
            }
        }
    }
    if works.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    let all = join_all(works).map(|texts| Answers {
        texts: texts.into_iter().flatten().collect(),
        batch: true,
        status: StatusCode::OK,
    });
    serve(&peer, sender.accepts, stream, asked, all.boxed()).await
}
