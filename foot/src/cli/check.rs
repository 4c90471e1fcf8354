//! `foot check`

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;
use footbridge_shared::message::Share;

use super::{BROKEN, SettingsArgs, block_on, complain, say};
use crate::config::{Environment, FootConfig, Resolved, Served, TokenSource, open_to_others};
use crate::error::FootError;
use crate::identity::Identity;
use crate::policy::{Policy, Verdict};
use crate::session::{Probe, probe};

/// Options of `foot check`.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// Say whether this path would be served, and by which rule. Nothing else is checked.
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Do not connect to the hub.
    #[arg(long)]
    offline: bool,
}

impl CheckArgs {
    #[cfg(test)]
    pub(super) fn settings(self) -> SettingsArgs {
        self.settings
    }
}

/// Checks; returns the exit code: 0 if `run` would work, or if the path is served.
pub(super) fn check(args: CheckArgs, environment: &Environment, here: &Path) -> u8 {
    let report = match &args.path {
        Some(path) => args.settings.served(environment, here).and_then(|served| explain(&served, path)),
        None => args.settings.resolve(environment, here).and_then(|resolved| whole(&resolved, args.offline)),
    };
    match report {
        Ok(report) => {
            let said = say(&report.text);
            if report.fine { said } else { BROKEN }
        }
        Err(error) => {
            complain(&error);
            error.code()
        }
    }
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) text: String,
    pub(super) fine: bool,
}

impl Report {
    fn line(&mut self, what: &str, value: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{what:<12}{value}");
    }
}

/// Why a path is served or not.
pub(super) fn explain(served: &Served, path: &str) -> Result<Report, FootError> {
    let policy = Policy::new(&served.roots, served.floor())?;
    let mut report = Report::default();
    match policy.explain(path) {
        Verdict::Served { real, root, exists } => {
            report.fine = true;
            report.line("served", real.display());
            report.line("root", root.display());
            if !exists {
                report.line("note", "there is nothing at this path yet");
            }
        }
        Verdict::Floor(rule) => {
            report.line("not served", path);
            report.line("rule", format!("{} is never served ({})", rule.label, rule.why));
        }
        Verdict::Outside => {
            report.line("not served", path);
            report.line("rule", "it really lies under no root");
            policy.roots().iter().for_each(|root| report.line("root", root.display()));
        }
        Verdict::Nowhere => {
            report.line("not served", path);
            report.line("rule", "it leads nowhere: links in a circle, or `..` below something that is not there");
        }
    }
    Ok(report)
}

fn whole(resolved: &Resolved, offline: bool) -> Result<Report, FootError> {
    let config = &resolved.config;
    let policy = Policy::new(&config.roots, config.floor())?;
    let mut report = Report { fine: true, ..Report::default() };
    let share = match &config.share {
        Share::Owner => "owner".to_owned(),
        Share::Project => "project".to_owned(),
        Share::Subjects(subjects) => subjects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    for (key, value) in [
        ("hub", config.hub.to_string()),
        ("tenant", config.tenant.to_string()),
        ("project", config.project.to_string()),
        ("name", config.name.to_string()),
        ("share", share),
        ("state", config.state.display().to_string()),
    ] {
        report.line(key, format!("{value}  ({})", resolved.origin(key)));
    }
    for root in policy.roots() {
        report.line("root", format!("{}  ({})", root.display(), resolved.origin("roots")));
    }
    for rule in policy.cut_out() {
        report.line("not served", format!("{}  ({})", rule.label, rule.why));
    }
    report.line("not served", "names such as .ssh, .aws and .netrc, in any folder  (keys and credentials)");
    report.line("note", "hard links into a root, and folders mounted there, cannot be told from what lies in it");
    check_token(&mut report, config, resolved)?;
    let identity = Identity::open(config)?;
    report.line("id", &identity.id);
    if offline {
        return Ok(report);
    }
    check_hub(&mut report, config, &identity)?;
    Ok(report)
}

fn check_token(report: &mut Report, config: &FootConfig, resolved: &Resolved) -> Result<(), FootError> {
    let origin = resolved.origin("token");
    match &config.token {
        TokenSource::Value(_) => report.line("token", format!("from the {origin}")),
        TokenSource::File(path) => {
            config.token.read()?;
            match open_to_others(path) {
                None => report.line("token", format!("{}  ({origin})", path.display())),
                Some(mode) => {
                    report.fine = false;
                    let path = path.display();
                    report.line("token", format!("{path} can be read by others (mode {mode}): run chmod 600 on it"));
                }
            }
        }
    }
    Ok(())
}

fn check_hub(report: &mut Report, config: &FootConfig, identity: &Identity) -> Result<(), FootError> {
    let probed = match block_on(probe(config, identity)) {
        Ok(probed) => probed?,
        Err(error) => Probe::Unreachable(error.to_string()),
    };
    match probed {
        Probe::Welcome { owner, node } => {
            report.line("hub says", format!("welcome; this foot belongs to {owner} (node {node})"));
        }
        Probe::InUse => report.line(
            "hub says",
            "the token is accepted; the rest was not tried, because a foot of this name runs on this machine",
        ),
        Probe::Unreachable(why) => {
            report.fine = false;
            report.line("hub says", format!("nothing of use: {why}"));
        }
    }
    Ok(())
}
