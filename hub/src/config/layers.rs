//! Settings in layers: whoever speaks last is heard, and it is kept who that was.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::error::ConfigError;
use super::key::Key;

/// Who said a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody: it is what holds by itself.
    Default,
    /// A line of a file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u32,
    },
    /// An environment variable.
    Environment(&'static str),
    /// A flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// A value with who said it.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// The value, before it is read.
    pub(super) value: OsString,
    pub(super) origin: Origin,
}

/// What one source says.
pub(super) type Layer = Vec<(Key, Setting)>;

/// What the command line says.
#[derive(Debug, Clone, Default)]
pub struct Flags(Vec<(Key, OsString)>);

impl Flags {
    /// Adds a flag that was given.
    #[must_use]
    pub fn with(mut self, key: Key, value: Option<impl Into<OsString>>) -> Self {
        self.0.extend(value.map(|value| (key, value.into())));
        self
    }

    pub(super) fn settings(&self) -> Layer {
        let setting = |(key, value): &(Key, OsString)| {
            let origin = Origin::Flag(key.spec().flag.unwrap_or("command line"));
            (*key, Setting { value: value.clone(), origin })
        };
        self.0.iter().map(setting).collect()
    }
}

/// A setting as it is shown to people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownSetting {
    /// Its name in the file.
    pub key: &'static str,
    /// Its value as text; `None`: it is not set.
    pub value: Option<String>,
    /// Who said so.
    pub origin: String,
    /// Whether that was nobody.
    #[serde(skip)]
    pub is_default: bool,
}

/// All sources, one over the other.
#[derive(Debug, Default)]
pub(super) struct Layers(BTreeMap<Key, Setting>);

impl Layers {
    /// What holds where nobody says anything.
    pub(super) fn defaults(data: Option<&Path>, log: &str) -> Self {
        let mut layers = Self::default();
        for key in Key::ALL {
            let value = match key {
                Key::Data => data.map(|data| data.as_os_str().to_owned()),
                Key::Log => Some(log.into()),
                _ => key.default().map(OsString::from),
            };
            if let Some(value) = value {
                layers.0.insert(key, Setting { value, origin: Origin::Default });
            }
        }
        layers
    }

    pub(super) fn lay_over(&mut self, layer: Layer) {
        self.0.extend(layer);
    }

    /// Sets a default that follows from other settings, unless somebody said something.
    pub(super) fn fill(&mut self, key: Key, value: String) {
        self.0.entry(key).or_insert(Setting { value: value.into(), origin: Origin::Default });
    }

    /// Reads one value.
    pub(super) fn get<T>(&self, key: Key, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, ConfigError> {
        let setting = self.setting(key)?;
        let fail = |value: String, reason| ConfigError::Value { key, value, origin: setting.origin.clone(), reason };
        let Some(text) = setting.value.to_str() else {
            return Err(fail(String::new(), "it is not UTF-8".to_owned()));
        };
        parse(text).map_err(|reason| fail(text.to_owned(), reason))
    }

    /// As [`Self::get`], for a value that may be absent.
    pub(super) fn optional<T>(
        &self,
        key: Key,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        self.0.contains_key(&key).then(|| self.get(key, parse)).transpose()
    }

    /// A path, which need not be UTF-8.
    pub(super) fn path(&self, key: Key) -> Result<PathBuf, ConfigError> {
        self.setting(key).map(as_path)
    }

    /// As [`Self::path`], for one that may be absent.
    pub(super) fn optional_path(&self, key: Key) -> Option<PathBuf> {
        self.0.get(&key).map(as_path)
    }

    pub(super) fn shown(&self) -> Vec<ShownSetting> {
        let show = |key: Key| match self.0.get(&key) {
            None => {
                ShownSetting { key: key.name(), value: None, origin: Origin::Default.to_string(), is_default: true }
            }
            Some(setting) => {
                let value = setting.value.to_string_lossy().into_owned();
                let origin = setting.origin.to_string();
                let is_default = setting.origin == Origin::Default;
                ShownSetting { key: key.name(), value: Some(value), origin, is_default }
            }
        };
        Key::ALL.into_iter().map(show).collect()
    }

    fn setting(&self, key: Key) -> Result<&Setting, ConfigError> {
        self.0.get(&key).ok_or(ConfigError::Missing { key })
    }
}

fn as_path(setting: &Setting) -> PathBuf {
    PathBuf::from(&setting.value)
}

/// What the environment says for a setting.
pub(super) fn from_environment(key: Key, value: OsString) -> (Key, Setting) {
    (key, Setting { value, origin: Origin::Environment(key.spec().variable) })
}
