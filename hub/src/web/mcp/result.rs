//! What a call came to, as an MCP result.

use footbridge_mcp::{Fields, Raw, RpcError, codes};
use footbridge_shared::ErrorCode;

use super::peer::Peer;
use crate::dispatch::calls::CallResult;
use crate::domain::failure::Failure;
use crate::domain::output::{ToolOutput, text_content};

/// The `_meta` entry that tells of a failure.
const ERROR_META: &str = "footbridge/error";

/// The result of a call, or the error that an MCP server answered it with.
pub(super) fn of_call(peer: &Peer, name: &str, result: &CallResult) -> Result<Raw, RpcError> {
    match &**result {
        Ok(output) => Ok(of_output(peer, output)),
        Err(failure) => of_failure(peer, name, failure),
    }
}

/// A call that did not start, or gave no result.
pub(super) fn of_failure(peer: &Peer, name: &str, failure: &Failure) -> Result<Raw, RpcError> {
    if let Some(error) = &failure.rpc {
        return Err((**error).clone());
    }
    if failure.code == ErrorCode::UnknownTool {
        return Err(unknown_tool(name));
    }
    let mut about = Fields::new();
    about.set_value("code", failure.code.as_str());
    about.set_value("outcome", &failure.outcome);
    if let Some(ms) = failure.retry_after_ms {
        about.set_value("retryAfterMs", &ms);
    }
    let mut meta = Fields::new();
    meta.set(ERROR_META, about.to_raw());
    let text = match &failure.hint {
        Some(hint) => format!("{} ({hint})", failure.message),
        None => failure.message.clone(),
    };
    let mut result = Fields::new();
    result.set("content", text_content(&text));
    result.set_value("isError", &true);
    result.set("_meta", meta.to_raw());
    if peer.is_stateless() {
        result.set_value("resultType", "complete");
    }
    Ok(result.to_raw())
}

/// There is no such tool for this client.
pub(super) fn unknown_tool(name: &str) -> RpcError {
    let name = footbridge_shared::text::clean_and_cut(name, 80);
    RpcError::new(codes::INVALID_PARAMS, format!("Unknown tool: {name}"))
}

fn of_output(peer: &Peer, output: &ToolOutput) -> Raw {
    let extra = output.extra.as_ref().and_then(|extra| Fields::of(extra)).unwrap_or_default();
    let asks = extra.read::<String>("resultType").is_some_and(|kind| kind != "complete");
    let mut result = Fields::new();
    // What asks for more is another result, without content.
    if !asks {
        result.set("content", output.content.clone());
    }
    if let Some(structured) = &output.structured
        && (peer.is_stateless() || is_object(structured))
    {
        result.set("structuredContent", structured.clone());
    }
    if output.is_error {
        result.set_value("isError", &true);
    }
    if let Some(meta) = &output.meta {
        result.set("_meta", meta.clone());
    }
    if peer.is_stateless() && !asks {
        result.set_value("resultType", "complete");
    }
    for (name, value) in extra.iter() {
        // In a session every result is complete, and does not say so.
        if peer.is_stateless() || asks || name != "resultType" {
            result.set(name, value.clone());
        }
    }
    result.to_raw()
}

/// Whether JSON is an object.
pub(super) fn is_object(json: &Raw) -> bool {
    json.get().starts_with('{')
}

/// Puts a result that is not a call's into the form of the client's version: without a session it says that it is
/// complete, and for how long it may be kept.
pub(super) fn finished(peer: &Peer, method: &str, result: Raw) -> Raw {
    if peer.is_stateless() {
        let Some(mut fields) = Fields::of(&result) else { return result };
        if fields.get("resultType").is_none() {
            fields.set_value("resultType", "complete");
        }
        let complete = fields.read::<String>("resultType").as_deref() == Some("complete");
        let kept = matches!(
            method,
            "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" | "resources/read"
        );
        if complete && kept {
            if fields.get("ttlMs").is_none() {
                fields.set_value("ttlMs", &0);
            }
            if fields.get("cacheScope").is_none() {
                fields.set_value("cacheScope", "private");
            }
        }
        return fields.to_raw();
    }
    let Some(mut fields) = Fields::of(&result).filter(|fields| fields.get("resultType").is_some()) else {
        return result;
    };
    for name in ["resultType", "ttlMs", "cacheScope"] {
        fields.take(name);
    }
    fields.to_raw()
}
