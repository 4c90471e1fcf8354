//! A token in memory.

use std::fmt;

/// A bearer token. Does not print itself: whoever shows it says [`Secret::reveal`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a token; blanks and line ends around it are not part of it.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The token itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
