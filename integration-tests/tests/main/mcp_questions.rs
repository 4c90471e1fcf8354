//! What a server asks reaches the client whose call caused it, and nobody else.

use std::time::Duration;

use integration_tests::clients::raw::{Client, capable};
use integration_tests::clients::stage::{McpStage, OWNER, Way};
use integration_tests::fake_mcp::FakeMcp;
use integration_tests::fake_mcp::message::Message;
use integration_tests::fake_mcp::script::{Script, Speaks, Step};
use serde_json::{Value, json};

use crate::TestResult;

/// Much less than a person would take, and than any limit of a call.
const AT_ONCE: Duration = Duration::from_secs(10);

fn accepted(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

/// The answers that the server says it got.
fn answers(message: &Message) -> TestResult<Value> {
    let result = message.result_value();
    let text = result["content"][0]["text"].as_str().ok_or_else(|| message.to_string_lossy())?;
    Ok(serde_json::from_str(text)?)
}

fn asking(speaks: Speaks) -> Script {
    Script { speaks, ..Script::default() }.doing("ask", vec![Step::elicit("who are you?"), Step::EchoAnswers])
}

/// Calls `tool` and stands still at its first question.
async fn asked(client: &Client, tool: &str) -> TestResult<(integration_tests::clients::exchange::Exchange, Message)> {
    let (_, mut exchange) = client.begin("tools/call", json!({ "name": tool, "arguments": {} })).await?;
    let question = exchange.until("elicitation/create").await?;
    Ok((exchange, question))
}

/// Two people, two sessions of one of them: calls that overlap in every order.
#[tokio::test]
async fn an_elicitation_reaches_whose_call_caused_it_and_nobody_else() -> TestResult {
    for way in [Way::Hub, Way::Foot] {
        for http in [false, true] {
            let fake = if http {
                FakeMcp::over_http(&asking(Speaks::Session))?
            } else {
                FakeMcp::new(&asking(Speaks::Session))?
            };
            let stage = McpStage::start().await?;
            let _foot = match way {
                Way::Hub => stage.offer(way, "crm", &fake, json!({ "session": "subject" })).await?,
                Way::Foot => {
                    let servers = json!({ "crm": integration_tests::clients::stage::on_foot(&fake, json!({ "session": "subject" }))? });
                    let foot = stage.shared_foot("laptop", &servers).await?;
                    for subject in [OWNER, "ben"] {
                        stage.until_listed(subject, "crm__").await?;
                    }
                    Some(foot)
                }
            };
            let target = stage.target(OWNER).await?;
            let ada = Client::open(&target, capable()).await?;
            let ada_too = Client::open(&target, capable()).await?;
            let ben = Client::open(&stage.target("ben").await?, capable()).await?;
            let clients = [(&ada, "Ada"), (&ada_too, "Ada's other window"), (&ben, "Ben")];
            let mut streams = Vec::new();
            for (client, _) in clients {
                streams.push(client.listen(None).await?);
            }
            // All three calls hang at their question, the last began last.
            let mut open = Vec::new();
            for (client, name) in clients {
                let (exchange, question) = asked(client, "crm__ask").await?;
                let message = question.params_value()["message"].to_string();
                assert!(message.contains("who are you?"), "{message}");
                assert!(message.contains("crm"), "the question names its server: {message}");
                open.push((client, name, exchange, question));
            }
            // They are answered in another order than they were asked in.
            open.rotate_left(1);
            for (client, name, mut exchange, question) in open {
                client.answer(question.id_text(), accepted(name)).await?;
                let got = answers(&exchange.answer().await?)?;
                let situation = format!("{way:?}, http {http}, {name}");
                assert_eq!(got[0]["result"]["content"]["name"], name, "{situation}");
                assert_eq!(got.as_array().map(Vec::len), Some(1), "{situation}");
                assert!(exchange.next().await?.is_none(), "{situation}: nothing else came");
            }
            // And nothing came on the streams that belong to no call.
            for ((client, name), mut stream) in clients.into_iter().zip(streams) {
                client.end().await?;
                while let Some(message) = stream.next().await? {
                    assert_ne!(message.method.as_deref(), Some("elicitation/create"), "{name} was asked too");
                }
            }
        }
    }
    Ok(())
}

/// Every pair of lifecycles: the hub translates between them.
#[tokio::test]
async fn questions_of_every_kind_go_both_ways_in_every_pair_of_lifecycles() -> TestResult {
    let sampling =
        json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "capital?" } }], "maxTokens": 9 });
    let steps = vec![
        Step::elicit("who?"),
        Step::ask("sampling/createMessage", &sampling),
        Step::ask("roots/list", &json!({})),
        Step::EchoAnswers,
    ];
    for way in Way::ALL {
        for speaks in [Speaks::Session, Speaks::Stateless] {
            let script = Script { speaks, ..Script::default() }.doing("ask", steps.clone());
            let fake = FakeMcp::over_http(&script)?;
            let stage = McpStage::start().await?;
            let _foot = stage.offer(way, "crm", &fake, json!({ "session": "subject" })).await?;
            for client in Client::both(&stage.target(OWNER).await?, &capable()).await? {
                let situation = format!("{way:?}, server {speaks:?}, stateless client {}", client.is_stateless());
                let mut methods = Vec::new();
                let answer = |method: &str, params: &Value| {
                    methods.push(method.to_owned());
                    match method {
                        "elicitation/create" => {
                            assert_eq!(params["message"], "crm: who?", "a person is told once who asks");
                            accepted("Ada")
                        }
                        "sampling/createMessage" => {
                            assert_eq!(params["maxTokens"], 9);
                            json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "Paris" } })
                        }
                        _ => json!({ "roots": [{ "uri": "file:///here" }] }),
                    }
                };
                let told = client.call_and_answer("crm__ask", answer).await;
                let (last, _) = told.map_err(|error| format!("{situation}: {error}"))?;
                let got = answers(&last).map_err(|error| format!("{situation}: {error}"))?;
                assert_eq!(got[0]["result"]["content"]["name"], "Ada", "{situation}");
                assert_eq!(got[1]["result"]["content"]["text"], "Paris", "{situation}");
                assert_eq!(got[2]["result"]["roots"][0]["uri"], "file:///here", "{situation}");
                assert_eq!(methods, ["elicitation/create", "sampling/createMessage", "roots/list"], "{situation}");
            }
        }
    }
    Ok(())
}

