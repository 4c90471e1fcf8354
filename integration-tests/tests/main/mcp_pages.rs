//! Web pages that speak MCP: what a browser is told before and with an answer, and how a request has to be addressed.

use integration_tests::clients::raw::{Client, Target};
use integration_tests::clients::stage::{McpStage, OWNER};
use integration_tests::fake_mcp::message;
use integration_tests::hub::Options;
use reqwest::{Method, Response};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::TestResult;

const PAGE: &str = "https://app.example";
const STRANGER: &str = "https://evil.example";

async fn stage() -> TestResult<McpStage> {
    let options =
        Options { env: vec![("FOOTBRIDGE_ALLOWED_ORIGINS".to_owned(), PAGE.to_owned())], ..Options::default() };
    McpStage::start_with(options).await
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[tokio::test]
async fn a_page_that_may_speak_is_told_so() -> TestResult {
    let stage = stage().await?;
    let url = format!("{}/mcp/local/main", stage.hub.url);
    let nobody = Target::new(&url, None)?;
    // The browser asks first, without a token.
    let asks = |origin: &str| {
        let asks = nobody.request(Method::OPTIONS).header("origin", origin);
        asks.header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization, content-type, mcp-param-city, x-other")
    };
    let told = asks(PAGE).send().await?;
    assert_eq!(told.status(), 204);
    assert_eq!(header(&told, "access-control-allow-origin"), PAGE);
    let headers = header(&told, "access-control-allow-headers");
    assert!(headers.contains("authorization") && headers.contains("mcp-param-city"), "{headers}");
    assert!(!headers.contains("x-other"), "{headers}");
    for method in ["GET", "POST", "DELETE"] {
        assert!(header(&told, "access-control-allow-methods").contains(method), "{method}");
    }
    let refused = asks(STRANGER).send().await?;
    assert_eq!((refused.status().as_u16(), header(&refused, "access-control-allow-origin")), (403, ""));
    // Then it sends, and may read what comes back: errors too.
    let without_token = nobody.request(Method::POST).header("origin", PAGE).body("{}").send().await?;
    assert_eq!((without_token.status().as_u16(), header(&without_token, "access-control-allow-origin")), (401, PAGE));
    let target = stage.target(OWNER).await?;
    let initialize = message::request("1", "initialize", &json!({ "protocolVersion": "2025-11-25" }).to_string());
    let post = target.request(Method::POST).header("content-type", "application/json").body(initialize);
    let opened = post.header("origin", PAGE).send().await?;
    assert_eq!((opened.status().as_u16(), header(&opened, "access-control-allow-origin")), (200, PAGE));
    assert!(header(&opened, "access-control-expose-headers").contains("mcp-session-id"));
    assert_eq!(header(&opened, "vary"), "origin");
    let known = Target::new(&format!("{}/.well-known/oauth-protected-resource/mcp/local/main", stage.hub.url), None)?;
    let described = known.request(Method::GET).header("origin", PAGE).send().await?;
    assert_eq!((described.status().as_u16(), header(&described, "access-control-allow-origin")), (200, PAGE));
    // Pages speak MCP, and nothing else.
    let api = Target::new(&format!("{}/v1/local/main/tools", stage.hub.url), None)?;
    let asked = api.request(Method::OPTIONS).header("origin", PAGE).header("access-control-request-method", "GET");
    let asked = asked.send().await?;
    assert_eq!((asked.status().as_u16(), header(&asked, "access-control-allow-origin")), (405, ""));
    Client::open(&target, json!({})).await?;
    Ok(())
}

/// Sends the head of a request as it is.
async fn head(stage: &McpStage, head: &str) -> TestResult<String> {
    let mut socket = TcpStream::connect(stage.hub.url.trim_start_matches("http://")).await?;
    socket.write_all(format!("{head}\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let mut text = Vec::new();
    socket.read_to_end(&mut text).await?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test]
async fn a_request_that_says_in_two_ways_where_it_goes_is_refused() -> TestResult {
    let stage = stage().await?;
    let known = "/.well-known/oauth-protected-resource";
    for (line, more, status) in [
        (format!("GET {known} HTTP/1.1"), "host: localhost", "200"),
        (format!("GET {known} HTTP/1.1"), "host: evil.example", "403"),
        (format!("GET {known}/mcp/local/main HTTP/1.1"), "host: evil.example", "403"),
        (format!("GET {known} HTTP/1.1"), "host: evil.example@localhost", "400"),
        (format!("GET {known} HTTP/1.1"), "host: localhost\r\nhost: evil.example", "400"),
        (format!("GET {known} HTTP/1.1"), "host: localhost\r\norigin: https://app.example\r\norigin: null", "403"),
        ("POST http://localhost/mcp/local/main HTTP/1.1".to_owned(), "host: localhost\r\ncontent-length: 0", "400"),
        ("POST /mcp/local/main HTTP/1.1".to_owned(), "host: localhost\r\ncontent-length: 0", "401"),
    ] {
        let answer = head(&stage, &format!("{line}\r\n{more}")).await?;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line} {more}: {answer}");
    }
    let answer = head(&stage, &format!("GET {known}/mcp/%ff/x HTTP/1.1\r\nhost: localhost")).await?;
    assert!(answer.contains("400") && answer.contains("\"bad_request\""), "{answer}");
    let answer = head(&stage, "POST /mcp/a\"b,x=\"y/b HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0").await?;
    assert!(answer.contains("/mcp/a%22b%2Cx%3D%22y/b\""), "{answer}");
    Ok(())
}
