use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf, split};
use tokio::sync::mpsc;

use super::*;
use crate::client::testing::{Heard, TOO_MANY_IN_A_TURN, Tasks, most_in_a_turn, open, raw};
use crate::client::{Connection, Preferred, Progress};
use crate::error::{ConnectError, RpcError};
use crate::list::{ListLimits, list_all};
use crate::listen::Subscriptions;
use crate::version::{Lifecycle, Version};

const SESSION: Preferred = Preferred::Lifecycle(Lifecycle::Session);

/// The server's end.
struct Server {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

impl Server {
    async fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line).await.unwrap();
        (read > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    async fn expect(&mut self, method: &str) -> Value {
        let message = self.read().await.unwrap();
        assert_eq!(message["method"], method, "{message}");
        message
    }

    async fn write(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, question: &Value, result: Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}).to_string()).await;
    }

    async fn refuse(&mut self, question: &Value, code: i64) {
        let error = json!({"code": code, "message": "no", "data": {"supported": ["2026-07-28", "2030-01-01"]}});
        self.write(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}).to_string()).await;
    }

    async fn initialize(&mut self) {
        let asked = self.expect("initialize").await;
        assert_eq!(asked["params"]["protocolVersion"], "2025-11-25");
        assert_eq!(asked["params"]["capabilities"], json!({"roots": {}}));
        let server = json!({"protocolVersion": "2025-06-18", "serverInfo": {"name": "s"}, "capabilities": {"tools": {}}, "instructions": "do"});
        self.answer(&asked, server).await;
        self.expect("notifications/initialized").await;
    }

    async fn discover(&mut self) {
        let asked = self.expect("server/discover").await;
        assert_eq!(asked["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        let meta = json!({"io.modelcontextprotocol/serverInfo": {"name": "s"}});
        let found =
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}, "_meta": meta});
        self.answer(&asked, found).await;
    }
}

struct Opened {
    connection: Connection,
    server: Server,
    heard: mpsc::UnboundedReceiver<Heard>,
    noise: mpsc::UnboundedReceiver<String>,
    tasks: Arc<Tasks>,
}

/// Connects to a server that does `shake` first.
async fn connect(preferred: Preferred, shake: impl AsyncFnOnce(&mut Server)) -> Result<Opened, ConnectError> {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = split(ours);
    let (theirs_in, theirs_out) = split(theirs);
    let mut server = Server { reader: BufReader::new(theirs_in), writer: theirs_out };
    let (open, heard, tasks) = open(preferred);
    let (tell, noise) = mpsc::unbounded_channel();
    let noisy: Noise = Arc::new(move |line| tell.send(line.to_owned()).unwrap());
    let connecting = Connection::over_streams(reader, writer, noisy, open);
    let shaking = async {
        shake(&mut server).await;
        server
    };
    let (connection, server) = tokio::join!(connecting, shaking);
    Ok(Opened { connection: connection?, server, heard, noise, tasks })
}

async fn session() -> Opened {
    connect(SESSION, async |server| server.initialize().await).await.unwrap()
}

