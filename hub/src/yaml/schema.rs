//! A part of a document against a JSON Schema, with the places of the keys that do not fit.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::Value as Json;

use super::error::{Problem, more_keys, shown};
use super::fields::mistyped;
use super::node::{KeyPath, Node, Position, Value};
use super::{MAX_PROBLEMS, did_you_mean};

/// A compiled JSON Schema that knows its text, for hints.
pub struct Schema {
    json: Json,
    validator: Validator,
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Schema")
    }
}

impl Schema {
    /// Compiles a schema. References to elsewhere are errors: nothing is fetched.
    ///
    /// # Errors
    /// Says what is wrong with the schema.
    pub fn compile(json: Json) -> Result<Self, String> {
        let validator = jsonschema::validator_for(&json).map_err(|error| error.to_string())?;
        Ok(Self { json, validator })
    }

    /// The schema's text.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// Checks a node that stands at `path`.
    pub fn check(&self, node: &Node, path: &KeyPath, problems: &mut Vec<Problem>) {
        let json = node.to_json();
        for error in self.validator.iter_errors(&json).take(MAX_PROBLEMS) {
            let (node, path) = find(node, path, error.instance_path().as_str());
            self.report(&error, node, &path, problems);
        }
    }

    fn report(&self, error: &ValidationError<'_>, node: &Node, path: &KeyPath, problems: &mut Vec<Problem>) {
        match error.kind() {
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                let known = self.known_keys(error);
                problems.extend(unexpected.iter().take(MAX_PROBLEMS).map(|key| unknown_key(node, path, key, &known)));
                problems.extend(more_keys(unexpected.len(), node, path));
            }
            Kind::Required { property } => {
                let key = property.as_str().unwrap_or_default();
                problems.push(Problem::new(node.at, path.clone(), format!("the key `{key}` is missing")));
            }
            Kind::Type { kind } => problems.push(mistyped(node, path.clone(), &wanted(kind))),
            Kind::Enum { options } => {
                let options: Vec<String> = options.as_array().into_iter().flatten().map(plain).collect();
                let problem = mistyped(node, path.clone(), &format!("one of {}", options.join(", ")));
                let word = node.as_text().and_then(|text| did_you_mean(text, options.iter().map(String::as_str)));
                problems.push(match word {
                    Some(word) => problem.hint(format!("did you mean `{word}`?")),
                    None => problem,
                });
            }
            Kind::Minimum { limit } => problems.push(mistyped(node, path.clone(), &format!("at least {limit}"))),
            Kind::Maximum { limit } => problems.push(mistyped(node, path.clone(), &format!("at most {limit}"))),
            Kind::MinLength { limit: 1 } => problems.push(Problem::new(node.at, path.clone(), "it is empty")),
            _ => problems.push(Problem::new(node.at, path.clone(), shown(&error.masked().to_string()))),
        }
    }

    /// The keys that the schema names where an unexpected one was found.
    fn known_keys(&self, error: &ValidationError<'_>) -> Vec<&str> {
        let at = error.schema_path().as_str();
        let parent = at.rsplit_once('/').map_or("", |(parent, _)| parent);
        let properties = self.json.pointer(&format!("{parent}/properties")).and_then(Json::as_object);
        properties.into_iter().flatten().map(|(key, _)| key.as_str()).collect()
    }
}

fn unknown_key(node: &Node, path: &KeyPath, key: &str, known: &[&str]) -> Problem {
    let at: Position = node.entry(key).map_or(node.at, |entry| entry.key_at);
    let problem = Problem::new(at, path.key(key), format!("there is no key `{}` here", shown(key)));
    match did_you_mean(key, known.iter().copied()) {
        Some(word) => problem.hint(format!("did you mean `{word}`?")),
        None if known.is_empty() => problem.hint("there are no keys here at all"),
        None => problem.hint(format!("the keys here are {}", known.join(", "))),
    }
}

