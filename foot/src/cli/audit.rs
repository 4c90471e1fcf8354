//! `foot audit`

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;

use super::own::OwnArgs;
use super::{complain, say};
use crate::config::Environment;
use crate::error::FootError;
use crate::failure::escaped;
use crate::offer::AUDIT;
use crate::permissions::{AuditLine, quoted, read_back};

/// Options of `foot audit`.
#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    #[command(flatten)]
    own: OwnArgs,
    /// So many lines, the latest.
    #[arg(long, value_name = "N", default_value_t = 50)]
    last: usize,
    /// Only what was not allowed.
    #[arg(long)]
    denied: bool,
    /// As it is kept: a line of JSON for each decision.
    #[arg(long)]
    json: bool,
}

/// Prints what was asked of this machine and what became of it; returns the exit code.
pub(super) fn audit(args: &AuditArgs, environment: &Environment, here: &Path) -> u8 {
    let told = args.own.file(AUDIT, environment, here).and_then(|path| {
        let fits = |line: &AuditLine| !args.denied || !matches!(line.decision.as_str(), "allow" | "ask-yes");
        read_back(&path, args.last, fits).map_err(FootError::Audit)
    });
    match told {
        Ok(lines) => {
            say(&lines.iter().map(|line| if args.json { json(line) } else { told_line(line) }).collect::<String>())
        }
        Err(error) => {
            complain(&error);
            error.code()
        }
    }
}

fn json(line: &AuditLine) -> String {
    serde_json::to_string(line).map(|json| json + "\n").unwrap_or_default()
}

/// Two lines for each decision: what, and why.
fn told_line(line: &AuditLine) -> String {
    let mut text = String::new();
    if line.lost > 0 {
        let _ = writeln!(text, "… {} lines were lost …", line.lost);
    }
    let _ = write!(text, "{}  {:<9} {}  {}", line.time, line.decision, escaped(&line.subject), escaped(&line.tool));
    if let Some(action) = &line.action {
        let _ = write!(text, "  {}", escaped(action));
    }
    if let Some(path) = &line.path {
        let _ = write!(text, " {}", quoted(path));
    }
    for word in line.server.iter().chain(&line.asked) {
        let _ = write!(text, " {}", quoted(word));
    }
    for word in line.argv.iter().flatten() {
        let _ = write!(text, " {}", quoted(word));
    }
    if let Some(script) = &line.script {
        let _ = write!(text, " sh -c {}", quoted(script));
    }
    if let Some(cwd) = &line.cwd {
        let _ = write!(text, "  in {}", quoted(cwd));
    }
    if !line.env.is_empty() {
        let _ = write!(text, "  with {}", line.env.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(" "));
    }
    let _ = writeln!(text, "\n    {}", escaped(&line.by));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_told_without_what_steers_a_terminal() {
        let line = AuditLine {
            time: "2026-01-01T00:00:00Z".to_owned(),
            subject: "eve\u{1b}[2J".to_owned(),
            tool: "exec_run".to_owned(),
            action: Some("run".to_owned()),
            argv: Some(vec!["rm".to_owned(), "a b\u{202e}".to_owned()]),
            cwd: Some("/w".to_owned()),
            env: vec!["A".to_owned()],
            decision: "deny".to_owned(),
            by: "exec: deny".to_owned(),
            lost: 2,
            ..AuditLine::default()
        };
        let told = told_line(&line);
        let expected = "… 2 lines were lost …\n2026-01-01T00:00:00Z  deny      eve\\u{1b}[2J  exec_run  run \"rm\" \
            \"a b\\u{202e}\"  in \"/w\"  with \"A\"\n    exec: deny\n";
        assert_eq!(told, expected);
    }
}
