//! What the scripted server does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::message::{Raw, raw};

/// Which lifecycles it speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaks {
    /// `initialize`, and sessions.
    #[default]
    Session,
    /// `server/discover`, and no sessions.
    Stateless,
    /// Both.
    Both,
}

/// A script. Without anything it is a server with no tools.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Script {
    /// Which lifecycles.
    pub speaks: Speaks,
    /// Its capabilities: tools whose list may change, unless it says otherwise.
    pub capabilities: Option<Raw>,
    /// Its tools, as they are listed.
    pub tools: Vec<Raw>,
    /// So many more tools `op_0` and so on.
    pub count: usize,
    /// Tools of one page; all, if it is 0.
    pub page: usize,
    /// Whether every page says that the first follows.
    pub repeats_cursor: bool,
    /// What its tools do, call by call; the last again and again. A tool without an entry answers with what it was sent.
    pub does: BTreeMap<String, Vec<Vec<Step>>>,
    /// Results of other methods, request by request; the last again and again.
    pub answers: BTreeMap<String, Vec<Raw>>,
    /// Whether it never answers anything.
    pub mute: bool,
    /// A gate that it waits at before it answers the handshake.
    pub handshake_gate: Option<String>,
    /// Milliseconds that it takes for the handshake.
    pub handshake_ms: u64,
    /// Lines that it prints on stdout at its start.
    pub noise: Vec<String>,
    /// Whether it prints a line on stdout for each message that it receives.
    pub noise_each_message: bool,
    /// Whether it goes on after SIGTERM.
    pub ignores_term: bool,
    /// Whether it goes on after the end of its input.
    pub ignores_end: bool,
    /// Whether it starts a process that outlives it: one that ignores SIGTERM, in a session of its own.
    pub grandchild: bool,
    /// HTTP: so many `tools/call` each session lives for, session by session; those after the last live on.
    pub forgets_after: Vec<usize>,
    /// HTTP: the status of the n-th `tools/call`, instead of an answer; 0 is an answer.
    pub statuses: Vec<u16>,
    /// HTTP: whether connections are accepted, and nothing else ever happens.
    pub silent: bool,
}

/// A step of what a tool does.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Answers with this result.
    Result(Raw),
    /// Answers with this JSON-RPC error.
    Error(Raw),
    /// Answers with its `params` as one text.
    EchoParams,
    /// Answers with the answers that it got to its questions, as one text: a JSON array.
    EchoAnswers,
    /// Answers with its environment, as one text: a JSON object.
    Environment,
    /// Tells progress, under the token of the call.
    Progress {
        /// How often.
        times: u32,
        /// Milliseconds before each.
        every_ms: u64,
    },
    /// Asks its client, and waits for the answer.
    Ask {
        /// What.
        method: String,
        /// With what.
        params: Raw,
    },
    /// Tells its client something.
    Notify {
        /// What.
        method: String,
        /// With what.
        params: Raw,
    },
    /// Has these tools from now on, and tells so.
    ReplaceTools(Vec<Raw>),
    /// Goes on when a test opens the gate.
    Gate(String),
    /// Goes on after so many milliseconds.
    Wait(u64),
    /// Does nothing until it is cancelled, and never answers.
    Hang,
    /// Ends its process.
    Exit,
}

impl Step {
    /// An answer with one text.
    pub fn text(text: &str) -> Self {
        Self::Result(raw_of(&serde_json::json!({ "content": [{ "type": "text", "text": text }] })))
    }

    /// An answer as it is written here.
    ///
    /// # Errors
    /// When it is no JSON.
    pub fn result(text: &str) -> crate::Result<Self> {
        Ok(Self::Result(raw(text)?))
    }

    /// A question.
    pub fn ask(method: &str, params: &serde_json::Value) -> Self {
        Self::Ask { method: method.to_owned(), params: raw_of(params) }
    }

    /// Asks a person for a name.
    pub fn elicit(message: &str) -> Self {
        let schema = serde_json::json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        Self::ask("elicitation/create", &serde_json::json!({ "message": message, "requestedSchema": schema }))
    }
}

/// A value as JSON.
pub fn raw_of(value: &serde_json::Value) -> Raw {
    serde_json::value::to_raw_value(value).unwrap_or_default()
}

/// The entry of a simple tool.
pub fn tool(name: &str) -> Raw {
    raw_of(&serde_json::json!({ "name": name, "description": "Scripted", "inputSchema": { "type": "object" } }))
}

impl Script {
    /// A server with these tools, which answer with what they were sent.
    pub fn with_tools(names: &[&str]) -> Self {
        Self { tools: names.iter().map(|name| tool(name)).collect(), ..Self::default() }
    }

    /// The same with a tool that does these steps at each call.
    #[must_use]
    pub fn doing(self, name: &str, steps: Vec<Step>) -> Self {
        self.doing_in_turn(name, vec![steps])
    }

    /// The same with a tool that does something else at each call.
    #[must_use]
    pub fn doing_in_turn(mut self, name: &str, calls: Vec<Vec<Step>>) -> Self {
        self.tools.push(tool(name));
        self.does.insert(name.to_owned(), calls);
        self
    }

    /// The same with a result of another method.
    ///
    /// # Errors
    /// When it is no JSON.
    pub fn answering(mut self, method: &str, result: &str) -> crate::Result<Self> {
        self.answers.entry(method.to_owned()).or_default().push(raw(result)?);
        Ok(self)
    }
}

/// Where a gate is.
pub(super) fn gate(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("gate-{name}"))
}
