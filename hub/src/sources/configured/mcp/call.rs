//! A call on its way to a server and back.

use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use footbridge_mcp::headers::ParamHeaders;
use footbridge_mcp::{
    Fields, InputRequired, Lifecycle, Progress, Raw, RequestError, RequestOptions, RpcError, codes, everything_carried,
};
use footbridge_shared::text::clean_and_cut;
use footbridge_shared::{ErrorCode, Outcome};
use serde_json::value::RawValue;

use super::asked;
use super::config::SessionMode;
use super::dial::{MAX_SHOWN_CHARS, Unavailable};
use super::server::{Server, nothing};
use super::session::{Live, Session};
use super::shape::Shape;
use crate::domain::arguments::{ArgumentSchema, Arguments};
use crate::domain::call::{CallContext, CallEvent};
use crate::domain::failure::Failure;
use crate::domain::mcp::McpClient;
use crate::domain::output::ToolOutput;
use crate::domain::tool::ToolHandler;

/// Why a request has no result.
pub(super) enum NoResult {
    /// The server says so.
    Rpc(RpcError),
    /// Anything else.
    Failure(Failure),
}

impl From<Unavailable> for NoResult {
    fn from(unavailable: Unavailable) -> Self {
        Self::Failure(unavailable.into())
    }
}

impl From<Unavailable> for Failure {
    fn from(unavailable: Unavailable) -> Self {
        let left = unavailable.next_try.map(|at| at.saturating_duration_since(tokio::time::Instant::now()));
        let mut failure = Self::not_run(unavailable.code, unavailable.message)
            .hint("`footbridge packs` shows how the server is, and when it is tried again");
        failure.retry_after_ms = left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1));
        failure
    }
}

/// What a server is asked.
#[derive(Clone)]
struct Asked<'a> {
    method: &'a str,
    params: Raw,
    headers: &'a Option<Arc<ParamHeaders>>,
}

/// A tool on a server.
pub(super) struct ServerTool {
    server: Weak<Server>,
    original: String,
    shape: Shape,
    headers: Option<Arc<ParamHeaders>>,
    output: OnceLock<Option<ArgumentSchema>>,
}

impl ServerTool {
    pub(super) fn new(server: Weak<Server>, original: String, shape: Shape, headers: ParamHeaders) -> Self {
        let headers = (!headers.is_empty()).then(|| Arc::new(headers));
        Self { server, original, shape, headers, output: OnceLock::new() }
    }

    /// Says in the log that a result is not what the tool promised. It is passed on as it is: an error that is hidden helps
    /// nobody.
    fn look_at(&self, server: &Server, output: &ToolOutput) {
        let Some(structured) = output.structured.as_ref().filter(|_| !output.is_error) else { return };
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        let compile = || {
            let listed = server.listed();
            let schema = listed.tool(&self.original)?.spec.output_schema.as_ref()?;
            ArgumentSchema::compile(&serde_json::from_str(schema.get()).ok()?).ok()
        };
        if let Some(schema) = self.output.get_or_init(compile)
            && let Err(failure) = schema.check(&Arguments::new(structured.clone()))
        {
            let reason = server.config.redactor.text(&failure.message);
            tracing::debug!(pack = %server.name, tool = self.original, %reason, "a result does not follow its schema");
        }
    }
}

#[async_trait]
impl ToolHandler for ServerTool {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let server = self.server.upgrade().ok_or_else(|| {
            Failure::not_run(ErrorCode::ServerUnavailable, "the server was taken away just now").hint("call again")
        })?;
        let arguments = self.shape.complete(arguments, &server.config.arguments)?;
        let mut params = Fields::new();
        params.set_value("name", &self.original);
        params.set("arguments", arguments);
        if let Some(extra) = ctx.extra.as_deref().and_then(Fields::of) {
            for (key, value) in extra.iter().filter(|(key, _)| !["name", "arguments"].contains(key)) {
                params.set(key, value.clone());
            }
        }
        match server.relay(ctx, "tools/call", params, self.headers.clone()).await {
            Ok(result) => {
                let output = output(&result)?;
                self.look_at(&server, &output);
                Ok(output)
            }
            Err(NoResult::Failure(failure)) => Err(failure),
            Err(NoResult::Rpc(error)) => Err(refused(error)),
        }
    }
}

