//! What a tool's schema says of its arguments, as far as the hub makes use of it.
//!
//! The hub does not judge the arguments of an MCP tool: the server does, by rules that its schema may not tell, and its
//! answer is what the caller is to see. Before they go there, the hub mends what has one meaning only: models write
//! `"true"` and `"3"` where a flag and a number are wanted, and objects as their JSON text. And it adds what the document
//! gives.

use std::collections::{BTreeMap, BTreeSet};

use footbridge_mcp::Fields;
use footbridge_shared::ErrorCode;
use footbridge_shared::message::Raw;
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json};

use super::config::GivenArguments;
use crate::domain::arguments::Arguments;
use crate::domain::failure::Failure;

/// How far references to other parts of a schema are followed.
const MAX_DEPTH: usize = 8;
/// How much of a schema is looked at, references as often as they are followed: about four times the largest schema, in bytes.
/// Beyond that nothing is mended.
const MAX_STEPS: usize = 1_000_000;

/// Which kinds of JSON a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Kinds {
    text: bool,
    flag: bool,
    integer: bool,
    number: bool,
    object: bool,
    list: bool,
}

/// What is known of a tool's arguments.
#[derive(Debug, Default)]
pub(in crate::sources::configured) struct Shape {
    /// Keys whose value is certainly no text.
    mended: BTreeMap<String, Kinds>,
    /// Keys that the schema names.
    known: BTreeSet<String>,
    /// Whether the schema says in words that it takes others.
    open: bool,
}

impl Shape {
    /// Reads an input schema.
    pub(in crate::sources::configured) fn of(schema: &RawValue) -> Self {
        let Ok(Json::Object(schema)) = serde_json::from_str::<Json>(schema.get()) else { return Self::default() };
        let root = Json::Object(schema);
        let none = Map::new();
        let properties = root.get("properties").and_then(Json::as_object).unwrap_or(&none);
        let mut reader = Reader { root: &root, steps: MAX_STEPS };
        let mut mended: BTreeMap<String, Kinds> = properties
            .iter()
            .filter_map(|(key, schema)| Some((key.clone(), reader.kinds(schema, MAX_DEPTH)?)))
            .filter(|(_, kinds)| !kinds.text)
            .collect();
        if reader.steps == 0 {
            mended.clear();
        }
        let open = match root.get("additionalProperties") {
            Some(Json::Bool(open)) => *open,
            Some(other) => other.is_object(),
            None => false,
        };
        Self { mended, known: properties.keys().cloned().collect(), open }
    }

    /// Whether the document may give this key: the schema names it, or says that it takes keys it does not name. Where it
    /// says nothing of those, they are none of the tool's.
    fn takes(&self, key: &str) -> bool {
        self.open || self.known.contains(key)
    }

    /// The arguments as they go to the server.
    ///
    /// # Errors
    /// They are no object; nothing ran.
    pub(in crate::sources::configured) fn complete(
        &self,
        arguments: Arguments,
        given: &GivenArguments,
    ) -> Result<Raw, Failure> {
        let wrong = || Failure::not_run(ErrorCode::InvalidArguments, "the arguments must be a JSON object");
        let adds = |(key, _): &&(String, Raw)| self.takes(key);
        let (defaults, forced) = (given.defaults.iter().filter(adds), given.forced.iter().filter(adds));
        if self.mended.is_empty() && defaults.clone().next().is_none() && forced.clone().next().is_none() {
            let raw = arguments.into_raw();
            return if raw.get().starts_with('{') { Ok(raw) } else { Err(wrong()) };
        }
        let mut fields = Fields::of(arguments.raw()).ok_or_else(wrong)?;
        for (key, kinds) in &self.mended {
            if let Some(mended) = fields.get(key).and_then(|value| mended(value, *kinds)) {
                fields.set(key, mended);
            }
        }
        for (key, value) in defaults {
            if fields.get(key).is_none() {
                fields.set(key, value.clone());
            }
        }
        for (key, value) in forced {
            fields.set(key, value.clone());
        }
        Ok(fields.to_raw())
    }
}

/// Reads one schema.
struct Reader<'a> {
    root: &'a Json,
    /// What is left of [`MAX_STEPS`].
    steps: usize,
}

