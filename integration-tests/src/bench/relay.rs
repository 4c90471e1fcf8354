//! A call through hub and foot, against the sockets it cannot avoid.

use std::process::Command;
use std::sync::Arc;

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use reqwest::Method;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::load::{Measured, measure};
use super::table::{Row, Target, print};
use crate::Result;
use crate::api::Api;
use crate::foot::TestFoot;
use crate::hub::TestHub;
use crate::process::Process;

/// Payload sizes, bytes.
const PAYLOADS: [usize; 2] = [1024, 32 * 1024];
/// Callers at once.
const CALLERS: [usize; 2] = [1, 64];
/// How the relayed call says that it succeeded.
const SUCCEEDED: &str = r#""isError":false"#;
/// Where the relayed call goes.
const INVOKE: &str = "/v1/local/main/tools/echo_text/invoke";

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Calls of one round; each caller makes its share, and one at least.
    pub calls: usize,
    /// Rounds that count, after one that warms up. Of each figure the median is shown. The three subjects take turns, so
    /// that a slow spell of the machine hits all.
    pub rounds: usize,
}

impl Default for Effort {
    /// Enough for figures that stay the same from run to run.
    fn default() -> Self {
        Self { calls: 6_400, rounds: 5 }
    }
}

impl Effort {
    /// Reads `--calls N` and `--rounds N`.
    ///
    /// # Errors
    /// Any other word, and what is no whole number from 1.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut effort = Self::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let figure = match word.as_str() {
                "--calls" => &mut effort.calls,
                "--rounds" => &mut effort.rounds,
                _ => return Err(format!("`{word}` is no part of this benchmark").into()),
            };
            let number = words.next().and_then(|number| number.parse().ok()).filter(|number| *number > 0);
            *figure = number.ok_or_else(|| format!("{word} takes a whole number from 1"))?;
        }
        Ok(effort)
    }
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Measures and prints.
///
/// # Errors
/// When any part does not come up, or any call fails.
pub async fn run(effort: Effort) -> Result<()> {
    let hub = TestHub::start().await?;
    let folder = tempfile::tempdir()?;
    let _foot = TestFoot::start(&hub, "bench", "bench", folder.path(), &["--echo", "--max-concurrent", "1024"]).await?;
    let token = hub.token("bench", &["engine"]).await?;
    let ours = Api::new(&hub.url, Some(&token))?;
    let (_http, http_url) = comparison("http-echo")?;
    let (_socket, socket_url) = comparison("socket-echo")?;
    let http = Api::new(&http_url, None)?;

    let mut rows = Vec::new();
    for payload in PAYLOADS {
        let text = "x".repeat(payload);
        let body = json!({ "arguments": { "text": text } }).to_string();
        for callers in CALLERS {
            let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
            for round in 0..=effort.rounds {
                let echo = EchoSocket::connect(&socket_url).await?;
                let socket = measure(callers, effort.calls, || echo.caller(&text)).await?;
                let bare =
                    measure(callers, effort.calls, || poster(&http, "/echo", &body, Answer::Echo(body.len()))).await?;
                let relayed =
                    measure(callers, effort.calls, || poster(&ours, INVOKE, &body, Answer::Relayed(payload))).await?;
                // The first round warms up.
                if round > 0 {
                    a.push(relayed);
                    b.push(bare);
                    c.push(socket);
                }
            }
            rows.extend(compare(payload, callers, &[a, b, c].map(|rounds| Measured::median(&rounds))));
        }
    }
    print("Relay: engine → hub (HTTP) → foot → back, unkeyed; comparison: bare HTTP echo + bare WebSocket echo", &rows);
    Ok(())
}

fn compare(payload: usize, callers: usize, [ours, http, socket]: &[Measured; 3]) -> Vec<Row> {
    let what = |figure: &str| format!("{} KiB, {callers} caller(s), {figure}", payload / 1024);
    let row = |figure: &str, ours: f64, sum: f64, bound: f64| Row {
        what: what(figure),
        ours: format!("{ours:.0} µs"),
        comparison: format!("{sum:.0} µs"),
        ratio: ours / sum,
        target: Target::AtMost(bound),
    };
    let mut rows = vec![
        row("p50", ours.p50_us, http.p50_us + socket.p50_us, 1.5),
        row("p99", ours.p99_us, http.p99_us + socket.p99_us, 2.0),
    ];
    if callers > 1 {
        let slower = http.per_second.min(socket.per_second);
        rows.push(Row {
            what: what("throughput (slower of the two)"),
            ours: format!("{:.0}/s", ours.per_second),
            comparison: format!("{slower:.0}/s"),
            ratio: ours.per_second / slower,
            target: Target::AtLeast(0.6),
        });
    }
    rows
}

