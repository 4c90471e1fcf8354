//! Events of the YAML reader → tree. Nothing here recurses, so depth costs no stack.

use std::collections::HashMap;

use granit_parser::{Event, Marker, Options, Parser, ScalarStyle, ScanError};

use super::error::{Problem, shown};
use super::node::{Entry, KeyPath, Node, Position, Value};
use crate::domain::document::MAX_DOCUMENT_BYTES;

/// Deepest nesting of lists and maps.
pub const MAX_DEPTH: usize = 64;
/// Most values and keys of one document.
pub const MAX_NODES: usize = 100_000;
/// Longest key, in characters: what YAML allows for a key without `?`.
const MAX_KEY_CHARS: usize = 1024;

/// Reads one document: YAML, or JSON, which is YAML.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub fn parse(text: &str) -> Result<Node, Problem> {
    if text.len() > MAX_DOCUMENT_BYTES {
        let message = format!("the document has {} bytes, the limit is {MAX_DOCUMENT_BYTES}", text.len());
        return Err(Problem::new(Position::START, KeyPath::root(), message));
    }
    if text.starts_with('\u{feff}') {
        return Err(Problem::new(Position::START, KeyPath::root(), "the document starts with a byte order mark")
            .hint("save it as UTF-8 without a byte order mark"));
    }
    let mut tree = Tree::default();
    for event in Parser::new_from_str_with_options(text, options()) {
        let (event, span) = event.map_err(|error| tree.malformed(&error))?;
        tree.take(event, position(&span.start))?;
    }
    tree.root.ok_or_else(|| Problem::new(Position::START, KeyPath::root(), "the document is empty"))
}