fn wanted(kind: &TypeKind) -> String {
    let word = |kind: JsonType| match kind {
        JsonType::String => "a text",
        JsonType::Number => "a number",
        JsonType::Integer => "a whole number",
        JsonType::Boolean => "`true` or `false`",
        JsonType::Array => "a list",
        JsonType::Object => "a map of keys",
        JsonType::Null => "`null`",
    };
    match kind {
        TypeKind::Single(kind) => word(*kind).to_owned(),
        TypeKind::Multiple(kinds) => kinds.iter().map(word).collect::<Vec<_>>().join(" or "),
    }
}

fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Follows a JSON pointer from a node; as far as it goes.
fn find<'a>(node: &'a Node, path: &KeyPath, pointer: &str) -> (&'a Node, KeyPath) {
    let mut found = (node, path.clone());
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        found = match &found.0.value {
            Value::Map(_) => match found.0.get(&step) {
                Some(node) => (node, found.1.key(&step)),
                None => break,
            },
            Value::List(items) => match step.parse::<usize>().ok().and_then(|index| Some((index, items.get(index)?))) {
                Some((index, node)) => (node, found.1.index(index)),
                None => break,
            },
            _ => break,
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::yaml::parse;

    #[test]
    fn what_does_not_fit_is_named_by_place_and_key() {
        let schema = Schema::compile(json!({
            "type": "object", "required": ["url"], "additionalProperties": false,
            "properties": {
                "url": {"type": "string", "minLength": 1},
                "method": {"enum": ["GET", "POST"]},
                "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 30000},
                "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                "inputs": {"type": "array", "items": {"type": "object", "required": ["name"], "additionalProperties": false,
                    "properties": {"name": {"type": "string"}, "required": {"type": "boolean"}}}},
            }
        }))
        .unwrap();
        let text = "\
url: ''
method: GTE
timeoutMs: 30001
headers: {X-Version: 1.10, X-On: true, 'a/b~c': 7}
inputs:
  - {name: 1, requird: true}
  - {required: yes}
  - 5
timeout: 1
";
        let mut problems = Vec::new();
        schema.check(&parse(text).unwrap(), &KeyPath::root().key("parameters"), &mut problems);
        problems.sort_by_key(|p| p.at);
        let shown: Vec<String> = problems
            .iter()
            .map(|p| {
                format!("{}:{} {} {} | {}", p.at.line, p.at.column, p.key, p.message, p.hint.as_deref().unwrap_or(""))
            })
            .collect();
        assert_eq!(
            shown,
            [
                "1:6 parameters.url it is empty | ",
                "2:9 parameters.method it must be one of GET, POST, it is the text `GTE` | ",
                "3:12 parameters.timeoutMs it must be at most 30000, it is the number `30001` | ",
                "4:22 parameters.headers.X-Version it must be a text, it is the number `1.10` | write it in quotes: \"1.10\"",
                "4:34 parameters.headers.X-On it must be a text, it is `true` | write it in quotes: \"true\"",
                "4:49 parameters.headers.a/b~c it must be a text, it is the number `7` | write it in quotes: \"7\"",
                "6:12 parameters.inputs[0].name it must be a text, it is the number `1` | write it in quotes: \"1\"",
                "6:15 parameters.inputs[0].requird there is no key `requird` here | did you mean `required`?",
                "7:5 parameters.inputs[1] the key `name` is missing | ",
                "7:16 parameters.inputs[1].required it must be `true` or `false`, it is the text `yes` | \
                 only `true` and `false`, unquoted, are flags",
                "8:5 parameters.inputs[2] it must be a map of keys, it is the number `5` | ",
                "9:1 parameters.timeout there is no key `timeout` here | did you mean `timeoutMs`?",
            ]
        );
    }

    #[test]
    fn references_to_elsewhere_are_not_followed() {
        assert!(Schema::compile(json!({"$ref": "https://example.invalid/x.json"})).is_err());
    }
}
