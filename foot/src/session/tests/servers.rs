//! Local MCP servers as the hub sees them.

use footbridge_shared::id::Subject;
use footbridge_shared::message::Share;
use serde_json::{Value, json};

use super::Foot;
use super::hub::{Connection, HUB_MS, Hub, call};
use crate::config::FootConfig;
use crate::servers::tests::fake;

fn with_server(hub: &Hub) -> Foot {
    Foot::start_with(hub, |config| FootConfig {
        servers: vec![fake("s", "session", "")],
        share: Share::Subjects(vec![Subject::parse("bob").unwrap()]),
        ..config
    })
}

/// The next connection, once the server is listed.
async fn listed(hub: &Hub) -> Connection {
    let (mut connection, _) = hub.welcome(&json!({})).await;
    let has =
        |message: &Value| message["upsert"].as_array().is_some_and(|tools| tools.iter().any(|t| t["pack"] == "s"));
    connection.hear_so("tools", has).await;
    connection
}

/// A call through an MCP client.
fn through_client(id: &str, tool: &str, subject: &str) -> Value {
    let mut message = call(id, tool, &json!({}));
    message["caller"]["subject"] = json!(subject);
    message["caller"]["client"] =
        json!({"protocol": "2025-11-25", "session": "m-1", "capabilities": {"elicitation": {}}});
    message
}

#[tokio::test]
async fn servers_are_told_when_they_come_and_with_each_hello() {
    let hub = Hub::new().await;
    let _foot = with_server(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    let servers = connection.hear("servers").await;
    assert_eq!(
        (&servers["servers"][0]["name"], &servers["servers"][0]["protocol"]),
        (&json!("s"), &json!("2025-11-25"))
    );
    drop(connection);
    let (mut connection, hello) = hub.welcome(&json!({"resumed": true})).await;
    assert_eq!(hello["servers"], servers["servers"]);
    assert_eq!(connection.hear("servers").await["servers"], servers["servers"]);
}

#[tokio::test]
async fn a_question_of_a_server_goes_to_the_hub_and_survives_a_drop() {
    let hub = Hub::new().await;
    let _foot = with_server(&hub);
    let mut connection = listed(&hub).await;
    connection.say(&through_client("c-1", "s__ask", "ada")).await;
    let upcall = connection.hear("upcall").await;
    assert_eq!((&upcall["call"], &upcall["method"]), (&json!("c-1"), &json!("elicitation/create")));
    drop(connection);
    let (mut connection, _) = hub.welcome(&json!({"resumed": true})).await;
    assert_eq!(connection.hear("upcall").await, upcall, "the same question, as the hub may not have seen it");
    let answer = json!({"type": "upcallResult", "call": "c-1", "id": upcall["id"], "result": {"action": "accept"}});
    connection.say(&answer).await;
    let (said, result) = connection.answer().await;
    assert_eq!((said.as_str(), &result["structured"]["answer"]["action"]), ("c-1: result", &json!("accept")));

    connection.say(&through_client("c-2", "s__ask", "ada")).await;
    let upcall = connection.hear("upcall").await;
    connection.say(&json!({"type": "cancel", "call": "c-2", "reason": "x"})).await;
    let withdrawn = connection.hear("upcallCancel").await;
    assert_eq!((&withdrawn["call"], &withdrawn["id"]), (&json!("c-2"), &upcall["id"]));
}

#[tokio::test]
async fn an_error_of_a_server_is_on_the_wire_as_it_came() {
    let hub = Hub::new().await;
    let _foot = with_server(&hub);
    let mut connection = listed(&hub).await;
    connection.call("c", "s__fail", &json!({})).await;
    let (said, failure) = connection.answer().await;
    assert_eq!((said.as_str(), &failure["rpc"]["data"]["n"]), ("c: invalid_arguments completed", &json!(1)));
}

#[tokio::test]
async fn a_request_is_served_beside_everything_else_and_long_answers_come_in_parts() {
    let hub = Hub::new().await;
    let _foot = with_server(&hub);
    let mut connection = listed(&hub).await;
    let request = |id: &str, method: &str, subject: &str| {
        json!({"type": "request", "call": id, "server": "s", "method": method, "params": {"uri": "a:b"},
            "deadlineMs": 60_000, "sentMs": HUB_MS, "caller": through_client("", "", subject)["caller"]})
    };
    // The first waits for an answer of the hub's client, and holds nothing up.
    connection.say(&request("AAAAAAAAAAAAAAAAAAAAAA", "prompts/get", "ada")).await;
    let upcall = connection.hear("upcall").await;
    connection.call("c", "echo", &json!({})).await;
    assert_eq!(connection.answer().await.0, "c: result");
    connection.say(&request("BBBBBBBBBBBBBBBBBBBBBA", "resources/read", "bob")).await;
    let read = connection.hear("response").await;
    assert_eq!(read["result"]["contents"][0]["text"].as_str().map(str::len), Some(100_000));
    connection.say(&request("r-3", "resources/read", "eve")).await;
    let refused = connection.hear("response").await;
    assert_eq!(refused["error"]["data"]["code"], "not_found", "for others there is no server");
    let answer =
        json!({"type": "upcallResult", "call": upcall["call"], "id": upcall["id"], "result": {"action": "cancel"}});
    connection.say(&answer).await;
    assert_eq!(connection.hear("response").await["result"]["answer"]["action"], "cancel");
}
