//! The document `server-tools/<name>.yaml`.

use std::time::Duration;

use footbridge_shared::ErrorCode;
use footbridge_shared::id::EntryName;
use footbridge_shared::limits::MAX_DESCRIPTION_CHARS;
use footbridge_shared::text;

use super::types::{Prepared, Registry};
use crate::yaml::fields::Fields;
use crate::yaml::{KeyPath, Node, Problem, Value, first_problems, shown};

/// Longest `timeoutMs`: one hour without a sign of life.
const MAX_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// Longest `maxTimeoutMs`: one day.
const MAX_MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// Longest `searchHint` and `promptHint`, in characters.
const MAX_HINT_CHARS: usize = 2_000;
/// Longest label, role or profile, in characters.
const MAX_WORD_CHARS: usize = 64;

/// How a changed tool of a pack is treated where its list was frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pin {
    /// It cannot be called until approved.
    Block,
    /// It can, with a warning.
    Warn,
    /// Nobody looks.
    Off,
}

/// A tool document that passed every check: what it says of every tool it makes.
#[derive(Debug, Clone)]
pub struct ServerTool {
    /// Its name: the file's.
    pub name: EntryName,
    /// The id of its type.
    pub type_id: &'static str,
    /// What it does, without invisible characters.
    pub description: String,
    /// Whether it offers its tools.
    pub enabled: bool,
    /// In the manifest from the start.
    pub primary: bool,
    /// Labels for selectors, sorted, each once.
    pub labels: Vec<String>,
    /// Tools of the pack that are left out, by the names they have where they come from.
    pub disabled_sub_tools: Vec<String>,
    /// Found by discovery, whatever the tools of the pack say themselves.
    pub default_deferred: bool,
    /// A short line for discovery.
    pub search_hint: Option<String>,
    /// How to use the pack.
    pub prompt_hint: Option<String>,
    /// Idle time of a call.
    pub timeout: Option<Duration>,
    /// Hard time of a call.
    pub max_timeout: Option<Duration>,
    /// Process roles that a caller needs, all of them.
    pub requires_roles: Vec<String>,
    /// Profiles that may see it; empty: all.
    pub profiles: Vec<String>,
    /// How changed tools are treated.
    pub pin: Option<Pin>,
}

impl ServerTool {
    /// Reads a document of that name. The second part makes the tool or pack.
    ///
    /// # Errors
    /// Everything that is wrong with it, by place.
    pub fn read(name: &EntryName, root: &Node, registry: &Registry) -> Result<(Self, Prepared), Vec<Problem>> {
        let mut problems = Vec::new();
        secret_references(root, &mut problems);
        let tool = read(name, root, registry, &mut problems);
        match tool {
            Some(tool) if problems.is_empty() => Ok(tool),
            _ => Err(first_problems(problems)),
        }
    }
}

fn read(
    name: &EntryName,
    root: &Node,
    registry: &Registry,
    problems: &mut Vec<Problem>,
) -> Option<(ServerTool, Prepared)> {
    let mut fields = Fields::of(root, KeyPath::root(), problems)?;
    let type_id = fields.required_text("type");
    let description = fields.required_text("description");
    if let Some(said) = fields.text("name")
        && said != name.as_str()
    {
        let hint = format!("write `name: {name}`, or remove the key");
        let problem = fields.report("name", format!("the name `{}` is not that of the file", shown(said)));
        problem.hint = Some(hint);
    }
    let enabled = fields.flag("enabled").unwrap_or(true);
    let primary = fields.flag("primary").unwrap_or(false);
    let labels = words(&mut fields, "labels", true);
    let disabled_sub_tools = fields.texts("disabledSubTools").unwrap_or_default();
    let disabled_sub_tools = disabled_sub_tools.into_iter().map(|(text, ..)| text.to_owned()).collect();
    let default_deferred = fields.flag("defaultDeferred").unwrap_or(false);
    let search_hint = cleaned(&mut fields, "searchHint", MAX_HINT_CHARS);
    let prompt_hint = cleaned(&mut fields, "promptHint", MAX_HINT_CHARS);
    let timeout = fields.millis("timeoutMs", MAX_TIMEOUT);
    let max_timeout = fields.millis("maxTimeoutMs", MAX_MAX_TIMEOUT);
    if let (Some(idle), Some(hard)) = (timeout, max_timeout)
        && hard < idle
    {
        let message = format!("it is less than `timeoutMs` ({}), which it limits", idle.as_millis());
        fields.report("maxTimeoutMs", message);
    }
    let requires_roles = words(&mut fields, "requiresRoles", false);
    let profiles = words(&mut fields, "profiles", false);
    let pin = pin(&mut fields);
    let parameters = fields.node("parameters");
    fields.finish();
    if description.is_some_and(|text| text.chars().count() > MAX_DESCRIPTION_CHARS) {
        let at = root.get("description").map_or(root.at, |node| node.at);
        let message = format!("it has more than {MAX_DESCRIPTION_CHARS} characters");
        problems.push(Problem::new(at, KeyPath::root().key("description"), message));
    }

    let type_id = type_id?;
    let Some(registered) = registry.get(type_id) else {
        let at = root.get("type").map_or(root.at, |node| node.at);
        let problem =
            Problem::new(at, KeyPath::root().key("type"), format!("there is no tool type `{}`", shown(type_id)));
        problems.push(problem.hint(registry.hint(type_id)).code(ErrorCode::UnknownToolType));
        return None;
    };
    let none = Node { at: root.at, value: Value::Map(Vec::new()) };
    let (parameters, path) = (parameters.unwrap_or(&none), KeyPath::root().key("parameters"));
    let before = problems.len();
    registered.schema.check(parameters, &path, problems);
    if problems.len() > before {
        return None;
    }
    let prepared = registered.tool_type.prepare(parameters, &path, problems)?;
    let tool = ServerTool {
        name: name.clone(),
        type_id: registered.tool_type.id(),
        description: text::clean(description?).0.into_owned(),
        enabled,
        primary,
        labels,
        disabled_sub_tools,
        default_deferred,
        search_hint,
        prompt_hint,
        timeout,
        max_timeout,
        requires_roles,
        profiles,
        pin,
    };
    Some((tool, prepared))
}

