//! What `up` prints once everything is there.

use std::path::Path;

use serde_json::json;

use super::Allowed;
use super::foot::Registered;
use crate::cli::error::CliError;
use crate::cli::out::{Format, Out};
use crate::config::state::HubFile;

/// The file that the second command reads, if the folder has it.
const README: &str = "README.md";

/// Tells what is there, and three commands to try.
pub(super) fn tell(
    hub: &HubFile,
    data: &Path,
    foot: Option<(&Registered, Allowed)>,
    out: &mut Out,
) -> Result<(), CliError> {
    let readme = hub.folder.join(README).is_file();
    match out.format() {
        Format::Json => out.json(&for_programs(hub, data, foot))?,
        Format::Text => out.text(&for_people(hub, data, foot, readme))?,
    }
    Ok(())
}

fn for_programs(hub: &HubFile, data: &Path, foot: Option<(&Registered, Allowed)>) -> serde_json::Value {
    let foot_allowed = foot.map(|(_, allowed)| allowed);
    let foot = match foot {
        Some((Registered::Yes(foot), _)) => json!(foot),
        _ => serde_json::Value::Null,
    };
    let allowed = foot_allowed
        .map(|allowed| json!({"write": allowed.write, "exec": allowed.exec, "kernelSandbox": allowed.kernel_sandbox}));
    json!({
        "url": hub.url, "tenant": hub.tenant, "project": hub.project, "data": data, "tokenFile": hub.token_file,
        "pid": hub.pid, "foot": foot, "allowed": allowed,
    })
}

fn for_people(hub: &HubFile, data: &Path, foot: Option<(&Registered, Allowed)>, readme: bool) -> String {
    let allowed = foot.map(|(foot, allowed)| format!("allows {}\n", words(allowed, foot))).unwrap_or_default();
    let foot = foot.map(|(foot, _)| foot);
    let (name, state) = match foot {
        None => ("none".to_owned(), "started with --no-foot".to_owned()),
        Some(Registered::Yes(foot)) => {
            let tools = foot.tools.as_ref().map_or(0, Vec::len);
            (foot.name.clone(), format!("connected, {tools} tools"))
        }
        Some(Registered::NotYet) => {
            ("?".to_owned(), "not connected yet; `footbridge feet` shows when it is".to_owned())
        }
        Some(Registered::Ended(status)) => ("?".to_owned(), format!("ended ({status}), and is started again")),
    };
    let has_foot = matches!(foot, Some(Registered::Yes(_)));
    let (call, why) = match (has_foot, readme) {
        (true, true) => ("file_read path=README.md", "file_read"),
        (true, false) => ("file_list path=.", "file_list"),
        (false, _) => ("whoami", "whoami"),
    };
    let width = hub.url.len().max(name.chars().count());
    format!(
        "hub    {url:<width$}   tenant {tenant}, project {project}\n\
         foot   {name:<width$}   {state}\n\
         {allowed}data   {data}\n\n\
         Try these from another terminal in this folder:\n  \
           footbridge tools list\n  \
           footbridge call {call}\n  \
           footbridge tools why {why}\n\n\
         Ctrl-C stops it.",
        url = hub.url,
        tenant = hub.tenant,
        project = hub.project,
        data = data.display(),
    )
}

/// What callers may do with this folder, in words. The foot's own settings may allow more than the flags say: then it offers
/// the tools for it.
fn words(allowed: Allowed, foot: &Registered) -> String {
    let offers = |tool: &str| match foot {
        Registered::Yes(foot) => foot.tools.as_ref().is_some_and(|tools| tools.iter().any(|offered| offered == tool)),
        Registered::NotYet | Registered::Ended(_) => false,
    };
    let mut words = vec!["reading"];
    words.extend(match allowed.write {
        true => Some("writing"),
        false => offers("file_write").then_some("writing as foot.yaml says"),
    });
    words.extend(match (allowed.exec, allowed.kernel_sandbox) {
        (false, _) => offers("exec_run").then_some("commands as foot.yaml says"),
        (true, true) => Some("any command, within the kernel's sandbox"),
        (true, false) => Some("any command, WITHOUT the kernel's sandbox"),
    });
    let mut told = words.join(", ");
    if let Registered::Yes(foot) = foot
        && !foot.servers.is_empty()
    {
        let names: Vec<&str> = foot.servers.iter().map(|server| server.name.as_str()).collect();
        told.push_str(&format!("; MCP servers: {} (unasked, unless foot.yaml says otherwise)", names.join(", ")));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::feet::FootView;

    fn hub() -> HubFile {
        HubFile {
            url: "http://127.0.0.1:7800".to_owned(),
            tenant: "local".to_owned(),
            project: "main".to_owned(),
            token_file: "/state/token".into(),
            subject: "ana".to_owned(),
            pid: 1,
            folder: "/srv/site".into(),
        }
    }

    #[test]
    fn what_is_there_and_what_to_try() {
        let foot = FootView {
            name: "site".to_owned(),
            owner: "ana".to_owned(),
            state: "connected".to_owned(),
            own: true,
            share: None,
            hostname: None,
            platform: None,
            version: None,
            cwd: None,
            tools: Some(vec!["file_read".to_owned(), "file_list".to_owned()]),
            servers: Vec::new(),
            connected_at: None,
        };
        let mut with_server = foot.clone();
        with_server.servers =
            vec![crate::api::feet::FootServerView { name: "git".to_owned(), protocol: "2025-11-25".to_owned() }];
        let registered = Registered::Yes(Box::new(foot));
        let allowed = Allowed { write: false, exec: false, kernel_sandbox: true };
        let told = for_people(&hub(), Path::new("/state/data"), Some((&registered, allowed)), true);
        insta::assert_snapshot!(told, @r#"
        hub    http://127.0.0.1:7800   tenant local, project main
        foot   site                    connected, 2 tools
        allows reading
        data   /state/data

        Try these from another terminal in this folder:
          footbridge tools list
          footbridge call file_read path=README.md
          footbridge tools why file_read

        Ctrl-C stops it.
        "#);
        let told = words(allowed, &Registered::Yes(Box::new(with_server)));
        assert_eq!(told, "reading; MCP servers: git (unasked, unless foot.yaml says otherwise)");
    }

    #[test]
    fn what_is_allowed_is_said_in_words() {
        let allowed = Allowed { write: true, exec: true, kernel_sandbox: true };
        let words = |allowed| words(allowed, &Registered::NotYet);
        assert_eq!(words(allowed), "reading, writing, any command, within the kernel's sandbox");
        assert!(words(Allowed { kernel_sandbox: false, ..allowed }).contains("WITHOUT"));
    }

    #[test]
    fn without_a_foot_no_command_needs_one() {
        let told = for_people(&hub(), Path::new("/state/data"), None, true);
        assert!(told.contains("footbridge call whoami") && !told.contains("file_read"), "{told}");
    }
}
