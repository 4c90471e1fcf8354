//! A foot that is killed, and starts again on the same state.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

use super::{Machine, TestResult};

/// A test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A hub that says what the test says.
struct Hub {
    listener: TcpListener,
    machine: Machine,
}

/// One connection of a foot, after the welcome.
struct Connection {
    socket: WebSocketStream<TcpStream>,
    hello: Value,
}

impl Hub {
    async fn new() -> TestResult<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let hub = format!("http://{}", listener.local_addr()?);
        Ok(Self { listener, machine: Machine { hub, ..Machine::new()? } })
    }

    /// A process of the foot, whose one tool that changes something appends to `file`.
    async fn start(&self, file: &str) -> TestResult<(Child, Connection)> {
        let words = ["run", "--hub", &self.machine.hub, "--project", "web", "--token-file", "../token"];
        let mut foot = self.machine.foot(&[&words[..], &["--echo-append", file]].concat());
        let child = foot.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok((child, tokio::time::timeout(PATIENCE, self.accept()).await??))
    }

    async fn accept(&self) -> TestResult<Connection> {
        let (stream, _) = self.listener.accept().await?;
        let protocol = |request: &Request, mut response: Response| {
            if let Some(protocol) = request.headers().get("sec-websocket-protocol") {
                response.headers_mut().insert("sec-websocket-protocol", protocol.clone());
            }
            Ok(response)
        };
        let mut socket = tokio_tungstenite::accept_hdr_async(stream, protocol).await?;
        socket.send(Message::text(json!({"type": "challenge", "nonce": "n"}).to_string())).await?;
        let mut connection = Connection { socket, hello: Value::Null };
        connection.hello = connection.hear(|message| message["type"] == "hello").await?;
        let welcome = json!({"type": "welcome", "session": "s", "owner": "ada", "node": "hub-1", "resumed": false,
            "limits": footbridge_shared::limits::Limits::default()});
        connection.say(&welcome).await?;
        Ok(connection)
    }
}

impl Connection {
    async fn say(&mut self, message: &Value) -> TestResult {
        Ok(self.socket.send(Message::text(message.to_string())).await?)
    }

    async fn hear(&mut self, wanted: impl Fn(&Value) -> bool) -> TestResult<Value> {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.socket.next()).await?.ok_or("it hung up")??;
            let message = serde_json::from_str(message.to_text()?)?;
            if wanted(&message) {
                return Ok(message);
            }
        }
    }

    async fn call(&mut self, id: &str) -> TestResult {
        self.say(&json!({"type": "call", "call": id, "keyed": true, "digest": "d", "tool": "echo_append",
            "arguments": {"line": id}, "deadlineMs": 60_000, "idleMs": 60_000, "sentMs": 1, "origin": "hub-1",
            "caller": {"subject": "ada"}}))
            .await
    }

    /// Sends a call and returns its answer: `result`, or code and outcome.
    async fn answer_to(&mut self, id: &str) -> TestResult<String> {
        self.call(id).await?;
        let is_answer = |message: &Value| message["type"] == "result" || message["type"] == "failure";
        let answer = self.hear(|message| is_answer(message) && message["call"] == id).await?;
        Ok(match (answer["code"].as_str(), answer["outcome"].as_str()) {
            (Some(code), Some(outcome)) => format!("{code} {outcome}"),
            _ => "result".to_owned(),
        })
    }
}

/// As the kernel does it when memory is short: at once, and without a word.
fn kill(mut child: Child) -> TestResult {
    child.kill()?;
    child.wait()?;
    Ok(())
}

#[tokio::test]
async fn a_call_that_was_done_before_the_kill_is_not_done_again() -> TestResult {
    let hub = Hub::new().await?;
    let (child, mut connection) = hub.start("../lines").await?;
    assert_eq!(connection.hello["inFlight"], json!([]));
    for call in ["safe", "lost", "last"] {
        assert_eq!(connection.answer_to(call).await?, "result");
        if call == "safe" {
            connection.say(&json!({"type": "ack", "call": "safe"})).await?;
        }
    }
    kill(child)?;

    let (child, mut connection) = hub.start("../lines").await?;
    let mut named: Vec<&str> =
        connection.hello["inFlight"].as_array().ok_or("no list")?.iter().filter_map(|c| c["call"].as_str()).collect();
    named.sort_unstable();
    assert_eq!(named, ["last", "lost"], "the hub is told of those whose answer it may have missed");
    for call in ["safe", "lost"] {
        assert_eq!(connection.answer_to(call).await?, "result_expired completed");
    }
    assert_eq!(connection.answer_to("next").await?, "result");
    kill(child)?;
    assert_eq!(std::fs::read_to_string(hub.machine.path("lines"))?, "safe\nlost\nlast\nnext\n");
    Ok(())
}

#[tokio::test]
async fn a_call_that_was_under_way_at_the_kill_has_an_unknown_outcome() -> TestResult {
    let hub = Hub::new().await?;
    // A pipe that is full: whoever appends to it is in the middle of its work until somebody reads.
    let path = hub.machine.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status()?.success());
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits())?;
    let mut pipe = std::fs::OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open(&path)?;
    while pipe.write(&[b'.'; 4096]).is_ok() {}

    let (child, mut connection) = hub.start("../pipe").await?;
    connection.call("half").await?;
    let journal = hub.machine.path("home/.local/state/footbridge/feet/local/web/project.journal");
    let end = Instant::now() + PATIENCE;
    while !journal_says(&journal, "half")? {
        assert!(Instant::now() < end, "its start was not written down");
        std::thread::yield_now();
    }
    kill(child)?;

    let (child, mut connection) = hub.start("../pipe").await?;
    assert_eq!(connection.hello["inFlight"][0]["call"], "half");
    let mut read = vec![0; 1024 * 1024];
    let mut seen = String::new();
    while let Ok(count) = pipe.read(&mut read) {
        seen.push_str(&String::from_utf8_lossy(read.get(..count).unwrap_or_default()));
    }
    assert_eq!(connection.answer_to("half").await?, "foot_restarted unknown");
    assert_eq!(connection.answer_to("other").await?, "result", "the new process works");
    let count = pipe.read(&mut read)?;
    seen.push_str(&String::from_utf8_lossy(read.get(..count).unwrap_or_default()));
    assert!(seen.ends_with("other\n") && seen.matches("half").count() <= 1, "it ran at most once");
    kill(child)
}

/// Whether a journal in the folder names a call.
fn journal_says(folder: &std::path::Path, call: &str) -> TestResult<bool> {
    for file in std::fs::read_dir(folder)? {
        let bytes = std::fs::read(file?.path())?;
        if bytes.windows(call.len()).any(|window| window == call.as_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}
