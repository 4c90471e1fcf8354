use super::*;
use crate::api::tenants::TenantList;
use crate::cli::exit::Exit;
use crate::cli::scripted_hub::{ScriptedHub, client};

const PROBLEM: &str = "content-type: application/problem+json\r\n";
const JSON: &str = "content-type: application/json\r\n";

fn connection(url: &str) -> Connection {
    Connection { url: Some(url.to_owned()), token: Some(Secret::new("secret")), ..Connection::default() }
}

#[tokio::test]
async fn a_request_carries_the_token_and_names_are_escaped() {
    let hub = ScriptedHub::start(|next| {
        next().answer("200 OK", "etag: \"project-3\"\r\nfootbridge-layer: project\r\n", "é\n")
    });
    let path = ["documents", "a b", "ü%2e.md"];
    let reply =
        hub.client.get(At::Scope(&path)).unwrap().query("version", Some(3)).query("no", None::<u8>).text().await;
    let reply = reply.unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.etag.as_deref(), reply.layer.as_deref()),
        ("é\n", Some("project-3"), Some("project"))
    );
    let asked = hub.ended();
    assert!(asked.starts_with("GET /v1/local/main/documents/a%20b/%C3%BC%252e.md?version=3 HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("authorization: Bearer secret\r\n"), "{asked}");
}

#[tokio::test]
async fn a_precondition_is_sent_with_the_quotes_it_needs() {
    let hub = ScriptedHub::start(|next| {
        ["project-3", "\"project-3\"", ""].map(|_| next().answer("200 OK", JSON, r#"{"tenants":[]}"#))
    });
    for precondition in [
        Precondition::Match("project-3".to_owned()),
        Precondition::Match("\"project-3\"".to_owned()),
        Precondition::Absent,
    ] {
        let request = hub.client.put(At::Scope(&["documents", "x"])).unwrap().text_body("text/plain", "x".to_owned());
        let _: TenantList = request.only_if(precondition).json().await.unwrap();
    }
    let asked = hub.ended();
    assert!(asked[0].contains("if-match: \"project-3\"\r\n"), "{}", asked[0]);
    assert!(asked[1].contains("if-match: \"project-3\"\r\n"), "{}", asked[1]);
    assert!(asked[2].contains("if-none-match: *\r\n"), "{}", asked[2]);
}

#[tokio::test]
async fn what_a_hub_refuses_keeps_its_code_and_what_no_hub_says_is_told_apart() {
    let hub = ScriptedHub::start(|next| {
        next().answer(
            "412 Precondition Failed",
            PROBLEM,
            r#"{"type":"t","title":"t","status":412,"code":"version_mismatch","detail":"it changed","hint":"read it"}"#,
        );
        next().answer("404 Not Found", "content-type: text/html\r\n", "<h1>nginx</h1>");
        next().answer("302 Found", "location: http://192.0.2.1/\r\n", "");
        next().answer("200 OK", JSON, "{}");
    });
    let list = || async { hub.client.get(At::Hub(&["tenants"])).unwrap().json::<TenantList>().await.unwrap_err() };
    let stale = list().await;
    assert_eq!((stale.exit(), stale.to_string().as_str()), (Exit::Conflict, "it changed"));
    let foreign = list().await;
    assert!(matches!(foreign, CliError::NoHub { status: 404, .. }), "{foreign:?}");
    assert_eq!(foreign.exit(), Exit::Unreachable);
    let elsewhere = list().await;
    assert!(matches!(elsewhere, CliError::NoHub { status: 302, .. }), "the token is not carried elsewhere");
    assert!(matches!(list().await, CliError::Answer(_)));
    hub.ended();
}

#[tokio::test]
async fn nobody_at_the_address_is_told_as_such() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = client(&format!("http://{free}"));
    let error = client.get(At::Hub(&["tenants"])).unwrap().done().await.unwrap_err();
    assert_eq!(error.exit(), Exit::Unreachable);
    let told = error.told(crate::cli::out::Format::Text);
    assert!(told.contains(&format!("http://{free} does not answer: ")) && told.contains("footbridge up"), "{told}");
    assert!(!told.contains("secret"), "{told}");
}

#[test]
fn a_name_cannot_lead_to_another_path() {
    let client = client("http://127.0.0.1:1/base/");
    for odd in ["..", ".", ""] {
        let error = client.delete(At::Scope(&["server-tools", odd])).unwrap_err();
        assert_eq!(error.exit(), Exit::Usage, "{odd}");
    }
    let url = client.url(At::Scope(&["tools", "a/../b?c#d"])).unwrap();
    assert_eq!(url.as_str(), "http://127.0.0.1:1/base/v1/local/main/tools/a%2F..%2Fb%3Fc%23d");
}

#[test]
fn an_address_is_checked_before_a_token_goes_there() {
    let make = |url: &str, plain| Client::new(connection(url), plain).map(|_| ()).map_err(|error| error.to_string());
    let _ = rustls::crypto::ring::default_provider().install_default();
    for good in ["http://127.0.0.1:7800", "http://[::1]:7800/", "http://localhost"] {
        assert_eq!(make(good, false), Ok(()), "{good}");
    }
    for bad in ["", "127.0.0.1:7800", "ftp://127.0.0.1", "http://me:pw@127.0.0.1", "http://127.0.0.1/?x=1"] {
        assert!(make(bad, true).is_err_and(|error| error.contains("no hub's address")), "{bad}");
    }
    assert!(make("http://192.0.2.1", false).is_err_and(|error| error.contains("in the clear")));
    assert!(make("http://127.0.0.1.example", false).is_err_and(|error| error.contains("in the clear")));
    assert_eq!(make("http://192.0.2.1", true), Ok(()));
}

#[test]
fn what_nobody_said_is_asked_for() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let told = |connection: Connection| {
        Client::new(connection, false).map(|_| ()).unwrap_err().told(crate::cli::out::Format::Text)
    };
    assert!(told(Connection::default()).contains("footbridge up"));
    let no_token = Connection { token: None, ..connection("http://127.0.0.1:1") };
    assert!(told(no_token).contains("--token-file or FOOTBRIDGE_TOKEN"));
    let nowhere = Client::new(connection("http://127.0.0.1:1"), false).unwrap();
    let error = nowhere.get(At::Scope(&["tools"])).unwrap_err();
    assert!(error.told(crate::cli::out::Format::Text).contains("--tenant or FOOTBRIDGE_TENANT"));
}
