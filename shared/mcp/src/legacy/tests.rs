use http::Method;
use serde_json::json;

use super::*;
use crate::client::testing::{Heard, open};
use crate::client::{Connection, Preferred};
use crate::streamable::testing::{HttpServer, Writing};
use crate::version::Version;

/// Tells where to POST to; returns the stream and the connection, or why there is none.
async fn connect(address: &str) -> (HttpServer, Writing, Result<Connection, ConnectError>) {
    let mut server = HttpServer::start().await;
    let (open, ..) = open(Preferred::Newest);
    let connecting = Connection::over_sse(server.target.clone(), open);
    let serving = async {
        let stream = server.next(Method::GET).await.stream();
        stream.text(&format!("event: endpoint\ndata: {address}\n\n")).await;
        if address.starts_with("/messages") {
            let asked = server.expect("initialize").await;
            assert_eq!(asked.path, address);
            let result = json!({"protocolVersion": "2024-11-05"});
            stream.message(&json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result})).await;
            asked.accept();
            server.expect("notifications/initialized").await.accept();
        }
        stream
    };
    let (connection, stream) = tokio::join!(connecting, serving);
    (server, stream, connection)
}

#[tokio::test]
async fn messages_go_to_the_address_that_the_stream_tells() {
    let (mut server, stream, connection) = connect("/messages?session=7").await;
    let connection = connection.unwrap();
    assert_eq!(connection.server().version, Version::V2024_11_05);
    let serving = async {
        let asked = server.expect("m").await;
        let id = asked.body["id"].clone();
        asked.accept();
        stream.message(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
        let pong = server.next(Method::POST).await;
        assert_eq!(pong.body["id"], "p");
        pong.accept();
        stream.message(&json!({"jsonrpc": "2.0", "id": id, "result": 1})).await;
        server.expect("n").await.answer(404, "text/plain", "");
        server.expect("e").await.error(400, json!(null), -7, "no");
    };
    let asking = async {
        let ask = |method| connection.request(method, None, RequestOptions::default());
        (ask("m").await, ask("n").await, ask("e").await)
    };
    let ((answer, refused, error), ()) = tokio::join!(asking, serving);
    assert_eq!(answer.unwrap().get(), "1");
    assert!(matches!(refused, Err(RequestError::BadAnswer(_))));
    assert!(matches!(error, Err(RequestError::Rpc(error)) if error.code == -7));

    // One that is dropped is cancelled there; the end of the stream ends what is open.
    tokio::select! {
        _ = connection.request("o", None, RequestOptions::default()) => panic!("nobody answers"),
        asked = server.expect("o") => asked.accept(),
    }
    server.expect("notifications/cancelled").await.accept();
    let serving = async {
        server.expect("p").await.accept();
        drop(stream);
    };
    let (lost, ()) = tokio::join!(connection.request("p", None, RequestOptions::default()), serving);
    assert!(matches!(lost, Err(RequestError::Lost(_))), "{lost:?}");
    assert!(connection.closed().is_cancelled());
}

#[tokio::test]
async fn an_address_of_another_origin_gets_nothing() {
    for address in ["http://127.0.0.1:1/messages", "//example.org/messages", "https://127.0.0.1/messages"] {
        let (mut server, _stream, connection) = connect(address).await;
        assert!(connection.err().unwrap().to_string().contains("another origin"), "{address}");
        assert!(server.is_idle());
    }
}

#[tokio::test]
async fn a_stream_without_an_address_is_no_server() {
    let mut server = HttpServer::start().await;
    let (open, mut heard, _) = open(Preferred::Newest);
    let target = server.target.clone();
    let serving = async {
        let stream = server.next(Method::GET).await.stream();
        stream.message(&json!({"jsonrpc": "2.0", "method": "early"})).await;
    };
    let (connection, ()) = tokio::join!(Connection::over_sse(target, open), serving);
    assert!(connection.err().unwrap().to_string().contains("ended before"));
    assert!(!matches!(heard.recv().await, Some(Heard::Told(..))));
}
