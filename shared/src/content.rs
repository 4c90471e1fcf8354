//! What stands for the content of a file or a document, where both sides have to mean the same by it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Largest text that a foot's `file_read` gives whole, in bytes. No document of a hub is larger.
pub const MAX_WHOLE_BYTES: usize = 1024 * 1024;

/// Bytes of a [`ContentHash`]: 128 bits, so that a model can copy the text of one.
const HASH_BYTES: usize = 16;

/// Schema pattern of the text of a [`ContentHash`].
pub const CONTENT_HASH_PATTERN: &str = "^[0-9a-fA-F]{32}$";

/// The start of the BLAKE3 hash of some bytes; as text, 32 digits in hex. Case does not count when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash([u8; HASH_BYTES]);

/// Not the text of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a content hash is 32 digits in hex")]
pub struct ContentHashError;

impl ContentHash {
    /// Of bytes that are at hand.
    pub fn of(bytes: &[u8]) -> Self {
        Self::start_of(&blake3::hash(bytes))
    }

    /// Reads its text.
    ///
    /// # Errors
    /// [`ContentHashError`]: the text does not follow [`CONTENT_HASH_PATTERN`].
    pub fn parse(text: &str) -> Result<Self, ContentHashError> {
        let digits: &[u8; 2 * HASH_BYTES] = text.as_bytes().try_into().map_err(|_| ContentHashError)?;
        let (pairs, _) = digits.as_chunks::<2>();
        let mut hash = [0; HASH_BYTES];
        for (byte, pair) in hash.iter_mut().zip(pairs) {
            let [high, low] =
                pair.map(|digit| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok()));
            *byte = high.ok_or(ContentHashError)? << 4 | low.ok_or(ContentHashError)?;
        }
        Ok(Self(hash))
    }

    fn start_of(hash: &blake3::Hash) -> Self {
        let (start, _) = hash.as_bytes().split_at(HASH_BYTES);
        Self(start.try_into().unwrap_or_default())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Makes a [`ContentHash`] of bytes that come bit by bit.
#[derive(Debug, Default)]
pub struct ContentHasher(blake3::Hasher);

impl ContentHasher {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all bytes so far.
    pub fn hash(&self) -> ContentHash {
        ContentHash::start_of(&self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_the_start_of_blake3_and_reads_back() {
        let hash = ContentHash::of(b"");
        assert_eq!(hash.to_string(), "af1349b9f5f9a1a6a0404dea36dcc949", "the published hash of nothing");
        assert_eq!(ContentHash::parse("AF1349B9f5f9a1a6a0404dea36dcc949"), Ok(hash));
        for bad in ["", "af1349b9", "+f1349b9f5f9a1a6a0404dea36dcc949", "é".repeat(16).as_str()] {
            assert_eq!(ContentHash::parse(bad), Err(ContentHashError), "{bad}");
        }
        let json = serde_json::to_string(&hash).unwrap();
        assert_eq!(serde_json::from_str::<ContentHash>(&json).unwrap(), hash);
    }

    #[test]
    fn bytes_that_come_bit_by_bit_count_the_same() {
        let mut hasher = ContentHasher::default();
        hasher.update(b"foot");
        hasher.update(b"bridge");
        assert_eq!(hasher.hash(), ContentHash::of(b"footbridge"));
    }
}
