//! The hub of a test: says what the test says, hears what the foot says.

use std::collections::HashMap;
use std::time::Duration;

use footbridge_shared::id::CallId;
use footbridge_shared::part::{Part, PartsId};
use footbridge_shared::parts::{Assembly, Taken};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::config::HubUrl;

/// A test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);
/// The hub's clock when nothing else is said, in milliseconds.
pub(super) const HUB_MS: u64 = 1_000_000;

pub(super) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing happened for too long")
}

pub(super) struct Hub {
    listener: TcpListener,
}

/// One connection of a foot.
pub(super) struct Connection {
    socket: WebSocketStream<TcpStream>,
    /// Unfinished messages of the foot.
    parts: HashMap<PartsId, Assembly>,
    pub(super) path: String,
    pub(super) authorization: String,
}

impl Hub {
    pub(super) async fn new() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    pub(super) fn url(&self) -> HubUrl {
        format!("http://{}/base", self.listener.local_addr().unwrap()).parse().unwrap()
    }

    /// The next connection, upgraded.
    pub(super) async fn accept(&self) -> Connection {
        let (stream, _) = soon(self.listener.accept()).await.unwrap();
        let (mut path, mut authorization) = (String::new(), String::new());
        let upgrade = |request: &Request, mut response: Response| {
            let header = |name: &str| request.headers().get(name).unwrap().clone();
            request.uri().path().clone_into(&mut path);
            header("authorization").to_str().unwrap().clone_into(&mut authorization);
            response.headers_mut().insert("sec-websocket-protocol", header("sec-websocket-protocol"));
            Ok(response)
        };
        let socket = soon(tokio_tungstenite::accept_hdr_async(stream, upgrade)).await.unwrap();
        Connection { socket, parts: HashMap::new(), path, authorization }
    }

    /// The next connection, up to the welcome. `more` overrides fields of the welcome.
    pub(super) async fn welcome(&self, more: &Value) -> (Connection, Value) {
        let mut connection = self.accept().await;
        let hello = connection.greet(more).await;
        (connection, hello)
    }

    /// The next connection, as it comes; however long it takes.
    pub(super) async fn next_stream(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }

    /// The next connection, upgraded without a word on the protocol.
    pub(super) async fn accept_without_protocol(&self) {
        let stream = self.next_stream().await;
        // The foot hangs up as soon as it sees the answer.
        let _ = soon(tokio_tungstenite::accept_async(stream)).await;
    }

    /// The next connection, not upgraded.
    pub(super) async fn refuse(&self, head: &str, body: &str) {
        let (mut stream, _) = soon(self.listener.accept()).await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(soon(stream.read_u8()).await.unwrap());
        }
        let response = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(response.as_bytes()).await.unwrap();
    }
}

impl Connection {
    pub(super) async fn say(&mut self, message: &Value) {
        self.say_text(&message.to_string()).await;
    }

    pub(super) async fn say_text(&mut self, text: &str) {
        soon(self.socket.send(Message::text(text))).await.unwrap();
    }

    pub(super) async fn say_binary(&mut self, bytes: Vec<u8>) {
        soon(self.socket.send(Message::binary(bytes))).await.unwrap();
    }

    /// Challenge, hello, welcome.
    pub(super) async fn greet(&mut self, more: &Value) -> Value {
        self.say(&json!({"type": "challenge", "nonce": "n-1"})).await;
        let hello = self.hear("hello").await;
        let mut welcome = json!({"type": "welcome", "session": "s-1", "owner": "ada", "node": "hub-1", "resumed": false,
            "limits": footbridge_shared::limits::Limits::default()});
        for (key, value) in more.as_object().unwrap() {
            welcome[key] = value.clone();
        }
        self.say(&welcome).await;
        hello
    }

