//! `Mcp-Param-*`: arguments that a tool's schema wants repeated in headers, by `x-mcp-header` at their properties.

use std::collections::HashSet;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{PARAM_PREFIX, decode_value, encode_value, the_one};

/// What marks a property of a schema.
const ANNOTATION: &str = "x-mcp-header";

/// Which arguments of a tool go into which headers.
#[derive(Debug, Clone, Default)]
pub struct ParamHeaders(Vec<ParamHeader>);

#[derive(Debug, Clone)]
struct ParamHeader {
    /// The names of the properties that lead to the argument.
    path: Vec<String>,
    header: HeaderName,
}

impl ParamHeaders {
    /// Reads them from a tool's `inputSchema`. Most have none, which is found out without parsing it.
    ///
    /// # Errors
    /// Why the annotations cannot be followed: a tool of which that is true is not to be listed.
    pub fn of(input_schema: &RawValue) -> Result<Self, String> {
        if !input_schema.get().contains(ANNOTATION) {
            return Ok(Self::default());
        }
        let schema: Map<String, Value> = serde_json::from_str(input_schema.get())
            .map_err(|_| format!("its schema has {ANNOTATION} and cannot be read"))?;
        let mut found = Vec::new();
        walk(&schema, Some(&mut Vec::new()), &mut found)?;
        let mut headers = Vec::with_capacity(found.len());
        let mut seen = HashSet::new();
        for (path, schema) in found {
            let place = path.join(".");
            let Some(name) = schema.get(ANNOTATION).and_then(Value::as_str).filter(|name| !name.is_empty()) else {
                return Err(format!("{ANNOTATION} of `{place}` is no name"));
            };
            let Ok(header) = HeaderName::from_bytes(format!("{PARAM_PREFIX}{name}").as_bytes()) else {
                return Err(format!("{ANNOTATION} of `{place}` cannot be the name of a header"));
            };
            if !matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
                return Err(format!("{ANNOTATION} is at `{place}`, which is no string, integer or boolean"));
            }
            if !seen.insert(header.clone()) {
                return Err(format!("two properties want the header `{name}`"));
            }
            headers.push(ParamHeader { path, header });
        }
        Ok(Self(headers))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts the headers for the `params` of a `tools/call` in.
    pub fn put(&self, headers: &mut HeaderMap, params: &RawValue) {
        let Some(arguments) = self.arguments(Some(params)) else { return };
        for param in &self.0 {
            let value = param.value(&arguments).and_then(|value| HeaderValue::from_str(&encode_value(&value)).ok());
            headers.extend(value.map(|value| (param.header.clone(), value)));
        }
    }

    /// Checks headers against the `params` of a `tools/call`.
    ///
    /// # Errors
    /// What does not fit.
    pub fn check(&self, headers: &HeaderMap, params: Option<&RawValue>) -> Result<(), String> {
        let arguments = self.arguments(params).unwrap_or_default();
        for param in &self.0 {
            let name = param.header.as_str();
            match (the_one(headers, name)?, param.value(&arguments)) {
                (None, None) => {}
                (None, Some(_)) => return Err(format!("the header {name} is missing")),
                (Some(_), None) => return Err(format!("the header {name} is there, and its argument is not")),
                (Some(text), Some(value)) if decode_value(text).as_deref() == Some(value.as_str()) => {}
                (Some(_), Some(_)) => return Err(format!("the header {name} is not what the arguments say")),
            }
        }
        Ok(())
    }

    fn arguments(&self, params: Option<&RawValue>) -> Option<Value> {
        if self.0.is_empty() { None } else { crate::fields::read_field(params?, "arguments") }
    }
}

impl ParamHeader {
    fn value(&self, arguments: &Value) -> Option<String> {
        match self.path.iter().try_fold(arguments, |value, name| value.get(name))? {
            Value::String(text) => Some(text.clone()),
            Value::Bool(yes) => Some(yes.to_string()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }
}

/// Collects the properties that are marked. `path` leads to this schema through `properties` alone; it is `None` where
/// something else was on the way, which is no place for the mark.
fn walk<'a>(
    schema: &'a Map<String, Value>,
    mut path: Option<&mut Vec<String>>,
    found: &mut Vec<(Vec<String>, &'a Map<String, Value>)>,
) -> Result<(), String> {
    if schema.contains_key(ANNOTATION) {
        match path.as_deref() {
            Some(path) if !path.is_empty() => found.push((path.clone(), schema)),
            Some(_) => return Err(format!("{ANNOTATION} is at the schema itself, which is no argument")),
            None => return Err(format!("{ANNOTATION} is at a place that is no argument")),
        }
    }
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            // Instances and names, no schemas.
            ("default" | "const" | "enum" | "examples" | "dependentRequired", _) => {}
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    let Value::Object(property) = property else { continue };
                    match path.as_deref_mut() {
                        Some(path) => {
                            path.push(name.clone());
                            walk(property, Some(path), found)?;
                            path.pop();
                        }
                        None => walk(property, None, found)?,
                    }
                }
            }
            // Schemas by names, which are no keywords.
            (
                "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties",
                Value::Object(schemas),
            ) => {
                for schema in schemas.values() {
                    walk_any(schema, found)?;
                }
            }
            _ => walk_any(value, found)?,
        }
    }
    Ok(())
}

