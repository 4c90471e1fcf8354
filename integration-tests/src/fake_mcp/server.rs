//! How the scripted server answers, whichever way the messages come.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc, oneshot};

use super::log::{self, Entry, Log};
use super::message::{self, Message, Raw};
use super::script::{self, Script, Speaks, Step};
use crate::Result;

/// Versions that are opened by `initialize`.
const SESSION_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The version without sessions.
const STATELESS_VERSION: &str = "2026-07-28";
/// Time between two looks at a gate.
const GATE_PAUSE: Duration = Duration::from_millis(10);
/// Changes of the list that a slow listener may be behind.
const CHANGES: usize = 64;

/// Where what belongs to a message goes.
pub(super) type Out = mpsc::UnboundedSender<String>;

/// What came with a message.
#[derive(Debug, Clone, Default)]
pub(super) struct From {
    pub(super) session: Option<String>,
    pub(super) headers: std::collections::BTreeMap<String, String>,
}

pub(super) struct Server {
    pub(super) script: Script,
    pub(super) log: Log,
    folder: PathBuf,
    tools: Mutex<Vec<Raw>>,
    turns: Mutex<HashMap<String, usize>>,
    running: Mutex<HashMap<String, oneshot::Sender<()>>>,
    asked: Mutex<HashMap<String, oneshot::Sender<Message>>>,
    questions: AtomicU64,
    /// Notifications that belong to no request.
    pub(super) general: broadcast::Sender<String>,
}

/// How a call went on.
enum End {
    Answer(String),
    Silence,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The n-th, or the last.
fn in_turn<T>(all: &[T], turn: usize) -> Option<&T> {
    all.get(turn).or_else(|| all.last())
}

fn text_result(text: &str) -> String {
    json!({ "content": [{ "type": "text", "text": text }] }).to_string()
}

impl Server {
    pub(super) fn new(folder: PathBuf) -> Result<Self> {
        let script: Script = serde_json::from_str(&std::fs::read_to_string(folder.join("script.json"))?)?;
        let log = Log::open(&folder.join("log"))?;
        log.event(log::STARTED, "");
        let mut tools = script.tools.clone();
        tools.extend((0..script.count).map(|number| script::tool(&format!("op_{number}"))));
        Ok(Self {
            tools: Mutex::new(tools),
            turns: Mutex::default(),
            running: Mutex::default(),
            asked: Mutex::default(),
            questions: AtomicU64::default(),
            general: broadcast::channel(CHANGES).0,
            script,
            log,
            folder,
        })
    }

    /// Takes a message, to the end of what it causes.
    pub(super) async fn handle(&self, text: &str, from: From, out: Out) {
        let (session, headers) = (from.session.clone(), from.headers.clone());
        self.log.write(Entry {
            event: log::RECEIVED.to_owned(),
            text: text.to_owned(),
            session,
            headers,
            ..Entry::default()
        });
        if self.script.mute {
            return;
        }
        let Ok(message) = Message::parse(text) else { return };
        match (message.method.clone(), message.id.clone()) {
            (Some(method), Some(_)) => {
                if let Some(answer) = self.request(&method, &message, &from, &out).await {
                    // Whoever went away has no use for it.
                    let _ = out.send(answer);
                }
            }
            (Some(method), None) if method == "notifications/cancelled" => self.cancel(&message, &from),
            (None, Some(id)) => {
                if let Some(waiting) = lock(&self.asked).remove(id.get()) {
                    // The call that asked may be over.
                    let _ = waiting.send(message);
                }
            }
            _ => {}
        }
    }

    fn turn(&self, of: &str) -> usize {
        let mut turns = lock(&self.turns);
        let turn = turns.entry(of.to_owned()).or_default();
        *turn += 1;
        *turn - 1
    }

    async fn request(&self, method: &str, message: &Message, from: &From, out: &Out) -> Option<String> {
        let id = message.id_text();
        let speaks = self.script.speaks;
        let unknown = || message::error(id, &json!({ "code": -32601, "message": "no such method" }).to_string());
        let result = match method {
            "initialize" if speaks != Speaks::Stateless => {
                self.handshake().await;
                self.initialized(&message.params_value())
            }
            "server/discover" if speaks != Speaks::Session => {
                self.handshake().await;
                self.discovered()
            }
            "ping" => json!({}),
            "tools/list" => return Some(message::result(id, &self.page(&message.params_value()))),
            "tools/call" => return self.call(message, from, out).await,
            "subscriptions/listen" if speaks != Speaks::Session => return self.listen(message, out).await,
            _ => {
                let answers = self.script.answers.get(method).map(Vec::as_slice).unwrap_or_default();
                return match in_turn(answers, self.turn(method)) {
                    Some(answer) => Some(message::result(id, answer.get())),
                    None => Some(unknown()),
                };
            }
        };
        Some(message::result(id, &result.to_string()))
    }

