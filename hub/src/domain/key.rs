//! Idempotency keys: what a caller says to have a call happen at most once, however often it asks.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use footbridge_shared::ErrorCode;
use footbridge_shared::id::{CALL_ID_BYTES, CallId};

use super::arguments::Arguments;
use super::call::Caller;
use super::canonical::canonical;
use super::failure::Failure;
use super::scope::Scope;

/// Longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 255;
/// Keeps digests of calls apart from every other use of the same hash.
const DIGEST_CONTEXT: &str = "footbridge.v1 digest of a keyed call";

/// A key as a caller gave it: 1 to [`MAX_KEY_BYTES`] printable ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(Box<str>);

/// The text is no key. Safe to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an idempotency key has 1 to {MAX_KEY_BYTES} printable ASCII characters")]
pub struct KeyError;

impl IdempotencyKey {
    /// Checks a key.
    ///
    /// # Errors
    /// [`KeyError`] says what a key looks like.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if printable && (1..=MAX_KEY_BYTES).contains(&text.len()) { Ok(Self(text.into())) } else { Err(KeyError) }
    }

    /// The id of the call that this key names: the same for the same caller and key, on every hub, at all times.
    pub fn call_id(&self, scope: &Scope, caller: &Caller) -> CallId {
        let process = caller.process.as_deref().unwrap_or_default();
        let mut hasher = blake3::Hasher::new();
        for part in [scope.tenant.as_str(), scope.project.as_str(), caller.subject.as_str(), process, &self.0] {
            add(&mut hasher, part);
        }
        let mut bytes = [0; CALL_ID_BYTES];
        hasher.finalize_xof().fill(&mut bytes);
        CallId::from_bytes(bytes)
    }
}

/// What a keyed call asks for, as one text: equal only for the same tool and equal arguments.
///
/// # Errors
/// `invalid_arguments` for JSON that is nested too deeply.
pub fn digest(tool: &str, arguments: &Arguments) -> Result<String, Failure> {
    let arguments = canonical(arguments.raw()).map_err(|error| {
        Failure::not_run(ErrorCode::InvalidArguments, format!("the arguments cannot be compared: {error}"))
    })?;
    let mut hasher = blake3::Hasher::new_derive_key(DIGEST_CONTEXT);
    add(&mut hasher, tool);
    add(&mut hasher, &arguments);
    Ok(URL_SAFE_NO_PAD.encode(hasher.finalize().as_bytes()))
}

/// With its length before it, so that what one part lacks no other can bring.
fn add(hasher: &mut blake3::Hasher, part: &str) {
    hasher.update(&(part.len() as u64).to_le_bytes());
    hasher.update(part.as_bytes());
}

#[cfg(test)]
mod tests {
    use footbridge_shared::id::{ProjectName, Subject, TenantName};
    use serde_json::value::RawValue;

    use super::*;

    fn id(scope: &str, subject: &str, process: Option<&str>, key: &str) -> CallId {
        let (tenant, project) = scope.split_once('/').unwrap();
        let scope = Scope::new(TenantName::parse(tenant).unwrap(), ProjectName::parse(project).unwrap());
        let process = process.map(str::to_owned);
        let caller = Caller { process, ..Caller::direct(Subject::parse(subject).unwrap()) };
        IdempotencyKey::parse(key).unwrap().call_id(&scope, &caller)
    }

    #[test]
    fn an_id_is_one_callers_and_one_keys() {
        let ids = [
            id("acme/shop", "ann", None, "k"),
            id("acme/shop", "ann", None, "k2"),
            id("acme/shop", "bob", None, "k"),
            id("acme/other", "ann", None, "k"),
            id("acm/eshop", "ann", None, "k"),
            id("acme/shop", "ann", Some("k"), "k"),
            id("acme/shop", "an", Some("n"), "k"),
        ];
        for (index, id) in ids.iter().enumerate() {
            assert!(!ids[..index].contains(id), "{index}");
            assert!(id.to_bytes().is_some());
        }
        assert_eq!(id("acme/shop", "ann", None, "k"), ids[0]);
    }

    #[test]
    fn a_key_is_printable_and_not_too_long() {
        for good in ["a", "order 17/b", &"x".repeat(MAX_KEY_BYTES)] {
            assert!(IdempotencyKey::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "a\n", "é", "\u{7f}", &"x".repeat(MAX_KEY_BYTES + 1)] {
            assert!(IdempotencyKey::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_digest_covers_the_tool_and_the_arguments_and_not_their_spelling() {
        let of = |tool: &str, json: &str| {
            digest(tool, &Arguments::new(RawValue::from_string(json.to_owned()).unwrap())).unwrap()
        };
        assert_eq!(of("t", r#"{"a":1,"b":[2]}"#), of("t", r#"{ "b" : [2.0], "a" : 1 }"#));
        assert_eq!(of("t", "null"), of("t", "{}"), "no arguments are no arguments");
        assert_ne!(of("t", "{}"), of("u", "{}"));
        assert_ne!(of("t", r#"{"a":9007199254740993}"#), of("t", r#"{"a":9007199254740992}"#));
    }
}
