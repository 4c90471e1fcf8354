//! `footbridge mcp-stdio`: carries the messages of an MCP client on standard input and output to a hub, and back.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use footbridge_mcp::lines::{Line, Lines};
use footbridge_mcp::{HttpRelay, HttpTarget, Message, Outlined, RequestId, RpcError, Spawn, codes};
use footbridge_shared::limits::MAX_MESSAGE_BYTES;
use footbridge_shared::{ErrorCode, Outcome};
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::error::CliError;
use super::exit::Exit;
use super::interrupt::Interrupts;
use super::logging;
use super::session::{ScopeArgs, Session};
use crate::lifecycle::Lifecycle;

pub(super) const LONG: &str = "\
Be an MCP server on standard input and output, with the tools, resources and prompts of a hub's project.

For clients that start their servers as programs. The hub and the token come from the environment (FOOTBRIDGE_URL, \
FOOTBRIDGE_TOKEN, FOOTBRIDGE_TENANT, FOOTBRIDGE_PROJECT) or from flags. Nothing but messages is written to standard \
output; the log goes to standard error. It ends when its input ends, and outlives a restart of the hub.";

/// How long requests that still run when the input ends have to be answered.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// How long the hub has to hear of the end.
const GOODBYE: Duration = Duration::from_secs(2);
/// How many complaints about the client's own lines may wait to be written.
const COMPLAINTS: usize = 16;

#[derive(Debug, Args)]
pub(super) struct McpStdioArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Only what this pack has
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pack: Option<String>,
    /// What is logged to standard error
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log: String,
}

/// Gives the tasks of the relay to their owner.
struct Tasks(Lifecycle);

impl Spawn for Tasks {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.spawn_work(task);
    }
}

pub(super) async fn run(args: McpStdioArgs, session: &mut Session) -> Result<Exit, CliError> {
    session.heed_scope(args.scope);
    logging::start(&args.log)?;
    let target = session.client()?.mcp(args.pack.as_deref())?;
    let mut interrupts = Interrupts::listen()?;
    let ends = async move { interrupts.next().await };
    let unanswered = bridge(tokio::io::stdin(), tokio::io::stdout(), target, ends).await?;
    Ok(if unanswered == 0 { Exit::Done } else { Exit::Unreachable })
}

/// Carries until the input ends, or `ends` does. What is open then is answered with why it has no answer; returns how many
/// requests that were.
///
/// # Errors
/// The output cannot be written.
async fn bridge(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    target: HttpTarget,
    ends: impl Future<Output = ()>,
) -> std::io::Result<usize> {
    let lifecycle = Lifecycle::new();
    let (relay, from_hub) = HttpRelay::start(target, Arc::new(Tasks(lifecycle.clone())));
    let (complain, complaints) = mpsc::channel(COMPLAINTS);
    let (done, interrupted) = (CancellationToken::new(), CancellationToken::new());
    let reading = async {
        tokio::select! {
            () = interrupted.cancelled() => {}
            () = async {
                read(input, &relay, complain).await;
                let _ = tokio::time::timeout(LAST_ANSWERS, relay.idle()).await;
            } => {}
        }
        let unanswered = relay.give_up().await;
        relay.close(GOODBYE).await;
        done.cancel();
        Ok(unanswered)
    };
    let carrying = async { tokio::try_join!(reading, write(output, from_hub, complaints, &done)) };
    // A client that ends this may not read any more.
    let interrupting = async {
        ends.await;
        interrupted.cancel();
        tokio::time::sleep(2 * GOODBYE).await;
    };
    let outcome = tokio::select! {
        outcome = carrying => outcome.map(|(unanswered, ())| unanswered),
        () = interrupting => Ok(0),
    };
    relay.close(GOODBYE).await;
    lifecycle.shut_down(GOODBYE).await;
    outcome
}

