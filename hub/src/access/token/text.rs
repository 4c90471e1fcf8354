//! The text of a token, which is shown once, and its hash, which is kept.

use std::fmt;
use std::hash::{Hash, Hasher};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use subtle::ConstantTimeEq as _;

use crate::clock::random_bytes;

/// How every token starts, so that people and secret scanners know one when they see it.
const PREFIX: &str = "fbt_";
/// Length of a token, in bytes: the prefix, and 32 random bytes in base64url without padding.
const TOKEN_BYTES: usize = PREFIX.len() + 43;

/// The text of a token. It does not show itself in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText(String);

impl TokenText {
    pub(super) fn generate() -> Self {
        Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random_bytes::<32>())))
    }

    pub(super) fn hash(&self) -> TokenHash {
        TokenHash::new(&self.0)
    }

    /// The text itself, to be handed to whom the token is for.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}…")
    }
}

/// The BLAKE3 hash of a token's text. 32 random bytes need no slower one. Equality takes the same time for any two.
#[derive(Clone, Copy)]
pub(super) struct TokenHash([u8; blake3::OUT_LEN]);

impl TokenHash {
    fn new(text: &str) -> Self {
        Self(*blake3::hash(text.as_bytes()).as_bytes())
    }

    /// The hash of a text that somebody sent. `None` for what cannot be a token.
    pub(super) fn of(text: &str) -> Option<Self> {
        let token_like = text.len() == TOKEN_BYTES && text.starts_with(PREFIX);
        token_like.then(|| Self::new(text))
    }
}

impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenHash {}

impl Hash for TokenHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

impl Serialize for TokenHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl<'de> Deserialize<'de> for TokenHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hex = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let hash = blake3::Hash::from_hex(hex.as_bytes()).map_err(serde::de::Error::custom)?;
        Ok(Self(*hash.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_look_and_does_not_show_itself() {
        let token = TokenText::generate();
        let (prefix, random) = token.expose().split_at(4);
        assert_eq!((prefix, random.len()), ("fbt_", 43));
        assert!(random.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'), "{random}");
        assert_ne!(token, TokenText::generate());
        assert!(!format!("{token:?}").contains(random));
    }

    #[test]
    fn a_hash_fits_its_token_alone_and_survives_being_kept() {
        let (one, two) = (TokenText::generate(), TokenText::generate());
        assert!(TokenHash::of(one.expose()).unwrap() == one.hash());
        assert!(one.hash() != two.hash());
        let kept = serde_json::to_string(&one.hash()).unwrap();
        assert_eq!(kept.len(), 2 + 64);
        assert!(serde_json::from_str::<TokenHash>(&kept).unwrap() == one.hash());
        for bad in ["\"\"", "\"00\"", &format!("\"{}\"", "g".repeat(64))] {
            assert!(serde_json::from_str::<TokenHash>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_cannot_be_a_token_is_not_even_hashed() {
        let long = "x".repeat(1 << 20);
        for text in ["", "fbt_", "Bearer fbt_", &"f".repeat(TOKEN_BYTES), &long] {
            assert!(TokenHash::of(text).is_none());
        }
    }
}
