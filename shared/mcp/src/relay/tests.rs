use http::Method;
use serde_json::{Value, json};

use super::*;
use crate::client::testing::Tasks;
use crate::streamable::testing::{HttpServer, Writing};

struct Relayed {
    relay: HttpRelay,
    comes: mpsc::Receiver<Message>,
    server: HttpServer,
    tasks: Arc<Tasks>,
}

async fn relayed() -> Relayed {
    let server = HttpServer::start().await;
    let tasks = Arc::new(Tasks::default());
    let (relay, comes) = HttpRelay::start(server.target.clone(), Arc::clone(&tasks) as Arc<dyn Spawn>);
    Relayed { relay, comes, server, tasks }
}

impl Relayed {
    async fn send(&self, message: Value) {
        self.relay.send(Message::parse(&message.to_string()).unwrap()).await;
    }

    async fn comes(&mut self) -> Value {
        serde_json::from_str(&self.comes.recv().await.unwrap().to_text()).unwrap()
    }

    /// The client opens a session.
    async fn initialize(&mut self) -> Writing {
        self.send(json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {"x": 1.5}})).await;
        self.server_opens("s1").await;
        assert_eq!(self.comes().await["id"], "hello");
        let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let serving = async { self.server.expect("notifications/initialized").await.accept() };
        let message = Message::parse(&told.to_string()).unwrap();
        tokio::join!(self.relay.send(message), serving);
        let get = self.server.next(Method::GET).await;
        assert_eq!(
            (&get.headers["mcp-session-id"], &get.headers["mcp-protocol-version"]),
            (&"s1".parse().unwrap(), &"2025-11-25".parse().unwrap())
        );
        get.stream()
    }

    async fn server_opens(&mut self, session: &str) {
        let asked = self.server.expect("initialize").await;
        assert_eq!(asked.body["params"], json!({"x": 1.5}));
        assert!(!asked.headers.contains_key("mcp-session-id"));
        asked.result_in_session(&json!({"protocolVersion": "2025-11-25"}), Some(session));
    }
}

#[tokio::test]
async fn messages_pass_both_ways_in_the_clients_session() {
    let mut relayed = relayed().await;
    let own = relayed.initialize().await;
    own.message(&json!({"jsonrpc": "2.0", "id": 5, "method": "roots/list"})).await;
    assert_eq!(relayed.comes().await["method"], "roots/list");
    let answering = async {
        let reply = relayed.server.next(Method::POST).await;
        assert_eq!(reply.body["result"], json!({"roots": []}));
        reply.accept();
    };
    let reply = Message::parse(r#"{"jsonrpc":"2.0","id":5,"result":{"roots":[]}}"#).unwrap();
    tokio::join!(relayed.relay.send(reply), answering);

    relayed.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})).await;
    let asked = relayed.server.expect("tools/call").await;
    assert_eq!(asked.headers["mcp-session-id"], "s1");
    let stream = asked.stream();
    stream.text("id: 1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n").await;
    assert_eq!(relayed.comes().await["method"], "notifications/progress");
    stream.break_off().await;
    let get = relayed.server.next(Method::GET).await;
    assert_eq!(get.headers["last-event-id"], "1");
    get.stream().message(&json!({"jsonrpc": "2.0", "id": 1, "result": 7})).await;
    assert_eq!(relayed.comes().await["result"], 7);

    let relay = relayed.relay.clone();
    let ending = async {
        let end = relayed.server.next(Method::DELETE).await;
        assert_eq!(end.headers["mcp-session-id"], "s1");
        end.answer(200, "text/plain", "");
    };
    tokio::join!(relay.close(Duration::from_secs(60)), ending);
    relayed.tasks.join().await;
}

#[tokio::test]
async fn a_forgotten_session_is_opened_again_without_the_client() {
    let mut relayed = relayed().await;
    let _own = relayed.initialize().await;
    relayed.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    relayed.server.expect("tools/list").await.answer(404, "text/plain", "");
    relayed.server_opens("s2").await;
    let told = relayed.server.expect("notifications/initialized").await;
    assert_eq!(told.headers["mcp-session-id"], "s2");
    told.accept();
    let again = relayed.server.expect("tools/list").await;
    assert_eq!(again.headers["mcp-session-id"], "s2");
    again.result(&json!({"tools": []}));
    assert_eq!(relayed.comes().await, json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}));
}