/// A text for models, without what people cannot see.
fn cleaned(fields: &mut Fields<'_, '_>, key: &'static str, max: usize) -> Option<String> {
    let text = fields.text(key)?;
    if text.chars().count() > max {
        fields.report(key, format!("it has more than {max} characters"));
    }
    Some(text::clean(text).0.into_owned())
}

/// A set of short words: labels, roles, profiles. Sorted, each once.
fn words(fields: &mut Fields<'_, '_>, key: &'static str, labels: bool) -> Vec<String> {
    let mut words = Vec::new();
    for (text, at, path) in fields.texts(key).unwrap_or_default() {
        let reason = if text.trim() != text || text.chars().any(text::is_hidden) || text.contains(['\n', '\t']) {
            Some("it starts or ends with a blank, or holds a character that cannot be seen")
        } else if text.chars().count() > MAX_WORD_CHARS {
            Some("it has more than 64 characters")
        } else if labels && text.contains('@') {
            Some("a label holds no `@`: that sign stands before it where tools are selected")
        } else {
            None
        };
        match reason {
            Some(reason) => fields.report_at(Problem::new(at, path, reason)),
            None => words.push(text.to_owned()),
        }
    }
    words.sort();
    words.dedup();
    words
}

fn pin(fields: &mut Fields<'_, '_>) -> Option<Pin> {
    match fields.text("pin")? {
        "block" => Some(Pin::Block),
        "warn" => Some(Pin::Warn),
        "off" => Some(Pin::Off),
        other => {
            fields.report("pin", format!("it must be `block`, `warn` or `off`, it is `{}`", shown(other)));
            None
        }
    }
}

