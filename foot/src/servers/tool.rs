//! The tools of a local server, as tools of the foot.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_mcp::{Fields, Raw, RequestError, codes};
use footbridge_shared::id::EntryName;
use footbridge_shared::message::ToolEntry;
use footbridge_shared::text::clean_and_cut;
use footbridge_shared::{ErrorCode, Outcome};

use super::exchange::{Exchange, Trouble};
use super::listing::Listed;
use super::server::{NoConnection, Server};
use crate::failure::Failure;
use crate::permissions::{Action, ServerAction};
use crate::tools::{Arguments, CallContext, Plan, Tool, ToolOutput, raw};

/// Longest message of a server that is passed on as a failure's, in characters.
const MAX_MESSAGE_CHARS: usize = 2_000;
/// What is suggested to wait for a server that is not there, in milliseconds.
const RETRY_AFTER_MS: u64 = 1_000;

/// One tool.
pub(super) struct ServerTool {
    server: Arc<Server>,
    listed: Arc<Listed>,
}

impl ServerTool {
    pub(super) fn new(server: Arc<Server>, listed: Listed) -> Self {
        Self { server, listed: Arc::new(listed) }
    }
}

#[async_trait]
impl Tool for ServerTool {
    fn entry(&self) -> ToolEntry {
        self.listed.entry.clone()
    }

    /// Whatever the server says of it.
    fn is_read_only(&self) -> bool {
        false
    }

    async fn plan(&self, arguments: Arguments, _: &CallContext) -> Result<Plan, Failure> {
        let action = Action::Server(ServerAction {
            server: self.server.name.to_string(),
            what: self.listed.original.clone(),
            arguments: arguments.json().to_owned(),
            permission: self.server.settings().permission,
        });
        let (server, listed) = (self.server.clone(), self.listed.clone());
        Ok(Plan::new(action, async move |ctx| {
            let params = params(&listed.original, arguments, ctx.extra.as_ref())?;
            let _place = tokio::select! {
                place = server.room.acquire() => place,
                () = ctx.cancelled() => {
                    return Err(Failure::not_run(ErrorCode::Cancelled, "the call was stopped before its turn came"));
                }
            };
            let exchange = Exchange {
                server: &server,
                ctx: &ctx,
                method: "tools/call",
                param_headers: listed.param_headers.clone(),
                progress: true,
            };
            exchange.run(params).await.map_err(|trouble| failure(&server.name, trouble)).and_then(output)
        }))
    }
}

/// All that came with the call, under the name that the server knows.
fn params(original: &str, arguments: Arguments, extra: Option<&Raw>) -> Result<Raw, Failure> {
    let mut params = Fields::new();
    params.set_value("name", original);
    params.set("arguments", arguments.into_raw());
    let extra = extra.map(|extra| {
        Fields::of(extra).ok_or_else(|| Failure::invalid_arguments("what came beside the arguments is no object"))
    });
    for (name, value) in extra.transpose()?.iter().flat_map(Fields::iter) {
        if !matches!(name, "name" | "arguments") {
            params.set(name, value.clone());
        }
    }
    Ok(params.to_raw())
}

/// The result as it came.
fn output(result: Raw) -> Result<ToolOutput, Failure> {
    let bad = |why| Failure::completed(ErrorCode::BadAnswer, format!("what the server answered {why}"));
    let mut fields = Fields::of(&result).ok_or_else(|| bad("is no result"))?;
    let content = fields.take("content").unwrap_or_else(|| raw::<[(); 0]>(&[]));
    if !content.get().starts_with('[') {
        return Err(bad("has a `content` that is no list"));
    }
    let is_error = fields.take("isError").is_some_and(|flag| flag.get() == "true");
    let mut there = |name| fields.take(name).filter(|value| value.get() != "null");
    let (structured, meta) = (there("structuredContent"), there("_meta"));
    Ok(ToolOutput { content, structured, is_error, meta, extra: fields.into_raw_unless_empty() })
}

/// The failure of a call.
pub(super) fn failure(name: &EntryName, trouble: Trouble) -> Failure {
    let unavailable = |outcome| {
        let message = format!("the MCP server `{name}` of this foot is not connected");
        let failure = Failure::new(ErrorCode::ServerUnavailable, outcome, message);
        let failure = failure.hint("`foot tools` on the foot's machine says why a server is not there");
        if outcome == Outcome::NotRun { failure.retry_after_ms(RETRY_AFTER_MS) } else { failure }
    };
    match trouble {
        Trouble::NoConnection(NoConnection::Unreached) => unavailable(Outcome::NotRun),
        Trouble::NoConnection(NoConnection::Full) => {
            let message = format!("as many connections to the MCP server `{name}` are in use as may be");
            Failure::not_run(ErrorCode::ServerUnavailable, message).retry_after_ms(RETRY_AFTER_MS)
        }
        Trouble::Request(error) => match error {
            RequestError::Rpc(error) => {
                let code = match error.code {
                    codes::INVALID_PARAMS => ErrorCode::InvalidArguments,
                    _ => ErrorCode::ToolFailed,
                };
                let message = clean_and_cut(&error.message, MAX_MESSAGE_CHARS);
                Failure { rpc: Some(raw(&error)), ..Failure::completed(code, message) }
            }
            RequestError::Cancelled => Failure::new(ErrorCode::Cancelled, Outcome::Unknown, "the call was stopped"),
            RequestError::Lost(cause) => unavailable(Outcome::Unknown).cause(cause),
            error @ (RequestError::NotSent(_) | RequestError::SessionExpired | RequestError::Unauthorized(_)) => {
                unavailable(Outcome::NotRun).cause(error)
            }
            // A server that breaks in a call (HTTP 500) may have done it before.
            RequestError::BadAnswer(why) => {
                let message = clean_and_cut(&why, MAX_MESSAGE_CHARS);
                let message = format!("the MCP server `{name}`: {message}");
                Failure::new(ErrorCode::BadAnswer, Outcome::Unknown, message)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_call_is_said_and_no_more() {
        let error = |text: &str| text.to_owned();
        for (trouble, code, outcome) in [
            (RequestError::BadAnswer(error("HTTP 500")), ErrorCode::BadAnswer, Outcome::Unknown),
            (RequestError::Lost(error("it ended")), ErrorCode::ServerUnavailable, Outcome::Unknown),
            (RequestError::NotSent(error("refused")), ErrorCode::ServerUnavailable, Outcome::NotRun),
            (RequestError::SessionExpired, ErrorCode::ServerUnavailable, Outcome::NotRun),
            (RequestError::Unauthorized(401), ErrorCode::ServerUnavailable, Outcome::NotRun),
            (RequestError::Cancelled, ErrorCode::Cancelled, Outcome::Unknown),
        ] {
            let failure = failure(&EntryName::parse("s").unwrap(), trouble.clone().into());
            assert_eq!((failure.code, failure.outcome), (code, outcome), "{trouble}");
            assert_eq!(failure.hint.is_some(), code == ErrorCode::ServerUnavailable, "{trouble}");
        }
    }

    #[test]
    fn a_result_that_is_none_is_refused_and_what_is_null_is_not_there() {
        let read = |text: &str| output(serde_json::from_str(text).unwrap());
        for text in ["[]", r#"{"content":{}}"#, r#"{"content":null}"#] {
            assert_eq!(read(text).unwrap_err().code, ErrorCode::BadAnswer, "{text}");
        }
        let empty = read(r#"{"structuredContent":null,"_meta":null}"#).unwrap();
        assert_eq!((empty.content.get(), empty.structured.is_none(), empty.meta.is_none()), ("[]", true, true));
    }
}