#[tokio::test]
async fn every_request_is_answered_whatever_becomes_of_it() {
    let mut relayed = relayed().await;
    for (id, why, code, outcome) in [
        (1, "refused the token", "unauthorized", "not_run"),
        (2, "HTTP 500", "bad_answer", "unknown"),
        (3, "no answer", "bad_answer", "unknown"),
        (4, "may have done it", "server_unavailable", "unknown"),
        (6, "HTTP 404: no pack `x`; see `footbridge packs`", "unknown_scope", "not_run"),
    ] {
        relayed.send(json!({"jsonrpc": "2.0", "id": id, "method": "m"})).await;
        let asked = relayed.server.expect("m").await;
        match id {
            1 => asked.answer(401, "text/plain", ""),
            2 => asked.answer(500, "text/plain", ""),
            3 => asked.accept(),
            6 => {
                let problem = json!({"detail": "no pack `x`\u{202e}", "hint": "see `footbridge packs`", "status": 404, "code": "unknown_scope"});
                asked.answer(404, "application/problem+json", &problem.to_string());
            }
            _ => drop(asked.stream()),
        }
        let answer = relayed.comes().await;
        assert_eq!(answer["id"], id);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(why) && message.contains(" at http://127.0.0.1:"), "{answer}");
        assert!(message.contains("/mcp: "), "{answer}");
        assert_eq!(answer["error"]["data"], json!({"code": code, "outcome": outcome}));
    }
    relayed.send(json!({"jsonrpc": "2.0", "id": 5, "method": "m"})).await;
    relayed.server.expect("m").await.error(400, Value::Null, -32602, "bad");
    assert_eq!(relayed.comes().await, json!({"jsonrpc": "2.0", "id": 5, "error": {"code": -32602, "message": "bad"}}));
}

#[tokio::test]
async fn what_is_open_at_the_end_is_answered_once() {
    let mut relayed = relayed().await;
    relayed.send(json!({"jsonrpc": "2.0", "id": 1, "method": "m"})).await;
    let asked = relayed.server.expect("m").await;
    assert_eq!(relayed.relay.give_up().await, 1);
    let answer = relayed.comes().await;
    assert_eq!((&answer["id"], &answer["error"]["data"]["outcome"]), (&json!(1), &json!("unknown")));
    asked.result(&json!(1));
    relayed.relay.idle().await;
    assert!(relayed.comes.is_empty());
    assert_eq!(relayed.relay.give_up().await, 0);
}

#[tokio::test]
async fn nothing_answers_what_was_cancelled_in_a_session() {
    let mut relayed = relayed().await;
    let _own = relayed.initialize().await;
    for streams in [true, false] {
        relayed.send(json!({"jsonrpc": "2.0", "id": 1, "method": "m"})).await;
        let asked = relayed.server.expect("m").await;
        let told =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "x"}});
        let told = Message::parse(&told.to_string()).unwrap();
        let serving = async {
            if streams {
                let stream = asked.stream();
                stream.text("id: 1\nretry: 1\ndata:\n\n").await;
                relayed.server.expect("notifications/cancelled").await.accept();
                stream.dropped().await;
            } else {
                let told = relayed.server.expect("notifications/cancelled").await;
                assert_eq!(told.headers["mcp-session-id"], "s1");
                // As a hub does with a call that was stopped.
                asked.accept();
                told.accept();
            }
        };
        tokio::join!(relayed.relay.send(told), serving);
        relayed.relay.idle().await;
    }
    // It is not looked for again, and the next that comes is the answer to the next request.
    assert!(relayed.server.is_idle());
    relayed.send(json!({"jsonrpc": "2.0", "id": 2, "method": "n"})).await;
    relayed.server.expect("n").await.result(&json!(2));
    assert_eq!(relayed.comes().await, json!({"jsonrpc": "2.0", "id": 2, "result": 2}));
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_is_not_there_is_named() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let mut target = HttpServer::start().await.target;
    target.url = format!("http://me:secret@{address}/mcp?key=secret").parse().unwrap();
    let tasks = Arc::new(Tasks::default());
    let (relay, mut comes) = HttpRelay::start(target, Arc::clone(&tasks) as Arc<dyn Spawn>);
    relay.send(Message::parse(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#).unwrap()).await;
    let answer = comes.recv().await.unwrap().to_text();
    for said in [format!(" at http://{address}/mcp: "), "`footbridge up`".to_owned(), r#""not_run""#.to_owned()] {
        assert!(answer.contains(&said), "{answer}");
    }
    assert!(!answer.contains("secret"), "{answer}");
}

#[tokio::test]
async fn without_a_session_headers_say_what_a_request_is() {
    let mut relayed = relayed().await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let request = |id: u32, method: &str, mut params: Value| {
        params["_meta"] = meta.clone();
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    };
    relayed.send(request(1, "tools/list", json!({}))).await;
    let schema = json!({"properties": {"r": {"type": "string", "x-mcp-header": "Region"}}});
    let listed = relayed.server.expect("tools/list").await;
    assert_eq!(listed.headers["mcp-method"], "tools/list");
    listed.result(&json!({"tools": [{"name": "t", "inputSchema": schema}]}));
    relayed.comes().await;

    relayed.send(request(2, "tools/call", json!({"name": "t", "arguments": {"r": "eu"}}))).await;
    let called = relayed.server.expect("tools/call").await;
    for (name, value) in [("mcp-name", "t"), ("mcp-param-region", "eu"), ("mcp-protocol-version", "2026-07-28")] {
        assert_eq!(called.headers[name], value);
    }
    // Its cancellation is the end of its stream.
    let stream = called.stream();
    relayed.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})).await;
    stream.dropped().await;
    assert!(relayed.server.is_idle());
    relayed.relay.close(Duration::from_secs(60)).await;
    relayed.tasks.join().await;
}
