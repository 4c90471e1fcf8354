//! How requests of a connection are dressed: with a progress token of our own and, without a session, with what every
//! request says of who asks.

use footbridge_shared::message::Raw;
use serde_json::value::RawValue;

use crate::fields::borrowed;
use crate::message::{RequestId, push_on_one_line, push_string, start_call, write_call};
use crate::meta;
use crate::version::{Lifecycle, Version};

/// The field of `params` that says things about the request itself.
const META: &str = "_meta";

/// The entries of `_meta` that are a matter of each connection: those of another one are not passed on.
const OF_THE_CONNECTION: [&str; 4] =
    [meta::PROGRESS_TOKEN, meta::PROTOCOL_VERSION, meta::CLIENT_INFO, meta::CLIENT_CAPABILITIES];

/// Who speaks on a connection, and how.
#[derive(Debug, Clone)]
pub(crate) struct Voice {
    /// The version that is spoken; `None` before one is agreed on.
    pub(crate) version: Option<Version>,
    /// `clientInfo`.
    pub(crate) client_info: Raw,
    /// The capabilities of a request that has none of its own.
    pub(crate) capabilities: Raw,
}

impl Voice {
    /// Whether every request says who asks.
    pub(crate) fn is_stateless(&self) -> bool {
        self.version.is_some_and(|version| version.lifecycle() == Lifecycle::Stateless)
    }

    /// Writes a request.
    pub(crate) fn request(
        &self,
        id: u64,
        method: &str,
        params: Option<&RawValue>,
        with_progress: bool,
        capabilities: Option<&RawValue>,
    ) -> String {
        let mut ours: Vec<(&str, &str)> = Vec::new();
        let number = id.to_string();
        if with_progress {
            ours.push((meta::PROGRESS_TOKEN, &number));
        }
        let version = self.version.map(|version| format!("\"{version}\"")).unwrap_or_default();
        if self.is_stateless() {
            ours.push((meta::PROTOCOL_VERSION, &version));
            ours.push((meta::CLIENT_INFO, self.client_info.get()));
            ours.push((meta::CLIENT_CAPABILITIES, capabilities.unwrap_or(&self.capabilities).get()));
        }
        let mut text = String::with_capacity(256 + params.map_or(0, |params| params.get().len()));
        let id = RequestId::number(id);
        let fields = params
            .filter(|params| !ours.is_empty() || may_have_foreign(params.get()))
            .map_or_else(|| params.is_none().then(Vec::new), borrowed);
        match fields {
            Some(fields) if !(fields.is_empty() && ours.is_empty()) => {
                start_call(&mut text, Some(&id), method);
                text.push_str(r#","params":"#);
                write_params(&mut text, &fields, &ours);
                text.push('}');
            }
            _ => write_call(&mut text, Some(&id), method, params),
        }
        text
    }
}

/// Whether there may be entries that belong to another connection. It costs less to look than to take apart.
fn may_have_foreign(params: &str) -> bool {
    params.contains(META)
}

fn write_params(text: &mut String, fields: &[(std::borrow::Cow<'_, str>, &RawValue)], ours: &[(&str, &str)]) {
    let mut object = Object::start(text);
    let mut meta = Vec::new();
    for (name, value) in fields {
        if name == META {
            meta = borrowed(value).unwrap_or_default();
        } else {
            object.field(name, value.get());
        }
    }
    meta.retain(|(name, _)| !OF_THE_CONNECTION.contains(&name.as_ref()));
    if !(meta.is_empty() && ours.is_empty()) {
        object.name(META);
        let mut inner = Object::start(object.text);
        for (name, value) in &meta {
            inner.field(name, value.get());
        }
        for (name, value) in ours {
            inner.field(name, value);
        }
        inner.end();
    }
    object.end();
}

/// Writes an object field by field.
struct Object<'a> {
    text: &'a mut String,
    is_empty: bool,
}

impl<'a> Object<'a> {
    fn start(text: &'a mut String) -> Self {
        text.push('{');
        Self { text, is_empty: true }
    }

    fn name(&mut self, name: &str) {
        if !std::mem::take(&mut self.is_empty) {
            self.text.push(',');
        }
        push_string(self.text, name);
        self.text.push(':');
    }

    fn field(&mut self, name: &str, value: &str) {
        self.name(name);
        push_on_one_line(self.text, value);
    }

    fn end(self) {
        self.text.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn voice(version: Version) -> Voice {
        Voice { version: Some(version), client_info: raw(r#"{"name":"t"}"#), capabilities: raw("{}") }
    }

    #[test]
    fn in_a_session_a_request_goes_as_it_is_but_for_what_belongs_to_another_connection() {
        let voice = voice(Version::V2025_06_18);
        let write = |params: Option<&str>, progress| {
            let params = params.map(raw);
            voice.request(7, "tools/call", params.as_deref(), progress, None)
        };
        let start = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call""#;
        assert_eq!(write(None, false), format!("{start}}}"));
        assert_eq!(write(Some(r#"{"a": 1.10}"#), false), format!(r#"{start},"params":{{"a": 1.10}}}}"#));
        assert_eq!(write(None, true), format!(r#"{start},"params":{{"_meta":{{"progressToken":7}}}}}}"#));
        assert_eq!(
            write(Some(r#"{"_meta":{"x/y":1e400,"progressToken":"theirs"},"a":"\u00e9"}"#), true),
            format!(r#"{start},"params":{{"a":"\u00e9","_meta":{{"x/y":1e400,"progressToken":7}}}}}}"#)
        );
        let foreign = r#"{"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"a":1}"#;
        assert_eq!(write(Some(foreign), false), format!(r#"{start},"params":{{"a":1}}}}"#));
        assert_eq!(write(Some("[1]"), true), format!(r#"{start},"params":[1]}}"#));
    }

    #[test]
    fn without_a_session_every_request_says_who_asks() {
        let params = raw(r#"{"a":1,"_meta":{"k":2,"io.modelcontextprotocol/clientInfo":{"name":"another"}}}"#);
        let capabilities = raw(r#"{"roots":{}}"#);
        let text = voice(Version::V2026_07_28).request(1, "m", Some(&params), false, Some(&capabilities));
        let meta = r#""_meta":{"k":2,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t"},"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}"#;
        assert_eq!(text, format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":1,{meta}}}}}"#));
    }
}
