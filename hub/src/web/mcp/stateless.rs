//! Requests of versions without sessions: each stands alone, and one whose client was asked comes again.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use footbridge_mcp::{Fields, Raw, RequestId, RpcError, codes, response_text};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use super::client::{Client, MAX_ASKS, Stated, Way};
use super::message::{Refusal, Request, is_object, no_object, taken_apart};
use super::peer::Peer;
use super::post::progress;
use super::serve::{Accepts, Answers, serve};
use super::stream::Stream;
use super::tickets::{About, Asked, result_or_question};
use super::work::{Orphan, Work};
use super::{methods, mode, subscribe, tools};

/// A request of a version without sessions.
pub(super) async fn stateless(peer: Arc<Peer>, accepts: Accepts, headers: &HeaderMap, request: Request) -> Response {
    if request.method == "subscriptions/listen" {
        return subscribe::subscribe(peer.lasting(), accepts, request).await;
    }
    if request.method == "tools/call"
        && let Err(error) = tools::check_headers(&peer, headers, &request.params).await
    {
        return Refusal::to(&request.id, error).into_response();
    }
    let stream = Arc::new(Stream::default());
    let asked = vec![request.id.clone()];
    let begun = begin(&peer, accepts, &stream, request);
    serve(&peer, accepts, stream, asked, begun).await
}

/// Begins a request, or goes on with one that waited for its client.
fn begin(peer: &Arc<Peer>, accepts: Accepts, stream: &Arc<Stream>, request: Request) -> BoxFuture<'static, Answers> {
    let Request { id, method, params, meta } = request;
    let name = params.read::<String>("name").or_else(|| params.read("uri"));
    let about = About {
        scope: peer.scope.clone(),
        subject: peer.caller.subject.clone(),
        view: peer.view.clone(),
        method: method.clone(),
        name: name.map(|name| blake3::hash(name.as_bytes())),
    };
    let progress = progress(accepts, &meta);
    let (tickets, token) = (peer.state.mcp.tickets(), peer.principal.ended.clone());
    let responses = match responses(&params) {
        Ok(responses) => responses,
        // Nothing is taken: what waits can be answered again.
        Err(error) => return std::future::ready(stateless_answer(&id, Err(error))).boxed(),
    };
    let waited = match params.read::<String>("requestState").filter(|state| tickets.is_ticket(state)) {
        None => None,
        Some(state) => match tickets.take(&state, &about) {
            Some(asked) => Some(asked),
            None => {
                let error = RpcError::new(codes::INVALID_PARAMS, "`requestState` is none that waits here (any more)");
                return std::future::ready(stateless_answer(&id, Err(error))).boxed();
            }
        },
    };
    let asked = match waited {
        Some(mut asked) => {
            asked.client.attach(stream.clone(), progress);
            asked.answer(&responses);
            asked
        }
        None => {
            let stated = Stated { capabilities: mode::capabilities(&meta), level: mode::log_level(&meta), progress };
            let (tell, asks) = mpsc::channel(MAX_ASKS);
            let can_be_asked = matches!(method.as_str(), "tools/call" | "prompts/get" | "resources/read");
            let way = if can_be_asked { Way::Answer(tell) } else { Way::Nobody };
            let client = Client::new(peer, way, stated, stream.clone());
            let answer = {
                let (peer, client, token) = (peer.clone(), client.clone(), token.clone());
                async move {
                    let answer = async {
                        let result = methods::answer(peer, client.clone(), &method, params, meta).await?;
                        Ok(client.named_result(result).await)
                    };
                    // It may wait for its client for long, and nobody else watches the token meanwhile.
                    tokio::select! {
                        biased;
                        answer = answer => answer,
                        () = token.cancelled() => Err(RpcError::new(codes::INTERNAL_ERROR, "the token has ended")),
                    }
                }
                .boxed()
            };
            let work = Work::new(answer, Orphan::Stops, peer.state.lifecycle.clone());
            Asked::begin(work, client, asks, token)
        }
    };
    let peer = peer.clone();
    async move {
        match result_or_question(peer.state.mcp.tickets(), about, asked).await {
            Some(outcome) => stateless_answer(&id, outcome),
            None => Answers::one(None),
        }
    }
    .boxed()
}

/// What a client answers to what it was asked.
fn responses(params: &Fields) -> Result<Fields, RpcError> {
    let Some(raw) = params.get("inputResponses") else { return Ok(Fields::new()) };
    let responses = taken_apart("`inputResponses`", raw)?;
    if let Some((name, _)) = responses.iter().find(|(_, response)| !is_object(response)) {
        let name = footbridge_shared::text::clean_and_cut(name, 80);
        return Err(no_object(&format!("`inputResponses.{name}`")));
    }
    Ok(responses)
}

/// An answer with the status that goes with it.
fn stateless_answer(id: &RequestId, outcome: Result<Raw, RpcError>) -> Answers {
    let status = match &outcome {
        Err(error) if error.code == codes::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        // Versions, capabilities and headers that do not fit.
        Err(error)
            if [codes::HEADER_MISMATCH, codes::MISSING_CAPABILITY, codes::UNSUPPORTED_VERSION]
                .contains(&error.code) =>
        {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    };
    Answers { status, ..Answers::one(Some(response_text(Some(id), outcome.as_deref()))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_questions_are_objects() {
        for (text, fits) in [
            ("{}", true),
            (r#"{"inputResponses":{"a":{"action":"decline"}}}"#, true),
            (r#"{"inputResponses":{"a":{},"b":"junk"}}"#, false),
            (r#"{"inputResponses":{"a":null}}"#, false),
            (r#"{"inputResponses":["weird"]}"#, false),
        ] {
            let params: Fields = serde_json::from_str(text).unwrap();
            let read = responses(&params).map_err(|error| error.code);
            assert_eq!(read.err(), (!fits).then_some(codes::INVALID_PARAMS), "{text}");
        }
    }
}
