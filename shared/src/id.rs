//! Names and ids. Each is parsed once, at the edge; inside, the type is the proof.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest tool, recipe, pack or foot name, in bytes: what every provider accepts.
pub const MAX_NAME_BYTES: usize = 64;
/// Longest tenant or project name, in bytes: a DNS label.
pub const MAX_SCOPE_NAME_BYTES: usize = 63;
/// Longest subject, in bytes.
pub const MAX_SUBJECT_BYTES: usize = 128;
/// Longest opaque id (call, session, instance), in bytes.
pub const MAX_ID_BYTES: usize = 128;

/// The mark between a pack or foot and its tool in a public name.
pub const PACK_SEPARATOR: &str = "__";

/// Tenant names that are words of the HTTP surface.
pub const RESERVED_TENANTS: [&str; 4] = ["tokens", "tenants", "tool-types", "health"];

/// Why a text is no name of the wanted kind. Safe to show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} `{value}` is not valid: {reason}")]
pub struct NameError {
    /// What was being parsed, for instance `tenant name`.
    pub kind: &'static str,
    /// The text, cut to 80 characters and with control characters escaped.
    pub value: String,
    /// What a valid one looks like.
    pub reason: &'static str,
}

impl NameError {
    fn new(kind: &'static str, value: &str, reason: &'static str) -> Self {
        let value = value.chars().take(80).flat_map(char::escape_debug).collect();
        Self { kind, value, reason }
    }
}

/// Declares a string newtype that can only hold what its check accepts.
macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $check:expr, $reason:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Box<str>);

        impl $name {
            /// Checks `value`.
            ///
            /// # Errors
            /// Says what a valid value looks like.
            pub fn parse(value: &str) -> Result<Self, NameError> {
                let check: fn(&str) -> bool = $check;
                if check(value) {
                    Ok(Self(value.into()))
                } else {
                    Err(NameError::new($kind, value, $reason))
                }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(value: &str) -> Result<Self, NameError> {
                Self::parse(value)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(ParseText(PhantomData))
            }
        }
    };
}

/// Parses a name straight from the text that is being read, without a copy in between.
struct ParseText<T>(PhantomData<T>);

impl<T: FromStr<Err = NameError>> Visitor<'_> for ParseText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name or id")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

name_type!(
    /// A tenant: `^[a-z][a-z0-9-]{0,62}$`, no word of [`RESERVED_TENANTS`].
    TenantName,
    "tenant name",
    |v| is_scope_name(v) && !RESERVED_TENANTS.contains(&v),
    "use 1 to 63 of a-z, 0-9 and `-`, a letter first, and no reserved word"
);

name_type!(
    /// A project: `^[a-z][a-z0-9-]{0,62}$`, or `_tenant` for the tenant's own layer.
    ProjectName,
    "project name",
    |v| is_scope_name(v) || v == "_tenant",
    "use 1 to 63 of a-z, 0-9 and `-`, a letter first (or `_tenant`)"
);

impl ProjectName {
    /// The pseudo project that holds what all projects of a tenant share.
    pub const TENANT_LAYER: &'static str = "_tenant";

    /// The tenant's own layer.
    pub fn tenant_layer() -> Self {
        Self(Self::TENANT_LAYER.into())
    }

    /// Whether this is the tenant's own layer.
    pub fn is_tenant_layer(&self) -> bool {
        &*self.0 == Self::TENANT_LAYER
    }
}

name_type!(
    /// The name of a configured tool, pack or recipe: `^[a-z][a-z0-9_]{0,63}$` without `__`.
    EntryName,
    "name",
    |v| is_tool_word(v) && !v.contains(PACK_SEPARATOR),
    "use 1 to 64 of a-z, 0-9 and `_`, a letter first, without `__`"
);

name_type!(
    /// A public tool name: `^[a-z][a-z0-9_]{0,63}$`; `__` stands between a pack and its tool.
    ToolName,
    "tool name",
    is_tool_word,
    "use 1 to 64 of a-z, 0-9 and `_`, a letter first"
);

name_type!(
    /// The name of a foot: as an entry name, and `-` is allowed.
    FootName,
    "foot name",
    |v| {
        matches!(v.bytes().next(), Some(b'a'..=b'z'))
            && v.len() <= MAX_NAME_BYTES
            && !v.contains(PACK_SEPARATOR)
            && v.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
    },
    "use 1 to 64 of a-z, 0-9, `_` and `-`, a letter first, without `__`"
);

impl FootName {
    /// The form that stands in a public tool name: words joined by one `_` each, none at the end, so that the first
    /// [`PACK_SEPARATOR`] of such a name ends the prefix.
    pub fn tool_prefix(&self) -> String {
        let words: Vec<&str> = self.0.split(['-', '_']).filter(|word| !word.is_empty()).collect();
        words.join("_")
    }
}

