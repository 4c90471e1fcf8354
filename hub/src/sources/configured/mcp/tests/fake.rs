//! A server in this process, at the other end of a pair of pipes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use footbridge_mcp::{Connection, Open};
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, WriteHalf};
use tokio::sync::{mpsc, watch};

use crate::lifecycle::Lifecycle;
use crate::sources::configured::mcp::dial::{Dial, Dialed, Unavailable};

/// What the server is like, and what became of it.
pub(super) struct Fake {
    /// Entries of `tools/list`.
    pub(super) tools: Mutex<Vec<Json>>,
    /// Tools a page.
    pub(super) page: usize,
    /// Beside its tools.
    pub(super) prompts: Mutex<Vec<Json>>,
    /// Methods that it answers with an error.
    pub(super) failing: Mutex<Vec<&'static str>>,
    /// What it says that it can do.
    pub(super) capabilities: Json,
    /// Whether it speaks without sessions.
    pub(super) stateless: bool,
    /// Whether it can be connected to.
    pub(super) up: Mutex<bool>,
    /// Whether it says anything.
    pub(super) mute: bool,
    /// Capabilities of the clients, by connection.
    pub(super) clients: Mutex<Vec<Json>>,
    /// How often it was listed.
    pub(super) listings: AtomicUsize,
    /// Connections that are open.
    pub(super) open: watch::Sender<usize>,
    /// What was told and asked of it.
    pub(super) heard: mpsc::UnboundedSender<(usize, String, Json)>,
    /// The id of the last call.
    pub(super) last_call: AtomicUsize,
    lines: Mutex<HashMap<usize, mpsc::UnboundedSender<Json>>>,
    lifecycle: Lifecycle,
}