    /// The next message, whatever it is, also if it comes in parts, which are returned; pings are not answered.
    pub(super) async fn hear_any(&mut self) -> Value {
        loop {
            match soon(self.socket.next()).await {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Binary(frame))) => {
                    let part = Part::decode(&frame).unwrap();
                    let call = CallId::from_bytes(part.id);
                    self.say(&json!({"type": "credit", "call": call, "bytes": frame.len()})).await;
                    match self.parts.entry(part.id).or_default().take(&part, usize::MAX, |_| true) {
                        Taken::Kept => {}
                        Taken::Whole(text) => {
                            self.parts.remove(&part.id);
                            return serde_json::from_slice(&text).unwrap();
                        }
                        odd => panic!("{odd:?}"),
                    }
                }
                other => panic!("no message but {other:?}"),
            }
        }
    }

    /// The next part, kept to itself: its number. Messages in between are passed over.
    pub(super) async fn part(&mut self) -> u32 {
        loop {
            if let Some(Ok(Message::Binary(frame))) = soon(self.socket.next()).await {
                let part = Part::decode(&frame).unwrap();
                self.parts.entry(part.id).or_default().take(&part, usize::MAX, |_| true);
                return part.seq;
            }
        }
    }

    /// Breaks; gives what is here in part.
    pub(super) fn breaks(self) -> HashMap<PartsId, Assembly> {
        self.parts
    }

    /// What is here in part goes on over this connection.
    pub(super) fn goes_on(&mut self, parts: HashMap<PartsId, Assembly>) {
        self.parts = parts;
        self.parts.values_mut().for_each(|assembly| _ = assembly.rejoin());
    }

    /// The next message of a type; others are passed over, pings are answered.
    pub(super) async fn hear(&mut self, kind: &str) -> Value {
        loop {
            let message = self.hear_any().await;
            if message["type"] == "ping" {
                self.pong(&message, HUB_MS).await;
            }
            if message["type"] == kind {
                return message;
            }
        }
    }

    pub(super) async fn pong(&mut self, ping: &Value, hub_ms: u64) {
        self.say(&json!({"type": "pong", "echoMs": ping["sentMs"], "sentMs": hub_ms})).await;
    }

    /// The next result or failure, in short: `c-1: result`, `c-1: cancelled not_run`.
    pub(super) async fn answer(&mut self) -> (String, Value) {
        loop {
            let message = self.hear_any().await;
            let call = message["call"].as_str().unwrap_or_default();
            let (code, outcome) = (&message["code"], &message["outcome"]);
            match message["type"].as_str().unwrap() {
                "result" => return (format!("{call}: result"), message),
                "failure" => {
                    let said = format!("{call}: {} {}", code.as_str().unwrap(), outcome.as_str().unwrap());
                    return (said, message);
                }
                "ping" => self.pong(&message, HUB_MS).await,
                _ => {}
            }
        }
    }

    /// The next message of a type that is as it should be.
    pub(super) async fn hear_so(&mut self, kind: &str, so: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.hear(kind).await;
            if so(&message) {
                return message;
            }
        }
    }

    pub(super) async fn call(&mut self, id: &str, tool: &str, arguments: &Value) {
        self.say(&call(id, tool, arguments)).await;
    }

    pub(super) async fn close(&mut self, code: u16, reason: &str) {
        let frame = CloseFrame { code: code.into(), reason: reason.into() };
        soon(self.socket.close(Some(frame))).await.unwrap();
    }

    /// Waits for the end, and closes as well; the foot's close code, if it gave one.
    pub(super) async fn closed(&mut self) -> Option<u16> {
        let mut code = None;
        while let Some(Ok(message)) = soon(self.socket.next()).await {
            if let Message::Close(frame) = message {
                code = frame.map(|frame| frame.code.into());
            }
        }
        code
    }
}

/// A `call` with plenty of time.
pub(super) fn call(id: &str, tool: &str, arguments: &Value) -> Value {
    json!({"type": "call", "call": id, "tool": tool, "arguments": arguments, "deadlineMs": 60_000, "idleMs": 60_000,
        "sentMs": HUB_MS, "origin": format!("origin-of-{id}"), "caller": {"subject": "ada", "process": "p-1"}})
}
