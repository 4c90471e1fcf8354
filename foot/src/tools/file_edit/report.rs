//! What an edit changed, for whoever asked for it.

use std::time::Duration;

use serde::Serialize;
use similar::{DiffOp, TextDiff};

use crate::tools::text::head;

/// Lines shown around a change.
const CONTEXT_LINES: usize = 2;
/// Characters of the excerpt.
const MAX_EXCERPT_CHARS: usize = 4_000;
/// Bytes of the excerpt as JSON.
const MAX_EXCERPT_BYTES: usize = 12 * 1024;
/// Ranges of lines that are told.
const MAX_RANGES: usize = 50;
/// How long the shortest description of the change is looked for. After that a longer one does.
const MAX_TIME: Duration = Duration::from_millis(500);

/// Lines of the new file, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Lines {
    /// The first that is new; where lines were only taken away, the one before them.
    from: usize,
    /// The last.
    to: usize,
}

/// What changed.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) lines: Vec<Lines>,
    /// There are more than `lines`.
    pub(super) more: bool,
    /// A unified diff, cut if it is long; empty if nothing changed.
    pub(super) excerpt: String,
}

/// Compares two texts line by line.
pub(super) fn of(old: &str, new: &str) -> Report {
    let diff = TextDiff::configure().timeout(MAX_TIME).diff_lines(old, new);
    let changes = diff.ops().iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    let mut lines: Vec<Lines> = changes
        .map(|op| {
            let range = op.new_range();
            Lines { from: if range.is_empty() { range.start } else { range.start + 1 }, to: range.end }
        })
        .take(MAX_RANGES + 1)
        .collect();
    let more = lines.len() > MAX_RANGES;
    lines.truncate(MAX_RANGES);
    let mut text = String::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT_LINES).iter_hunks() {
        text.push_str(&hunk.to_string());
        if text.len() > MAX_EXCERPT_BYTES {
            break;
        }
    }
    Report { lines, more, excerpt: cut(text) }
}

fn cut(text: String) -> String {
    let (kept, _) = head(&text, MAX_EXCERPT_CHARS, MAX_EXCERPT_BYTES);
    if kept.len() < text.len() { format!("{kept}…\n[the rest is not shown]") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_by_the_lines_of_the_new_file() {
        let report = of("a\nb\nc\nd\n", "a\nB1\nB2\nc\n");
        assert_eq!(report.lines, [Lines { from: 2, to: 3 }, Lines { from: 4, to: 4 }]);
        assert_eq!(report.excerpt, "@@ -1,4 +1,4 @@\n a\n-b\n+B1\n+B2\n c\n-d\n");
        let gone = of("a\nb\n", "b\n");
        assert_eq!(gone.lines, [Lines { from: 0, to: 0 }], "before the first line");
        let same = of("a\n", "a\n");
        assert!(same.lines.is_empty() && same.excerpt.is_empty());
    }

    #[test]
    fn a_large_change_is_told_in_part() {
        let old: String = (0..4000).map(|n| format!("{n}\n")).collect();
        let new: String = (0..4000).map(|n| if n % 4 == 0 { format!("new {n}\n") } else { format!("{n}\n") }).collect();
        let report = of(&old, &new);
        assert!(report.more && report.lines.len() == MAX_RANGES);
        assert!(report.excerpt.ends_with("[the rest is not shown]"));
        assert!(report.excerpt.chars().count() < MAX_EXCERPT_CHARS + 50, "{}", report.excerpt.len());
    }
}
