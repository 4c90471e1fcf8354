//! The project's documents as resources: `doc:///<path>`, as the cascade has them. Configuration is none.

use footbridge_mcp::{Fields, Raw, RpcError};
use serde_json::json;

use super::page;
use super::peer::{Peer, rpc_error};
use crate::documents::DocumentsError;
use crate::domain::document::{DocumentPath, DocumentReader as _};
use crate::domain::failure::Failure;

const SCHEME: &str = "doc:///";

/// Whether a URI is one of a document.
pub(super) fn is_document(uri: &str) -> bool {
    uri.starts_with(SCHEME)
}

/// The URI of a document: what is no plain letter, digit or sign of its path is percent-encoded.
fn uri(path: &DocumentPath) -> String {
    let mut uri = SCHEME.to_owned();
    for byte in path.as_str().bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(byte.into());
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

/// The document of a URI.
fn path(uri: &str) -> Option<DocumentPath> {
    let text = uri.strip_prefix(SCHEME)?.as_bytes();
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
                tail
            }
            (byte, tail) => {
                bytes.push(*byte);
                tail
            }
        };
    }
    DocumentPath::parse(std::str::from_utf8(&bytes).ok()?).ok().filter(|path| !path.is_config())
}

/// The type of a text, by the end of its name.
fn mime_type(path: &DocumentPath) -> &'static str {
    let name = path.as_str().rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).as_deref() {
        Some("md" | "markdown") => "text/markdown",
        Some("json") => "application/json",
        Some("yaml" | "yml") => "application/yaml",
        Some("html" | "htm") => "text/html",
        Some("csv") => "text/csv",
        Some("js" | "mjs") => "text/javascript",
        Some("xml") => "application/xml",
        Some("css") => "text/css",
        _ => "text/plain",
    }
}

fn failed(error: DocumentsError) -> RpcError {
    rpc_error(&Failure::from(error))
}

/// At most so many documents, behind the URI `after`, and the URI that the next page starts behind.
pub(super) async fn list(
    peer: &Peer,
    after: Option<&str>,
    room: usize,
) -> Result<(Vec<Raw>, Option<String>), RpcError> {
    let mut cursor = match after {
        None => None,
        Some(after) => Some(path(after).ok_or_else(page::stale)?.to_string()),
    };
    let (mut found, mut last) = (Vec::new(), None);
    loop {
        let listing =
            peer.state.documents.list(&peer.scope, "", cursor.as_deref(), page::PAGE).await.map_err(failed)?;
        for entry in listing.documents.iter().filter(|entry| !entry.path.is_config() && entry.error.is_none()) {
            if found.len() == room {
                return Ok((found, last));
            }
            let uri = uri(&entry.path);
            let mut resource = Fields::new();
            resource.set_value("uri", &uri);
            resource.set_value("name", entry.path.as_str());
            resource.set_value("mimeType", mime_type(&entry.path));
            resource.set_value("size", &entry.bytes);
            found.push(resource.to_raw());
            last = Some(uri);
        }
        match listing.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok((found, None)),
        }
    }
}

/// The text of a document as the result of `resources/read`.
pub(super) async fn read(peer: &Peer, uri: &str) -> Result<Option<Raw>, RpcError> {
    let Some(path) = path(uri) else { return Ok(None) };
    let found = peer.state.documents.read(&peer.scope, &path).await.map_err(|failure| rpc_error(&failure))?;
    Ok(found.map(|document| {
        let mut result = Fields::new();
        result.set_value("contents", &json!([{"uri": uri, "mimeType": mime_type(&path), "text": document.text}]));
        result.to_raw()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_its_uri_stand_for_each_other_and_configuration_has_none() {
        for text in ["documents/é 漢.md", "a", "documents/a?b#c.txt"] {
            let document = DocumentPath::parse(text).unwrap();
            assert_eq!(path(&uri(&document)).unwrap(), document);
        }
        assert_eq!(uri(&DocumentPath::parse("documents/a b.md").unwrap()), "doc:///documents/a%20b.md");
        for bad in
            ["doc:///server-tools/x.yaml", "doc:///%73erver-tools/x.yaml", "doc:///a/%2e%2e/b", "doc:///%zz", "doc:///"]
        {
            assert!(path(bad).is_none(), "{bad}");
        }
    }
}
