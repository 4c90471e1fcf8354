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

/// Whether it is known that this scenario cannot hold.
pub(super) fn cannot_hold(side: Side, revision: Revision, scenario: &str) -> bool {
    rows(PAGE).any(|row| row.is_of(side, revision) && row.names(scenario))
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
        let page = format!(
            "# Page\n\n{HEAD}\n|---|---|---|---|\n| client | both | `auth/*` | Later. |\n\n| client | both | `x` | |"
        );
        let named =
            |side, scenario| rows(&page).any(|row| row.is_of(side, Revision::R2026_07_28) && row.names(scenario));
        assert!(named(Side::Client, "auth/basic-cimd"));
        assert!(!named(Side::Server, "auth/basic-cimd") && !named(Side::Client, "author") && !named(Side::Client, "x"));
        assert!(rows(PAGE).next().is_some(), "the page has its table");
    }
}
