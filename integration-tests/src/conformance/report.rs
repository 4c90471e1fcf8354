//! The tables, and what is wrong with them.

use std::collections::BTreeSet;

use super::known::{Known, Side, cannot_hold};
use super::outcome::{Outcome, Outcomes};
use super::{Revision, Way};
use crate::bench::say;

/// Tables of outcomes.
#[derive(Debug, Default)]
pub struct Report {
    lines: Vec<String>,
    breaches: Vec<String>,
}

impl Report {
    /// What does not hold and should, a line each. Empty: all is well.
    pub fn breaches(&self) -> &[String] {
        &self.breaches
    }

    /// Prints all of it.
    pub fn print(&self) {
        for line in &self.lines {
            say(line);
        }
        for breach in &self.breaches {
            say(&format!("- {breach}"));
        }
    }

    /// Adds a table with a column for each way. What passes in the first has to pass in all.
    pub(super) fn compare(&mut self, revision: Revision, columns: &[(Way, &Outcomes)]) {
        let Some(((_, first), others)) = columns.split_first() else { return };
        self.head(
            &format!("Servers, requirements of {}", revision.as_str()),
            columns.iter().map(|(way, _)| way.title()),
        );
        let all_ways = Way::ALL.iter().all(|way| columns.iter().any(|(column, _)| column == way));
        let scenarios: BTreeSet<&String> = columns.iter().flat_map(|(_, outcomes)| outcomes.keys()).collect();
        for scenario in &scenarios {
            let known = cannot_hold(Side::Server, revision, scenario);
            let direct = first.get(*scenario);
            let mut cells = vec![cell(direct, &[])];
            let mut wrong = Vec::new();
            if !direct.is_some_and(|direct| direct.passes() || direct.is_skipped()) {
                wrong.extend(complaints(columns[0].0, direct));
            }
            for (way, outcomes) in others {
                let outcome = outcomes.get(*scenario);
                let lost = match (outcome, direct) {
                    (Some(outcome), Some(direct)) => outcome.lost(direct),
                    _ => Vec::new(),
                };
                cells.push(cell(outcome, &lost));
                let good = outcome.is_some_and(|outcome| outcome.passes() || outcome.is_skipped());
                if !good || !lost.is_empty() {
                    let mut of_way = complaints(*way, outcome);
                    of_way.extend(lost.into_iter().map(|lost| format!("{}: {lost}", way.title())));
                    // A check that fails here is also lost.
                    of_way.sort();
                    of_way.dedup();
                    wrong.extend(of_way);
                }
            }
            self.row(scenario, &cells);
            let skipped = direct.is_some_and(Outcome::is_skipped);
            self.judge(revision, scenario, &known, wrong, all_ways && !skipped);
        }
        let counts = columns.iter().map(|(_, outcomes)| count(outcomes));
        self.row(&format!("**{} scenarios**", scenarios.len()), &counts.collect::<Vec<_>>());
    }

    /// Adds the table of our client.
    pub(super) fn client(&mut self, revision: Revision, outcomes: &Outcomes) {
        self.head(&format!("Client, requirements of {}", revision.as_str()), ["hub's client"].into_iter());
        for (scenario, outcome) in outcomes {
            self.row(scenario, &[cell(Some(outcome), &[])]);
            let wrong = if outcome.passes() { Vec::new() } else { said("client", Some(outcome)) };
            let known = cannot_hold(Side::Client, revision, scenario);
            self.judge(revision, scenario, &known, wrong, true);
        }
        self.row(&format!("**{} scenarios**", outcomes.len()), &[count(outcomes)]);
    }