/// Secrets cannot be referred to yet; a reference that nobody resolves would be sent as it stands.
fn secret_references(root: &Node, problems: &mut Vec<Problem>) {
    root.visit_texts(&KeyPath::root(), &mut |text, at, path| {
        let refers = text
            .match_indices("{{")
            .any(|(start, open)| text[start + open.len()..].trim_start().starts_with("secret:"));
        if refers {
            let problem = Problem::new(at, path.clone(), "references to secrets are not supported yet");
            problems.push(
                problem.code(ErrorCode::SecretReference).hint("keep tools that need a secret for a later version"),
            );
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;

    fn read(text: &str) -> Result<ServerTool, Vec<String>> {
        let name = EntryName::parse("my_tool").unwrap();
        let node = parse(text).map_err(|problem| vec![format!("{problem:?}")])?;
        ServerTool::read(&name, &node, &Registry::new().unwrap()).map(|(tool, _)| tool).map_err(|problems| {
            let line = |p: Problem| format!("{}:{} {} {} {}", p.at.line, p.at.column, p.code, p.key, p.message);
            problems.into_iter().map(line).collect()
        })
    }

    #[test]
    fn what_a_document_leaves_out_has_its_default() {
        let tool = read("type: doc_lookup\ndescription: d\nparameters: {path: documents/a..b.md}").unwrap();
        assert!(tool.enabled && !tool.primary && !tool.default_deferred);
        assert_eq!((tool.labels.len(), tool.timeout, tool.max_timeout, tool.pin), (0, None, None, None));
    }

    #[test]
    fn every_key_is_read() {
        let text = "
type: doc_lookup
name: my_tool
description: \"Reads.\\u200b\"
enabled: false
primary: true
labels: [web, docs, web]
disabledSubTools: [Odd Name]
defaultDeferred: true
searchHint: hint
promptHint: use it so
timeoutMs: 1000
maxTimeoutMs: 1000
requiresRoles: [ops]
profiles: [night]
pin: warn
parameters: {path: manuals/x.md}
";
        let tool = read(text).unwrap();
        assert!(!tool.enabled && tool.primary && tool.default_deferred);
        assert_eq!((tool.description.as_str(), tool.labels), ("Reads.", vec!["docs".to_owned(), "web".to_owned()]));
        assert_eq!(tool.disabled_sub_tools, ["Odd Name"]);
        assert_eq!((tool.timeout, tool.max_timeout), (Some(Duration::from_secs(1)), Some(Duration::from_secs(1))));
        assert_eq!((tool.requires_roles, tool.profiles), (vec!["ops".to_owned()], vec!["night".to_owned()]));
        assert_eq!(tool.pin, Some(Pin::Warn));
    }

    #[test]
    fn everything_that_is_wrong_is_found_in_one_pass() {
        let text = "
type: scripted
name: other
desciption: d
labels: ['@web', ' x', docs]
timeoutMs: 5000
maxTimeoutMs: 4999
pin: maybe
parameters:
  timeoutMs: 30001
  inputs: [{name: vance, type: string}, {name: a, type: text}]
  source: '{{ secret:key }}'
";
        assert_eq!(
            read(text).unwrap_err(),
            [
                "2:1 invalid_document  the key `description` is missing",
                "3:7 invalid_document name the name `other` is not that of the file",
                "4:1 invalid_document desciption there is no key `desciption` here",
                "5:10 invalid_document labels[0] a label holds no `@`: that sign stands before it where tools are selected",
                "5:18 invalid_document labels[1] it starts or ends with a blank, or holds a character that cannot be seen",
                "7:15 invalid_document maxTimeoutMs it is less than `timeoutMs` (5000), which it limits",
                "8:6 invalid_document pin it must be `block`, `warn` or `off`, it is `maybe`",
                "10:14 invalid_document parameters.timeoutMs it must be at most 30000, it is the number `30001`",
                "11:57 invalid_document parameters.inputs[1].type it must be one of string, number, integer, boolean, object, \
                 array, it is the text `text`",
                "12:11 secret_reference parameters.source references to secrets are not supported yet",
            ]
        );
    }

    /// A megabyte of nonsense costs little, and is told in a few lines.
    #[test]
    fn a_document_of_nothing_but_mistakes_is_told_by_the_first_of_them() {
        let keys: String = (0..40_000).map(|n| format!("  key{n}: {{}}\n")).collect();
        let items = "[], ".repeat(40_000);
        for (text, last) in [
            (format!("type: scripted\ndescription: d\nparameters:\n{keys}"), "problems"),
            (format!("type: foot\ndescription: d\nparameters: {{foot: f}}\n{}", keys.replace("  key", "key")), "more"),
            (format!("type: foot\ndescription: d\nlabels: [{items}]\nparameters: {{foot: f}}"), "39980 more"),
            (format!("type: foot\ndescription: d\nparameters: {{foot: f, exposedTools: [{items}]}}"), ""),
        ] {
            let begun = std::time::Instant::now();
            let errors = read(&text).unwrap_err();
            assert!(errors.len() <= 21, "{}", errors.len());
            assert!(errors[errors.len() - 1].contains(last), "{errors:?}");
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?} for {} bytes", begun.elapsed(), text.len());
        }
    }

    #[test]
    fn paths_that_leave_their_folder_are_refused() {
        for path in [
            "documents/../../../etc/hostname",
            "/etc/hostname",
            "documents/%2e%2e/%2e%2e/etc/hostname",
            "documents\\\\..\\\\..\\\\etc\\\\hostname",
            "documents/x.md\\u0000.png",
            "documents-private/x.md",
            "scripts/x.js",
            "server-tools/x.yaml",
        ] {
            let lookup = format!("type: doc_lookup\ndescription: d\nparameters: {{path: \"{path}\"}}");
            let script = format!(
                "type: scripted\ndescription: d\nparameters: {{inputs: [], scriptPath: \"{}\"}}",
                path.replace("scripts", "recipes").replace("documents", "scripts")
            );
            for text in [lookup, script] {
                let errors = read(&text).unwrap_err();
                assert!(errors.len() == 1 && errors[0].contains("invalid_path"), "{text}: {errors:?}");
            }
        }
        assert!(read("type: scripted\ndescription: d\nparameters: {inputs: [], scriptPath: scripts/a..b.js}").is_ok());
    }

    #[test]
    fn a_script_stands_in_exactly_one_place() {
        let with = |body: &str| read(&format!("type: scripted\ndescription: d\nparameters: {{inputs: []{body}}}"));
        assert!(with(", source: '1'").is_ok());
        assert!(with("").unwrap_err()[0].contains("missing"));
        assert!(with(", source: ' '").unwrap_err()[0].contains("blank"));
        assert!(with(", source: '1', scriptPath: scripts/x.js").unwrap_err()[0].contains("exclude"));
        assert!(with(", source: '1', engine: python").unwrap_err()[0].contains("engine"));
        let twice = "type: scripted\ndescription: d\nparameters: {source: '1', inputs: [{name: a, type: string}, {name: a, type: number}]}";
        assert!(read(twice).unwrap_err()[0].contains("twice"));
    }

    #[test]
    fn an_unknown_type_is_named_with_the_closest_one() {
        assert_eq!(
            read("type: scriptd\ndescription: d").unwrap_err(),
            ["1:7 unknown_tool_type type there is no tool type `scriptd`"]
        );
    }
}