impl Reader<'_> {
    /// The kinds that a part of it admits; `None`: it does not say, or not in a way that is understood here.
    fn kinds(&mut self, schema: &Json, depth: usize) -> Option<Kinds> {
        let depth = depth.checked_sub(1)?;
        self.step(1)?;
        let schema = schema.as_object()?;
        if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
            self.step(reference.len())?;
            return self.kinds(self.root.pointer(reference.strip_prefix('#')?)?, depth);
        }
        match schema.get("type") {
            Some(Json::String(name)) => with(Kinds::default(), name),
            Some(Json::Array(names)) => {
                self.step(names.len())?;
                names.iter().try_fold(Kinds::default(), |kinds, name| with(kinds, name.as_str()?))
            }
            Some(_) => None,
            None => {
                let branches = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
                branches.iter().try_fold(Kinds::default(), |all, branch| Some(union(all, self.kinds(branch, depth)?)))
            }
        }
    }

    fn step(&mut self, much: usize) -> Option<()> {
        let left = self.steps.checked_sub(much);
        self.steps = left.unwrap_or_default();
        left.map(drop)
    }
}

fn with(mut kinds: Kinds, name: &str) -> Option<Kinds> {
    match name {
        "string" => kinds.text = true,
        "boolean" => kinds.flag = true,
        "integer" => kinds.integer = true,
        "number" => kinds.number = true,
        "object" => kinds.object = true,
        "array" => kinds.list = true,
        "null" => {}
        _ => return None,
    }
    Some(kinds)
}

fn union(a: Kinds, b: Kinds) -> Kinds {
    Kinds {
        text: a.text || b.text,
        flag: a.flag || b.flag,
        integer: a.integer || b.integer,
        number: a.number || b.number,
        object: a.object || b.object,
        list: a.list || b.list,
    }
}

