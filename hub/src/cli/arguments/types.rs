//! Which JSON types a schema allows, as far as that can be said without a value.

use std::fmt;

use serde_json::Value;

/// Deepest chain of `$ref`, `anyOf` and the like that is followed; beyond it anything goes.
const MAX_DEPTH: u8 = 16;

/// The types that an argument may have.
#[derive(Debug, Clone, PartialEq)]
pub struct Types {
    /// Names of JSON Schema types; empty: any.
    names: Vec<&'static str>,
    /// The schema of an array's items, and the schema in which its references are looked up.
    items: Option<(Value, Value)>,
}

const NAMES: [(&str, &str); 7] = [
    ("string", "a text"),
    ("number", "a number"),
    ("integer", "a whole number"),
    ("boolean", "true or false"),
    ("object", "a JSON object"),
    ("array", "a list"),
    ("null", "null"),
];

impl Types {
    /// Anything.
    pub const ANY: Self = Self { names: Vec::new(), items: None };

    /// What a tool's input schema allows for one argument.
    pub fn of_argument(schema: &Value, key: &str) -> Self {
        let top = resolve(schema, schema, 0);
        match top.get("properties").and_then(|properties| properties.get(key)) {
            Some(property) => Self::of(property, schema, 0),
            None => top.get("additionalProperties").map_or(Self::ANY, |others| Self::of(others, schema, 0)),
        }
    }

    fn of(schema: &Value, root: &Value, depth: u8) -> Self {
        if depth > MAX_DEPTH {
            return Self::ANY;
        }
        let schema = resolve(schema, root, depth);
        let items = schema.get("items").filter(|items| items.is_object()).map(|items| (items.clone(), root.clone()));
        if let Some(names) = declared(schema) {
            return Self { names, items };
        }
        let parts = |key: &str| schema.get(key).and_then(Value::as_array);
        if let Some(choices) = parts("anyOf").or_else(|| parts("oneOf")) {
            return choices
                .iter()
                .map(|choice| Self::of(choice, root, depth + 1))
                .reduce(Self::or)
                .unwrap_or(Self::ANY);
        }
        let all = parts("allOf").into_iter().flatten().map(|part| Self::of(part, root, depth + 1));
        all.into_iter().find(|types| !types.is_any()).unwrap_or(Self::ANY)
    }

    /// Either of two.
    fn or(self, other: Self) -> Self {
        if self.is_any() || other.is_any() {
            return Self::ANY;
        }
        let mut names = self.names;
        names.extend(other.names);
        Self { names, items: self.items.or(other.items) }
    }

    /// Whether nothing is said.
    pub fn is_any(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether a text will do.
    pub fn takes_string(&self) -> bool {
        self.is_any() || self.names.contains(&"string")
    }

    /// Whether a list is among what is named.
    pub fn takes_array(&self) -> bool {
        self.names.contains(&"array")
    }

    /// What the items of a list may be.
    pub fn items(&self) -> Self {
        self.items.as_ref().map_or(Self::ANY, |(items, root)| Self::of(items, root, 0))
    }

    /// Whether a value, given as its JSON, is of one of the types.
    pub fn takes(&self, json: &str) -> bool {
        let has = |name| self.names.contains(&name);
        self.is_any()
            || match json.as_bytes().first() {
                Some(b'"') => has("string"),
                Some(b'{') => has("object"),
                Some(b'[') => has("array"),
                Some(b't' | b'f') => has("boolean"),
                Some(b'n') => has("null"),
                _ => has("number") || has("integer") && is_whole(json),
            }
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted: Vec<&str> =
            NAMES.into_iter().filter(|(name, _)| self.names.contains(name)).map(|(_, wanted)| wanted).collect();
        f.write_str(&wanted.join(" or "))
    }
}

/// What `type`, `enum` or `const` say.
fn declared(schema: &Value) -> Option<Vec<&'static str>> {
    let known = |name: &str| NAMES.into_iter().map(|(known, _)| known).find(|known| *known == name);
    let names: Vec<&'static str> = match (schema.get("type"), schema.get("enum"), schema.get("const")) {
        (Some(Value::String(name)), ..) => known(name).into_iter().collect(),
        (Some(Value::Array(names)), ..) => names.iter().filter_map(|name| known(name.as_str()?)).collect(),
        (_, Some(Value::Array(values)), _) => values.iter().map(name_of).collect(),
        (.., Some(value)) => vec![name_of(value)],
        _ => return None,
    };
    (!names.is_empty()).then_some(names)
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Follows local references; a foreign one, or a circle, is left as it is and says nothing.
fn resolve<'a>(schema: &'a Value, root: &'a Value, depth: u8) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|text| root.pointer(text.strip_prefix('#')?));
    match target {
        Some(target) if depth < MAX_DEPTH => resolve(target, root, depth + 1),
        _ => schema,
    }
}

/// Whether a JSON number is an integer as JSON Schema understands it: `5` and `5.0`.
fn is_whole(json: &str) -> bool {
    !json.contains(['.', 'e', 'E']) || json.parse::<f64>().is_ok_and(|number| number.fract() == 0.0)
}
