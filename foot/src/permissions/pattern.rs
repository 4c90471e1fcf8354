//! Patterns of rules: for paths, for commands, for names.

mod argv;
mod paths;

pub(crate) use argv::{ArgvPattern, Fit, Program};
pub(crate) use paths::{PathPattern, fold};

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}`: {reason}")]
pub(crate) struct PatternError {
    pattern: String,
    reason: String,
}

impl PatternError {
    fn new(pattern: &str, reason: impl std::fmt::Display) -> Self {
        Self { pattern: crate::failure::shown(pattern), reason: reason.to_string() }
    }
}

/// A name in which `*` stands for any characters, and nothing else for anything but itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamePattern(String);

impl NamePattern {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Whether the whole name fits.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let mut pieces = self.0.split('*');
        let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else { return false };
        let mut pieces = pieces.peekable();
        if pieces.peek().is_none() {
            return rest.is_empty();
        }
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                return rest.ends_with(piece);
            }
            // The earliest place leaves the most room for the pieces behind.
            let Some(at) = rest.find(piece) else { return false };
            rest = rest.get(at + piece.len()..).unwrap_or_default();
        }
        false
    }

    /// Whether it is a name as it stands.
    pub(crate) fn is_literal(&self) -> bool {
        !self.0.contains('*')
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_in_a_name_is_any_text_and_nothing_else_is_special() {
        let matches = |pattern, name| NamePattern::new(pattern).matches(name);
        for (pattern, name) in [
            ("*", ""),
            ("exec_*", "exec_run"),
            ("*_run", "exec_run"),
            ("a*b*c", "aXbbYc"),
            ("[a]", "[a]"),
            ("a**", "ab"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("exec", "exec_run"), ("a*a", "a"), ("[a]", "a"), ("a*b*c", "aXcYb"), ("", "a"), ("?", "a")]
        {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