fn walk_any<'a>(value: &'a Value, found: &mut Vec<(Vec<String>, &'a Map<String, Value>)>) -> Result<(), String> {
    match value {
        Value::Object(schema) => walk(schema, None, found),
        Value::Array(schemas) => schemas.iter().try_for_each(|schema| walk_any(schema, found)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: &Value) -> Result<ParamHeaders, String> {
        ParamHeaders::of(&serde_json::value::to_raw_value(schema).unwrap())
    }

    #[test]
    fn marked_arguments_become_headers_wherever_properties_lead() {
        let params = ParamHeaders::of(
            &RawValue::from_string(
                r#"{"type":"object","properties":{
                    "region":{"type":"string","x-mcp-header":"Region"},
                    "n":{"type":"integer","x-mcp-header":"N"},
                    "a":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry-Run"}}},
                    "none":{"type":"string","x-mcp-header":"None","default":{"x-mcp-header":7}}}}"#
                    .to_owned(),
            )
            .unwrap(),
        )
        .unwrap();
        let body = r#"{"name":"t","arguments":{"region":"köln","n":42,"a":{"dry":true},"none":null}}"#;
        let body = RawValue::from_string(body.to_owned()).unwrap();
        let mut headers = HeaderMap::new();
        params.put(&mut headers, &body);
        assert_eq!(headers["mcp-param-region"], "=?base64?a8O2bG4=?=");
        assert_eq!(headers["mcp-param-n"], "42");
        assert_eq!(headers["mcp-param-dry-run"], "true");
        assert!(!headers.contains_key("mcp-param-none"));
        params.check(&headers, Some(&body)).unwrap();

        headers.insert("mcp-param-none", HeaderValue::from_static("x"));
        assert!(params.check(&headers, Some(&body)).unwrap_err().contains("none"));
        headers.remove("mcp-param-none");
        headers.insert("mcp-param-n", HeaderValue::from_static("41"));
        assert!(params.check(&headers, Some(&body)).unwrap_err().contains("mcp-param-n"));
        assert!(params.check(&HeaderMap::new(), Some(&body)).unwrap_err().contains("missing"));
        assert!(params.check(&headers, None).is_err());
    }

    #[test]
    fn annotations_that_cannot_be_followed_are_refused() {
        let property = |schema: Value| serde_json::json!({"properties": {"p": schema}});
        let marked = |kind: &str, name: Value| serde_json::json!({"type": kind, "x-mcp-header": name});
        assert!(of(&property(marked("string", "Ok".into()))).is_ok());
        let ok = marked("string", "Ok".into());
        for (schema, why) in [
            (marked("object", "A".into()), "itself"),
            (property(marked("string", "".into())), "no name"),
            (property(marked("string", 7.into())), "no name"),
            (property(marked("string", "a b".into())), "header"),
            (property(marked("number", "A".into())), "no string"),
            (property(marked("array", "A".into())), "no string"),
            (property(serde_json::json!({"type": "array", "items": ok})), "place"),
            (serde_json::json!({"$defs": {"properties": ok}}), "place"),
            (serde_json::json!({"anyOf": [{"properties": {"p": ok}}]}), "place"),
            (
                serde_json::json!({"properties": {"p": ok, "q": {"type": "string", "x-mcp-header": "OK"}}}),
                "two properties",
            ),
        ] {
            let refused = of(&schema).unwrap_err();
            assert!(refused.contains(why), "{schema}: {refused}");
        }
    }

    #[test]
    fn names_of_properties_are_no_annotations() {
        let schema = serde_json::json!({"properties": {"x-mcp-header": {"type": "string"}}});
        assert!(of(&schema).unwrap().is_empty());
        let schema = serde_json::json!({"properties": {"p": {"enum": [{"x-mcp-header": "A"}]}}});
        assert!(of(&schema).unwrap().is_empty());
    }
}
