use http::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::testing::HttpServer;
use super::*;
use crate::client::testing::{Heard, TOO_MANY_IN_A_TURN, Tasks, most_in_a_turn, open, raw};
use crate::client::{Connection, Preferred, Progress};
use crate::error::{ConnectError, RpcError};
use crate::headers::ParamHeaders;
use crate::version::{Lifecycle, Version};

const SESSION: Preferred = Preferred::Lifecycle(Lifecycle::Session);

struct Opened {
    connection: Connection,
    server: HttpServer,
    heard: mpsc::UnboundedReceiver<Heard>,
    tasks: Arc<Tasks>,
}

async fn connect(preferred: Preferred, shake: impl AsyncFnOnce(&mut HttpServer)) -> Result<Opened, ConnectError> {
    let mut server = HttpServer::start().await;
    let (open, heard, tasks) = open(preferred);
    let target = server.target.clone();
    let (connection, ()) = tokio::join!(Connection::over_http(target, open), shake(&mut server));
    Ok(Opened { connection: connection?, server, heard, tasks })
}

async fn initialize(server: &mut HttpServer, session: Option<&str>) {
    let asked = server.expect("initialize").await;
    assert!(!asked.headers.contains_key("mcp-protocol-version"));
    asked.result_in_session(&json!({"protocolVersion": "2025-06-18", "serverInfo": {"name": "s"}}), session);
    let told = server.expect("notifications/initialized").await;
    assert_eq!(told.headers["mcp-protocol-version"], "2025-06-18");
    told.accept();
}

/// Connected in session `s1`, without a stream of the server's own.
async fn session() -> Opened {
    let shake = async |server: &mut HttpServer| {
        initialize(server, Some("s1")).await;
        let get = server.next(Method::GET).await;
        assert_eq!(get.headers["mcp-session-id"], "s1");
        assert_eq!(get.headers["accept"], "text/event-stream");
        get.answer(405, "text/plain", "");
    };
    connect(SESSION, shake).await.unwrap()
}

async fn stateless() -> Opened {
    let shake = async |server: &mut HttpServer| {
        let asked = server.expect("server/discover").await;
        assert_eq!(asked.headers["mcp-method"], "server/discover");
        assert_eq!(asked.headers["mcp-protocol-version"], "2026-07-28");
        asked.result(&json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}));
    };
    connect(Preferred::Newest, shake).await.unwrap()
}

fn ask(connection: &Connection, method: &str) -> impl Future<Output = Result<Raw, RequestError>> {
    let connection = connection.clone();
    let method = method.to_owned();
    async move { connection.request(&method, None, RequestOptions::default()).await }
}

