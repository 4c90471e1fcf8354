//! The tree that a document is read into.

use std::fmt;

use serde_json::{Map, Number};

/// A place in a document's text. Both count from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

impl Position {
    /// The start of a document.
    pub const START: Self = Self { line: 1, column: 1 };
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it starts.
    pub at: Position,
    /// What it is.
    pub value: Value,
}

/// A value. The same kinds as in JSON.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`, `~`, or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, and how it is written.
    Number(Number, Box<str>),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and values, as they stand; no key stands twice.
    Map(Vec<Entry>),
}

/// One key of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key's text.
    pub key: String,
    /// Where the key stands.
    pub key_at: Position,
    /// Its value.
    pub node: Node,
}

impl Node {
    /// The value of a key; `None` also when this is no map.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// A key and its value; `None` also when this is no map.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The same as JSON, without the places.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(flag) => (*flag).into(),
            Value::Number(number, _) => number.clone().into(),
            Value::Text(text) => text.as_str().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect::<Map<_, _>>().into()
            }
        }
    }

    /// What it is, for messages: ``the number `1.10` ``, `a list`.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Null => "empty".to_owned(),
            Value::Bool(flag) => format!("`{flag}`"),
            Value::Number(_, written) => format!("the number `{written}`"),
            Value::Text(text) => format!("the text `{}`", super::shown(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
        }
    }

    /// All texts in this tree, keys included, with where they stand and under which key path.
    pub fn visit_texts<'a>(&'a self, path: &KeyPath, visit: &mut dyn FnMut(&'a str, Position, &KeyPath)) {
        match &self.value {
            Value::Text(text) => visit(text, self.at, path),
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.visit_texts(&path.index(index), visit);
                }
            }
            Value::Map(entries) => {
                for entry in entries {
                    let path = path.key(&entry.key);
                    visit(&entry.key, entry.key_at, &path);
                    entry.node.visit_texts(&path, visit);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(..) => {}
        }
    }
}

/// The way to a value: `parameters.inputs[0].name`. The root's is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyPath(String);

impl KeyPath {
    /// The root.
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// A key below.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let key = super::shown(key);
        if self.0.is_empty() { Self(key) } else { Self(format!("{}.{key}", self.0)) }
    }

    /// An item below.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The text; `None` for the root.
    pub fn text(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(self.0.as_str())
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