#[tokio::test]
async fn a_session_begins_and_ends_in_order() {
    let Opened { connection, mut server, tasks, .. } = session().await;
    let described = connection.server();
    assert_eq!((described.version, described.info.get()), (Version::V2025_06_18, r#"{"name":"s"}"#));
    assert_eq!(described.instructions.as_deref(), Some("do"));
    let closing = async {
        connection.close(Duration::from_secs(60)).await;
        assert!(connection.closed().is_cancelled());
    };
    let ending = async {
        assert_eq!(server.read().await, None);
        drop(server);
    };
    tokio::join!(closing, ending);
    tasks.join().await;
    assert!(matches!(connection.request("m", None, RequestOptions::default()).await, Err(RequestError::NotSent(_))));
}

#[tokio::test(start_paused = true)]
async fn closing_waits_no_longer_than_it_may() {
    let Opened { connection, server, tasks, .. } = session().await;
    connection.close(Duration::from_secs(2)).await;
    tasks.join().await;
    drop(server);
}

#[tokio::test]
async fn a_connection_nobody_holds_ends() {
    let Opened { connection, mut server, tasks, .. } = session().await;
    drop(connection);
    assert_eq!(server.read().await, None);
    tasks.join().await;
}

#[tokio::test]
async fn the_newest_lifecycle_is_found_and_spoken() {
    let mut opened = connect(Preferred::Newest, async |server| server.discover().await).await.unwrap();
    assert_eq!(opened.connection.server().version, Version::V2026_07_28);
    assert_eq!(opened.connection.server().info.get(), r#"{"name":"s"}"#);
    let options = RequestOptions { capabilities: Some(raw(r#"{"sampling":{}}"#)), ..RequestOptions::default() };
    let serving = async {
        let asked = opened.server.expect("tools/list").await;
        assert_eq!(asked["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"], json!({"sampling": {}}));
        opened.server.answer(&asked, json!({"tools": []})).await;
    };
    let (result, ()) = tokio::join!(opened.connection.request("tools/list", None, options), serving);
    assert_eq!(result.unwrap().get(), r#"{"tools":[]}"#);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_know_the_discovery_is_initialized() {
    for code in [Some(-32601), Some(-32602), None] {
        let opened = connect(Preferred::Newest, async move |server| {
            let asked = server.expect("server/discover").await;
            if let Some(code) = code {
                server.refuse(&asked, code).await;
            }
            server.initialize().await;
        });
        assert_eq!(opened.await.unwrap().connection.server().version, Version::V2025_06_18, "{code:?}");
    }
}

#[tokio::test]
async fn a_server_without_sessions_is_discovered_after_all() {
    let opened = connect(SESSION, async |server| {
        let asked = server.expect("initialize").await;
        server.refuse(&asked, -32022).await;
        server.discover().await;
    });
    assert_eq!(opened.await.unwrap().connection.server().version, Version::V2026_07_28);
}

#[tokio::test]
async fn a_server_that_refuses_the_version_that_it_names_is_asked_once_more() {
    for again in [false, true] {
        let opened = connect(Preferred::Newest, async move |server| {
            let asked = server.expect("server/discover").await;
            server.refuse(&asked, -32022).await;
            if again {
                let asked = server.expect("server/discover").await;
                server.refuse(&asked, -32022).await;
                server.initialize().await;
            } else {
                server.discover().await;
            }
        });
        let wanted = if again { Version::V2025_06_18 } else { Version::V2026_07_28 };
        assert_eq!(opened.await.unwrap().connection.server().version, wanted);
    }
}

#[tokio::test(start_paused = true)]
async fn why_there_is_no_connection_is_told() {
    let died = connect(Preferred::Newest, async |server| {
        server.expect("server/discover").await;
        server.writer.shutdown().await.unwrap();
    });
    assert!(matches!(died.await.err(), Some(ConnectError::EndedAtDiscovery)));
    let future = connect(SESSION, async |server| {
        let asked = server.expect("initialize").await;
        server.answer(&asked, json!({"protocolVersion": "2099-01-01\u{202e}"})).await;
    });
    assert!(matches!(future.await.err(), Some(ConnectError::Version(version)) if version == "2099-01-01"));
    let silent = connect(SESSION, async |_| tokio::time::sleep(Duration::from_secs(61)).await);
    assert!(matches!(silent.await.err(), Some(ConnectError::Timeout(_))));
    let refusing = connect(SESSION, async |server| {
        let asked = server.expect("initialize").await;
        server.refuse(&asked, -7).await;
    });
    assert!(matches!(refusing.await.err(), Some(ConnectError::Refused(RpcError { code: -7, .. }))));
    let newer = connect(Preferred::Newest, async |server| {
        let asked = server.expect("server/discover").await;
        server.refuse(&asked, -32021).await;
    });
    assert!(matches!(newer.await.err(), Some(ConnectError::Refused(_))));
}

#[tokio::test]
async fn answers_find_their_requests_whatever_else_is_said() {
    let Opened { connection, mut server, mut noise, .. } = session().await;
    let serving = async {
        let (first, second) = (server.expect("a").await, server.expect("b").await);
        server.write("npm WARN deprecated \u{1b}[31m").await;
        server.write(r#"{"jsonrpc":"1.0","id":1}"#).await;
        server.write(r#"{"jsonrpc":"2.0","id":9999,"result":{}}"#).await;
        server.write(&format!(r#"[{{"jsonrpc":"2.0","id":"{}","result":{{"v":1.10}}}}]"#, second["id"])).await;
        server.answer(&second, json!("again")).await;
        server.write(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":5,"message":"x"}}}}"#, first["id"])).await;
    };
    let ask = |method| connection.request(method, None, RequestOptions::default());
    let (first, second, ()) = tokio::join!(ask("a"), ask("b"), serving);
    assert!(matches!(first, Err(RequestError::Rpc(RpcError { code: 5, .. }))));
    assert_eq!(second.unwrap().get(), r#"{"v":1.10}"#);
    assert_eq!(noise.recv().await.unwrap(), "npm WARN deprecated [31m");
    assert_eq!(noise.recv().await.unwrap(), r#"{"jsonrpc":"1.0","id":1}"#);
    // Nothing was written back for any of it.
    connection.notify("end", None).await.unwrap();
    server.expect("end").await;
}

#[tokio::test]
async fn a_line_beyond_all_limits_is_noise() {
    let Opened { connection, mut server, mut noise, .. } = session().await;
    let serving = async {
        let asked = server.expect("m").await;
        for _ in 0..MAX_MESSAGE_BYTES.div_ceil(1 << 16) + 1 {
            server.writer.write_all(&[b'x'; 1 << 16]).await.unwrap();
        }
        server.write("").await;
        server.answer(&asked, json!(1)).await;
    };
    let (answer, ()) = tokio::join!(connection.request("m", None, RequestOptions::default()), serving);
    assert_eq!(answer.unwrap().get(), "1");
    assert!(noise.recv().await.unwrap().starts_with("(a line of more than"));
}

#[tokio::test]
async fn an_answer_beyond_all_limits_ends_its_request_at_once() {
    let Opened { connection, mut server, noise: _noise, .. } = session().await;
    let large = "x".repeat(MAX_MESSAGE_BYTES);
    let serving = async {
        let (first, second, third) = (server.expect("a").await, server.expect("b").await, server.expect("c").await);
        // The id is before the result, or after it.
        server.answer(&first, json!({"t": large})).await;
        server
            .write(&format!(r#"{{"error":{{"code":1,"message":"{large}"}},"jsonrpc":"2.0","id":{}}}"#, second["id"]))
            .await;
        server.write(&format!(r#"{{"jsonrpc":"2.0","id":"q","method":"m","params":{{"t":"{large}"}}}}"#)).await;
        let refused = server.read().await.unwrap();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("q"), &json!(-32600)));
        server.answer(&third, json!(3)).await;
    };
    let ask = |method| connection.request(method, None, RequestOptions::default());
    let (first, second, third, ()) = tokio::join!(ask("a"), ask("b"), ask("c"), serving);
    for large in [first, second] {
        assert!(matches!(&large, Err(RequestError::BadAnswer(why)) if why.contains("more than")), "{large:?}");
    }
    assert_eq!(third.unwrap().get(), "3");
}

#[tokio::test]
async fn what_a_server_says_of_itself_is_kept_within_limits() {
    let stating = async |key: &str, value: Value| {
        let server = json!({"protocolVersion": "2025-06-18", key: value});
        let opened = connect(SESSION, async |end| {
            let asked = end.expect("initialize").await;
            end.answer(&asked, server).await;
        });
        opened.await.map(|opened| opened.connection.server())
    };
    let described = stating("instructions", json!("ü".repeat(64 * 1024))).await.unwrap();
    let instructions = described.instructions.as_deref().unwrap();
    assert!(instructions.len() < 65 * 1024 && instructions.ends_with("are longer]"));
    for name in ["serverInfo", "capabilities"] {
        let refused = stating(name, json!({"x": "x".repeat(64 * 1024)})).await.err().unwrap();
        assert!(refused.to_string().contains(&format!("`{name}` has more than")), "{refused}");
    }
}

#[tokio::test]
async fn others_have_their_turn_however_fast_a_server_speaks() {
    let Opened { connection: _connection, mut server, heard, .. } = session().await;
    let told = format!("{}\n", r#"{"jsonrpc":"2.0","method":"m"}"#);
    let all = 50 * TOO_MANY_IN_A_TURN;
    let text = told.repeat(all);
    let (written, most) = tokio::join!(server.writer.write_all(text.as_bytes()), most_in_a_turn(&heard, all));
    written.unwrap();
    assert!(most < TOO_MANY_IN_A_TURN, "{most}");
}

#[tokio::test]
async fn others_have_their_turn_after_every_large_message() {
    let Opened { connection: _connection, mut server, heard, .. } = session().await;
    let large = json!({"jsonrpc": "2.0", "method": "m", "params": "x".repeat(16 * 1024)});
    let text = format!("{large}\n").repeat(40);
    let (written, most) = tokio::join!(server.writer.write_all(text.as_bytes()), most_in_a_turn(&heard, 40));
    written.unwrap();
    assert_eq!(most, 1);
}

#[tokio::test]
async fn a_batch_beyond_all_limits_ends_its_requests_at_once() {
    let Opened { connection, mut server, noise: _noise, .. } = session().await;
    let serving = async {
        let (first, second) = (server.expect("a").await, server.expect("b").await);
        let answer = |asked: &Value, text: &str| json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"t": text}});
        let batch = json!([answer(&first, "1"), answer(&second, &"x".repeat(MAX_MESSAGE_BYTES))]);
        server.write(&batch.to_string()).await;
    };
    let ask = |method| connection.request(method, None, RequestOptions::default());
    let (first, second, ()) = tokio::join!(ask("a"), ask("b"), serving);
    assert!(matches!((first, second), (Err(RequestError::BadAnswer(_)), Err(RequestError::BadAnswer(_)))));
}

#[tokio::test]
async fn progress_comes_to_whom_it_belongs() {
    let Opened { connection, mut server, mut heard, .. } = session().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let on_progress = Arc::new(move |progress: Progress| tell.send((progress.progress, progress.message)).unwrap());
    let params = raw(r#"{"_meta":{"progressToken":"theirs","x":1.10}}"#);
    let serving = async {
        let asked = server.expect("m").await;
        let token = asked["params"]["_meta"]["progressToken"].clone();
        assert_eq!(token, asked["id"]);
        for (token, message) in
            [(json!("theirs"), "half"), (json!(99), "half"), (token.clone(), "half"), (token, &"ü".repeat(9000))]
        {
            let params = json!({"progressToken": token, "progress": 0.5, "message": message});
            server
                .write(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string())
                .await;
        }
        server.write(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1.10}}"#).await;
        server.answer(&asked, json!({})).await;
    };
    let options = RequestOptions { progress: Some(on_progress), ..RequestOptions::default() };
    let (answer, ()) = tokio::join!(connection.request("m", Some(params), options), serving);
    answer.unwrap();
    assert_eq!(told.recv().await, Some((0.5, Some("half".to_owned()))));
    assert_eq!(told.recv().await, Some((0.5, Some("ü".repeat(8192)))));
    assert_eq!(told.recv().await, None);
    let message = Heard::Told(None, "notifications/message".to_owned(), Some(r#"{"data":1.10}"#.to_owned()));
    assert_eq!(heard.recv().await, Some(message));
}

#[tokio::test]
async fn a_request_that_is_cancelled_or_dropped_is_cancelled_at_the_server() {
    let Opened { connection, mut server, .. } = session().await;
    let options = RequestOptions::default();
    let cancel = options.cancel.clone();
    let serving = async {
        let asked = server.expect("m").await;
        cancel.cancel();
        let told = server.expect("notifications/cancelled").await;
        assert_eq!(told["params"]["requestId"], asked["id"]);
        server.answer(&asked, json!("too late")).await;
    };
    let (answer, ()) = tokio::join!(connection.request("m", None, options), serving);
    assert!(matches!(answer, Err(RequestError::Cancelled)));

    tokio::select! {
        _ = connection.request("n", None, RequestOptions::default()) => panic!("nobody answers"),
        asked = server.expect("n") => { assert_eq!(asked["method"], "n"); }
    }
    server.expect("notifications/cancelled").await;

    // One that is answered, and one that was cancelled before it was sent, need no word.
    let cancelled = RequestOptions::default();
    cancelled.cancel.cancel();
    assert!(matches!(connection.request("o", None, cancelled).await, Err(RequestError::Cancelled)));
    let serving = async {
        let asked = server.expect("p").await;
        server.answer(&asked, json!({})).await;
    };
    let (answer, ()) = tokio::join!(connection.request("p", None, RequestOptions::default()), serving);
    answer.unwrap();
    connection.notify("end", None).await.unwrap();
    server.expect("end").await;
}

#[tokio::test]
async fn the_server_asks_and_withdraws() {
    let Opened { connection, mut server, mut heard, .. } = session().await;
    server.write(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#).await;
    assert_eq!(server.read().await.unwrap(), json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    server.write(r#"{"jsonrpc":"2.0","id":"1","method":"echo","params":{"a":[1]}}"#).await;
    assert_eq!(server.read().await.unwrap(), json!({"jsonrpc": "2.0", "id": "1", "result": {"a": [1]}}));
    server.write(r#"{"jsonrpc":"2.0","id":2,"method":"refuse"}"#).await;
    assert_eq!(server.read().await.unwrap()["error"], json!({"code": -1, "message": "no"}));
    server.write(r#"{"jsonrpc":"2.0","id":3,"method":"wait"}"#).await;
    for expected in [
        Heard::Asked(None, "echo".to_owned(), Some(r#"{"a":[1]}"#.to_owned())),
        Heard::Asked(None, "refuse".to_owned(), None),
        Heard::Asked(None, "wait".to_owned(), None),
    ] {
        assert_eq!(heard.recv().await, Some(expected));
    }
    server.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#).await;
    assert_eq!(heard.recv().await, Some(Heard::Withdrawn("wait".to_owned())));
    connection.notify("end", None).await.unwrap();
    server.expect("end").await;
}

#[tokio::test]
async fn more_questions_than_can_be_asked_at_once_are_refused() {
    let Opened { connection, mut server, .. } = session().await;
    for id in 0..65 {
        server.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"wait"}}"#)).await;
    }
    let refused = server.read().await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(64), &json!(-32603)));
    drop(connection);
}

#[tokio::test]
async fn the_end_of_the_server_is_the_end_of_what_it_was_asked() {
    let Opened { connection, mut server, tasks, .. } = session().await;
    let serving = async {
        server.expect("m").await;
        server.writer.write_all(br#"{"jsonrpc":"2.0","method":"the last line has no end"}"#).await.unwrap();
        drop(server);
    };
    let (answer, ()) = tokio::join!(connection.request("m", None, RequestOptions::default()), serving);
    assert!(matches!(answer, Err(RequestError::Lost(_))));
    connection.closed().cancelled().await;
    tasks.join().await;
}

#[tokio::test]
async fn what_a_server_never_read_did_not_reach_it() {
    let Opened { connection, mut server, .. } = session().await;
    // More than fits into the pipe: it is being written, and what comes after it waits.
    let large = raw(&format!("\"{}\"", "x".repeat(1 << 17)));
    let ask = |params| connection.request("m", params, RequestOptions::default());
    let ending = async {
        let mut byte = [0];
        tokio::io::AsyncReadExt::read_exact(&mut server.reader, &mut byte).await.unwrap();
        drop(server);
    };
    let (first, second, ()) = tokio::join!(ask(Some(large)), ask(None), ending);
    assert!(matches!(first, Err(RequestError::Lost(_))), "{first:?}");
    assert!(matches!(second, Err(RequestError::NotSent(_))), "{second:?}");
}

#[tokio::test]
async fn a_list_is_read_page_by_page_within_its_limits() {
    let Opened { connection, mut server, .. } = session().await;
    let limits = ListLimits { pages: 5, items: 5, bytes: 1000 };
    let mut list = async |limits, pages: &[(Value, Value)]| {
        let serving = async {
            let mut cursor = Value::Null;
            for (items, next) in pages {
                let asked = server.expect("tools/list").await;
                assert_eq!(asked["params"]["cursor"], cursor);
                server.answer(&asked, json!({"tools": items, "nextCursor": next})).await;
                cursor = next.clone();
            }
        };
        let listing = list_all(&connection, "tools/list", "tools", limits, RequestOptions::default());
        tokio::join!(listing, serving).0
    };
    let all = list(limits, &[(json!([1, 2]), json!("a")), (json!([{"n": 3}]), json!(null))]).await.unwrap();
    assert_eq!(all.items.iter().map(|item| item.get()).collect::<Vec<_>>(), ["1", "2", r#"{"n":3}"#]);
    assert_eq!(all.cut, None);
    let twice = [(json!([1]), json!("a")), (json!([2]), json!("b")), (json!([3]), json!("a"))];
    let all = list(limits, &twice).await.unwrap();
    assert_eq!((all.items.len(), all.cut.unwrap().contains("twice")), (3, true));
    let all = list(ListLimits { pages: 2, ..limits }, &twice[..2]).await.unwrap();
    assert_eq!((all.items.len(), all.cut.unwrap().contains("2 pages")), (2, true));
    let all = list(ListLimits { items: 1, ..limits }, &twice[..2]).await.unwrap();
    assert_eq!((all.items.len(), all.cut.unwrap().contains("1 entries")), (1, true));
    let all = list(ListLimits { bytes: 3, ..limits }, &[(json!(["xy"]), json!("a"))]).await.unwrap();
    assert_eq!((all.items.len(), all.cut.unwrap().contains("3 bytes")), (0, true));
    let long = "c".repeat(64 * 1024 + 1);
    let all = list(limits, &[(json!([1]), json!(&long[1..])), (json!([2]), json!(long))]).await.unwrap();
    assert_eq!((all.items.len(), all.cut.unwrap().contains("cursor of more than")), (2, true));
    assert!(matches!(list(limits, &[(json!("x"), json!(null))]).await, Err(RequestError::BadAnswer(_))));
}

#[tokio::test(start_paused = true)]
async fn a_server_is_listened_to_again_when_it_ends_the_subscription() {
    let opened = connect(Preferred::Newest, async |server| server.discover().await).await.unwrap();
    let Opened { connection, mut server, mut heard, .. } = opened;
    let capabilities = raw(r#"{"tools":{"listChanged":true},"prompts":{"listChanged":false},"resources":{}}"#);
    let wanted = Subscriptions { uris: vec!["a://b".to_owned()], ..Subscriptions::offered(&capabilities) };
    let until = CancellationToken::new();
    let serving = async {
        for end in [true, false] {
            let asked = server.expect("subscriptions/listen").await;
            let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["a://b"]});
            assert_eq!(asked["params"]["notifications"], filter);
            server.write(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
            assert!(matches!(heard.recv().await, Some(Heard::Told(None, ..))));
            if end {
                let id = &asked["id"];
                let cancelled =
                    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
                server.write(&cancelled.to_string()).await;
            }
        }
        until.cancel();
        server.expect("notifications/cancelled").await;
    };
    let (ended, ()) = tokio::join!(connection.listen(&wanted, until.clone()), serving);
    ended.unwrap();
    let refusing = async {
        let asked = server.expect("subscriptions/listen").await;
        server.refuse(&asked, -32601).await;
    };
    let (refused, ()) = tokio::join!(connection.listen(&wanted, CancellationToken::new()), refusing);
    assert!(matches!(refused, Err(RequestError::Rpc(_))));
}
