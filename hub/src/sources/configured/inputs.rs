//! Declared inputs of a tool: what its arguments are called, and their schema.

use std::collections::HashSet;

use serde_json::{Map, Value as Json, json};

use crate::yaml::{KeyPath, Node, Problem, Value};

/// The types an input may have: those of JSON Schema, but `null`.
const TYPES: [&str; 6] = ["string", "number", "integer", "boolean", "object", "array"];
/// Most inputs of one tool.
const MAX_INPUTS: usize = 100;
/// Longest name of an input, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Words that no variable of a script can be called: the language's own, and the host object.
const TAKEN_WORDS: &[&str] = &[
    "vance",
    "arguments",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "globalThis",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "undefined",
    "var",
    "void",
    "while",
    "with",
    "yield",
    "NaN",
    "Infinity",
];

/// One declared input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Input {
    /// A JavaScript identifier.
    pub(super) name: String,
    type_id: String,
    description: Option<String>,
    required: bool,
}

/// The JSON Schema of the key `inputs` itself.
pub(super) fn schema_of_key() -> Json {
    json!({
        "type": "array",
        "maxItems": MAX_INPUTS,
        "description": "The tool's arguments, in order; [] for none.",
        "items": {
            "type": "object",
            "required": ["name", "type"],
            "additionalProperties": false,
            "properties": {
                "name": {"type": "string", "minLength": 1, "description": "A JavaScript identifier, not `vance`."},
                "type": {"enum": TYPES},
                "description": {"type": "string", "description": "What the caller should put there."},
                "required": {"type": "boolean", "default": true},
            },
        },
    })
}

/// Reads inputs that have passed [`schema_of_key`].
pub(super) fn read(node: &Node, path: &KeyPath, problems: &mut Vec<Problem>) -> Option<Vec<Input>> {
    let Value::List(items) = &node.value else { return None };
    let mut seen = HashSet::new();
    let mut inputs = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = path.index(index).key("name");
        let text = |key: &str| item.get(key).and_then(Node::as_text);
        let (Some(name), Some(type_id)) = (item.get("name"), text("type")) else { continue };
        let word = name.as_text()?;
        if let Err(reason) = check_name(word) {
            problems.push(Problem::new(name.at, path, reason));
        } else if !seen.insert(word) {
            problems.push(Problem::new(name.at, path, format!("the input `{word}` stands twice")));
        } else {
            inputs.push(Input {
                name: word.to_owned(),
                type_id: type_id.to_owned(),
                description: text("description").map(str::to_owned),
                required: !matches!(item.get("required").map(|node| &node.value), Some(Value::Bool(false))),
            });
        }
    }
    (inputs.len() == items.len()).then_some(inputs)
}

fn check_name(name: &str) -> Result<(), String> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$');
    let goes_on = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
    if !starts || !goes_on || name.len() > MAX_NAME_CHARS {
        let shown = crate::yaml::shown(name);
        return Err(format!("`{shown}` is no name for a variable: use letters, digits, `_` and `$`, no digit first"));
    }
    if TAKEN_WORDS.contains(&name) {
        return Err(format!("`{name}` is a word of the script itself; call the input something else"));
    }
    Ok(())
}

/// The schema of a tool with these inputs.
pub(super) fn input_schema(inputs: &[Input]) -> Json {
    let properties: Map<String, Json> = inputs
        .iter()
        .map(|input| {
            let mut property = json!({"type": input.type_id});
            if let Some(description) = &input.description {
                property["description"] = description.as_str().into();
            }
            (input.name.clone(), property)
        })
        .collect();
    let required: Vec<&str> = inputs.iter().filter(|input| input.required).map(|input| input.name.as_str()).collect();
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;

    #[test]
    fn names_are_identifiers_that_mean_nothing_else() {
        for good in ["a", "_x", "$", "ticketId", "of", "value2"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in
            ["", "2a", "a-b", "a b", "é", "vance", "class", "undefined", "arguments", "a\u{200b}", &"a".repeat(65)]
        {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn inputs_become_an_object_schema_in_their_order() {
        let node = parse("[{name: b, type: integer, description: how many}, {name: a, type: array, required: false}]")
            .unwrap();
        let mut problems = Vec::new();
        let inputs = read(&node, &KeyPath::root(), &mut problems).unwrap();
        assert_eq!(
            input_schema(&inputs).to_string(),
            r#"{"type":"object","properties":{"b":{"type":"integer","description":"how many"},"a":{"type":"array"}},"additionalProperties":false,"required":["b"]}"#
        );
        assert_eq!(problems, []);
        assert_eq!(input_schema(&[]).to_string(), r#"{"type":"object","properties":{},"additionalProperties":false}"#);
    }
}
