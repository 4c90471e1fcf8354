//! Callers of a tool over MCP. They do the least that a client has to, the same for every server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use super::callers::Pending;
use crate::Result;
use crate::clients::raw::{Client, SESSION_VERSION, STATELESS_VERSION, Target};

/// How the callers and the server know each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// A session for each caller.
    Session,
    /// No session at all.
    Stateless,
}

impl Manner {
    pub(super) const ALL: [Self; 2] = [Self::Session, Self::Stateless];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Session => "with a session",
            Self::Stateless => "without",
        }
    }
}

/// A tool that is called again and again.
pub(super) struct ToolCalls {
    target: Target,
    /// What stands before and after the id.
    body: Arc<[String; 2]>,
    /// Those of each caller.
    headers: Vec<HeaderMap>,
    /// Bytes that an answer has at least.
    at_least: usize,
    next: AtomicUsize,
    ids: Arc<AtomicU64>,
}

impl ToolCalls {
    /// Makes so many callers known to the server.
    ///
    /// # Errors
    /// When it refuses them.
    pub(super) async fn new(
        target: &Target,
        manner: Manner,
        callers: usize,
        (tool, arguments): (&str, &Value),
        at_least: usize,
    ) -> Result<Self> {
        let mut params = json!({ "name": tool, "arguments": arguments });
        let mut headers = Vec::new();
        for _ in 0..callers {
            let mut own = HeaderMap::new();
            own.insert("content-type", HeaderValue::from_static("application/json"));
            own.insert("accept", HeaderValue::from_static("application/json, text/event-stream"));
            match manner {
                Manner::Session => {
                    let client = Client::open(target, json!({})).await?;
                    own.insert("mcp-protocol-version", HeaderValue::from_static(SESSION_VERSION));
                    own.insert("mcp-session-id", client.session().ok_or("no session")?.parse()?);
                }
                Manner::Stateless => {
                    own.insert("mcp-protocol-version", HeaderValue::from_static(STATELESS_VERSION));
                    own.insert("mcp-method", HeaderValue::from_static("tools/call"));
                    own.insert("mcp-name", tool.parse()?);
                }
            }
            headers.push(own);
        }
        if manner == Manner::Stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
                "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let body = [r#"{"jsonrpc":"2.0","id":"#.to_owned(), format!(r#","method":"tools/call","params":{params}}}"#)];
        let ids = Arc::new(AtomicU64::new(1_000));
        Ok(Self { target: target.clone(), body: body.into(), headers, at_least, next: AtomicUsize::default(), ids })
    }

    /// The next caller.
    pub(super) fn caller(&self) -> impl FnMut() -> Pending + Send + use<> {
        let number = self.next.fetch_add(1, Ordering::Relaxed) % self.headers.len().max(1);
        let headers = self.headers.get(number).cloned().unwrap_or_default();
        let (target, body, ids, at_least) = (self.target.clone(), self.body.clone(), self.ids.clone(), self.at_least);
        move || {
            let request = target.request(reqwest::Method::POST).headers(headers.clone());
            let id = ids.fetch_add(1, Ordering::Relaxed);
            let request = request.body(format!("{}{id}{}", body[0], body[1]));
            Box::pin(async move {
                let response = request.send().await?;
                let status = response.status();
                let bytes = response.bytes().await?;
                check(status.is_success(), std::str::from_utf8(&bytes)?, at_least)
            })
        }
    }
}

/// Whether this is a success, so that no failure is measured as if it were a quick one.
fn check(success: bool, body: &str, at_least: usize) -> Result<()> {
    // What says so stands before or after the content, which has no quotes.
    let failed = !success || !body.contains(r#""content""#) || body.contains(r#""isError":true"#);
    if failed || body.len() < at_least {
        return Err(format!("no result: {}", body.chars().take(300).collect::<String>()).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_call_is_not_measured() {
        let result = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"xxxx"}]}}"#;
        assert!(check(true, result, 10).is_ok());
        assert!(check(false, result, 10).is_err());
        assert!(check(true, result, 1_000).is_err(), "nothing came back");
        assert!(check(true, &result.replace("\"content\"", "\"isError\":true,\"content\""), 10).is_err());
        assert!(check(true, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}"#, 10).is_err());
    }
}
