//! The scenarios that cannot hold. Their table is in `docs/mcp.md`, each with its reason; it is read from there, so that
//! neither knows of one that the other does not.

use super::Revision;

const PAGE: &str = include_str!("../../../docs/mcp.md");
/// The head of the table.
const HEAD: &str = "| side | requirements | scenario | why |";

/// Who is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Server,
    Client,
}

/// What is known of a scenario.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Known<'a> {
    /// The whole of it cannot hold.
    pub(super) whole: bool,
    /// These checks of it cannot.
    pub(super) checks: Vec<&'a str>,
}

/// What is known not to hold of this scenario.
pub(super) fn cannot_hold(side: Side, revision: Revision, scenario: &str) -> Known<'static> {
    known(PAGE, side, revision, scenario)
}

fn known<'a>(page: &'a str, side: Side, revision: Revision, scenario: &str) -> Known<'a> {
    let mut known = Known::default();
    for row in rows(page).filter(|row| row.is_of(side, revision)) {
        match row.scenario.split_once(':') {
            Some((of, check)) if of == scenario => known.checks.push(check),
            Some(_) => {}
            None => known.whole |= row.names(scenario),
        }
    }
    known
}

struct Row<'a> {
    side: &'a str,
    requirements: &'a str,
    scenario: &'a str,
}

impl Row<'_> {
    fn is_of(&self, side: Side, revision: Revision) -> bool {
        let side = match side {
            Side::Server => "server",
            Side::Client => "client",
        };
        self.side == side && (self.requirements == "both" || self.requirements == revision.as_str())
    }

    fn names(&self, scenario: &str) -> bool {
        match self.scenario.strip_suffix('*') {
            Some(start) => scenario.starts_with(start),
            None => self.scenario == scenario,
        }
    }
}

fn rows(page: &str) -> impl Iterator<Item = Row<'_>> {
    let table = page.lines().skip_while(|line| *line != HEAD).skip(2).take_while(|line| line.starts_with('|'));
    table.filter_map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`'));
        Some(Row { side: cells.next()?, requirements: cells.next()?, scenario: cells.next()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_page_is_read() {
        let rows_of =
            "| client | both | `auth/*` | Later. |\n| server | 2026-07-28 | `b:one` | |\n\n| client | both | `x` | |";
        let page = format!("# Page\n\n{HEAD}\n|---|---|---|---|\n{rows_of}");
        let of = |side, scenario| known(&page, side, Revision::R2026_07_28, scenario);
        assert!(of(Side::Client, "auth/basic-cimd").whole);
        for (side, scenario) in [(Side::Server, "auth/basic-cimd"), (Side::Client, "author"), (Side::Client, "x")] {
            assert_eq!(of(side, scenario), Known::default(), "{scenario}");
        }
        assert_eq!(of(Side::Server, "b"), Known { whole: false, checks: vec!["one"] });
        assert_eq!(known(&page, Side::Server, Revision::R2025_11_25, "b"), Known::default());
        assert!(rows(PAGE).next().is_some(), "the page has its table");
    }
}
