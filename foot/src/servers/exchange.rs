//! One request to a server for a caller, with all that comes in between: a connection that has to be renewed, and questions
//! that a server without sessions answers with.

use std::sync::Arc;

use footbridge_mcp::headers::ParamHeaders;
use footbridge_mcp::{
    Fields, Lifecycle, Progress, Raw, RequestError, RequestOptions, RpcError, can_be_asked, declined,
};
use footbridge_shared::message::CallerClient;

use super::attached::{Attached, lifecycle};
use super::server::{NoConnection, Server};
use crate::tools::CallContext;

/// Times that one request may be answered with questions.
const MAX_ROUNDS: usize = 10;
/// The `resultType` of an answer that is questions.
const INPUT_REQUIRED: &str = "input_required";

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Nothing was asked: there is no connection.
    NoConnection(NoConnection),
    /// The request did not come to a result.
    Request(RequestError),
}

impl From<RequestError> for Trouble {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

/// A request.
pub(super) struct Exchange<'a> {
    pub(super) server: &'a Server,
    pub(super) ctx: &'a CallContext,
    pub(super) method: &'a str,
    pub(super) param_headers: Option<Arc<ParamHeaders>>,
    /// Whether to pass on how far it is.
    pub(super) progress: bool,
}

impl Exchange<'_> {
    /// Makes it. One that certainly did not reach the server is made once more, over a new connection.
    ///
    /// # Errors
    /// [`Trouble`].
    pub(super) async fn run(&self, params: Raw) -> Result<Raw, Trouble> {
        let attached = self.attach(None).await?;
        if let Some(done) = attached.subscribe(self.method, &params, self.server.tasks()) {
            return done.map_err(|error| RequestError::Rpc(error).into());
        }
        match self.rounds(&attached, params.clone()).await {
            Err((RequestError::SessionExpired | RequestError::NotSent(_), 0)) => {
                tracing::info!(server = %self.server.name, "a connection to a local MCP server is renewed");
                self.server.give_up(&attached);
                let renewed = self.attach(Some(&attached)).await?;
                self.rounds(&renewed, params).await.map_err(|(error, _)| error.into())
            }
            Err((error @ (RequestError::SessionExpired | RequestError::NotSent(_)), _)) => {
                self.server.give_up(&attached);
                Err(RequestError::Lost(error.to_string()).into())
            }
            other => other.map_err(|(error, _)| error.into()),
        }
    }

    async fn attach(&self, not: Option<&Arc<Attached>>) -> Result<Arc<Attached>, Trouble> {
        tokio::select! {
            attached = self.server.attach(&self.ctx.caller, not) => attached.map_err(Trouble::NoConnection),
            () = self.ctx.cancelled() => Err(RequestError::Cancelled.into()),
        }
    }

    /// Asks until the answer is none that asks back. An error comes with the rounds before it.
    async fn rounds(&self, attached: &Arc<Attached>, mut params: Raw) -> Result<Raw, (RequestError, usize)> {
        let running = attached.router.enter(self.ctx);
        for round in 0..=MAX_ROUNDS {
            let options = RequestOptions {
                tag: Some(running.tag),
                progress: self.progress.then(|| self.on_progress()),
                cancel: self.ctx.cancel().clone(),
                capabilities: self.capabilities(attached),
                param_headers: self.param_headers.clone(),
            };
            let asked = attached.connection.request(self.method, Some(params.clone()), options).await;
            let result = asked.map_err(|error| (error, round))?;
            let Some(questions) = questions(&result).filter(|questions| self.answers_here(attached, questions)) else {
                return Ok(result);
            };
            params = self.answered(attached, &params, &questions).await.map_err(|error| (error, round + 1))?;
        }
        let why = format!("the server asked back more than {MAX_ROUNDS} times");
        Err((RequestError::BadAnswer(why), MAX_ROUNDS))
    }

    /// Whether questions that the server answers with are asked from here: a client that follows this itself gets them as they
    /// are, if it can answer them all.
    fn answers_here(&self, attached: &Attached, questions: &Fields) -> bool {
        let asked = questions.read::<Fields>("inputRequests").unwrap_or_default();
        let can = |client: &CallerClient| {
            asked.iter().all(|(_, question)| {
                let method = Fields::of(question).and_then(|question| question.read::<String>("method"));
                method.is_some_and(|method| can_be_asked(&client.capabilities, &method))
            })
        };
        let itself = lifecycle(&self.ctx.caller) == Some(Lifecycle::Stateless)
            && self.ctx.caller.client.as_deref().is_some_and(can);
        attached.lifecycle() == Lifecycle::Stateless && (attached.router.is_shared() || !itself)
    }

    /// What the client of this call can answer, for servers that want to know it with each request.
    fn capabilities(&self, attached: &Attached) -> Option<Raw> {
        let client = self.ctx.caller.client.as_deref()?;
        (!attached.router.is_shared()).then(|| client.capabilities.clone())
    }

    fn on_progress(&self) -> footbridge_mcp::OnProgress {
        let ctx = self.ctx.clone();
        Arc::new(move |Progress { progress, total, message }| ctx.relay_progress(progress, total, message))
    }

    /// The parameters of the next round.
    async fn answered(&self, attached: &Attached, params: &Raw, result: &Fields) -> Result<Raw, RequestError> {
        let bad = || RequestError::BadAnswer("it asks back, and it cannot be read what".to_owned());
        let mut answers = Fields::new();
        let questions = result.get("inputRequests").map_or_else(|| Some(Fields::new()), |asked| Fields::of(asked));
        for (name, question) in questions.ok_or_else(bad)?.iter() {
            let question = Fields::of(question).ok_or_else(bad)?;
            let method: String = question.read("method").ok_or_else(bad)?;
            let given = question.get("params").cloned().unwrap_or_else(|| Fields::new().to_raw());
            let answer = self.ask(attached, &method, given).await.map_err(RequestError::Rpc)?;
            answers.set(name, answer);
        }
        let mut next = Fields::of(params).ok_or_else(bad)?;
        next.set("inputResponses", answers.to_raw());
        next.take("requestState");
        if let Some(state) = result.get("requestState") {
            next.set("requestState", state.clone());
        }
        Ok(next.to_raw())
    }

    async fn ask(&self, attached: &Attached, method: &str, params: Raw) -> Result<Raw, RpcError> {
        if attached.router.is_shared() {
            return declined(method);
        }
        tokio::select! {
            answer = self.ctx.ask_client(method, params) => answer.unwrap_or_else(|| declined(method)),
            () = self.ctx.cancelled() => declined(method),
        }
    }
}

/// The result, if it is questions.
fn questions(result: &Raw) -> Option<Fields> {
    // Most are not, which costs less to see than to take apart.
    if !result.get().contains(INPUT_REQUIRED) {
        return None;
    }
    Fields::of(result).filter(|fields| fields.read::<String>("resultType").as_deref() == Some(INPUT_REQUIRED))
}
