//! What is measured, and how much of it.

use crate::Result;

/// A table of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Calls without a key, of small and middle size.
    Relay,
    /// Calls with a key.
    Keyed,
    /// Large results.
    Payloads,
    /// Calls over MCP.
    Mcp,
    /// Small calls beside large results on a slow link.
    SlowLink,
}

impl Part {
    const ALL: [(&'static str, Self); 5] = [
        ("relay", Self::Relay),
        ("keyed", Self::Keyed),
        ("payloads", Self::Payloads),
        ("mcp", Self::Mcp),
        ("slow-link", Self::SlowLink),
    ];
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effort {
    /// Calls of one round; each caller makes its share, and one at least. Where calls are large there are fewer.
    pub(super) calls: usize,
    /// Rounds that count, after one that warms up. Of each figure the median is shown. The subjects of a table take turns,
    /// so that a slow spell of the machine hits all.
    pub(super) rounds: usize,
    /// Calls over which memory is watched; 0: as many as are worth it.
    flat: usize,
}

/// Calls over which memory is watched, if nothing else is said: a leak of a few bytes a call shows.
const FLAT: usize = 200_000;

impl Default for Effort {
    /// Enough for figures that stay the same from run to run.
    fn default() -> Self {
        Self { calls: 6_400, rounds: 5, flat: 0 }
    }
}

impl Effort {
    /// Calls of one round that each take as much as `weight` small ones.
    #[must_use]
    pub(super) fn of_weight(self, weight: usize) -> usize {
        (self.calls / weight.max(1)).max(1)
    }

    /// Calls over which memory is watched.
    pub(super) const fn flat(self) -> usize {
        match self.flat {
            0 if self.is_tiny() => self.calls,
            0 => FLAT,
            calls => calls,
        }
    }

    /// Whether this is only to see that everything works.
    pub(super) const fn is_tiny(self) -> bool {
        self.calls < 1_000
    }
}

/// Reads the parts (all, if none is named), `--calls N`, `--rounds N` and `--flat N`.
///
/// # Errors
/// Any other word, and what is no whole number from 1.
pub(super) fn parse(words: impl IntoIterator<Item = String>) -> Result<(Vec<Part>, Effort)> {
    let (mut parts, mut effort) = (Vec::new(), Effort::default());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let figure = match word.as_str() {
            "--calls" => &mut effort.calls,
            "--rounds" => &mut effort.rounds,
            "--flat" => &mut effort.flat,
            _ => {
                let part = Part::ALL.into_iter().find(|(name, _)| *name == word);
                parts.push(part.ok_or_else(|| format!("`{word}` is no part of this benchmark"))?.1);
                continue;
            }
        };
        let number = words.next().and_then(|number| number.parse().ok()).filter(|number| *number > 0);
        *figure = number.ok_or_else(|| format!("{word} takes a whole number from 1"))?;
    }
    if parts.is_empty() {
        parts = Part::ALL.map(|(_, part)| part).to_vec();
    }
    Ok((parts, effort))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_effort_are_read_or_refused() {
        let parse = |line: &str| parse(line.split_whitespace().map(str::to_owned)).ok();
        let all = Part::ALL.map(|(_, part)| part).to_vec();
        assert_eq!(parse(""), Some((all.clone(), Effort::default())));
        assert_eq!(parse("--rounds 1 --calls 64"), Some((all, Effort { calls: 64, rounds: 1, flat: 0 })));
        let two = vec![Part::Keyed, Part::SlowLink];
        assert_eq!(parse("keyed --calls 64 slow-link"), Some((two, Effort { calls: 64, rounds: 5, flat: 0 })));
        assert_eq!(parse("--flat 9").map(|(_, effort)| effort.flat()), Some(9));
        assert_eq!(parse("--calls 64").map(|(_, effort)| effort.flat()), Some(64));
        assert_eq!(Effort::default().flat(), FLAT);
        for wrong in ["--calls", "--calls 0", "--rounds many", "quickly"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
