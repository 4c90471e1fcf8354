//! `foot check`

mod explain;

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;
use footbridge_shared::message::Share;

pub(super) use explain::{Call, What, explain};

use super::{BROKEN, SettingsArgs, block_on, complain, say};
use crate::config::{Environment, FootConfig, Resolved, TokenSource, open_to_others};
use crate::error::FootError;
use crate::exec::KernelSandbox;
use crate::identity::Identity;
use crate::offer;
use crate::permissions::CommandLine;
use crate::session::{Probe, probe};

/// Options of `foot check`.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// Explain what a call with this path would be answered, and by which rule. Nothing else is checked.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["shell", "argv"])]
    path: Option<String>,
    /// The tool that is called [default: file_read for a path, exec_run for a command]
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// The same for a script: `foot check --shell 'git status; ls'`
    #[arg(long, value_name = "SCRIPT", conflicts_with = "argv")]
    shell: Option<String>,
    /// The folder that the command starts in [default: the first root]
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// A name that the caller sets in the command's environment; can be repeated.
    #[arg(long = "env", value_name = "NAME")]
    env: Vec<String>,
    /// Do not connect to the hub.
    #[arg(long)]
    offline: bool,
    /// The same for a command: `foot check -- git status`
    #[arg(last = true, value_name = "ARGV")]
    argv: Vec<String>,
}

impl CheckArgs {
    /// The call that is to be explained, if one is.
    pub(super) fn call(&self) -> Option<Call> {
        let what = match (&self.path, &self.shell) {
            (Some(path), _) => What::Path(path.clone()),
            (None, Some(script)) => What::Command(CommandLine::Shell(script.clone())),
            (None, None) if !self.argv.is_empty() => What::Command(CommandLine::Argv(self.argv.clone())),
            (None, None) => What::Tool(self.tool.clone()?),
        };
        Some(Call { what, tool: self.tool.clone(), cwd: self.cwd.clone(), env: self.env.clone() })
    }

    #[cfg(test)]
    pub(super) fn settings(self) -> SettingsArgs {
        self.settings
    }
}

/// Checks; returns the exit code: 0 if `run` would work, or if the call would be allowed without asking.
pub(super) fn check(args: CheckArgs, environment: &Environment, here: &Path) -> u8 {
    let report = match args.call() {
        Some(call) => args.settings.served(environment, here).and_then(|served| explain(&served, &call)),
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

fn whole(resolved: &Resolved, offline: bool) -> Result<Report, FootError> {
    let config = &resolved.config;
    let judge = offer::judge(&config.roots, config.floor(), &config.permitted)?;
    let policy = &judge.policy;
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
    check_permitted(&mut report, resolved);
    check_token(&mut report, config, resolved)?;
    let identity = Identity::open(config)?;
    report.line("id", &identity.id);
    if offline {
        return Ok(report);
    }
    check_hub(&mut report, config, &identity)?;
    Ok(report)
}

fn check_permitted(report: &mut Report, resolved: &Resolved) {
    let permitted = &resolved.config.permitted;
    report.line("write", format!("{}  ({})", permitted.defaults.write, resolved.origin("write")));
    report.line("exec", format!("{}  ({})", permitted.defaults.exec, resolved.origin("exec")));
    let rules = &permitted.rules;
    let counts = format!("{} deny, {} allow, {} ask", rules.deny.len(), rules.allow.len(), rules.ask.len());
    report.line("rules", format!("{counts}  ({})", resolved.origin("permissions")));
    let sandbox = match resolved.config.exec.sandbox {
        KernelSandbox::Required => match footbridge_launcher::sandbox::probe() {
            Ok(_) => "required, and the kernel can".to_owned(),
            Err(error) => format!("required, so no command is run: {error}"),
        },
        KernelSandbox::Off => "off: commands may do whatever your account may".to_owned(),
    };
    for server in &resolved.config.servers {
        let (transport, permission) = (server.transport(), server.permission);
        report.line("mcp server", format!("{}  ({transport}; {permission}, where no rule speaks)", server.name));
    }
    for crate::servers::LeftOut { name, why } in &resolved.config.left_out {
        report.line("mcp server", format!("{name}  (left out: {why})"));
    }
    report.line("sandbox", format!("{sandbox}  ({})", resolved.origin("kernelSandbox")));
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
        Probe::NameTaken => {
            report.fine = false;
            let name = &config.name;
            let why = format!(
                "the token is accepted, but another foot is called `{name}`, as that of `footbridge up` in this folder is: \
                 choose another name with --name, or release it [name_taken]"
            );
            report.line("hub says", why);
        }
        Probe::Unreachable(why) => {
            report.fine = false;
            report.line("hub says", format!("nothing of use: {why}"));
        }
    }
    Ok(())
}