/// What a text means where a text cannot be meant; `None`: nothing, or more than one thing.
fn mended(value: &RawValue, kinds: Kinds) -> Option<Raw> {
    if !value.get().starts_with('"') {
        return None;
    }
    let text: String = serde_json::from_str(value.get()).ok()?;
    let meant = match text.bytes().next()? {
        b't' | b'f' => kinds.flag,
        b'-' | b'0'..=b'9' if text.contains(['.', 'e', 'E']) => kinds.number,
        b'-' | b'0'..=b'9' => kinds.integer || kinds.number,
        b'{' => kinds.object,
        b'[' => kinds.list,
        _ => false,
    };
    if !meant || text.ends_with(char::is_whitespace) {
        return None;
    }
    // Digits stay the digits that were written.
    RawValue::from_string(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn raw(value: &Json) -> Raw {
        to_raw_value(value).unwrap()
    }

    fn completed(schema: &Json, arguments: &str, given: &GivenArguments) -> String {
        let arguments = Arguments::new(RawValue::from_string(arguments.to_owned()).unwrap());
        Shape::of(&raw(schema))
            .complete(arguments, given)
            .map_or_else(|f| f.code.to_string(), |raw| raw.get().to_owned())
    }

    #[test]
    fn a_text_is_mended_only_where_it_has_one_meaning() {
        let optional = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
        let cases = [
            (json!({"type": "boolean"}), r#""true""#, "true"),
            (json!({"type": "boolean"}), r#""false""#, "false"),
            (json!({"type": "boolean"}), r#""yes""#, r#""yes""#),
            (json!({"type": "boolean"}), r#""True""#, r#""True""#),
            (json!({"type": "boolean"}), r#""1""#, r#""1""#),
            (json!({"type": "integer"}), r#""3""#, "3"),
            (json!({"type": "integer"}), r#""-9007199254740993""#, "-9007199254740993"),
            (json!({"type": "integer"}), r#""3.5""#, r#""3.5""#),
            (json!({"type": "integer"}), r#""1e3""#, r#""1e3""#),
            (json!({"type": "integer"}), r#""03""#, r#""03""#),
            (json!({"type": "integer"}), r#"" 3""#, r#"" 3""#),
            (json!({"type": "integer"}), r#""3 ""#, r#""3 ""#),
            (json!({"type": "integer"}), r#""three""#, r#""three""#),
            (json!({"type": "integer"}), r#""""#, r#""""#),
            (json!({"type": "number"}), r#""3.50""#, "3.50"),
            (json!({"type": "number"}), r#""3""#, "3"),
            (json!({"type": "number"}), r#""NaN""#, r#""NaN""#),
            (json!({"type": "object"}), r#""{\"a\": 1}""#, r#"{"a": 1}"#),
            (json!({"type": "object"}), r#""[1]""#, r#""[1]""#),
            (json!({"type": "object"}), r#""{a: 1}""#, r#""{a: 1}""#),
            (json!({"type": "array"}), r#""[1, \"b\"]""#, r#"[1, "b"]"#),
            (json!({"type": "array"}), r#""a,b""#, r#""a,b""#),
            (json!({"type": ["integer", "null"]}), r#""3""#, "3"),
            (json!({"type": ["integer", "string"]}), r#""3""#, r#""3""#),
            (optional.clone(), r#""3""#, "3"),
            (json!({"$ref": "#/$defs/n"}), r#""3""#, "3"),
            (json!({"$ref": "#/$defs/loop"}), r#""3""#, r#""3""#),
            (json!({"$ref": "https://example.invalid/n"}), r#""3""#, r#""3""#),
            (json!({"type": "string"}), r#""3""#, r#""3""#),
            (json!({"enum": [3]}), r#""3""#, r#""3""#),
            (json!({}), r#""3""#, r#""3""#),
            (json!(true), r#""3""#, r#""3""#),
            (json!({"type": "integer"}), "3", "3"),
            (json!({"type": "boolean"}), "null", "null"),
        ];
        for (schema, value, sent) in cases {
            let whole = json!({"type": "object", "properties": {"x": schema},
                "$defs": {"n": optional, "loop": {"$ref": "#/$defs/loop"}}});
            let found = completed(&whole, &format!(r#"{{"x":{value}}}"#), &GivenArguments::default());
            assert_eq!(found, format!(r#"{{"x":{sent}}}"#), "{} {value}", whole["properties"]["x"]);
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_over_and_over_is_not_followed_to_its_end() {
        let many = |what: &str| -> Vec<Json> { (0..1_000).map(|_| json!({"$ref": what})).collect() };
        let mut schema = json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "$defs": {"a": {"anyOf": many("#/$defs/b")}, "b": {"anyOf": many("#/$defs/c")},
                      "c": {"anyOf": many("#/$defs/d")}, "d": {"type": "integer"}},
        });
        let given = GivenArguments::default();
        assert_eq!(completed(&schema, r#"{"n":"3"}"#, &given), r#"{"n":3}"#);
        schema["properties"]["x"] = json!({"$ref": "#/$defs/a"});
        assert_eq!(completed(&schema, r#"{"n":"3","x":"3"}"#, &given), r#"{"n":"3","x":"3"}"#, "nothing is mended");
    }

    #[test]
    fn the_document_fills_and_overrides_what_the_tool_takes() {
        let given = GivenArguments {
            defaults: vec![("a".to_owned(), raw(&json!(1))), ("zz".to_owned(), raw(&json!(1)))],
            forced: vec![("b".to_owned(), raw(&json!("f"))), ("yy".to_owned(), raw(&json!(2)))],
        };
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}});
        assert_eq!(completed(&schema, "{}", &given), r#"{"a":1,"b":"f"}"#);
        assert_eq!(completed(&schema, r#"{"b":"x","a":null}"#, &given), r#"{"b":"f","a":null}"#);
        let mut open = schema.clone();
        open["additionalProperties"] = json!({"type": "integer"});
        assert_eq!(completed(&open, r#"{"a":2}"#, &given), r#"{"a":2,"zz":1,"b":"f","yy":2}"#);
        open["additionalProperties"] = json!(false);
        assert_eq!(completed(&open, r#"{"a":2}"#, &given), r#"{"a":2,"b":"f"}"#);
        assert_eq!(completed(&schema, "[]", &given), "invalid_arguments");
        assert_eq!(completed(&json!({}), "[1]", &GivenArguments::default()), "invalid_arguments");
        assert_eq!(completed(&json!({}), r#"{"n": 1.10}"#, &given), r#"{"n": 1.10}"#, "as it came");
    }
}
