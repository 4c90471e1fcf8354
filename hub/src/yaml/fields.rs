//! Typed reading of a map. Every key that was asked for is known; [`Fields::finish`] reports the others.

use std::time::Duration;

use super::error::{Problem, more_keys, shown};
use super::node::{KeyPath, Node, Position, Value};
use super::{MAX_PROBLEMS, did_you_mean};

/// Reads the keys of one map and collects what is wrong with them.
///
/// A reader gives `None` for a key that is not there and for one that was reported, so that one pass finds every problem.
pub struct Fields<'a, 'p> {
    node: &'a Node,
    path: KeyPath,
    known: Vec<&'static str>,
    problems: &'p mut Vec<Problem>,
}

impl<'a, 'p> Fields<'a, 'p> {
    /// Starts reading; `None`, with a problem, when the node is no map.
    pub fn of(node: &'a Node, path: KeyPath, problems: &'p mut Vec<Problem>) -> Option<Self> {
        if matches!(node.value, Value::Map(_)) {
            return Some(Self { node, path, known: Vec::new(), problems });
        }
        problems.push(Problem::new(node.at, path, format!("this must be a map of keys, it is {}", node.describe())));
        None
    }

    /// The value of a key, unread.
    pub fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        let node = self.node.get(key)?;
        if node.value == Value::Null {
            self.problems.push(
                Problem::new(node.at, self.path.key(key), "it has no value").hint("give it one, or remove the key"),
            );
            return None;
        }
        Some(node)
    }

    /// A text that is not blank.
    pub fn text(&mut self, key: &'static str) -> Option<&'a str> {
        let node = self.node(key)?;
        self.text_of(node, self.path.key(key))
    }

    /// As [`Self::text`], for a key that must be there.
    pub fn required_text(&mut self, key: &'static str) -> Option<&'a str> {
        if self.node.get(key).is_none() {
            let message = format!("the key `{key}` is missing");
            self.problems.push(Problem::new(self.node.at, self.path.clone(), message));
        }
        self.text(key)
    }

    /// `true` or `false`.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        let node = self.node(key)?;
        match node.value {
            Value::Bool(flag) => Some(flag),
            _ => {
                self.wrong(node, self.path.key(key), "`true` or `false`");
                None
            }
        }
    }

    /// A number of milliseconds from 1 to `max`.
    pub fn millis(&mut self, key: &'static str, max: Duration) -> Option<Duration> {
        let node = self.node(key)?;
        let max = u64::try_from(max.as_millis()).unwrap_or(u64::MAX);
        match &node.value {
            Value::Number(number, _) if number.as_u64().is_some_and(|ms| (1..=max).contains(&ms)) => {
                number.as_u64().map(Duration::from_millis)
            }
            _ => {
                self.wrong(node, self.path.key(key), &format!("a whole number of milliseconds from 1 to {max}"));
                None
            }
        }
    }

    /// A list of texts, each with its place; none of them blank.
    pub fn texts(&mut self, key: &'static str) -> Option<Vec<(&'a str, Position, KeyPath)>> {
        let node = self.node(key)?;
        let path = self.path.key(key);
        let Value::List(items) = &node.value else {
            self.wrong(node, path, "a list of texts");
            return None;
        };
        let texts = items.iter().enumerate().filter_map(|(index, item)| {
            let path = path.index(index);
            self.text_of(item, path.clone()).map(|text| (text, item.at, path))
        });
        Some(texts.collect())
    }

    /// Reports something about a key that the caller checks itself: at its value, or at the map when it is not there.
    pub fn report(&mut self, key: &'static str, message: impl Into<String>) -> &mut Problem {
        let at = self.node.get(key).map_or(self.node.at, |node| node.at);
        self.problems.push(Problem::new(at, self.path.key(key), message));
        // Something was pushed just now.
        let last = self.problems.len() - 1;
        &mut self.problems[last]
    }

    /// Reports something about a place that the caller found itself.
    pub fn report_at(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Reports the keys that nobody asked for.
    pub fn finish(self) {
        let Value::Map(entries) = &self.node.value else { return };
        let unknown = || entries.iter().filter(|entry| !self.known.contains(&entry.key.as_str()));
        for entry in unknown().take(MAX_PROBLEMS) {
            let hint = match did_you_mean(&entry.key, self.known.iter().copied()) {
                Some(word) => format!("did you mean `{word}`?"),
                None => format!("the keys here are {}", self.known.join(", ")),
            };
            let message = format!("there is no key `{}` here", shown(&entry.key));
            self.problems.push(Problem::new(entry.key_at, self.path.key(&entry.key), message).hint(hint));
        }
        self.problems.extend(more_keys(unknown().count(), self.node, &self.path));
    }

    fn text_of(&mut self, node: &'a Node, path: KeyPath) -> Option<&'a str> {
        match &node.value {
            Value::Text(text) if text.trim().is_empty() => {
                self.problems.push(Problem::new(node.at, path, "it is blank"));
                None
            }
            Value::Text(text) => Some(text),
            _ => {
                self.wrong(node, path, "a text");
                None
            }
        }
    }

    fn wrong(&mut self, node: &Node, path: KeyPath, wanted: &str) {
        self.problems.push(mistyped(node, path, wanted));
    }
}

/// A value of the wrong kind, with the hint that fits how it came about.
pub(super) fn mistyped(node: &Node, path: KeyPath, wanted: &str) -> Problem {
    let problem = Problem::new(node.at, path, format!("it must be {wanted}, it is {}", node.describe()));
    match &node.value {
        Value::Number(_, written) if wanted.starts_with("a text") => {
            problem.hint(format!("write it in quotes: \"{written}\""))
        }
        Value::Bool(flag) if wanted.starts_with("a text") => problem.hint(format!("write it in quotes: \"{flag}\"")),
        Value::Text(_) if wanted.contains("`true`") => problem.hint("only `true` and `false`, unquoted, are flags"),
        Value::Text(_) if wanted.contains("number") => {
            problem.hint("a number is written without quotes, leading zeros, underscores or a plus sign")
        }
        _ => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;

    fn problems(text: &str) -> Vec<String> {
        let node = parse(text).unwrap();
        let mut problems = Vec::new();
        if let Some(mut fields) = Fields::of(&node, KeyPath::root(), &mut problems) {
            fields.required_text("type");
            fields.flag("enabled");
            fields.millis("timeoutMs", Duration::from_secs(60));
            fields.texts("labels");
            fields.finish();
        }
        problems
            .into_iter()
            .map(|p| format!("{}:{} {} {} {}", p.at.line, p.at.column, p.key, p.message, p.hint.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn a_good_map_has_no_problems() {
        assert_eq!(problems("type: rest\nenabled: false\ntimeoutMs: 60000\nlabels: [a, 'b c']\n"), [""; 0]);
    }

    #[test]
    fn every_problem_is_found_at_its_place() {
        let text = "type: 1.10\nenabled: no\ntimeoutMs: 60001\nlabels: [a, true, ' ']\nlables: [x]\nzzz: 1\n";
        assert_eq!(
            problems(text),
            [
                "1:7 type it must be a text, it is the number `1.10` write it in quotes: \"1.10\"",
                "2:10 enabled it must be `true` or `false`, it is the text `no` only `true` and `false`, unquoted, are flags",
                "3:12 timeoutMs it must be a whole number of milliseconds from 1 to 60000, it is the number `60001` ",
                "4:13 labels[1] it must be a text, it is `true` write it in quotes: \"true\"",
                "4:19 labels[2] it is blank ",
                "5:1 lables there is no key `lables` here did you mean `labels`?",
                "6:1 zzz there is no key `zzz` here the keys here are type, enabled, timeoutMs, labels",
            ]
        );
        assert_eq!(
            problems("enabled: 'true'\ntimeoutMs: 1_000\nlabels: web\n"),
            [
                "1:1  the key `type` is missing ",
                "1:10 enabled it must be `true` or `false`, it is the text `true` only `true` and `false`, unquoted, are flags",
                "2:12 timeoutMs it must be a whole number of milliseconds from 1 to 60000, it is the text `1_000` a number is \
                 written without quotes, leading zeros, underscores or a plus sign",
                "3:9 labels it must be a list of texts, it is the text `web` ",
            ]
        );
        assert_eq!(problems("type: rest\nlabels:\n"), ["2:7 labels it has no value give it one, or remove the key"]);
        assert_eq!(problems("- type: rest"), ["1:1  this must be a map of keys, it is a list "]);
    }
}
