//! What one call would be answered, and why.

use footbridge_shared::id::PACK_SEPARATOR;

use super::Report;
use crate::config::Served;
use crate::error::FootError;
use crate::offer;
use crate::permissions::{
    Access, Action, Command, CommandLine, Judge, Reason, ServerAction, Verdict as Decided, quoted,
};
use crate::policy::Verdict;
use crate::servers::ServerSettings;

/// The call.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Call {
    pub(in crate::cli) what: What,
    pub(in crate::cli) tool: Option<String>,
    pub(in crate::cli) cwd: Option<String>,
    pub(in crate::cli) env: Vec<String>,
}

/// What it does.
#[derive(Debug, Clone)]
pub(in crate::cli) enum What {
    Path(String),
    Command(CommandLine),
    Tool(String),
}

/// Explains a call. The answers that are remembered have no part in it: they are about one caller each.
pub(in crate::cli) fn explain(served: &Served, call: &Call) -> Result<Report, FootError> {
    let judge = offer::judge(&served.roots, served.floor(), &served.permitted)?;
    let mut report = Report::default();
    if let Some(tool) = call.tool.as_deref().or(match &call.what {
        What::Tool(tool) => Some(tool.as_str()),
        What::Path(_) | What::Command(_) => None,
    }) && !known(served, tool)
    {
        report.line("tool", tool);
        report.line("answer", "no (unknown_tool)");
        return Ok(report);
    }
    let (tool, action) = match &call.what {
        // Where nothing is said of what it would do, all that can be said is what it could not do without asking.
        What::Tool(tool) if acts(served, tool) => {
            report.line("tool", tool);
            report.line("answer", "that depends on what it would do: add --path PATH, or `-- ARGV`");
            return Ok(report);
        }
        What::Tool(tool) => (tool.as_str(), Some(of_server(served, tool).unwrap_or(Action::Nothing))),
        What::Path(path) => {
            let tool = call.tool.as_deref().unwrap_or("file_read");
            let access = match tool {
                "file_write" | "file_edit" => Access::Write,
                "file_delete" => Access::Delete,
                _ => Access::Read,
            };
            (tool, real(&judge, path, &mut report).map(|path| Action::File { access, path }))
        }
        What::Command(line) => {
            let cwd = real(&judge, call.cwd.as_deref().unwrap_or("."), &mut report);
            let env = call.env.iter().map(|name| (name.clone(), String::new())).collect();
            let configured = call.tool.as_deref().is_some_and(|tool| is_configured(served, tool));
            let command = |cwd| Action::Run(Command { line: line.clone(), cwd, env, stdin: None, configured });
            (call.tool.as_deref().unwrap_or("exec_run"), cwd.map(command))
        }
    };
    let Some(action) = action else { return Ok(report) };
    if let Action::Run(command) = &action {
        for part in judge.read(command).parts.iter().filter(|part| part.sure) {
            let words: Vec<String> = part.words.iter().map(|word| word.text().map_or("…".to_owned(), quoted)).collect();
            report.line("would run", words.join(" "));
        }
    }
    let decision = judge.decide(tool, &action, None);
    report.fine = decision.verdict == Decided::Allow;
    let answer = match decision.verdict {
        Decided::Allow => "yes, without asking",
        Decided::Deny => "no (permission_denied)",
        Decided::Ask => "a person is asked, if the foot runs at a terminal; else no",
    };
    report.line("tool", tool);
    report.line("answer", answer);
    let by_mode = matches!(decision.reason, Reason::Mode(..) | Reason::Server(..));
    report.line("rule", format!("{}{}", decision.reason, if by_mode { "  (no rule speaks of it)" } else { "" }));
    Ok(report)
}

/// The foot's own tools, and whether what they do goes by their arguments.
const TOOLS: [(&str, bool); 13] = [
    ("file_read", true),
    ("file_list", true),
    ("file_find", true),
    ("file_grep", true),
    ("file_stat", true),
    ("file_write", true),
    ("file_edit", true),
    ("file_delete", true),
    ("exec_run", true),
    ("exec_status", false),
    ("exec_tail", false),
    ("exec_input", false),
    ("exec_kill", false),
];

fn known(served: &Served, tool: &str) -> bool {
    TOOLS.iter().any(|(name, _)| *name == tool) || is_configured(served, tool) || of_server(served, tool).is_some()
}

fn acts(served: &Served, tool: &str) -> bool {
    TOOLS.contains(&(tool, true)) || is_configured(served, tool)
}

fn is_configured(served: &Served, tool: &str) -> bool {
    served.exec.commands.iter().any(|command| command.name() == tool)
}

/// What a tool would do that is named as those of a local server are. Which there are, the server alone says.
fn of_server(served: &Served, tool: &str) -> Option<Action> {
    let named = |server: &&ServerSettings| {
        let rest = tool.strip_prefix(server.name.as_str());
        rest.and_then(|rest| rest.strip_prefix(PACK_SEPARATOR)).is_some_and(|rest| !rest.is_empty())
    };
    let server = served.servers.iter().find(named)?;
    Some(Action::Server(ServerAction {
        server: server.name.to_string(),
        what: tool.to_owned(),
        arguments: "{}".to_owned(),
        permission: server.permission,
    }))
}

/// Where a path really leads, if that is served; else the report says why it is not.
fn real(judge: &Judge, given: &str, report: &mut Report) -> Option<std::path::PathBuf> {
    let rule = match judge.policy.explain(given) {
        Verdict::Served { real, root, exists } => {
            report.line("served", real.display());
            report.line("root", root.display());
            if !exists {
                report.line("note", "there is nothing at this path yet");
            }
            return Some(real);
        }
        Verdict::Floor(rule) => format!("{} is never served ({})", rule.label, rule.why),
        Verdict::Outside => "it really lies under no root".to_owned(),
        Verdict::Nowhere => "it leads nowhere: links in a circle, or `..` below something that is not there".to_owned(),
    };
    report.line("not served", given);
    report.line("rule", rule);
    judge.policy.roots().iter().for_each(|root| report.line("root", root.display()));
    None
}
