//! Commands that the owner makes tools of: `commands` in the settings.

use std::collections::BTreeMap;
use std::time::Duration;

use footbridge_shared::id::ToolName;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::template::{Template, is_name};
use super::{DEFAULT_LIMIT, MAX_LIMIT};
use crate::failure::Failure;

/// A command as a tool, as it stands in the settings.
///
/// ```yaml
/// name: run_tests
/// description: Runs the tests whose name holds a text.
/// argv: [cargo, test, --, "{filter}"]
/// inputs:
///   - { name: filter, type: string, description: A part of the name, required: false }
/// cwd: crates/core
/// timeoutSeconds: 600
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandTool {
    /// The tool's name.
    pub name: String,
    /// What it does, for a model.
    pub description: String,
    /// The program and its arguments. A place `{input}` is filled with an input's value within its word; a word with a place
    /// whose input is not given is left out. A brace that is none of a place is written twice.
    pub argv: Vec<String>,
    /// What callers give.
    #[serde(default)]
    pub inputs: Vec<CommandInput>,
    /// Where it starts: a folder of the roots, the first root if none is named.
    #[serde(default)]
    pub cwd: Option<String>,
    /// How long it may run; an hour if nothing is said.
    #[serde(default)]
    pub timeout_seconds: Option<u64>,
    /// Variables that are set for it.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Whether it changes nothing, so that it may be run twice. The owner's word is taken for it.
    #[serde(default)]
    pub read_only: bool,
    /// What it reads, with places as in `argv`; one whose input is not given stays empty.
    #[serde(default)]
    pub stdin: Option<String>,
}

/// An input of a command tool.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandInput {
    /// Its name: letters, digits and `_`, a letter first.
    pub name: String,
    /// What it may be.
    pub r#type: InputType,
    /// What it is, for a model.
    #[serde(default)]
    pub description: String,
    /// Whether it must be given.
    #[serde(default = "yes")]
    pub required: bool,
    /// Whether a value may begin with `-` where it begins a word: the program may then read it as an option.
    #[serde(default)]
    pub allow_dashes: bool,
}

fn yes() -> bool {
    true
}

/// What an input may be. All of them are put down as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InputType {
    /// A text.
    String,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
}

impl InputType {
    const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
        }
    }
}

/// A command tool that makes sense, from [`CommandTool::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    pub(crate) tool: CommandTool,
    argv: Vec<Template>,
    stdin: Option<Template>,
}

impl CommandTool {
    /// Reads its places and looks whether it makes sense.
    ///
    /// # Errors
    /// What is wrong, for whoever wrote it.
    pub fn check(self) -> Result<Checked, String> {
        let of = format!("command `{}`", crate::failure::shown(&self.name));
        let wrong = |what: String| format!("{of}: {what}");
        ToolName::parse(&self.name).map_err(|error| wrong(error.to_string()))?;
        if self.description.trim().is_empty() {
            return Err(wrong("`description` is empty; a model chooses by it".to_owned()));
        }
        let argv = self.argv.iter().map(|word| Template::parse(word)).collect::<Result<Vec<_>, _>>().map_err(&wrong)?;
        let stdin = self.stdin.as_deref().map(Template::parse).transpose().map_err(&wrong)?;
        match argv.first() {
            None => return Err(wrong("`argv` is empty".to_owned())),
            Some(program) if program.places().next().is_some() => {
                return Err(wrong(
                    "the program, the first word of `argv`, is no place: callers do not choose it".to_owned(),
                ));
            }
            Some(_) => {}
        }
        let used: Vec<&str> = argv.iter().chain(&stdin).flat_map(Template::places).collect();
        for (at, input) in self.inputs.iter().enumerate() {
            let name = crate::failure::shown(&input.name);
            if !is_name(&input.name) {
                return Err(wrong(format!(
                    "the input `{name}` has no proper name: letters, digits and _, a letter first"
                )));
            }
            if self.inputs.iter().take(at).any(|other| other.name == input.name) {
                return Err(wrong(format!("there are two inputs `{name}`")));
            }
            if !used.contains(&input.name.as_str()) {
                return Err(wrong(format!("the input `{name}` is used nowhere")));
            }
        }
        if let Some(unknown) = used.iter().find(|place| self.inputs.iter().all(|input| input.name != **place)) {
            return Err(wrong(format!("there is no input for the place {{{unknown}}}")));
        }
        if self.timeout_seconds.is_some_and(|seconds| seconds == 0 || seconds > MAX_LIMIT.as_secs()) {
            return Err(wrong(format!("`timeoutSeconds` is 1 to {}", MAX_LIMIT.as_secs())));
        }
        super::environment::check(&self.env).map_err(|failure| wrong(failure.message))?;
        Ok(Checked { argv, stdin, tool: self })
    }
}

/// Looks whether all of them make sense.
///
/// # Errors
/// What is wrong with the first that does not, or which name stands twice.
pub(crate) fn check_all(tools: Vec<CommandTool>) -> Result<Vec<Checked>, String> {
    let mut names = std::collections::BTreeSet::new();
    if let Some(twice) = tools.iter().find(|tool| !names.insert(tool.name.clone())) {
        return Err(format!("there are two commands `{}`", crate::failure::shown(&twice.name)));
    }
    tools.into_iter().map(CommandTool::check).collect()
}

