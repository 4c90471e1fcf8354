//! One request to a server for a caller, with all that comes in between: a connection that has to be renewed, and questions
//! that a server without sessions answers with.

use std::sync::Arc;

use footbridge_mcp::headers::ParamHeaders;
use footbridge_mcp::{
    Fields, InputRequired, Lifecycle, Progress, Question, Raw, RequestError, RequestOptions, RpcError, declined,
};

use super::attached::{Attached, lifecycle};
use super::follows::Following;
use super::server::{NoConnection, Server};
use crate::tools::CallContext;

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
        match self.over(&attached, params.clone()).await {
            Err((RequestError::SessionExpired | RequestError::NotSent(_), 0)) => {
                tracing::info!(server = %self.server.name, "a connection to a local MCP server is renewed");
                attached.give_up();
                let renewed = self.attach(Some(&attached)).await?;
                self.over(&renewed, params).await.map_err(|(error, _)| error.into())
            }
            Err((error @ (RequestError::SessionExpired | RequestError::NotSent(_)), _)) => {
                attached.give_up();
                Err(RequestError::Lost(error.to_string()).into())
            }
            other => other.map_err(|(error, _)| error.into()),
        }
    }

    /// Makes it over a connection. An error comes with the rounds before it.
    async fn over(&self, attached: &Arc<Attached>, params: Raw) -> Result<Raw, (RequestError, usize)> {
        match attached.follow(self.method, &params, &self.ctx.caller, self.server.tasks()) {
            Following::Done(done) => done.map_err(|error| (RequestError::Rpc(error), 0)),
            Following::Ask(begun) => {
                let result = self.rounds(attached, params).await?;
                if let Some(begun) = begun {
                    begun.keep();
                }
                Ok(result)
            }
        }
    }

    async fn attach(&self, not: Option<&Arc<Attached>>) -> Result<Arc<Attached>, Trouble> {
        tokio::select! {
            attached = self.server.attach(&self.ctx.caller, not) => attached.map_err(Trouble::NoConnection),
            () = self.ctx.cancelled() => Err(RequestError::Cancelled.into()),
        }
    }

    /// Asks until the answer is none that asks back.
    async fn rounds(&self, attached: &Arc<Attached>, mut params: Raw) -> Result<Raw, (RequestError, usize)> {
        let running = attached.router.enter(self.ctx);
        for round in 0..=InputRequired::MAX_ROUNDS {
            let options = RequestOptions {
                tag: Some(running.tag),
                progress: self.progress.then(|| self.on_progress()),
                cancel: self.ctx.cancel().clone(),
                capabilities: self.capabilities(attached),
                param_headers: self.param_headers.clone(),
            };
            let asked = attached.connection.request(self.method, Some(params.clone()), options).await;
            let result = asked.map_err(|error| (error, round))?;
            let Some(asked) = InputRequired::of(&result).filter(|asked| self.answers_here(attached, asked)) else {
                return Ok(result);
            };
            params = self.answered(attached, &params, &asked).await.map_err(|error| (error, round + 1))?;
        }
        let why = format!("the server asked back more than {} times", InputRequired::MAX_ROUNDS);
        Err((RequestError::BadAnswer(why), InputRequired::MAX_ROUNDS))
    }

    /// Whether questions that the server answers with are asked from here: a client that follows this itself gets them as they
    /// are, if it can answer them all.
    fn answers_here(&self, attached: &Attached, asked: &InputRequired) -> bool {
        let itself = lifecycle(&self.ctx.caller) == Some(Lifecycle::Stateless)
            && self.ctx.caller.client.as_deref().is_some_and(|client| asked.is_for(&client.capabilities));
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
    async fn answered(&self, attached: &Attached, params: &Raw, asked: &InputRequired) -> Result<Raw, RequestError> {
        let mut answers = Fields::new();
        for Question { key, method, params } in asked.questions() {
            let answer = self.ask(attached, method, params.clone()).await.map_err(RequestError::Rpc)?;
            answers.set(key, answer);
        }
        let before = Fields::of(params).unwrap_or_default();
        Ok(asked.next(before, &answers).to_raw())
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