/// A server's JSON-RPC error as a failure.
fn refused(error: RpcError) -> Failure {
    let code = match error.code {
        codes::INVALID_PARAMS => ErrorCode::InvalidArguments,
        _ => ErrorCode::ToolFailed,
    };
    let message = clean_and_cut(&error.message, MAX_SHOWN_CHARS);
    let message =
        if message.trim().is_empty() { format!("the server answered with error {}", error.code) } else { message };
    Failure::new(code, Outcome::Completed, message).rpc(error)
}

/// What a tool answered.
fn output(result: &RawValue) -> Result<ToolOutput, Failure> {
    let wrong =
        |why: &str| Failure::new(ErrorCode::BadAnswer, Outcome::Completed, format!("the server's result {why}"));
    let mut fields = Fields::of(result).ok_or_else(|| wrong("is no object"))?;
    let content = match fields.take("content") {
        Some(content) if content.get().starts_with('[') => content,
        Some(_) => return Err(wrong("has a `content` that is no list")),
        None => RawValue::from_string("[]".to_owned()).map_err(|error| wrong(&error.to_string()))?,
    };
    let structured = fields.take("structuredContent").filter(|value| value.get() != "null");
    let is_error = fields.take("isError").is_some_and(|value| value.get() == "true");
    let meta = fields.take("_meta").filter(|value| value.get() != "null");
    let mut output = ToolOutput::relayed(content, structured, is_error, meta);
    output.extra = fields.into_raw_unless_empty();
    Ok(output)
}

impl Server {
    /// Passes a request on for a call, and its result back. What the server wants to know meanwhile is asked of the call's
    /// client.
    pub(super) async fn relay(
        self: &Arc<Self>,
        ctx: &CallContext,
        method: &str,
        params: Fields,
        headers: Option<Arc<ParamHeaders>>,
    ) -> Result<Raw, NoResult> {
        let _call = self.calls.token();
        let cancelled = || NoResult::Failure(cancelled(Outcome::NotRun));
        let _permit = match &self.permits {
            None => None,
            Some(permits) => Some(tokio::select! {
                permit = permits.acquire() => permit.map_err(|_| cancelled())?,
                () = ctx.cancel.cancelled() => return Err(cancelled()),
            }),
        };
        let session = self.session_of(ctx).await?;
        let mut live = tokio::select! {
            live = session.live(self, self.capabilities(&session, ctx)) => live?,
            () = ctx.cancel.cancelled() => return Err(cancelled()),
        };
        let mut again = params.clone();
        for _ in 0..InputRequired::MAX_ROUNDS {
            let result =
                self.ask(ctx, &session, &mut live, Asked { method, params: again.to_raw(), headers: &headers }).await?;
            let Some(asked) = InputRequired::of(&result) else { return Ok(result) };
            let shared = self.config.session == SessionMode::Shared;
            let client = ctx.client.as_ref().filter(|_| !shared);
            let asks_itself = |client: &&Arc<dyn McpClient>| {
                client.lifecycle() == Lifecycle::Stateless && asked.is_for(client.capabilities())
            };
            if client.is_some_and(|client| asks_itself(&client)) {
                // The client knows how to be asked this way.
                return Ok(result);
            }
            let answers = tokio::select! {
                answers = asked::answers(&asked, client, &ctx.clock) => answers,
                () = ctx.cancel.cancelled() => return Err(NoResult::Failure(self::cancelled(Outcome::Unknown))),
            };
            again = asked.next(params.clone(), &answers.map_err(NoResult::Rpc)?);
        }
        let message = format!("the server asked more than {} times before it gave a result", InputRequired::MAX_ROUNDS);
        Err(NoResult::Failure(Failure::new(ErrorCode::BadAnswer, Outcome::Unknown, message)))
    }

    /// Asks once; with a new connection once more, if the old one certainly did not do it.
    async fn ask(
        self: &Arc<Self>,
        ctx: &CallContext,
        session: &Arc<Session>,
        live: &mut Arc<Live>,
        asked: Asked<'_>,
    ) -> Result<Raw, NoResult> {
        let error = match self.ask_once(ctx, live, asked.clone()).await {
            Ok(result) => return Ok(result),
            Err(error) => error,
        };
        let renew = match &error {
            RequestError::SessionExpired | RequestError::NotSent(_) => true,
            RequestError::Unauthorized(_) => self.dialer.forget_credentials().await,
            _ => false,
        };
        if !renew {
            if matches!(error, RequestError::Lost(_)) {
                self.list_changed();
            }
            return Err(self.no_result(error));
        }
        session.discard(live);
        *live = tokio::select! {
            live = session.live(self, self.capabilities(session, ctx)) => live?,
            () = ctx.cancel.cancelled() => return Err(NoResult::Failure(cancelled(Outcome::NotRun))),
        };
        // What it offers may be something else now.
        self.list_changed();
        self.ask_once(ctx, live, asked).await.map_err(|error| self.no_result(error))
    }

