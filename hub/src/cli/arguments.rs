//! `key=value` words → the JSON object that a tool takes.
//!
//! A value is read as the tool's input schema wants it. Where texts are allowed it stays a text, digits and all; else it
//! must be JSON of an allowed type. For an array, one word is one item (or a whole array in JSON), and the key may stand
//! again. Where the schema says nothing, JSON is JSON and everything else is a text. `key:=value` is JSON in any case.

use footbridge_shared::message::Raw;
use serde_json::Value;
use serde_json::value::RawValue;

mod types;

pub use types::Types;

/// One argument as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    key: String,
    value: String,
    json: bool,
}

impl std::str::FromStr for Word {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| format!("`{word}` is no `key=value`; use `key=value` or `key:=json`"))?;
        let (key, json) = match key.strip_suffix(':') {
            Some(key) => (key, true),
            None => (key, false),
        };
        if key.is_empty() {
            return Err(format!("`{word}` has no key before its `=`"));
        }
        Ok(Self { key: key.to_owned(), value: value.to_owned(), json })
    }
}

impl Word {
    /// Whether it says itself that it is JSON: then no schema is needed to read it.
    pub fn is_json(&self) -> bool {
        self.json
    }
}

/// Why words are no arguments. Names the argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// The value is none of the wanted types.
    #[error("`{key}` takes {wanted}, and `{value}` is not")]
    WrongType {
        /// The argument.
        key: String,
        /// What it takes.
        wanted: String,
        /// What was typed.
        value: String,
    },
    /// The value after `:=` is no JSON.
    #[error("the value of `{key}` is no JSON: {reason}")]
    NotJson {
        /// The argument.
        key: String,
        /// Why.
        reason: String,
    },
    /// The key stands again and is no list.
    #[error("`{0}` stands more than once, and takes one value")]
    Repeated(String),
    /// The arguments as a whole are no JSON object.
    #[error("the arguments must be a JSON object: {0}")]
    NotAnObject(String),
}

/// Makes the object. Digits are kept as they were typed, also those that no machine number holds.
///
/// # Errors
/// The first argument that cannot be what the schema wants.
pub fn object(words: &[Word], schema: Option<&Value>) -> Result<Raw, ArgumentError> {
    let mut keys: Vec<&str> = Vec::new();
    for word in words {
        if !keys.contains(&word.key.as_str()) {
            keys.push(&word.key);
        }
    }
    let mut json = String::from("{");
    for key in keys {
        let values: Vec<&Word> = words.iter().filter(|word| word.key == key).collect();
        let types = schema.map_or(Types::ANY, |schema| Types::of_argument(schema, key));
        if json.len() > 1 {
            json.push(',');
        }
        json.push_str(&quoted(key));
        json.push(':');
        json.push_str(&argument(key, &values, &types)?);
    }
    json.push('}');
    RawValue::from_string(json).map_err(|error| ArgumentError::NotAnObject(error.to_string()))
}

/// Takes a whole object, as it is.
///
/// # Errors
/// It is no JSON object.
pub fn whole(json: &str) -> Result<Raw, ArgumentError> {
    let raw: Raw = serde_json::from_str(json).map_err(|error| ArgumentError::NotAnObject(error.to_string()))?;
    if raw.get().starts_with('{') {
        Ok(raw)
    } else {
        Err(ArgumentError::NotAnObject("it is something else".to_owned()))
    }
}

fn argument(key: &str, words: &[&Word], types: &Types) -> Result<String, ArgumentError> {
    let is_list = types.takes_array() && !types.takes_string();
    match words {
        [word] if word.json => forced(word),
        [word] if !is_list => single(key, &word.value, types),
        _ if !is_list => Err(ArgumentError::Repeated(key.to_owned())),
        words => {
            let mut items = Vec::new();
            for word in words {
                items.extend(items_of(word, types)?);
            }
            Ok(format!("[{}]", items.join(",")))
        }
    }
}

/// The items that one word adds to a list.
fn items_of(word: &Word, types: &Types) -> Result<Vec<String>, ArgumentError> {
    if let Ok(items) = serde_json::from_str::<Vec<Raw>>(&word.value) {
        return Ok(items.iter().map(|item| item.get().to_owned()).collect());
    }
    let item = if word.json { forced(word)? } else { single(&word.key, &word.value, &types.items())? };
    Ok(vec![item])
}

fn forced(word: &Word) -> Result<String, ArgumentError> {
    let raw: Result<Raw, _> = serde_json::from_str(&word.value);
    let raw = raw.map_err(|error| ArgumentError::NotJson { key: word.key.clone(), reason: error.to_string() })?;
    Ok(raw.get().to_owned())
}

fn single(key: &str, value: &str, types: &Types) -> Result<String, ArgumentError> {
    if types.takes_string() && !types.is_any() {
        return Ok(quoted(value));
    }
    match serde_json::from_str::<Raw>(value) {
        Ok(raw) if types.takes(raw.get()) => Ok(raw.get().to_owned()),
        _ if types.is_any() => Ok(quoted(value)),
        _ => Err(ArgumentError::WrongType {
            key: key.to_owned(),
            wanted: types.to_string(),
            value: value.chars().take(MAX_SHOWN_CHARS).collect(),
        }),
    }
}

/// Longest part of a value that a message repeats, in characters.
const MAX_SHOWN_CHARS: usize = 80;

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
