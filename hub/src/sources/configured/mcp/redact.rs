//! Takes a document's credentials out of texts before anybody sees them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use footbridge_mcp::RpcError;
use parking_lot::RwLock;
use serde_json::value::RawValue;

/// Shorter values are no secrets, and would be found everywhere.
const MIN_SECRET_CHARS: usize = 6;
/// What stands in their place.
const MASK: &str = "***";

/// Fetched credentials that are known, of each document: the one in use, and some before it.
const MAX_FETCHED: usize = 8;

/// Knows the credentials of one document. Clones know the same.
#[derive(Clone, Default)]
pub(in crate::sources::configured) struct Redactor {
    written: Arc<[String]>,
    fetched: Arc<RwLock<VecDeque<String>>>,
}

impl Redactor {
    /// Knows these.
    pub(in crate::sources::configured) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> =
            secrets.into_iter().filter(|secret| secret.chars().count() >= MIN_SECRET_CHARS).collect();
        // Of two that begin alike the longer one goes first, or its end would stay.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self { written: secrets.into(), fetched: Arc::default() }
    }

    /// Knows this one too, which was fetched just now.
    pub(super) fn learn(&self, secret: &str) {
        let mut fetched = self.fetched.write();
        if secret.chars().count() < MIN_SECRET_CHARS || fetched.iter().any(|known| known == secret) {
            return;
        }
        if fetched.len() == MAX_FETCHED {
            fetched.pop_front();
        }
        fetched.push_back(secret.to_owned());
    }

    /// The text without them.
    pub(in crate::sources::configured) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        let fetched = self.fetched.read();
        for secret in fetched.iter().chain(&*self.written) {
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

    #[test]
    fn what_is_fetched_later_is_known_to_all_and_bounded() {
        let redactor = Redactor::new(["S3CR3T-demo".to_owned()]);
        let clone = redactor.clone();
        for n in 0..=MAX_FETCHED {
            redactor.learn(&format!("token-{n}"));
        }
        assert_eq!(clone.text("token-0 token-1 token-8 S3CR3T-demo"), "token-0 *** *** ***");
    }
}