impl Checked {
    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.tool.name
    }

    /// How long it may run.
    pub(crate) fn limit(&self) -> Duration {
        self.tool.timeout_seconds.map_or(DEFAULT_LIMIT, Duration::from_secs)
    }

    /// JSON Schema of each input, and the names of those that must be given.
    pub(crate) fn properties(&self) -> (Value, Vec<&str>) {
        let property = |input: &CommandInput| {
            let schema = json!({"type": input.r#type.name(), "description": input.description});
            (input.name.clone(), schema)
        };
        let properties: Map<String, Value> = self.tool.inputs.iter().map(property).collect();
        let required = self.tool.inputs.iter().filter(|input| input.required).map(|input| input.name.as_str());
        (properties.into(), required.collect())
    }

    /// The words of a call, and what the command reads. The arguments fit the schema.
    ///
    /// # Errors
    /// `invalid_arguments`: a value would be read as an option.
    pub(crate) fn fill(&self, arguments: &Map<String, Value>) -> Result<(Vec<String>, Option<String>), Failure> {
        let mut values: BTreeMap<String, String> =
            arguments.iter().filter_map(|(name, value)| Some((name.clone(), as_text(value)?))).collect();
        for input in self.tool.inputs.iter().filter(|input| !input.allow_dashes) {
            let leads = self.argv.iter().any(|word| word.first_place() == Some(&input.name));
            if leads && values.get(&input.name).is_some_and(|value| value.starts_with('-')) {
                let message =
                    format!("`{}` must not begin with `-`: the program would take it for an option", input.name);
                return Err(Failure::invalid_arguments(message));
            }
        }
        let argv = self.argv.iter().filter_map(|word| word.fill(&values)).collect();
        for input in &self.tool.inputs {
            values.entry(input.name.clone()).or_default();
        }
        Ok((argv, self.stdin.as_ref().and_then(|stdin| stdin.fill(&values))))
    }
}

/// A value as it stands on a command line; `None` for one that stands for nothing.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(yaml: &str) -> Result<Checked, String> {
        serde_saphyr::from_str::<CommandTool>(yaml).map_err(|error| error.to_string())?.check()
    }

    const TESTS: &str = "name: run_tests\ndescription: Runs tests.\nargv: [cargo, test, '--jobs={jobs}', --, '{filter}']\n\
        inputs:\n- { name: filter, type: string, required: false }\n- { name: jobs, type: integer, required: false, \
        allowDashes: true }\nstdin: 'filter={filter}'\n";

    fn words(arguments: Value) -> Result<(Vec<String>, Option<String>), Failure> {
        tool(TESTS).unwrap().fill(arguments.as_object().unwrap())
    }

    #[test]
    fn values_stay_in_their_words_and_what_is_not_given_leaves_its_word_out() {
        let (argv, stdin) = words(json!({"filter": "a b; rm -rf {jobs}", "jobs": -1})).unwrap();
        assert_eq!(argv, ["cargo", "test", "--jobs=-1", "--", "a b; rm -rf {jobs}"]);
        assert_eq!(stdin.as_deref(), Some("filter=a b; rm -rf {jobs}"));
        let (argv, stdin) = words(json!({"filter": null})).unwrap();
        assert_eq!(argv, ["cargo", "test", "--"]);
        assert_eq!(stdin.as_deref(), Some("filter="));
    }

    #[test]
    fn a_value_is_no_option_unless_the_owner_allows_it() {
        assert!(words(json!({"filter": "--config=x"})).unwrap_err().message.contains("filter"));
        assert!(words(json!({"filter": "x-y"})).is_ok());
    }

    #[test]
    fn the_schema_comes_from_the_inputs() {
        let (properties, required) = tool(TESTS)
            .map(|tool| {
                let (properties, required) = tool.properties();
                (properties, required.len())
            })
            .unwrap();
        assert_eq!((&properties["jobs"]["type"], required), (&json!("integer"), 0));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_reason() {
        for (change, part) in [
            (("run_tests", "Run Tests"), "Run Tests"),
            (("Runs tests.", "' '"), "description"),
            (("[cargo, test, '--jobs={jobs}', --, '{filter}']", "[]"), "empty"),
            (("[cargo,", "['{filter}',"), "callers do not choose"),
            (("--jobs={jobs}", "--jobs={job}"), "used nowhere"),
            (("'{filter}']", "'{filter}', '{more}']"), "{more}"),
            (("name: jobs", "name: filter"), "two inputs"),
            (("stdin:", "timeoutSeconds: 0\nstdin:"), "timeoutSeconds"),
            (("stdin:", "env: { 'A B': x }\nstdin:"), "A B"),
            (("stdin:", "shell: true\nstdin:"), "shell"),
            (("integer", "int"), "int"),
        ] {
            let yaml = TESTS.replace(change.0, change.1);
            let error = tool(&yaml).map(|_| ()).unwrap_err();
            assert!(error.contains(part), "{part} is missing in: {error}");
        }
    }
}