    async fn ask_once(
        &self,
        ctx: &CallContext,
        live: &Live,
        Asked { method, params, headers }: Asked<'_>,
    ) -> Result<Raw, RequestError> {
        let running = live.calls.begin(ctx);
        let teller = ctx.clone();
        let on_progress = move |Progress { progress, total, message }: Progress| {
            let message = message.map(|message| clean_and_cut(&message, MAX_SHOWN_CHARS));
            teller.emit(CallEvent::Progress { progress, total, message });
        };
        let shared = self.config.session == SessionMode::Shared;
        let client = ctx.client.as_ref().filter(|_| !shared);
        let options = RequestOptions {
            tag: Some(running.tag),
            progress: Some(Arc::new(on_progress)),
            cancel: ctx.cancel.clone(),
            capabilities: Some(client.map_or_else(nothing, |client| client.capabilities().clone())),
            param_headers: headers.clone(),
        };
        live.connection.request(method, Some(params), options).await
    }

    /// What the hub says of itself where it lists: servers show some tools to those alone who could answer what they ask.
    pub(super) fn listed_as(&self) -> Raw {
        if self.config.session == SessionMode::Shared { nothing() } else { everything_carried() }
    }

    /// What the hub says to a server that its client can do.
    pub(super) fn capabilities(&self, session: &Session, ctx: &CallContext) -> Raw {
        use super::session::Key;
        match (&session.key, &ctx.client) {
            (Key::Shared | Key::Listing, _) => nothing(),
            (Key::Session(..), Some(client)) => client.capabilities().clone(),
            (Key::Session(..), None) => nothing(),
            (Key::Subject(..), _) => everything_carried(),
        }
    }

    fn no_result(&self, error: RequestError) -> NoResult {
        let shown = clean_and_cut(&self.config.redactor.text(&error.to_string()), MAX_SHOWN_CHARS);
        let (code, outcome) = match error {
            RequestError::Rpc(error) => return NoResult::Rpc(self.config.redactor.rpc(error)),
            RequestError::Cancelled => return NoResult::Failure(cancelled(Outcome::Unknown)),
            RequestError::NotSent(_) | RequestError::SessionExpired | RequestError::Unauthorized(_) => {
                (ErrorCode::ServerUnavailable, Outcome::NotRun)
            }
            RequestError::Lost(_) => (ErrorCode::ServerUnavailable, Outcome::Unknown),
            RequestError::BadAnswer(_) => (ErrorCode::BadAnswer, Outcome::Unknown),
        };
        NoResult::Failure(Failure::new(code, outcome, shown))
    }
}

pub(super) fn cancelled(outcome: Outcome) -> Failure {
    Failure::new(ErrorCode::Cancelled, outcome, "the call was cancelled")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ToolOutput, Failure> {
        output(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn a_result_arrives_as_it_was_sent() {
        let result = read(
            r#"{"content": [{"type":"new","n":1.10}], "structuredContent":{"big":9007199254740993}, "isError":true,
                "_meta":{"a":1}, "resultType":"complete", "ttl": 1.0}"#,
        )
        .unwrap();
        assert_eq!(result.content.get(), r#"[{"type":"new","n":1.10}]"#);
        assert_eq!(result.structured.unwrap().get(), r#"{"big":9007199254740993}"#);
        assert!(result.is_error);
        assert_eq!(result.meta.unwrap().get(), r#"{"a":1}"#);
        assert_eq!(result.extra.unwrap().get(), r#"{"resultType":"complete","ttl":1.0}"#);
        let empty = read("{}").unwrap();
        assert_eq!((empty.content.get(), empty.is_error, empty.extra.is_none()), ("[]", false, true));
        for text in ["[]", r#"{"content":{}}"#, r#"{"content":null}"#] {
            assert_eq!(read(text).unwrap_err().code, ErrorCode::BadAnswer, "{text}");
        }
    }

    #[test]
    fn an_error_of_the_server_is_kept_beside_what_is_shown() {
        let failure = refused(RpcError::new(codes::INVALID_PARAMS, "no\u{202e}pe"));
        assert_eq!((failure.code, failure.message.as_str()), (ErrorCode::InvalidArguments, "nope"));
        assert_eq!(failure.rpc.unwrap().message, "no\u{202e}pe");
        assert_eq!(refused(RpcError::new(-1, " ")).message, "the server answered with error -1");
    }
}