name_type!(
    /// Who a token speaks for: a user or a service. Printable, no blanks.
    Subject,
    "subject",
    |v| {
        !v.is_empty()
            && v.len() <= MAX_SUBJECT_BYTES
            && v.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '@' | '+' | ':'))
    },
    "use 1 to 128 letters, digits and `. _ - @ + :`"
);

name_type!(
    /// The id of one call: 128 random bits, or a digest of its idempotency key, in base64url.
    CallId,
    "call id",
    is_opaque_id,
    "use 1 to 128 of a-z, A-Z, 0-9, `_` and `-`"
);

/// Bytes of a call id, as part frames carry it.
pub const CALL_ID_BYTES: usize = 16;

impl CallId {
    /// The id that stands for these bytes: their base64url.
    pub fn from_bytes(bytes: [u8; CALL_ID_BYTES]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(bytes).into())
    }

    /// The bytes behind the text; `None` for an id that another program made in another way: it has no parts.
    pub fn to_bytes(&self) -> Option<[u8; CALL_ID_BYTES]> {
        // The decoder wants room for whole groups of letters.
        let mut bytes = [0; CALL_ID_BYTES + 2];
        let length = URL_SAFE_NO_PAD.decode_slice(&*self.0, &mut bytes).ok()?;
        bytes.first_chunk().filter(|_| length == CALL_ID_BYTES).copied()
    }
}

name_type!(
    /// The id of one session between a foot and a hub.
    SessionId,
    "session id",
    is_opaque_id,
    "use 1 to 128 of a-z, A-Z, 0-9, `_` and `-`"
);

name_type!(
    /// The id of one foot process; new at each start.
    InstanceId,
    "instance id",
    is_opaque_id,
    "use 1 to 128 of a-z, A-Z, 0-9, `_` and `-`"
);

name_type!(
    /// A foot's Ed25519 public key: 32 bytes in base64url without padding.
    FootKey,
    "foot id",
    |v| v.len() == 43 && is_opaque_id(v),
    "use 32 bytes in base64url without padding"
);

fn is_scope_name(v: &str) -> bool {
    matches!(v.bytes().next(), Some(b'a'..=b'z'))
        && v.len() <= MAX_SCOPE_NAME_BYTES
        && v.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

fn is_tool_word(v: &str) -> bool {
    matches!(v.bytes().next(), Some(b'a'..=b'z'))
        && v.len() <= MAX_NAME_BYTES
        && v.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

fn is_opaque_id(v: &str) -> bool {
    !v.is_empty()
        && v.len() <= MAX_ID_BYTES
        && v.bytes().all(|b| matches!(b, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_only_what_their_rule_allows() {
        for good in ["a", "web_search", "a1"] {
            assert!(EntryName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "1a", "a__b", "a-b", "read\u{200b}_file", &"a".repeat(65)] {
            assert!(EntryName::parse(bad).is_err(), "{bad}");
        }
        assert!(ToolName::parse("pack__op").is_ok());
        assert!(FootName::parse("dev-laptop").is_ok());
        assert_eq!(FootName::parse("dev-laptop").map(|n| n.tool_prefix()).as_deref(), Ok("dev_laptop"));
        for odd in ["a-", "a_", "a--", "a-_-"] {
            assert_eq!(FootName::parse(odd).map(|n| n.tool_prefix()).as_deref(), Ok("a"), "{odd}");
        }
        assert_eq!(FootName::parse("a--b_-c").map(|n| n.tool_prefix()).as_deref(), Ok("a_b_c"));
        assert!(TenantName::parse("tokens").is_err());
        assert!(ProjectName::parse("_tenant").is_ok_and(|p| p.is_tenant_layer()));
        assert!(TenantName::parse("_tenant").is_err());
    }

    #[test]
    fn a_call_id_stands_for_sixteen_bytes_and_other_ids_for_none() {
        let bytes = *b"\xff\x00 0123456789ab\xfe";
        assert_eq!(CallId::from_bytes(bytes).to_bytes(), Some(bytes));
        for other in ["c-17", "AAAA", "AAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAB"] {
            assert_eq!(CallId::parse(other).unwrap().to_bytes(), None, "{other}");
        }
    }

    #[test]
    fn an_error_shows_the_value_escaped_and_cut() {
        let error = TenantName::parse(&format!("\u{1b}[2J{}", "x".repeat(200))).map_err(|e| e.to_string());
        assert!(matches!(&error, Err(text) if text.contains("\\u{1b}") && text.len() < 250), "{error:?}");
    }
}
