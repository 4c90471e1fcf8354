//! Words with places in them: `--name={name}`. A value fills its place and nothing else: it is never split, and never read
//! by a shell.

use std::collections::BTreeMap;

/// A word with places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Place(String),
}

impl Template {
    /// Reads a word. `{{` and `}}` stand for braces.
    ///
    /// # Errors
    /// What is wrong, for whoever wrote it.
    pub(crate) fn parse(word: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = word;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            text.push_str(before);
            let twice = ["{{", "}}"].into_iter().find(|twice| brace.starts_with(twice));
            if let Some(twice) = twice {
                text.push_str(twice.get(..1).unwrap_or_default());
                rest = brace.get(2..).unwrap_or_default();
                continue;
            }
            let place = brace.strip_prefix('{').and_then(|inner| inner.split_once('}'));
            let Some((name, after)) = place.filter(|(name, _)| is_name(name)) else {
                return Err(format!("`{word}`: a brace that is none of a place like {{name}} is written twice"));
            };
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text)));
            }
            parts.push(Part::Place(name.to_owned()));
            rest = after;
        }
        text.push_str(rest);
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Ok(Self { parts })
    }

    /// The names of its places.
    pub(crate) fn places(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Place(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The place that it begins with.
    pub(crate) fn first_place(&self) -> Option<&str> {
        match self.parts.first() {
            Some(Part::Place(name)) => Some(name),
            _ => None,
        }
    }

    /// The word with all its values; `None` if one is missing.
    pub(crate) fn fill(&self, values: &BTreeMap<String, String>) -> Option<String> {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Place(name) => values.get(name).map(String::as_str),
            })
            .collect()
    }
}

/// Whether a name can stand in a place, and be an argument.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(word: &str) -> Option<String> {
        let values =
            [("a", "x y"), ("b", "{a}"), ("none", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        Template::parse(word).unwrap().fill(&values.into())
    }

    #[test]
    fn values_fill_their_places_and_are_not_read_again() {
        assert_eq!(filled("--n={a}/{b}").as_deref(), Some("--n=x y/{a}"));
        assert_eq!(filled("{none}").as_deref(), Some(""));
        assert_eq!(filled("{{print $1}}").as_deref(), Some("{print $1}"));
        assert_eq!(filled("{{{a}}}").as_deref(), Some("{x y}"));
        assert_eq!(filled("").as_deref(), Some(""));
        assert_eq!(filled("{a}{missing}"), None);
    }

    #[test]
    fn a_brace_that_means_nothing_is_an_error() {
        for word in ["{", "}", "{}", "{print $1}", "a{b", "{1}", "{a}}"] {
            assert!(Template::parse(word).is_err(), "{word}");
        }
        assert_eq!(Template::parse("{a}x{b}").unwrap().first_place(), Some("a"));
        assert_eq!(Template::parse("x{b}").unwrap().first_place(), None);
    }
}
