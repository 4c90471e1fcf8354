//! What the documents of the repository say of tests and routes is so.

use std::fs;
use std::path::{Path, PathBuf};

use footbridge_hub::web::access::{RULES, Reach, Rule};

use crate::TestResult;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The test names in the last column of each table of `docs/specification.md`.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
        let [_, _, status, shown_by] = cells[..] else { return None };
        (!shown_by.is_empty() && !["---", "shown by", "reason"].contains(&shown_by) && !status.is_empty())
            .then(|| shown_by.trim_matches('`'))
    })
}

#[test]
fn every_test_that_the_specification_names_exists() -> TestResult {
    let text = fs::read_to_string(repository().join("docs/specification.md"))?;
    let (tables, _) = text.split_once("## Departures on purpose").ok_or("no departures")?;
    let mut seen = 0;
    for reference in references(tables) {
        let (file, test) = reference.split_once("::").ok_or_else(|| format!("`{reference}` names no test"))?;
        let folder = if file.contains('/') { "" } else { "integration-tests/tests/main" };
        let source = fs::read_to_string(repository().join(folder).join(file))
            .map_err(|error| format!("`{reference}`: {error}"))?;
        assert!(source.contains(&format!("fn {test}(")), "`{reference}`: there is no such test");
        seen += 1;
    }
    assert!(seen > 50, "only {seen} references were found");
    Ok(())
}

/// A row of the table of paths in `docs/http.md`.
fn row(rule: &Rule) -> String {
    let path = rule.path.replace("/v1/{tenant}/{project}", "…").replace("{*", "{");
    let roles: Vec<String> = rule.roles.iter().map(|role| format!("`{}`", role.as_str())).collect();
    let roles = match (rule.reach, roles.is_empty()) {
        (Reach::Open, _) => "none, without a token".to_owned(),
        (_, true) => "any".to_owned(),
        (_, false) => roles.join(", "),
    };
    format!("| `{path}` | {} | {roles} |", rule.method)
}

#[test]
fn the_documented_roles_are_those_that_are_asked_for() -> TestResult {
    let text = fs::read_to_string(repository().join("docs/http.md"))?;
    let (_, table) = text.split_once("| path | verb | one of the roles |\n|---|---|---|\n").ok_or("no table")?;
    let documented: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    let asked: Vec<String> = RULES.iter().map(row).collect();
    assert_eq!(documented, asked);
    Ok(())
}
