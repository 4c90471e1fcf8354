//! What servers tell by themselves, on its way to those who listen: so many, and so large.

use footbridge_mcp::{Fields, changes};
use tokio::sync::broadcast;

use super::mcp::McpNote;

/// Notes of one server that wait for a slow listener; it misses older ones.
const MAX_NOTES: usize = 256;
/// Largest note, in bytes of its parameters: with [`MAX_NOTES`] at most 16 MiB of one server wait.
const MAX_NOTE_BYTES: usize = 64 * 1024;
/// Longest text that is taken over of a note that is too large, in bytes.
const MAX_KEPT_BYTES: usize = 4 * 1024;

/// The notes of one server.
#[derive(Debug)]
pub struct McpNotes(broadcast::Sender<McpNote>);

impl Default for McpNotes {
    fn default() -> Self {
        Self(broadcast::Sender::new(MAX_NOTES))
    }
}

impl McpNotes {
    /// Tells those who listen, if anybody does. Never waits. Of what is too large the main thing is told: which resource
    /// changed, or that a server logged something; else nothing.
    pub fn tell(&self, note: McpNote) {
        if let Some(note) = fitting(note) {
            // Nobody listens: then nobody misses it.
            let _ = self.0.send(note);
        }
    }

    /// What is told from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<McpNote> {
        self.0.subscribe()
    }
}

fn fitting(note: McpNote) -> Option<McpNote> {
    let McpNote::Told { audience, method, params } = note else { return Some(note) };
    let bytes = params.get().len();
    if bytes <= MAX_NOTE_BYTES {
        return Some(McpNote::Told { audience, method, params });
    }
    tracing::debug!(method, bytes, "what an MCP server tells is too large");
    let mut short = Fields::new();
    let mut keep = |keys: &[&str]| {
        let fields = Fields::of(&params).unwrap_or_default();
        for key in keys {
            if let Some(value) = fields.get(key).filter(|value| value.get().len() <= MAX_KEPT_BYTES) {
                short.set(key, value.clone());
            }
        }
    };
    match method.as_str() {
        "notifications/message" => {
            keep(&["level", "logger"]);
            short.set_value("data", &format!("a message of {bytes} bytes was left out: the limit is {MAX_NOTE_BYTES}"));
        }
        changes::RESOURCE => keep(&["uri"]),
        list if changes::is_of_a_list(list) => {}
        _ => return None,
    }
    Some(McpNote::Told { audience, method, params: short.to_raw() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::domain::mcp::McpAudience;

    #[test]
    fn what_waits_for_a_slow_listener_is_small() {
        let notes = McpNotes::default();
        let mut listener = notes.subscribe();
        let large = "x".repeat(MAX_NOTE_BYTES);
        let tell = |method: &str, params: serde_json::Value| {
            let params = to_raw_value(&params).unwrap();
            notes.tell(McpNote::Told { audience: McpAudience::Everybody, method: method.to_owned(), params });
        };
        tell("notifications/message", json!({"level": "error", "data": "small"}));
        tell("notifications/message", json!({"level": "error", "logger": large, "data": large}));
        tell("notifications/resources/updated", json!({"uri": "x:y", "more": large}));
        tell("notifications/tools/list_changed", json!({"more": large}));
        tell("notifications/of/its/own", json!({"more": large}));
        let mut heard = Vec::new();
        while let Ok(McpNote::Told { params, .. }) = listener.try_recv() {
            heard.push(params.get().to_owned());
        }
        let left_out = heard.remove(1);
        assert_eq!(heard, [r#"{"level":"error","data":"small"}"#, r#"{"uri":"x:y"}"#, "{}"]);
        assert!(left_out.starts_with(r#"{"level":"error","data":"a message of 131"#), "{left_out}");
    }
}