/// A comparison server as a process of its own.
fn comparison(part: &str) -> Result<(Process, String)> {
    let mut process = Process::spawn(Command::new(std::env::current_exe()?).arg(part))?;
    let line = process.line_with("listening on ")?;
    let url = line.rsplit(' ').next().ok_or("no address")?.to_owned();
    Ok((process, url))
}

/// What an answer must be, so that no failure is measured as if it were a quick success.
#[derive(Debug, Clone, Copy)]
enum Answer {
    /// So many bytes.
    Echo(usize),
    /// A call that succeeded, with at least so many bytes.
    Relayed(usize),
}

impl Answer {
    fn check(self, body: &str) -> Result<()> {
        let fits = match self {
            Self::Echo(bytes) => body.len() == bytes,
            Self::Relayed(bytes) => body.len() >= bytes && body.contains(SUCCEEDED),
        };
        if fits { Ok(()) } else { Err(format!("no {self:?}: {}", body.chars().take(200).collect::<String>()).into()) }
    }
}

fn poster(
    api: &Api,
    path: &str,
    body: &str,
    answer: Answer,
) -> impl FnMut() -> futures::future::BoxFuture<'static, Result<()>> + Send + use<> {
    let (api, path, body) = (api.clone(), path.to_owned(), body.to_owned());
    move || {
        let request = api.request(Method::POST, &path).header("content-type", "application/json").body(body.clone());
        Box::pin(async move {
            let bytes = request.send().await?.error_for_status()?.bytes().await?;
            answer.check(std::str::from_utf8(&bytes)?)
        })
    }
}

/// One WebSocket that many callers share, as the calls of a foot share one. Answers come in the order of the questions.
struct EchoSocket {
    sender: Arc<Mutex<Sender>>,
    /// Ends with the socket.
    _receiver: JoinSet<()>,
}

struct Sender {
    sink: SplitSink<Socket, Message>,
    waiting: mpsc::UnboundedSender<oneshot::Sender<()>>,
}

impl EchoSocket {
    async fn connect(url: &str) -> Result<Self> {
        let (socket, _) = tokio_tungstenite::connect_async_with_config(url, None, true).await?;
        let (sink, stream) = socket.split();
        let (waiting, asked) = mpsc::unbounded_channel();
        let mut receiver = JoinSet::new();
        receiver.spawn(deliver(stream, asked));
        Ok(Self { sender: Arc::new(Mutex::new(Sender { sink, waiting })), _receiver: receiver })
    }

    fn caller(&self, text: &str) -> impl FnMut() -> futures::future::BoxFuture<'static, Result<()>> + Send + use<> {
        let (sender, text) = (self.sender.clone(), text.to_owned());
        move || {
            let (sender, message) = (sender.clone(), Message::text(text.clone()));
            Box::pin(async move {
                let (done, answer) = oneshot::channel();
                {
                    let mut sender = sender.lock().await;
                    sender.waiting.send(done)?;
                    sender.sink.send(message).await?;
                }
                Ok(answer.await?)
            })
        }
    }
}

async fn deliver(mut stream: SplitStream<Socket>, mut asked: mpsc::UnboundedReceiver<oneshot::Sender<()>>) {
    while let Some(Ok(message)) = stream.next().await {
        if message.is_text()
            && let Some(done) = asked.recv().await
        {
            // A caller that gave up has said so already.
            let _ = done.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_call_is_not_measured() {
        let relayed = Answer::Relayed(30);
        assert!(relayed.check(r#"{"isError":false,"text":"xxxxxxxxxx"}"#).is_ok());
        assert!(relayed.check(r#"{"isError":true,"text":"xxxxxxxxxxx"}"#).is_err());
        assert!(relayed.check(r#"{"isError":false}"#).is_err(), "nothing came back");
        assert!(Answer::Echo(3).check("abc").is_ok());
        assert!(Answer::Echo(3).check("ab").is_err());
    }

    #[test]
    fn the_effort_is_read_or_refused() {
        let parse = |line: &str| Effort::parse(line.split_whitespace().map(str::to_owned)).ok();
        assert_eq!(parse(""), Some(Effort::default()));
        assert_eq!(parse("--rounds 1 --calls 64"), Some(Effort { calls: 64, rounds: 1 }));
        for wrong in ["--calls", "--calls 0", "--rounds many", "quickly"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
