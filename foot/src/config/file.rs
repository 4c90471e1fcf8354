//! `foot.yaml`: the user's own settings. It is looked for in the user's configuration folder and nowhere else: a folder
//! that somebody else filled must not choose the hub, or whom the foot serves.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::ConfigError;
use super::rules::RuleLists;
use super::settings::{Environment, Settings};
use crate::exec::{CommandTool, KernelSandbox};
use crate::permissions::Mode;
use crate::servers::ServerText;

/// The keys of the file.
const KEYS: [&str; 20] = [
    "hub",
    "tenant",
    "project",
    "name",
    "roots",
    "share",
    "maxConcurrent",
    "tokenFile",
    "ca",
    "deny",
    "write",
    "exec",
    "permissions",
    "kernelSandbox",
    "sandboxRead",
    "sandboxWrite",
    "commands",
    "servers",
    "mcpJson",
    "askClient",
];

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct File {
    hub: Option<String>,
    tenant: Option<String>,
    project: Option<String>,
    name: Option<String>,
    roots: Option<Vec<String>>,
    share: Option<OneOrMany>,
    max_concurrent: Option<u32>,
    token_file: Option<String>,
    ca: Option<String>,
    deny: Option<Vec<String>>,
    write: Option<Mode>,
    exec: Option<Mode>,
    permissions: Option<RuleLists>,
    kernel_sandbox: Option<KernelSandbox>,
    sandbox_read: Option<Vec<String>>,
    sandbox_write: Option<Vec<String>>,
    commands: Option<Vec<CommandTool>>,
    servers: Option<BTreeMap<String, ServerText>>,
    mcp_json: Option<String>,
    ask_client: Option<bool>,
}

/// The keys of servers alone.
#[derive(Debug, Deserialize)]
struct Servers {
    servers: Option<BTreeMap<String, BTreeMap<String, serde::de::IgnoredAny>>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// The permission bit by which users beside the owner and the group write a file.
const EVERYBODY_WRITES: u32 = 0o002;

/// Reads the file. The environment says what `~/` and `${…}` stand for.
pub(super) fn read(path: &Path, environment: &Environment) -> Result<Settings, ConfigError> {
    parse(&text(path)?, path, environment).map_err(|reason| ConfigError::Syntax { path: path.to_owned(), reason })
}

/// The text of a file that says what is done on this machine: nobody but its owner may write it.
pub(super) fn text(path: &Path) -> Result<String, ConfigError> {
    let fail = |cause| ConfigError::File { path: path.to_owned(), cause };
    let mut file = std::fs::File::open(path).map_err(fail)?;
    // Asked of what is open: it is this file that is read. Groups are let be: many systems give each user one.
    let found = file.metadata().map_err(fail)?;
    if found.is_file() && found.permissions().mode() & EVERYBODY_WRITES != 0 {
        return Err(ConfigError::Open { path: path.to_owned() });
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(fail)?;
    Ok(text)
}

pub(super) fn parse(text: &str, file: &Path, environment: &Environment) -> Result<Settings, String> {
    let own_home = environment.home();
    let home = own_home.as_deref();
    let options = || {
        serde_saphyr::options! {
            strict_booleans: true,
            leading_zero_numbers_as_strings: true,
            underscored_numbers_as_strings: true,
            reject_unsupported_tags: true,
            merge_keys: serde_saphyr::MergeKeyPolicy::Error,
            with_snippet: false,
            budget: serde_saphyr::budget! { max_nodes: 10_000, max_anchors: 0, max_depth: 16 },
        }
    };
    // A file of comments alone is an empty one.
    let keys: Option<BTreeMap<String, serde::de::IgnoredAny>> =
        serde_saphyr::from_str_with_options(text, options()).map_err(|error| error.to_string())?;
    let Some(keys) = keys else { return Ok(Settings::default()) };
    if let Some(unknown) = keys.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(unknown_key(unknown, &KEYS));
    }
    // What is of another form is told by whoever reads it whole.
    if let Ok(Servers { servers: Some(servers) }) = serde_saphyr::from_str_with_options(text, options()) {
        for (name, keys) in servers {
            if let Some(unknown) = keys.keys().find(|key| !ServerText::KEYS.contains(&key.as_str())) {
                return Err(format!(
                    "servers.{}: {}",
                    crate::failure::shown(&name),
                    unknown_key(unknown, &ServerText::KEYS)
                ));
            }
        }
    }
    let place = file;
    let file: File = serde_saphyr::from_str_with_options(text, options()).map_err(|error| error.to_string())?;
    let path = |key: &'static str, text: String| absolute(key, &text, home);
    let paths = |key: &'static str, texts: Option<Vec<String>>| {
        texts.map(|texts| texts.into_iter().map(|text| path(key, text)).collect::<Result<Vec<_>, _>>()).transpose()
    };
    Ok(Settings {
        hub: file.hub,
        tenant: file.tenant,
        project: file.project,
        name: file.name,
        roots: paths("roots", file.roots)?,
        share: file.share.map(|share| match share {
            OneOrMany::One(text) => text,
            OneOrMany::Many(subjects) => subjects.join(","),
        }),
        max_concurrent: file.max_concurrent,
        token_file: file.token_file.map(|text| path("tokenFile", text)).transpose()?,
        ca: file.ca.map(|text| path("ca", text)).transpose()?,
        deny: paths("deny", file.deny)?,
        write: file.write,
        exec: file.exec,
        rules: file.permissions.map(|lists| lists.compile(place, home).map(Arc::new)).transpose()?,
        kernel_sandbox: file.kernel_sandbox,
        sandbox_read: paths("sandboxRead", file.sandbox_read)?,
        sandbox_write: paths("sandboxWrite", file.sandbox_write)?,
        commands: file.commands.map(crate::exec::check_commands).transpose()?,
        servers: file.servers.map(|servers| super::servers::all("servers", servers, environment)).transpose()?,
        mcp_json: file.mcp_json.map(|text| path("mcpJson", text)).transpose()?,
        ask_client: file.ask_client,
        ..Settings::default()
    })
}

