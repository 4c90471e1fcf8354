//! The owner at an MCP client of theirs: the one through which the very call came that is asked about.

use footbridge_mcp::Fields;
use serde::Deserialize;
use serde_json::json;

use super::{Question, Reply};
use crate::permissions::shown::quoted;
use crate::tools::{CallContext, raw};

/// Whether the call came from the owner of this foot, through a client that can ask them.
pub(in crate::permissions) fn can_be_asked(ctx: &CallContext) -> bool {
    let asks = |client: &footbridge_shared::message::CallerClient| {
        Fields::of(&client.capabilities).is_some_and(|can| can.get("elicitation").is_some())
    };
    ctx.by_owner && ctx.caller.client.as_deref().is_some_and(asks)
}

#[derive(Debug, Deserialize)]
struct Answer {
    action: String,
    content: Option<Content>,
}

#[derive(Debug, Deserialize)]
struct Content {
    allow: bool,
}

/// Asks. What holds once and for all cannot be said there. `None`: nobody is there.
pub(in crate::permissions) async fn ask(ctx: &CallContext, question: &Question) -> Option<Reply> {
    let params = json!({
        "mode": "form",
        "message": written(question),
        "requestedSchema": {
            "type": "object",
            "properties": {"allow": {"type": "boolean", "title": "Allow this, once", "default": false}},
            "required": ["allow"],
        },
    });
    let answer = ctx.ask_client("elicitation/create", raw(&params)).await?;
    let answer =
        answer.inspect_err(|error| tracing::warn!(%error, "the owner could not be asked through their client"));
    let answer: Answer = serde_json::from_str(answer.ok()?.get()).ok()?;
    let allow = answer.action == "accept" && answer.content.is_some_and(|content| content.allow);
    Some(Reply { allow, always: false })
}

fn written(question: &Question) -> String {
    let process = question.process.as_deref().map(|process| format!(", process {}", quoted(process)));
    let (subject, tool) = (quoted(&question.subject), quoted(&question.tool));
    let lines = question.lines.join("\n");
    format!(
        "A foot of yours asks: {subject}{} wants {tool} to\n{lines}\n({}; within {} s)",
        process.unwrap_or_default(),
        question.because,
        question.seconds
    )
}