/// Reads the client's messages and sends them on. A line that is no message is answered as JSON-RPC wants.
async fn read(input: impl AsyncRead + Unpin, relay: &HttpRelay, complain: mpsc::Sender<Message>) {
    let mut lines = Lines::new(input, MAX_MESSAGE_BYTES);
    while let Some(line) = lines.next().await {
        match read_line(line) {
            Ok(messages) => {
                for message in messages {
                    relay.send(message).await;
                }
            }
            Err((id, error)) => {
                tracing::warn!(%error, "a line of the client is no message");
                let _ = complain.send(Message::Response { id, outcome: Err(error) }).await;
            }
        }
    }
}

/// The messages of a line. The error says what is wrong, and to which request.
fn read_line(line: Line<'_>) -> Result<Vec<Message>, (Option<RequestId>, RpcError)> {
    let with = |error: RpcError, code| error.with_reason(code, Outcome::NotRun, None);
    match line {
        Line::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Message::parse_all(text).map_err(|error| (None, with(error, ErrorCode::BadRequest))),
            Err(_) => {
                let error = RpcError::new(codes::PARSE_ERROR, "this is no UTF-8");
                Err((None, with(error, ErrorCode::BadRequest)))
            }
        },
        Line::TooLong(outline) => {
            let why = format!("a message has at most {MAX_MESSAGE_BYTES} bytes");
            let error = with(RpcError::new(codes::INVALID_REQUEST, why), ErrorCode::PayloadTooLarge);
            match Outlined::of(outline) {
                Outlined::Request(id) => Err((Some(id), error)),
                // Whoever asked the client waits for an answer, and this is one.
                Outlined::Response(id) => Ok(vec![Message::Response { id: Some(id), outcome: Err(error) }]),
                Outlined::Other => Err((None, error)),
            }
        }
    }
}