/// A person takes longer than a call may be idle: on the stream of the call, and while a ticket holds it.
#[tokio::test]
async fn a_call_waits_for_a_person_longer_than_it_may_be_idle() -> TestResult {
    const IDLE_SECONDS: u64 = 1;
    for speaks in [Speaks::Session, Speaks::Stateless] {
        let fake = FakeMcp::over_http(&asking(speaks))?;
        let stage = McpStage::start().await?;
        stage.attach("crm", &fake, json!({ "session": "subject", "timeoutSeconds": IDLE_SECONDS })).await?;
        for client in Client::both(&stage.target(OWNER).await?, &capable()).await? {
            let situation = format!("server {speaks:?}, stateless client {}", client.is_stateless());
            let answer = |_: &str, _: &Value| {
                // The person thinks; the hub is another process.
                std::thread::sleep(Duration::from_secs(2 * IDLE_SECONDS));
                accepted("Ada")
            };
            let told = client.call_and_answer("crm__ask", answer).await;
            let (last, _) = told.map_err(|error| format!("{situation}: {error}"))?;
            let got = answers(&last).map_err(|error| format!("{situation}: {error}"))?;
            assert_eq!(got[0]["result"]["content"]["name"], "Ada", "{situation}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn without_a_client_that_can_answer_a_question_is_declined_at_once() -> TestResult {
    for way in Way::ALL {
        for speaks in [Speaks::Session, Speaks::Stateless] {
            let fake = FakeMcp::over_http(&asking(speaks))?;
            let stage = McpStage::start().await?;
            let _foot = stage.offer(way, "crm", &fake, json!({ "session": "subject" })).await?;
            let clients = Client::both(&stage.target(OWNER).await?, &json!({})).await?;
            for client in &clients {
                let situation = format!("{way:?}, server {speaks:?}, stateless client {}", client.is_stateless());
                let answered = tokio::time::timeout(AT_ONCE, client.call("crm__ask", json!({}))).await;
                let answered = answered.map_err(|_| format!("nobody declined ({situation})"))??;
                let got = answers(&answered).map_err(|error| format!("{situation}: {error}"))?;
                assert_eq!(got[0]["result"]["action"], "decline", "{situation}");
            }
            // A direct call has no client at all.
            let api = stage.api.with_token(&stage.hub.token(OWNER, &["engine", "viewer"]).await?);
            let answer = tokio::time::timeout(AT_ONCE, api.invoke("crm__ask", json!({}))).await??;
            assert!(answer.text.contains("decline"), "{way:?}, {speaks:?}: {}", answer.text);
        }
    }
    Ok(())
}

/// A connection that everybody shares promises its server nothing, and asks nobody.
#[tokio::test]
async fn a_shared_connection_asks_nobody() -> TestResult {
    for speaks in [Speaks::Session, Speaks::Stateless] {
        let fake = FakeMcp::over_http(&asking(speaks))?;
        let stage = McpStage::start().await?;
        stage.attach("crm", &fake, json!({ "session": "shared" })).await?;
        for client in Client::both(&stage.target(OWNER).await?, &capable()).await? {
            let answered = tokio::time::timeout(AT_ONCE, client.call("crm__ask", json!({}))).await??;
            assert!(answered.to_string_lossy().contains("decline"), "{speaks:?}: {}", answered.to_string_lossy());
        }
        for hello in fake.received("initialize")? {
            assert_eq!(hello.json()["params"]["capabilities"], json!({}));
        }
    }
    Ok(())
}

/// Whose question it is can also be told by the connection, where nothing else tells.
#[tokio::test]
async fn log_messages_of_a_call_reach_its_client_alone() -> TestResult {
    let message = json!({ "level": "info", "data": { "n": 1 }, "logger": "crm" });
    let notify = Step::Notify {
        method: "notifications/message".to_owned(),
        params: integration_tests::fake_mcp::script::raw_of(&message),
    };
    for way in Way::ALL {
        let script = Script::default().doing("log", vec![notify.clone(), Step::text("logged")]);
        let fake = FakeMcp::over_http(&script.answering("logging/setLevel", "{}")?)?;
        let stage = McpStage::start().await?;
        let _foot = stage.offer(way, "crm", &fake, json!({ "session": "subject" })).await?;
        let target = stage.target(OWNER).await?;
        let (client, other) = (Client::open(&target, capable()).await?, Client::open(&target, capable()).await?);
        for client in [&client, &other] {
            client.request("logging/setLevel", json!({ "level": "debug" })).await?;
        }
        let mut stream = other.listen(None).await?;
        let (_, mut exchange) = client.begin("tools/call", json!({ "name": "crm__log", "arguments": {} })).await?;
        let told = exchange.until("notifications/message").await?.params_value();
        assert_eq!(told["data"]["n"], 1, "{way:?}");
        assert!(exchange.answer().await?.result.is_some());
        other.end().await?;
        while let Some(message) = stream.next().await? {
            assert_ne!(message.method.as_deref(), Some("notifications/message"), "{way:?}: the other heard it too");
        }
    }
    Ok(())
}