#[tokio::test]
async fn a_session_lasts_from_initialize_to_delete() {
    let Opened { connection, mut server, tasks, .. } = session().await;
    assert_eq!(connection.server().version, Version::V2025_06_18);
    let serving = async {
        let asked = server.expect("tools/list").await;
        assert_eq!(asked.headers["mcp-session-id"], "s1");
        assert!(!asked.headers.contains_key("mcp-method"));
        asked.result(&json!({"n": 1}));
    };
    let (answer, ()) = tokio::join!(ask(&connection, "tools/list"), serving);
    assert_eq!(answer.unwrap().get(), r#"{"n":1}"#);
    let ending = async {
        let end = server.next(Method::DELETE).await;
        assert_eq!(end.headers["mcp-session-id"], "s1");
        end.answer(200, "text/plain", "");
    };
    tokio::join!(connection.close(Duration::from_secs(60)), ending);
    tasks.join().await;
    assert!(matches!(ask(&connection, "m").await, Err(RequestError::NotSent(_))));
}

#[tokio::test]
async fn without_a_session_requests_say_everything_themselves() {
    let Opened { connection, mut server, tasks, .. } = stateless().await;
    let schema = raw(r#"{"properties":{"r":{"type":"string","x-mcp-header":"Region"}}}"#);
    let options = RequestOptions {
        param_headers: Some(Arc::new(ParamHeaders::of(&schema).unwrap())),
        ..RequestOptions::default()
    };
    let params = raw(r#"{"name":"t","arguments":{"r":"eu"}}"#);
    let serving = async {
        let asked = server.expect("tools/call").await;
        for (name, value) in [("mcp-method", "tools/call"), ("mcp-name", "t"), ("mcp-param-region", "eu")] {
            assert_eq!(asked.headers[name], value);
        }
        assert_eq!(asked.body["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "test");
        asked.error(404, json!(2), -32601, "none");
    };
    let (answer, ()) = tokio::join!(connection.request("tools/call", Some(params), options), serving);
    assert!(matches!(answer, Err(RequestError::Rpc(RpcError { code: -32601, .. }))), "{answer:?}");

    // Nothing is told of one that is dropped: the end of its stream says it.
    let asking = ask(&connection, "m");
    let serving = async {
        let stream = server.expect("m").await.stream();
        stream.text(": here\n\n").await;
        stream
    };
    let stream = tokio::select! {
        _ = asking => panic!("nobody answers"),
        stream = serving => stream,
    };
    stream.dropped().await;
    connection.close(Duration::from_secs(60)).await;
    tasks.join().await;
    assert!(server.is_idle());
}

#[tokio::test]
async fn servers_that_know_no_discovery_are_initialized() {
    for legacy in [
        |asked: super::testing::Served| asked.answer(400, "text/plain", "Bad Request"),
        |asked: super::testing::Served| asked.answer(404, "text/html", "<p>?"),
        |asked: super::testing::Served| asked.error(400, Value::Null, -32000, "Bad Request: Server not initialized"),
        |asked: super::testing::Served| asked.error(200, json!(1), -32601, "Method not found"),
    ] {
        let opened = connect(Preferred::Newest, async |server| {
            legacy(server.expect("server/discover").await);
            initialize(server, None).await;
            server.next(Method::GET).await.answer(405, "text/plain", "");
        });
        assert_eq!(opened.await.unwrap().connection.server().version, Version::V2025_06_18);
    }
}

#[tokio::test]
async fn why_there_is_no_connection_is_told() {
    let failed = |status: u16| async move {
        let shake = async |server: &mut HttpServer| {
            server.expect("initialize").await.answer(status, "text/plain", "secret");
        };
        connect(SESSION, shake).await.err().unwrap()
    };
    assert!(matches!(failed(401).await, ConnectError::Unauthorized(401)));
    assert!(matches!(failed(403).await, ConnectError::Unauthorized(403)));
    assert!(matches!(failed(405).await, ConnectError::Status(405)));
    assert!(matches!(failed(307).await, ConnectError::Status(307)));
    let nothing = failed(200).await.to_string();
    assert!(nothing.contains("neither JSON nor") && !nothing.contains("secret"), "{nothing}");

    let mut server = HttpServer::start().await;
    let mut target = server.target.clone();
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    target.url = format!("http://{}/?key=secret", nobody.local_addr().unwrap()).parse().unwrap();
    drop(nobody);
    let (open, ..) = open(SESSION);
    let refused = Connection::over_http(target, open).await.err().unwrap().to_string();
    assert!(refused.contains("did not reach") && !refused.contains("secret"), "{refused}");
    assert!(server.is_idle());
}

#[tokio::test]
async fn what_a_stream_says_belongs_to_its_request() {
    let Opened { connection, mut server, mut heard, .. } = session().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let on_progress = Arc::new(move |progress: Progress| tell.send(progress.progress).unwrap());
    let options = RequestOptions { tag: Some(77), progress: Some(on_progress), ..RequestOptions::default() };
    let serving = async {
        let asked = server.expect("m").await;
        let id = asked.body["id"].clone();
        let token = asked.body["params"]["_meta"]["progressToken"].clone();
        let stream = asked.stream();
        stream.text(": hello\n\nevent: other\ndata: x\n\ndata: no message\n\n").await;
        let progress = json!({"progressToken": token, "progress": 3.0});
        stream.message(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})).await;
        stream.message(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})).await;
        stream.message(&json!({"jsonrpc": "2.0", "id": "q", "method": "echo", "params": {"a": 1}})).await;
        let reply = server.next(Method::POST).await;
        assert_eq!(reply.body, json!({"jsonrpc": "2.0", "id": "q", "result": {"a": 1}}));
        assert_eq!(reply.headers["mcp-session-id"], "s1");
        reply.accept();
        stream.message(&json!({"jsonrpc": "2.0", "id": 9999, "result": "another's"})).await;
        stream.message(&json!({"jsonrpc": "2.0", "id": id, "result": {"done": true}})).await;
        stream
    };
    let (answer, _stream) = tokio::join!(connection.request("m", None, options), serving);
    assert_eq!(answer.unwrap().get(), r#"{"done":true}"#);
    assert_eq!(told.recv().await, Some(3.0));
    assert_eq!(
        heard.recv().await,
        Some(Heard::Told(Some(77), "notifications/message".to_owned(), Some("{}".to_owned())))
    );
    assert_eq!(heard.recv().await, Some(Heard::Asked(Some(77), "echo".to_owned(), Some(r#"{"a":1}"#.to_owned()))));
}

#[tokio::test]
async fn others_have_their_turn_however_fast_a_stream_speaks() {
    let mut own = None;
    let shake = async |server: &mut HttpServer| {
        initialize(server, Some("s1")).await;
        own = Some(server.next(Method::GET).await.stream());
    };
    let Opened { heard, connection: _connection, server: _server, tasks: _tasks } =
        connect(SESSION, shake).await.unwrap();
    let all = 50 * TOO_MANY_IN_A_TURN;
    let told = "data: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n".repeat(all);
    let own = own.unwrap();
    let ((), most) = tokio::join!(own.text(&told), most_in_a_turn(&heard, all));
    assert!(most < TOO_MANY_IN_A_TURN, "{most}");
}

#[tokio::test]
async fn a_request_that_is_cancelled_takes_its_questions_with_it() {
    let Opened { connection, mut server, mut heard, .. } = session().await;
    let options = RequestOptions::default();
    let cancel = options.cancel.clone();
    let serving = async {
        let asked = server.expect("m").await;
        let id = asked.body["id"].clone();
        let stream = asked.stream();
        stream.message(&json!({"jsonrpc": "2.0", "id": 1, "method": "wait"})).await;
        assert!(matches!(heard.recv().await, Some(Heard::Asked(..))));
        cancel.cancel();
        assert_eq!(heard.recv().await, Some(Heard::Withdrawn("wait".to_owned())));
        let told = server.expect("notifications/cancelled").await;
        assert_eq!(told.body["params"]["requestId"], id);
        told.accept();
    };
    let (answer, ()) = tokio::join!(connection.request("m", None, options), serving);
    assert!(matches!(answer, Err(RequestError::Cancelled)));
}

#[tokio::test]
async fn a_stream_that_breaks_goes_on_after_its_last_event() {
    let Opened { connection, mut server, .. } = session().await;
    let serving = async {
        let asked = server.expect("m").await;
        let answer = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": 1});
        let stream = asked.stream();
        stream.text("id: e1\nretry: 1\ndata:\n\n").await;
        stream.break_off().await;
        let get = server.next(Method::GET).await;
        assert_eq!(
            (&get.headers["last-event-id"], &get.headers["mcp-session-id"]),
            (&"e1".parse().unwrap(), &"s1".parse().unwrap())
        );
        get.answer(503, "text/plain", "");
        let stream = server.next(Method::GET).await.stream();
        stream.text("id: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n").await;
        drop(stream);
        let get = server.next(Method::GET).await;
        assert_eq!(get.headers["last-event-id"], "e2");
        let stream = get.stream();
        stream.message(&answer).await;
    };
    let (answer, ()) = tokio::join!(ask(&connection, "m"), serving);
    assert_eq!(answer.unwrap().get(), "1");
}

#[tokio::test]
async fn a_stream_that_cannot_go_on_is_a_lost_answer() {
    let Opened { connection, mut server, .. } = session().await;
    let serving = async {
        let stream = server.expect("a").await.stream();
        stream.message(&json!({"jsonrpc": "2.0", "method": "x"})).await;
        drop(stream);
        let stream = server.expect("b").await.stream();
        stream.text("id: 1\nretry: 1\n\n").await;
        drop(stream);
        server.next(Method::GET).await.answer(405, "text/plain", "");
        let stream = server.expect("c").await.stream();
        stream.text(&format!("id: 1\nretry: 1\n\nid: {}\n\n", "x".repeat(4097))).await;
        drop(stream);
    };
    let asking = async { (ask(&connection, "a").await, ask(&connection, "b").await, ask(&connection, "c").await) };
    let ((a, b, c), ()) = tokio::join!(asking, serving);
    assert!(matches!(a, Err(RequestError::Lost(_))), "{a:?}");
    assert!(matches!(b, Err(RequestError::Lost(why)) if why.contains("405")));
    assert!(matches!(c, Err(RequestError::Lost(_))), "{c:?}");
    assert!(!connection.closed().is_cancelled());
}

#[tokio::test]
async fn statuses_say_what_is_known_of_a_request() {
    let Opened { connection, mut server, .. } = session().await;
    let mut after = async |answer: Box<dyn FnOnce(super::testing::Served)>| {
        let serving = async { answer(server.expect("m").await) };
        tokio::join!(ask(&connection, "m"), serving).0.unwrap_err()
    };
    assert!(matches!(after(Box::new(|m| m.answer(401, "", ""))).await, RequestError::Unauthorized(401)));
    assert!(matches!(after(Box::new(|m| m.answer(500, "text/html", ""))).await, RequestError::BadAnswer(_)));
    assert!(matches!(after(Box::new(|m| m.answer(504, "text/html", ""))).await, RequestError::Lost(_)));
    assert!(matches!(after(Box::new(|m| m.accept())).await, RequestError::BadAnswer(_)));
    assert!(matches!(after(Box::new(|m| m.answer(200, "application/json", "{}"))).await, RequestError::BadAnswer(_)));
    assert!(matches!(after(Box::new(|m| m.answer(200, "text/html", "{}"))).await, RequestError::BadAnswer(_)));
    assert!(matches!(after(Box::new(|m| m.error(500, json!(null), -32603, "x"))).await, RequestError::Rpc(_)));
    let other = r#"{"jsonrpc":"2.0","id":999,"result":1}"#;
    assert!(matches!(after(Box::new(|m| m.answer(200, "application/json", other))).await, RequestError::BadAnswer(_)));
    let large = "x".repeat(footbridge_shared::limits::MAX_MESSAGE_BYTES + 1);
    let large = move |m: super::testing::Served| m.answer(200, "application/json", &large);
    assert!(matches!(after(Box::new(large)).await, RequestError::BadAnswer(why) if why.contains("bytes")));
    assert!(!connection.closed().is_cancelled());
}

#[tokio::test]
async fn a_forgotten_session_is_the_end_of_the_connection_and_each_request_hears_it() {
    for by_404 in [true, false] {
        let Opened { connection, mut server, tasks, .. } = session().await;
        let refuse = |asked: super::testing::Served| match by_404 {
            true => asked.answer(404, "text/plain", "Not Found"),
            false => asked.error(400, Value::Null, -32000, "Bad Request: No valid session ID provided"),
        };
        let serving = async {
            let (first, second) = (server.next(Method::POST).await, server.next(Method::POST).await);
            refuse(first);
            connection.closed().cancelled().await;
            refuse(second);
        };
        let (first, second, ()) = tokio::join!(ask(&connection, "a"), ask(&connection, "b"), serving);
        assert!(matches!(first, Err(RequestError::SessionExpired)), "{first:?}");
        assert!(matches!(second, Err(RequestError::SessionExpired)), "{second:?}");
        assert!(matches!(ask(&connection, "c").await, Err(RequestError::SessionExpired)));
        tasks.join().await;
    }
}

#[tokio::test]
async fn the_server_speaks_on_its_own_stream_across_breaks() {
    let mut stream = None;
    let shake = async |server: &mut HttpServer| {
        initialize(server, Some("s1")).await;
        stream = Some(server.next(Method::GET).await.stream());
    };
    let Opened { connection, mut server, mut heard, tasks } = connect(SESSION, shake).await.unwrap();
    let stream = stream.unwrap();
    stream.text("retry: 1\nid: 5\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"one\"}\n\n").await;
    drop(stream);
    let get = server.next(Method::GET).await;
    assert_eq!(get.headers["last-event-id"], "5");
    get.answer(500, "text/plain", "");
    let stream = server.next(Method::GET).await.stream();
    stream.message(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
    assert_eq!(server.next(Method::POST).await.body, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    stream.message(&json!({"jsonrpc": "2.0", "method": "two"})).await;
    assert_eq!(heard.recv().await, Some(Heard::Told(None, "one".to_owned(), None)));
    assert_eq!(heard.recv().await, Some(Heard::Told(None, "two".to_owned(), None)));
    drop(stream);
    server.next(Method::GET).await.answer(404, "text/plain", "");
    connection.closed().cancelled().await;
    tasks.join().await;
}

#[tokio::test]
async fn an_event_beyond_all_limits_does_not_end_the_servers_own_stream() {
    let mut own = None;
    let shake = async |server: &mut HttpServer| {
        initialize(server, Some("s1")).await;
        own = Some(server.next(Method::GET).await.stream());
    };
    let Opened { connection: _connection, mut server, mut heard, .. } = connect(SESSION, shake).await.unwrap();
    let large = "x".repeat(footbridge_shared::limits::MAX_MESSAGE_BYTES);
    let own = own.unwrap();
    own.text(&format!("id: 5\nretry: 1\ndata:\n\ndata: {large}\n\n")).await;
    let get = server.next(Method::GET).await;
    assert!(!get.headers.contains_key("last-event-id"));
    get.stream().message(&json!({"jsonrpc": "2.0", "method": "two"})).await;
    assert_eq!(heard.recv().await, Some(Heard::Told(None, "two".to_owned(), None)));
}

#[tokio::test]
async fn nothing_is_asked_before_the_server_can_be_heard() {
    let mut server = HttpServer::start().await;
    let (open, ..) = open(SESSION);
    let mut connecting = Box::pin(Connection::over_http(server.target.clone(), open));
    let get = tokio::select! {
        _ = &mut connecting => panic!("nobody would hear what the server asks"),
        get = async {
            initialize(&mut server, Some("s1")).await;
            server.next(Method::GET).await
        } => get,
    };
    let _stream = get.stream();
    connecting.await.unwrap();
}
