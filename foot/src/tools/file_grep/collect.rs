//! Matches of a search, within the limits of an answer.

use std::io;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};
use serde::Serialize;

use super::super::text::Budget;
use crate::failure::escaped;

/// Longest line in an answer, in characters.
const MAX_LINE_CHARS: usize = 600;
/// Characters that stay before the match when a long line is cut.
const LEAD_CHARS: usize = 200;

/// One match.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Match {
    path: String,
    line_number: u64,
    line: String,
    /// Lines before it. One that belongs to the match before, too, stands there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
    /// Lines after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
}

impl Match {
    /// As text: `path:12: line`, and `path-11- line` for context.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let path = escaped(&self.path);
        let first = self.line_number.saturating_sub(self.before.len() as u64);
        let all = self.before.iter().chain(std::iter::once(&self.line)).chain(&self.after);
        (first..).zip(all).map(move |(number, line)| {
            let mark = if number == self.line_number { ':' } else { '-' };
            format!("{path}{mark}{number}{mark} {line}")
        })
    }
}

/// Where a search stood before a file.
pub(super) struct Mark {
    matches: usize,
    budget: Budget,
    full: bool,
}

/// Collects matches until an answer is full.
#[derive(Debug)]
pub(super) struct Collector {
    limit: usize,
    path: String,
    matches: Vec<Match>,
    pending: Vec<String>,
    budget: Budget,
    full: bool,
    binary: bool,
}

impl Collector {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            limit,
            path: String::new(),
            matches: Vec::new(),
            pending: Vec::new(),
            budget: Budget::new(),
            full: false,
            binary: false,
        }
    }

    /// Starts a file.
    pub(super) fn begin(&mut self, path: String) -> Mark {
        self.path = path;
        self.binary = false;
        self.pending.clear();
        Mark { matches: self.matches.len(), budget: self.budget, full: self.full }
    }

    /// Forgets a file.
    pub(super) fn undo(&mut self, mark: Mark) {
        self.matches.truncate(mark.matches);
        self.budget = mark.budget;
        self.full = mark.full;
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub(super) fn was_binary(&self) -> bool {
        self.binary
    }

    pub(super) fn matches(&self) -> &[Match] {
        &self.matches
    }

    pub(super) fn sink<'a>(&'a mut self, matcher: &'a RegexMatcher) -> Collecting<'a> {
        Collecting { collector: self, matcher }
    }

    /// Takes room for a match with the context that it starts with.
    fn push(&mut self, found: Match) -> bool {
        let text = found.lines().collect::<Vec<_>>().join("\n");
        self.full = self.matches.len() == self.limit || !self.budget.take(&text, &found);
        if !self.full {
            self.matches.push(found);
        }
        !self.full
    }

    /// Takes room for a line of context.
    fn follow(&mut self, line: String) -> bool {
        let text = format!("{}-{}- {line}", escaped(&self.path), u64::MAX);
        self.full = !self.budget.take(&text, &line);
        if let Some(last) = self.matches.last_mut().filter(|_| !self.full) {
            last.after.push(line);
        }
        !self.full
    }
}

/// A collector at work on one file.
pub(super) struct Collecting<'a> {
    collector: &'a mut Collector,
    matcher: &'a RegexMatcher,
}

impl Sink for Collecting<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let at = self.matcher.find(found.bytes()).ok().flatten().map_or(0, |place| place.start());
        let found = Match {
            path: self.collector.path.clone(),
            line_number: found.line_number().unwrap_or_default(),
            line: cut(found.bytes(), at),
            before: std::mem::take(&mut self.collector.pending),
            after: Vec::new(),
        };
        Ok(self.collector.push(found))
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let line = cut(context.bytes(), 0);
        Ok(match context.kind() {
            SinkContextKind::After => self.collector.follow(line),
            _ => {
                self.collector.pending.push(line);
                true
            }
        })
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.collector.pending.clear();
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        self.collector.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// A line as it stands in an answer: without its end, and cut around the byte `at` when it is long.
fn cut(line: &[u8], at: usize) -> String {
    let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    let line = line.get(..end).unwrap_or_default();
    let head = String::from_utf8_lossy(line.get(..at.min(end)).unwrap_or_default());
    let skip = head.chars().count().saturating_sub(LEAD_CHARS);
    let text = String::from_utf8_lossy(line);
    let chars = text.chars().count();
    if chars <= MAX_LINE_CHARS {
        return text.into_owned();
    }
    let skip = skip.min(chars - MAX_LINE_CHARS);
    let mut kept: String = text.chars().skip(skip).take(MAX_LINE_CHARS).collect();
    if skip > 0 {
        kept.insert(0, '…');
    }
    if skip + MAX_LINE_CHARS < chars {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_around_its_match() {
        assert_eq!(cut(b"short\r\n", 0), "short");
        assert_eq!(cut(b"\n", 0), "");
        let line = format!("{}NEEDLE{}", "a".repeat(5_000), "b".repeat(5_000));
        let kept = cut(line.as_bytes(), 5_000);
        assert!(kept.starts_with('…') && kept.ends_with('…') && kept.contains("NEEDLE"));
        assert_eq!(kept.chars().count(), MAX_LINE_CHARS + 2);
        assert!(cut(line.as_bytes(), 0).starts_with('a'));
        assert!(cut(line.as_bytes(), line.len() - 1).ends_with('b'));
    }
}