    async fn handshake(&self) {
        tokio::time::sleep(Duration::from_millis(self.script.handshake_ms)).await;
        if let Some(gate) = &self.script.handshake_gate {
            self.pass(gate).await;
        }
    }

    async fn pass(&self, gate: &str) {
        while !script::gate(&self.folder, gate).exists() {
            tokio::time::sleep(GATE_PAUSE).await;
        }
    }

    fn capabilities(&self) -> Value {
        let own = self.script.capabilities.as_ref().and_then(|own| serde_json::from_str(own.get()).ok());
        own.unwrap_or_else(|| json!({ "tools": { "listChanged": true }, "logging": {} }))
    }

    fn initialized(&self, params: &Value) -> Value {
        let wanted = params["protocolVersion"].as_str().unwrap_or_default();
        let version = SESSION_VERSIONS.into_iter().find(|version| *version == wanted).unwrap_or("2025-11-25");
        json!({
            "protocolVersion": version,
            "capabilities": self.capabilities(),
            "serverInfo": { "name": "fake-mcp", "version": "1" },
        })
    }

    fn discovered(&self) -> Value {
        json!({
            "resultType": "complete",
            "supportedVersions": [STATELESS_VERSION],
            "capabilities": self.capabilities(),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "fake-mcp", "version": "1" } },
        })
    }

    /// A page of tools: the cursor of page n is `pn`.
    /// A page of the tools, each as the script has it, to the byte.
    fn page(&self, params: &Value) -> String {
        let tools = lock(&self.tools);
        let size = if self.script.page == 0 { tools.len().max(1) } else { self.script.page };
        let number = params["cursor"].as_str().and_then(|cursor| cursor.strip_prefix('p')?.parse().ok()).unwrap_or(1);
        let page: Vec<&str> = tools.iter().skip((number - 1) * size).take(size).map(|tool| tool.get()).collect();
        let mut result = json!({});
        if self.script.repeats_cursor {
            result["nextCursor"] = json!("p1");
        } else if number * size < tools.len() {
            result["nextCursor"] = json!(format!("p{}", number + 1));
        }
        if self.script.speaks != Speaks::Session {
            result["resultType"] = json!("complete");
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
        let others = result.to_string();
        let others = others.trim_start_matches('{');
        let comma = if others == "}" { "" } else { "," };
        format!(r#"{{"tools":[{}]{comma}{others}"#, page.join(","))
    }

    fn key(id: &str, from: &From) -> String {
        format!("{}/{id}", from.session.as_deref().unwrap_or_default())
    }

    fn cancel(&self, message: &Message, from: &From) {
        let id = message.params_value()["requestId"].to_string();
        self.log.event(log::CANCELLED, &id);
        if let Some(running) = lock(&self.running).remove(&Self::key(&id, from)) {
            // It may have ended in this moment.
            let _ = running.send(());
        }
    }

    async fn call(&self, message: &Message, from: &From, out: &Out) -> Option<String> {
        let id = message.id_text();
        let params = message.params_value();
        let name = params["name"].as_str().unwrap_or_default();
        let steps = match self.script.does.get(name) {
            Some(calls) if params["requestState"].is_null() => in_turn(calls, self.turn(name)).cloned(),
            // A call that goes on is no further turn.
            Some(calls) => {
                let turn = lock(&self.turns).get(name).copied().unwrap_or_default();
                in_turn(calls, turn.saturating_sub(1)).cloned()
            }
            None => None,
        };
        let steps = steps.unwrap_or_else(|| vec![Step::EchoParams]);
        let (cancel, cancelled) = oneshot::channel();
        let key = Self::key(id, from);
        lock(&self.running).insert(key.clone(), cancel);
        // Without a session, whoever hangs up cancels.
        let hung_up = async {
            let stateless = params["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string();
            if stateless { out.closed().await } else { std::future::pending().await }
        };
        let end = tokio::select! {
            end = self.walk(&steps, message, &params, out) => end,
            Ok(()) = cancelled => End::Silence,
            () = hung_up => {
                self.log.event(log::CANCELLED, id);
                End::Silence
            }
        };
        lock(&self.running).remove(&key);
        match end {
            End::Answer(answer) => Some(answer),
            End::Silence => None,
        }
    }

    async fn walk(&self, steps: &[Step], message: &Message, params: &Value, out: &Out) -> End {
        let id = message.id_text();
        let stateless = params["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string();
        let mut answers: Vec<Value> = given(params);
        let mut asked = 0;
        for step in steps {
            match step {
                Step::Result(result) => return End::Answer(message::result(id, result.get())),
                Step::Error(error) => return End::Answer(message::error(id, error.get())),
                Step::EchoParams => {
                    let text = message.params.as_ref().map_or("", |params| params.get());
                    return End::Answer(message::result(id, &text_result(text)));
                }
                Step::EchoAnswers => {
                    return End::Answer(message::result(id, &text_result(&json!(answers).to_string())));
                }
                Step::Environment => {
                    let all: std::collections::BTreeMap<String, String> = std::env::vars_os()
                        .map(|(name, value)| (name.to_string_lossy().into(), value.to_string_lossy().into()))
                        .collect();
                    return End::Answer(message::result(id, &text_result(&json!(all).to_string())));
                }
                Step::Progress { times, every_ms } => {
                    let token = &params["_meta"]["progressToken"];
                    for number in 1..=*times {
                        tokio::time::sleep(Duration::from_millis(*every_ms)).await;
                        if token.is_null() {
                            continue;
                        }
                        let told = json!({ "progressToken": token, "progress": number, "total": times,
                            "message": format!("step {number}") });
                        // Whoever went away does not hear it.
                        let _ = out.send(message::notification("notifications/progress", &told.to_string()));
                    }
                }
                Step::Ask { method, params: question } => {
                    asked += 1;
                    if asked <= answers.len() {
                        continue;
                    }
                    if stateless {
                        let question = json!({ "method": method, "params": question });
                        let state = json!({ "given": answers }).to_string();
                        let result = json!({ "resultType": "input_required",
                            "inputRequests": { "q": question }, "requestState": state });
                        return End::Answer(message::result(id, &result.to_string()));
                    }
                    answers.push(self.ask(method, question, out).await);
                }
                Step::Notify { method, params } => {
                    let _ = out.send(message::notification(method, params.get()));
                }
                Step::ReplaceTools(tools) => {
                    *lock(&self.tools) = tools.clone();
                    let _ = self.general.send(message::notification("notifications/tools/list_changed", "{}"));
                }
                Step::Gate(gate) => self.pass(gate).await,
                Step::Wait(ms) => tokio::time::sleep(Duration::from_millis(*ms)).await,
                Step::Hang => std::future::pending().await,
                Step::Exit => std::process::exit(3),
            }
        }
        End::Answer(message::result(id, &text_result("done")))
    }

    /// The client's result or error, as `{"result": …}` or `{"error": …}`.
    async fn ask(&self, method: &str, params: &Raw, out: &Out) -> Value {
        let id = format!("\"ask-{}\"", self.questions.fetch_add(1, Ordering::Relaxed));
        let (answer, answered) = oneshot::channel();
        if let Slot::Vacant(slot) = lock(&self.asked).entry(id.clone()) {
            slot.insert(answer);
        }
        let _ = out.send(message::request(&id, method, params.get()));
        match answered.await {
            Ok(Message { result: Some(result), .. }) => json!({ "result": result }),
            Ok(Message { error: Some(error), .. }) => json!({ "error": error }),
            _ => Value::Null,
        }
    }

    /// Tells changes on the stream of the request, until its client hangs up or cancels.
    async fn listen(&self, message: &Message, out: &Out) -> Option<String> {
        let id = message.id.as_ref()?;
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
        let params = message.params_value();
        let accepted = json!({ "_meta": meta, "notifications": params["notifications"] }).to_string();
        let _ = out.send(message::notification("notifications/subscriptions/acknowledged", &accepted));
        let mut general = self.general.subscribe();
        loop {
            tokio::select! {
                () = out.closed() => return None,
                told = general.recv() => {
                    let Ok(told) = told else { return None };
                    let Ok(told) = Message::parse(&told) else { continue };
                    let method = told.method.unwrap_or_default();
                    let _ = out.send(message::notification(&method, &json!({ "_meta": meta }).to_string()));
                }
            }
        }
    }
}

/// The answers that a call brings: those that its state holds, and the one that it was asked for last.
fn given(params: &Value) -> Vec<Value> {
    let state = params["requestState"].as_str().and_then(|state| serde_json::from_str::<Value>(state).ok());
    let Some(state) = state else { return Vec::new() };
    let mut answers = state["given"].as_array().cloned().unwrap_or_default();
    if let Some(answer) = params["inputResponses"].get("q") {
        answers.push(json!({ "result": answer }));
    }
    answers
}

/// Handles messages at once, a task each.
pub(super) struct Tasks(Arc<Server>, tokio::task::JoinSet<()>);

impl Tasks {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self(server, tokio::task::JoinSet::new())
    }

    pub(super) fn handle(&mut self, text: String, from: From, out: Out) {
        let server = self.0.clone();
        self.1.spawn(async move { server.handle(&text, from, out).await });
        while self.1.try_join_next().is_some() {}
    }
}