/// Writes what comes for the client, one message a line, until it is done and nothing is left.
async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut from_hub: mpsc::Receiver<Message>,
    mut complaints: mpsc::Receiver<Message>,
    done: &CancellationToken,
) -> std::io::Result<()> {
    loop {
        let message = tokio::select! {
            biased;
            Some(complaint) = complaints.recv() => complaint,
            Some(message) = from_hub.recv() => message,
            () = done.cancelled() => return output.flush().await,
        };
        let mut line = message.to_text();
        line.push('\n');
        output.write_all(line.as_bytes()).await?;
        if from_hub.is_empty() {
            output.flush().await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, BufReader, duplex, split};

    use super::*;
    use crate::cli::scripted_hub::{Asked, ScriptedHub};

    /// Takes requests until the session is ended; answers them, and tells what was asked.
    fn hub(take: &mut dyn FnMut() -> Asked) -> Vec<String> {
        let mut asked = Vec::new();
        loop {
            let mut next = take();
            let request = next.request.clone();
            asked.push(request.clone());
            let json = "content-type: application/json\r\nmcp-session-id: s1\r\n";
            let answer =
                |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25"}}}}"#);
            match () {
                () if request.starts_with("GET ") => drop(next.answer("405 Method Not Allowed", "", "")),
                () if request.contains("\"initialize\"") => drop(next.answer("200 OK", json, &answer("\"a\""))),
                () if request.contains("\"tools/call\"") => {
                    next.begin_events();
                    next.say("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n");
                    next.say(&format!("data: {}\n\n", answer("7.0")));
                    next.close();
                }
                () if request.starts_with("DELETE ") => {
                    next.answer("200 OK", "", "");
                    return asked;
                }
                () => drop(next.answer("202 Accepted", "", "")),
            }
        }
    }

    #[test]
    fn what_is_no_message_is_answered_as_json_rpc_wants() {
        let refused = |line| read_line(line).map_err(|(id, error)| (id, error.code)).unwrap_err();
        for text in ["no message", "[", "[{]", r#"[{"jsonrpc":"2.0"},"#] {
            assert_eq!(refused(Line::Text(text.as_bytes())), (None, codes::PARSE_ERROR), "{text}");
        }
        for text in ["[]", "[1]", "{}", "7", r#"[{"jsonrpc":"2.0","method":"m"},{}]"#] {
            assert_eq!(refused(Line::Text(text.as_bytes())), (None, codes::INVALID_REQUEST), "{text}");
        }
        assert_eq!(refused(Line::Text(b"\xff")), (None, codes::PARSE_ERROR));
        let data = read_line(Line::Text(b"{}")).unwrap_err().1.data.unwrap();
        assert_eq!(data.get(), r#"{"code":"bad_request","outcome":"not_run"}"#);
    }

    #[test]
    fn a_message_that_is_too_long_is_answered_where_its_id_can_be_read() {
        let long = |outline: &'static str| read_line(Line::TooLong(outline.as_bytes()));
        let refused = long(r#"{"method":"m","params":{},"jsonrpc":"2.0","id":"a"}"#).unwrap_err();
        assert_eq!((refused.0.unwrap().as_json(), refused.1.code), (r#""a""#, codes::INVALID_REQUEST));
        assert!(long("xxx").unwrap_err().0.is_none());
        let passed = long(r#"{"result":{},"id":7}"#).unwrap();
        assert!(matches!(&passed[..], [Message::Response { id: Some(id), outcome: Err(_) }] if id.as_json() == "7"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_no_hub_answered_before_the_end_is_answered_with_why() {
        let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = nobody.local_addr().unwrap();
        drop(nobody);
        let mut target = ScriptedHub::start(|_| ()).client.mcp(None).unwrap();
        target.url = format!("http://{address}/mcp").parse().unwrap();
        let mut output = Vec::new();
        let input = br#"{"jsonrpc":"2.0","id":"a","method":"initialize"}"#;
        let unanswered = bridge(&input[..], &mut output, target, std::future::pending()).await.unwrap();
        let answer: Value = serde_json::from_slice(&output).unwrap();
        assert_eq!((unanswered, &answer["id"]), (1, &json!("a")));
        assert_eq!(answer["error"]["data"], json!({"code": "server_unavailable", "outcome": "not_run"}));
    }

    #[tokio::test]
    async fn a_client_speaks_to_the_hub_through_its_standard_streams() {
        let hub = ScriptedHub::start(hub);
        let target = hub.client.mcp(Some("my files")).unwrap();
        let (client, ours) = duplex(1 << 16);
        let (input, output) = split(ours);
        let bridging = bridge(input, output, target, std::future::pending());
        let using = async {
            let (lines, mut writer) = split(client);
            let mut lines = BufReader::new(lines).lines();
            let mut say = async |text: &str| writer.write_all(format!("{text}\n").as_bytes()).await.unwrap();
            let mut hear =
                async || -> Value { serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap() };
            say("no message").await;
            assert_eq!(hear().await["error"]["code"], codes::PARSE_ERROR);
            say(r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{}}"#).await;
            assert_eq!(hear().await["id"], "a");
            say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
            // The input ends while this runs, and it is answered all the same.
            say(r#"{"jsonrpc":"2.0","id":7.0,"method":"tools/call","params":{"name":"t"}}"#).await;
            writer.shutdown().await.unwrap();
            assert_eq!(hear().await["method"], "notifications/message");
            assert_eq!(hear().await, json!({"jsonrpc": "2.0", "id": 7.0, "result": {"protocolVersion": "2025-11-25"}}));
            assert_eq!(lines.next_line().await.unwrap(), None);
        };
        let (bridged, ()) = tokio::join!(bridging, using);
        bridged.unwrap();
        for request in hub.ended() {
            let line = request.lines().next().unwrap();
            assert!(line.contains(" /mcp/local/main?pack=my+files HTTP/1.1"), "{line}");
            assert!(request.contains("authorization: Bearer secret"), "{request}");
            let in_session = request.contains("mcp-session-id: s1");
            assert_eq!(in_session, !request.contains("\"initialize\""), "{request}");
        }
    }
}
