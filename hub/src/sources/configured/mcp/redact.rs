//! Takes a document's credentials out of texts before anybody sees them.

use std::borrow::Cow;

use footbridge_mcp::RpcError;
use serde_json::value::RawValue;

/// Shorter values are no secrets, and would be found everywhere.
const MIN_SECRET_CHARS: usize = 6;
/// What stands in their place.
const MASK: &str = "***";

/// Knows the credentials of one document.
#[derive(Clone, Default)]
pub(in crate::sources::configured) struct Redactor(Vec<String>);

impl Redactor {
    /// Knows these.
    pub(in crate::sources::configured) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> =
            secrets.into_iter().filter(|secret| secret.chars().count() >= MIN_SECRET_CHARS).collect();
        // Of two that begin alike the longer one goes first, or its end would stay.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self(secrets)
    }

    /// The text without them.
    pub(in crate::sources::configured) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = Cow::Owned(text.replace(secret.as_str(), MASK));
            }
        }
        text
    }

    /// A server's error without them.
    pub(in crate::sources::configured) fn rpc(&self, mut error: RpcError) -> RpcError {
        if let Cow::Owned(message) = self.text(&error.message) {
            error.message = message;
        }
        if let Some(data) = &error.data
            && let Cow::Owned(text) = self.text(data.get())
        {
            // The mask breaks no JSON unless it hits something else than a text.
            error.data = RawValue::from_string(text).ok();
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_masked_and_short_values_are_none() {
        let redactor = Redactor::new(["S3CR3T-demo".to_owned(), "S3CR3T-demo-0001".to_owned(), "1".to_owned()]);
        assert_eq!(redactor.text("key 1: S3CR3T-demo-0001, S3CR3T-demo"), "key 1: ***, ***");
        let data = serde_json::value::to_raw_value(&["S3CR3T-demo-0001"]).unwrap();
        let error = redactor.rpc(RpcError { code: 1, message: "S3CR3T-demo".to_owned(), data: Some(data) });
        assert_eq!((error.message.as_str(), error.data.unwrap().get()), ("***", "[\"***\"]"));
    }
}
