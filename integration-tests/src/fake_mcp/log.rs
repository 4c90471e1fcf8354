//! What the scripted server wrote down: a JSON object a line.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Result;

/// The server began to run.
pub const STARTED: &str = "started";
/// A message came.
pub const RECEIVED: &str = "received";
/// A call was cancelled; `text` is the id that the server was told.
pub const CANCELLED: &str = "cancelled";
/// A TCP connection came.
pub const CONNECTED: &str = "connected";

/// A line.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Entry {
    /// What happened.
    pub event: String,
    /// The process.
    pub pid: u32,
    /// The message, as it came; or what else there is to say.
    pub text: String,
    /// The session that it came with.
    #[serde(default)]
    pub session: Option<String>,
    /// The headers that it came with.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

impl Entry {
    /// The message as a value.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// The method of a message.
    pub fn method(&self) -> Option<&str> {
        #[derive(Deserialize)]
        struct Method<'a> {
            method: Option<&'a str>,
        }
        if self.event != RECEIVED {
            return None;
        }
        serde_json::from_str::<Method<'_>>(&self.text).ok()?.method
    }
}

/// The log of a running server.
pub(super) struct Log(Mutex<File>);

impl Log {
    pub(super) fn open(path: &Path) -> Result<Self> {
        Ok(Self(Mutex::new(OpenOptions::new().create(true).append(true).open(path)?)))
    }

    /// Writes a line, whole.
    pub(super) fn write(&self, entry: Entry) {
        let entry = Entry { pid: std::process::id(), ..entry };
        let Ok(mut line) = serde_json::to_string(&entry) else { return };
        line.push('\n');
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A folder that is gone belongs to a test that is over.
        let _ = file.write_all(line.as_bytes());
    }

    pub(super) fn event(&self, event: &str, text: &str) {
        self.write(Entry { event: event.to_owned(), text: text.to_owned(), ..Entry::default() });
    }
}

/// Reads all whole lines.
///
/// # Errors
/// When the file cannot be read, or holds something else.
pub fn read(path: &Path) -> Result<Vec<Entry>> {
    let text = std::fs::read_to_string(path)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}