fn unknown_key(key: &str, keys: &[&str]) -> String {
    let shown = crate::failure::shown(key);
    let near = keys.iter().max_by(|a, b| strsim::jaro_winkler(a, key).total_cmp(&strsim::jaro_winkler(b, key)));
    match near.filter(|near| strsim::jaro_winkler(near, key) > 0.8) {
        Some(near) => format!("there is no key `{shown}`; did you mean `{near}`?"),
        None => format!("there is no key `{shown}`; the keys are {}", keys.join(", ")),
    }
}

/// Paths in the file mean the same wherever the foot is started.
pub(super) fn absolute(key: &str, text: &str, home: Option<&Path>) -> Result<PathBuf, String> {
    let path = match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ if text == "~" => home.map(Path::to_owned).unwrap_or_default(),
        _ => PathBuf::from(text),
    };
    if path.is_absolute() { Ok(path) } else { Err(format!("`{key}`: `{text}` must be absolute or start with `~/`")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, String> {
        let environment = Environment::of(&[("HOME", "/home/ada"), ("TOKEN", "s3cret")]);
        super::parse(text, Path::new("/home/ada/foot.yaml"), &environment)
    }

    #[test]
    fn servers_are_read_with_their_variables() {
        let text = "servers:\n  a: {command: x, args: ['${env:TOKEN}', '${NONE:-y}']}\n  off: {command: '${NONE}', disabled: true}\n";
        let servers = parse(text).unwrap().servers.unwrap();
        let crate::servers::Target::Program { args, .. } = &servers[0].target else { panic!("a program") };
        assert_eq!((servers[1].disabled, args.as_slice()), (true, ["s3cret".to_owned(), "y".to_owned()].as_slice()));
    }

    #[test]
    fn all_keys_are_read() {
        let text = "hub: https://hub.example.org\ntenant: acme\nproject: web\nname: laptop\nroots: [~/src/web, /data]\n\
            share: [bob, eve@example.org]\nmaxConcurrent: 8\ntokenFile: ~/.tokens/hub\nca: /etc/ca.pem\ndeny: [~/src/web/secret]\n";
        let settings = parse(text).unwrap();
        assert_eq!(settings.roots.unwrap(), [PathBuf::from("/home/ada/src/web"), "/data".into()]);
        assert_eq!(settings.share.as_deref(), Some("bob,eve@example.org"));
        assert_eq!((settings.max_concurrent, settings.token_file), (Some(8), Some("/home/ada/.tokens/hub".into())));
        assert_eq!(parse("share: project").unwrap().share.as_deref(), Some("project"));
        let text = "write: ask\nexec: allow\nkernelSandbox: off\nsandboxRead: [~/sdk]\nsandboxWrite: [/tmp/x]\n\
            permissions:\n  deny:\n  - {paths: [secrets/**]}\n  allow: [{tools: [file_write], paths: ['src/**']}]\n";
        let settings = parse(text).unwrap();
        assert_eq!(
            (settings.write, settings.exec, settings.kernel_sandbox),
            (Some(Mode::Ask), Some(Mode::Allow), Some(KernelSandbox::Off))
        );
        assert_eq!(settings.sandbox_read, Some(vec!["/home/ada/sdk".into()]));
        let commands = parse("commands: [{name: a, description: b, argv: [c]}]").unwrap().commands.unwrap();
        assert_eq!(commands.iter().map(|command| command.name()).collect::<Vec<_>>(), ["a"]);
        let rules = settings.rules.unwrap();
        assert_eq!(rules.count(), 2);
        let place = rules.deny.first().unwrap().place.to_string();
        assert_eq!(place, "permissions.deny rule 1 (/home/ada/foot.yaml, line 8)");
        assert!(parse("# nothing yet\n").is_ok_and(|settings| settings.hub.is_none()));
    }

    #[test]
    fn a_file_that_is_not_understood_whole_is_refused() {
        for (text, part) in [
            ("maxconcurent: 8", "did you mean `maxConcurrent`"),
            ("tokens: x", "did you mean `tokenFile`"),
            ("colour: red", "the keys are"),
            ("servers: {a: {comand: x}}", "servers.a: there is no key `comand`; did you mean `command`?"),
            ("servers: {a: {command: x, type: stdio}}", "servers.a: there is no key `type`; the keys are"),
            ("servers: {a: {command: '${NONE}'}}", "servers.a: `command`: the variable NONE is not set"),
            ("hub: a\nhub: b", "hub"),
            ("commands: [{name: a, description: b, argv: ['{x}']}]", "callers do not choose"),
            ("commands: [{name: a, description: b, argv: [c], shell: true}]", "shell"),
            ("maxConcurrent: many", "line 1"),
            ("roots: [src]", "must be absolute"),
            ("roots: src", "line 1"),
            ("project: [a]", "line 1"),
            ("- a", "line 1"),
            ("write: yes", "line 1"),
            ("write: never", "line 1"),
            ("exec: true", "line 1"),
            ("kernelSandbox: on", "line 1"),
            ("sandboxRead: [x]", "must be absolute"),
            ("permissions: {deny: [{}]}", "permissions.deny rule 1, line 1: it says nothing"),
            (
                "permissions:\n  allow:\n    - {tools: [a]}\n    - paths: ['src/[']",
                "permissions.allow rule 2, line 4: `src/[`",
            ),
            ("permissions: {ask: [{paths: ['{a']}]}", "`{a`"),
            ("permissions: {ask: [{paths: ['../x']}]}", "`..`"),
            ("permissions: {deny: [{paths: []}]}", "`paths` has no entries"),
            ("permissions: {deny: [{path: [a]}]}", "path"),
            ("permissions: {denny: []}", "denny"),
            ("permissions: {allow: [{argv: [git, '**', push]}]}", "it stands last"),
            ("permissions: {allow: [{argv: [./git]}]}", "by its name alone"),
            ("permissions: {allow: [{env: [RUST_LOG]}]}", "say which with argv"),
            ("permissions: {deny: [{argv: [rm], paths: [x]}]}", "make two rules"),
            ("permissions: {deny: [{argv: rm}]}", "line 1"),
        ] {
            let error = parse(text).map(|_| ()).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