impl Fake {
    pub(super) fn new(lifecycle: &Lifecycle) -> (Self, mpsc::UnboundedReceiver<(usize, String, Json)>) {
        let (heard, hears) = mpsc::unbounded_channel();
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}});
        let fake = Self {
            tools: Mutex::new(["echo", "ask", "die", "wait", "log"].map(tool).into()),
            page: 2,
            prompts: Mutex::default(),
            failing: Mutex::default(),
            capabilities: json!({"tools": {"listChanged": true}}),
            stateless: false,
            up: Mutex::new(true),
            mute: false,
            clients: Mutex::default(),
            listings: AtomicUsize::new(0),
            open: watch::Sender::new(0),
            heard,
            last_call: AtomicUsize::new(0),
            lines: Mutex::default(),
            lifecycle: lifecycle.clone(),
        };
        (fake, hears)
    }

    /// Answers the call that it was asked last.
    pub(super) fn answer(&self, connection: usize) {
        let id = self.last_call.load(Ordering::Relaxed);
        self.say(connection, json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}));
    }

    /// Says something on a connection by itself.
    pub(super) fn say(&self, connection: usize, message: Json) {
        self.lines.lock()[&connection].send(message).unwrap();
    }

    async fn serve(self: Arc<Self>, connection: usize, stream: DuplexStream) {
        let (reader, mut writer) = tokio::io::split(stream);
        let mut lines = BufReader::new(reader).lines();
        let (say, mut said) = mpsc::unbounded_channel();
        self.lines.lock().insert(connection, say);
        loop {
            tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => {
                        if !self.take(connection, &mut writer, serde_json::from_str(&line).unwrap()).await {
                            break;
                        }
                    }
                    _ => break,
                },
                Some(message) = said.recv() => write(&mut writer, &message).await,
            }
        }
        self.open.send_modify(|open| *open -= 1);
    }

    /// Answers; `false`: it dies.
    async fn take(&self, connection: usize, writer: &mut WriteHalf<DuplexStream>, message: Json) -> bool {
        let (id, method, params) = (&message["id"], message["method"].as_str().unwrap_or("answer"), &message["params"]);
        let body = if method == "answer" { &message["result"] } else { params };
        let _ = self.heard.send((connection, method.to_owned(), body.clone()));
        if self.mute {
            return true;
        }
        if method == "tools/call" {
            self.last_call.store(usize::try_from(id.as_u64().unwrap()).unwrap(), Ordering::Relaxed);
        }
        let result = match method {
            _ if self.failing.lock().contains(&method) => Err(-32603),
            "resources/subscribe" | "resources/unsubscribe" if !self.stateless => Ok(json!({})),
            "subscriptions/listen" => return true,
            "prompts/list" => Ok(json!({"prompts": *self.prompts.lock()})),
            "initialize" if self.stateless => Err(-32601),
            "initialize" => {
                self.clients.lock()[connection] = params["capabilities"].clone();
                Ok(json!({"protocolVersion": "2025-06-18", "capabilities": self.capabilities,
                          "serverInfo": {"name": "fake", "version": "1"}}))
            }
            "server/discover" if self.stateless => {
                Ok(json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}))
            }
            "tools/list" => Ok(self.list(params["cursor"].as_str())),
            "tools/call" => match params["name"].as_str().unwrap_or_default() {
                "die" => return false,
                "wait" => return true,
                "ask" if self.stateless => Ok(self.ask_by_result(params)),
                "ask" => {
                    let params = json!({"message": "who?", "requestedSchema": {}});
                    let ask = json!({"jsonrpc": "2.0", "id": format!("q{id}"), "method": "elicitation/create", "params": params});
                    write(writer, &ask).await;
                    return true;
                }
                // It does not wait for the answer.
                "hurry" => {
                    let params = json!({"message": "who?", "requestedSchema": {}});
                    let ask = json!({"jsonrpc": "2.0", "id": "q0", "method": "elicitation/create", "params": params});
                    write(writer, &ask).await;
                    return true;
                }
                "log" => {
                    let params = json!({"level": "info", "data": "at work"});
                    write(writer, &json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}))
                        .await;
                    let token = &message["params"]["_meta"]["progressToken"];
                    let params = json!({"progressToken": token, "progress": 1, "total": 2, "message": "half"});
                    write(writer, &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
                        .await;
                    Ok(json!({"content": []}))
                }
                _ => Ok(
                    json!({"content": [], "structuredContent": {"connection": connection, "arguments": params["arguments"]}}),
                ),
            },
            // The answer to a question is the result of the call that asked.
            "answer" if id == "q0" => return true,
            "answer" => {
                let id: Json =
                    serde_json::from_str(message["id"].as_str().unwrap().strip_prefix('q').unwrap()).unwrap();
                let answer = if message["error"].is_null() { &message["result"] } else { &message["error"] };
                let result = json!({"content": [], "structuredContent": {"connection": connection, "answer": answer}});
                write(writer, &json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
                return true;
            }
            _ if id.is_null() => return true,
            _ => Err(-32601),
        };
        let answer = match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(code) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no such method"}}),
        };
        write(writer, &answer).await;
        true
    }

    fn list(&self, cursor: Option<&str>) -> Json {
        let from: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
        if from == 0 {
            self.listings.fetch_add(1, Ordering::Relaxed);
        }
        let tools = self.tools.lock();
        let to = (from + self.page).min(tools.len());
        let mut page = json!({"tools": &tools[from..to]});
        if to < tools.len() {
            page["nextCursor"] = to.to_string().into();
        }
        page
    }

    /// Wants to know something twice before it gives a result.
    fn ask_by_result(&self, params: &Json) -> Json {
        let round = params["requestState"].as_str().map_or(0, |state| state.parse().unwrap());
        if round == 2 {
            return json!({"content": [], "structuredContent": {"answer": params["inputResponses"]["q"]}, "resultType": "complete"});
        }
        let request = json!({"method": "elicitation/create", "params": {"message": "who?"}});
        json!({"resultType": "input_required", "inputRequests": {"q": request}, "requestState": (round + 1).to_string()})
    }
}

async fn write(writer: &mut WriteHalf<DuplexStream>, message: &Json) {
    // Nobody reads any more: the next line is the end.
    let _ = writer.write_all(format!("{message}\n").as_bytes()).await;
}

pub(super) struct FakeDial(pub(super) Arc<Fake>);

#[async_trait]
impl Dial for FakeDial {
    async fn dial(&self, open: Open) -> Result<Dialed, Unavailable> {
        let fake = self.0.clone();
        if !*fake.up.lock() {
            return Err(Unavailable::now("nobody is there"));
        }
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let connection = {
            let mut clients = fake.clients.lock();
            clients.push(Json::Null);
            clients.len() - 1
        };
        fake.open.send_modify(|open| *open += 1);
        fake.lifecycle.spawn_work(fake.clone().serve(connection, theirs));
        let (reader, writer) = tokio::io::split(ours);
        let connection = Connection::over_streams(reader, writer, Arc::new(|_| {}), open).await;
        let connection = connection.map_err(|error| Unavailable::now(error.to_string()))?;
        Ok(Dialed { connection, process: None })
    }
}
