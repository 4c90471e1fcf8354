//! The configuration file: YAML, read as strictly as every other document.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Sources;
use super::environment::CONFIG;
use super::error::{ConfigError, FileProblem};
use super::key::{Key, Kind};
use super::layers::{Layer, Origin, Setting};
use crate::yaml::{self, Entry, KeyPath, Node, Problem, Value, did_you_mean};

/// Which file is to be read, if any.
pub(super) fn path(sources: &Sources<'_>) -> Option<PathBuf> {
    sources.file.map(Path::to_owned).or_else(|| sources.environment.get(CONFIG).map(PathBuf::from))
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<Layer, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    settings(&text, path).map_err(|problem| ConfigError::File { path: path.to_owned(), problem: told(problem) })
}

fn told(problem: Problem) -> FileProblem {
    FileProblem {
        line: problem.at.line,
        column: problem.at.column,
        key: problem.key.text().unwrap_or_default().to_owned(),
        message: problem.message,
        hint: problem.hint,
    }
}

fn settings(text: &str, path: &Path) -> Result<Layer, Problem> {
    let holds_something = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    if !text.lines().any(holds_something) {
        return Ok(Layer::new());
    }
    let root = yaml::parse(text)?;
    let mut layer = Layer::new();
    section(&root, "", path, &mut layer)?;
    Ok(layer)
}

/// Reads the keys of the file, or of a section in it: `prefix` is then its name and a dot.
fn section(node: &Node, prefix: &str, path: &Path, layer: &mut Layer) -> Result<(), Problem> {
    let Value::Map(entries) = &node.value else {
        let message = format!("this must be a map of keys, it is {}", node.describe());
        return Err(Problem::new(node.at, key_path(prefix.trim_end_matches('.')), message));
    };
    for entry in entries {
        if let Some((section, key)) = entry.key.split_once('.').filter(|_| Key::by_name(&entry.key).is_some()) {
            let problem = Problem::new(entry.key_at, key_path(&entry.key), "it must stand in its section");
            return Err(problem.hint(format!("write `{section}:` and `{key}` below it")));
        }
        let name = format!("{prefix}{}", entry.key);
        if let Some(key) = Key::by_name(&name) {
            let origin = Origin::File { path: path.to_owned(), line: entry.key_at.line };
            layer.push((key, Setting { value: value(key, entry, path)?, origin }));
        } else if prefix.is_empty() && keys_here("").any(|word| word == entry.key) {
            section(&entry.node, &format!("{name}."), path, layer)?;
        } else {
            return Err(unknown(entry, prefix));
        }
    }
    Ok(())
}

/// The words that may stand in a section; those of the file itself include the names of sections.
fn keys_here(prefix: &str) -> impl Iterator<Item = &'static str> {
    let mut words: Vec<_> = Key::ALL
        .into_iter()
        .filter_map(|key| key.name().strip_prefix(prefix))
        .filter_map(|rest| rest.split('.').next())
        .collect();
    words.dedup();
    words.into_iter()
}

fn unknown(entry: &Entry, prefix: &str) -> Problem {
    let hint = match did_you_mean(&entry.key, keys_here(prefix)) {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("the keys here are {}", keys_here(prefix).collect::<Vec<_>>().join(", ")),
    };
    let message = format!("there is no key `{}` here", yaml::shown(&entry.key));
    Problem::new(entry.key_at, key_path(&format!("{prefix}{}", entry.key)), message).hint(hint)
}

fn key_path(name: &str) -> KeyPath {
    name.split('.').filter(|part| !part.is_empty()).fold(KeyPath::root(), |path, part| path.key(part))
}

/// The value of a setting, if it is of the kind that the setting wants.
fn value(key: Key, entry: &Entry, file: &Path) -> Result<OsString, Problem> {
    let wrong = |node: &Node, wanted: &str| {
        let message = format!("it must be {wanted}, it is {}", node.describe());
        Problem::new(node.at, key_path(key.name()), message)
    };
    match (key.spec().kind, &entry.node.value) {
        (Kind::Text, Value::Text(text)) => Ok(text.into()),
        (Kind::Path, Value::Text(text)) => {
            let folder = file.parent().unwrap_or(Path::new(""));
            Ok(folder.join(text).into())
        }
        (Kind::Number, Value::Number(_, written)) => Ok(written.as_ref().into()),
        (Kind::Texts, Value::List(items)) => {
            let word = |item: &Node| match item.as_text() {
                Some(text) if !text.trim().is_empty() && !text.contains(',') => Ok(text.to_owned()),
                _ => Err(wrong(item, "a text without a comma")),
            };
            Ok(items.iter().map(word).collect::<Result<Vec<_>, _>>()?.join(",").into())
        }
        (Kind::Texts, _) => Err(wrong(&entry.node, "a list of texts")),
        (Kind::Text | Kind::Path, _) => Err(wrong(&entry.node, "a text").hint("write it in quotes")),
        (Kind::Number, _) => Err(wrong(&entry.node, "a number")),
    }
}