fn options() -> Options {
    let mut options = granit_parser::options! {
        disallow_directives: true,
        emit_unresolved_aliases: true,
        simple_key_max_lookahead: MAX_KEY_CHARS,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    options.set_emit_comments(false);
    options
}

fn position(marker: &Marker) -> Position {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Position { line: number(marker.line()), column: number(marker.col().saturating_add(1)) }
}

/// A list or map that is still open.
enum Open {
    List { at: Position, items: Vec<Node> },
    Map { at: Position, entries: Vec<Entry>, seen: HashMap<String, Position>, key: Option<(String, Position)> },
}

#[derive(Default)]
struct Tree {
    open: Vec<Open>,
    root: Option<Node>,
    nodes: usize,
}

impl Tree {
    /// The way to what is being read now.
    fn path(&self) -> KeyPath {
        self.open.iter().fold(KeyPath::root(), |path, open| match open {
            Open::List { items, .. } => path.index(items.len()),
            Open::Map { key: Some((key, _)), .. } => path.key(key),
            Open::Map { key: None, .. } => path,
        })
    }

    fn problem(&self, at: Position, message: impl Into<String>) -> Problem {
        Problem::new(at, self.path(), message)
    }

    fn malformed(&self, error: &ScanError) -> Problem {
        use granit_parser::ErrorKind as Kind;
        let problem = self.problem(position(error.marker()), format!("this is not well-formed YAML: {}", error.info()));
        match error.kind() {
            Kind::TabNotAllowed
            | Kind::TabInBlockIndentation
            | Kind::TabInIndentation
            | Kind::TabAtBlockScalarStart => problem.hint("indent with blanks, not with tabs"),
            _ => problem,
        }
    }

    fn take(&mut self, event: Event<'_>, at: Position) -> Result<(), Problem> {
        if event.is_node() {
            self.check_node(&event, at)?;
        }
        match event {
            Event::Scalar(text, style, ..) => self.scalar(&text, style, at),
            Event::SequenceStart(..) => self.push(Open::List { at, items: Vec::new() }, at),
            Event::MappingStart(..) => {
                self.push(Open::Map { at, entries: Vec::new(), seen: HashMap::new(), key: None }, at)
            }
            Event::SequenceEnd | Event::MappingEnd => self.pop(),
            Event::DocumentStart(..) if self.root.is_some() => Err(self
                .problem(at, "a second document starts here; one file is one document")
                .hint("remove the line `---`, or put what follows into a document of its own")),
            _ => Ok(()),
        }
    }

    /// What holds for every value: no aliases, anchors or tags, and not too many of them.
    fn check_node(&mut self, event: &Event<'_>, at: Position) -> Result<(), Problem> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(self.problem(at, format!("the document has more than {MAX_NODES} values")));
        }
        if event.is_alias() || matches!(event, Event::UnresolvedAlias(_)) {
            return Err(self.problem(at, "an alias (`*name`) is not allowed").hint("write the value out here"));
        }
        if event.anchor_id().is_some() {
            return Err(self
                .problem(at, "an anchor (`&name`) is not allowed")
                .hint("write the value where it is used"));
        }
        if let Some(tag) = event.tag() {
            let message = format!("a tag (`{}`) is not allowed", shown(&tag.original()));
            return Err(self.problem(at, message).hint("a text is written in quotes; everything else needs no tag"));
        }
        Ok(())
    }

    fn push(&mut self, open: Open, at: Position) -> Result<(), Problem> {
        if self.awaits_key() {
            return Err(self.problem(at, "a key must be a text, not a list or map"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(self.problem(at, format!("lists and maps are nested more than {MAX_DEPTH} deep")));
        }
        self.open.push(open);
        Ok(())
    }

    fn pop(&mut self) -> Result<(), Problem> {
        match self.open.pop() {
            Some(Open::List { at, items }) => self.add(Node { at, value: Value::List(items) }),
            Some(Open::Map { at, entries, .. }) => self.add(Node { at, value: Value::Map(entries) }),
            // The reader closes only what it opened.
            None => Ok(()),
        }
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map { key: None, .. }))
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, at: Position) -> Result<(), Problem> {
        let plain = style == ScalarStyle::Plain;
        if self.awaits_key() {
            return self.key(text, plain, at);
        }
        let value = if plain {
            resolve(text).map_err(|message| self.problem(at, message).hint("write it in quotes"))?
        } else {
            Value::Text(text.to_owned())
        };
        self.add(Node { at, value })
    }

    fn key(&mut self, text: &str, plain: bool, at: Position) -> Result<(), Problem> {
        if plain && text == "<<" {
            return Err(self.problem(at, "a merge key (`<<`) is not allowed").hint("write the keys out here"));
        }
        // The reader puts `~` where nothing stands.
        if plain && (text.is_empty() || text == "~") {
            return Err(self.problem(at, "a key is missing before the `:`"));
        }
        let Some(Open::Map { seen, key, .. }) = self.open.last_mut() else { return Ok(()) };
        let first = seen.insert(text.to_owned(), at);
        *key = Some((text.to_owned(), at));
        match first {
            None => Ok(()),
            Some(first) => Err(self
                .problem(
                    at,
                    format!("the key `{}` stands twice; it stands on line {} already", shown(text), first.line),
                )
                .hint("keep one of the two")),
        }
    }

    fn add(&mut self, node: Node) -> Result<(), Problem> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => match key.take() {
                Some((key, key_at)) => entries.push(Entry { key, key_at, node }),
                None => return Err(self.problem(node.at, "a key must be a text, not a list or map")),
            },
        }
        Ok(())
    }
}

/// What a plain scalar is: what JSON says it is, else a text.
fn resolve(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" => Ok(Value::Null),
        "true" => Ok(Value::Bool(true)),
        "false" => Ok(Value::Bool(false)),
        _ if is_json_number(text) => {
            let number: serde_json::Number =
                serde_json::from_str(text).map_err(|_| format!("the number `{}` is too large", shown(text)))?;
            let whole = text != "-0" && !text.contains(['.', 'e', 'E']);
            if whole && number.is_f64() {
                return Err(format!("the number `{}` has more digits than can be kept", shown(text)));
            }
            Ok(Value::Number(number, text.into()))
        }
        _ => Ok(Value::Text(text.to_owned())),
    }
}

/// Whether JSON would read this as a number: no leading zeros, plus signs, underscores or other bases.
fn is_json_number(text: &str) -> bool {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(digits)
}

#[cfg(test)]
mod tests;
