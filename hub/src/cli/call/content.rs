//! MCP content blocks as texts for people.

use serde::Deserialize;
use serde_json::Value;

use crate::api::calls::InvokeReply;
use crate::cli::table::bytes;

/// What people see of a reply, a text a block. What is no text is named with its type and size.
pub(super) fn texts(reply: &InvokeReply<'_>) -> Vec<String> {
    let blocks: Vec<Value> = serde_json::from_str(reply.content.get()).unwrap_or_default();
    if blocks.is_empty() {
        return reply.structured.iter().map(|structured| pretty(structured.get())).collect();
    }
    blocks.into_iter().map(shown).collect()
}

/// The blocks of MCP, as far as they are shown.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Block {
    Text { text: String },
    Image { data: String, mime_type: String },
    Audio { data: String, mime_type: String },
    Resource { resource: Resource },
    ResourceLink { uri: String, name: Option<String> },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    uri: String,
    text: Option<String>,
    blob: Option<String>,
    mime_type: Option<String>,
}

fn shown(block: Value) -> String {
    match serde_json::from_value(block.clone()) {
        Ok(Block::Text { text }) => text,
        Ok(Block::Image { data, mime_type }) => format!("[image {mime_type}, {}]", decoded_size(&data)),
        Ok(Block::Audio { data, mime_type }) => format!("[audio {mime_type}, {}]", decoded_size(&data)),
        Ok(Block::Resource { resource: Resource { text: Some(text), .. } }) => text,
        Ok(Block::Resource { resource }) => {
            let kind = resource.mime_type.unwrap_or_default();
            format!("[resource {} {kind}, {}]", resource.uri, decoded_size(&resource.blob.unwrap_or_default()))
        }
        Ok(Block::ResourceLink { uri, name }) => match name {
            Some(name) => format!("[link {name}: {uri}]"),
            None => format!("[link {uri}]"),
        },
        // A block of a later version, or a malformed one: better in full than not at all.
        Err(_) => pretty(&block.to_string()),
    }
}

/// The size of what base64 stands for.
fn decoded_size(base64: &str) -> String {
    let digits = base64.trim_end_matches('=').len() as u64;
    bytes(digits * 3 / 4)
}

fn pretty(json: &str) -> String {
    let value: Result<Value, _> = serde_json::from_str(json);
    value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| json.to_owned())
}