    fn head<'a>(&mut self, title: &str, columns: impl Iterator<Item = &'a str>) {
        let columns: Vec<&str> = columns.collect();
        self.lines.push(format!("\n{title}\n"));
        self.lines.push(format!("| scenario | {} |", columns.join(" | ")));
        self.lines.push(format!("|---|{}", "---|".repeat(columns.len())));
    }

    fn row(&mut self, what: &str, cells: &[String]) {
        self.lines.push(format!("| {what} | {} |", cells.join(" | ")));
    }

    /// Sorts out what is known. That something holds which is known not to is said only when all ways are here: on some
    /// it may.
    fn judge(&mut self, revision: Revision, scenario: &str, known: &Known<'_>, wrong: Vec<String>, all_ways: bool) {
        let revision = revision.as_str();
        let is_of = |wrong: &str, check: &str| wrong.contains(&format!(": {check}: "));
        let stale = if known.whole {
            wrong.is_empty().then(|| scenario.to_owned()).into_iter().collect()
        } else {
            let holds = |check: &&&str| !wrong.iter().any(|wrong| is_of(wrong, check));
            known.checks.iter().filter(holds).map(|check| format!("{scenario}:{check}")).collect::<Vec<_>>()
        };
        if all_ways {
            let stale = stale.into_iter();
            self.breaches
                .extend(stale.map(|what| format!("{revision}, {what}: holds, and docs/mcp.md says that it cannot")));
        }
        if !known.whole {
            let wrong = wrong.into_iter().filter(|wrong| !known.checks.iter().any(|check| is_of(wrong, check)));
            self.breaches.extend(wrong.map(|wrong| format!("{revision}, {scenario}, {wrong}")));
        }
    }
}

fn complaints(way: Way, outcome: Option<&Outcome>) -> Vec<String> {
    said(way.title(), outcome)
}

fn said(whose: &str, outcome: Option<&Outcome>) -> Vec<String> {
    let complaints = match outcome {
        None => vec!["the scenario did not run".to_owned()],
        Some(outcome) if outcome.is_skipped() => vec!["nothing was checked".to_owned()],
        Some(outcome) => outcome.complaints(),
    };
    complaints.into_iter().map(|complaint| format!("{whose}: {complaint}")).collect()
}

fn cell(outcome: Option<&Outcome>, lost: &[String]) -> String {
    match outcome {
        None => "not run".to_owned(),
        Some(outcome) if outcome.passes() && lost.is_empty() => format!("pass ({})", outcome.successes()),
        Some(outcome) if outcome.is_skipped() && lost.is_empty() => "skipped".to_owned(),
        Some(outcome) => {
            let wrong: BTreeSet<String> = outcome.complaints().into_iter().chain(lost.iter().cloned()).collect();
            format!("**fail** ({} of {})", wrong.len(), wrong.len() + outcome.successes())
        }
    }
}

fn count(outcomes: &Outcomes) -> String {
    let passed = outcomes.values().filter(|outcome| outcome.passes()).count();
    let skipped = outcomes.values().filter(|outcome| outcome.is_skipped()).count();
    format!("{passed} pass, {} fail, {skipped} skipped", outcomes.len() - passed - skipped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(checks: &[(&str, &str)]) -> Outcomes {
        let outcome = |(scenario, status): &(&str, &str)| {
            let json = serde_json::json!([{ "id": "check", "name": "check", "status": status }]).to_string();
            ((*scenario).to_owned(), Outcome::parse(json.as_bytes()).unwrap())
        };
        checks.iter().map(outcome).collect()
    }

    fn breaches(direct: &[(&str, &str)], through: &[(&str, &str)]) -> Vec<String> {
        let mut report = Report::default();
        let (direct, through) = (outcomes(direct), outcomes(through));
        report.compare(Revision::R2025_11_25, &[(Way::Direct, &direct), (Way::Foot, &through)]);
        report.breaches
    }

    #[test]
    fn what_passes_directly_has_to_pass_everywhere() {
        let good = [("ping", "SUCCESS"), ("tools-list", "SUCCESS")];
        assert!(breaches(&good, &good).is_empty());
        for worse in ["FAILURE", "WARNING", "SKIPPED"] {
            let found = breaches(&good, &[("ping", "SUCCESS"), ("tools-list", worse)]);
            assert!(found[0].starts_with("2025-11-25, tools-list, hub and foot: "), "{worse}: {found:?}");
        }
        assert_eq!(
            breaches(&good, &[("ping", "SUCCESS")]),
            ["2025-11-25, tools-list, hub and foot: the scenario did not run"]
        );
        assert!(!breaches(&[("ping", "FAILURE")], &[("ping", "SUCCESS")]).is_empty(), "the fixture is judged too");
    }
}
