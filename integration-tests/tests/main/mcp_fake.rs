//! The scripted server of the other stories does what its script says: a story that it does not trouble proves nothing.

use integration_tests::clients::raw::{Client, Target, capable};
use integration_tests::fake_mcp::FakeMcp;
use integration_tests::fake_mcp::log;
use integration_tests::fake_mcp::script::{Script, Speaks, Step, tool};
use serde_json::json;

use crate::TestResult;

fn both() -> Script {
    Script { speaks: Speaks::Both, ..Script::default() }
}

#[tokio::test]
async fn the_scripted_server_asks_and_goes_on_with_the_answer() -> TestResult {
    let steps = vec![Step::elicit("who?"), Step::elicit("and who else?"), Step::EchoAnswers];
    let fake = FakeMcp::over_http(&both().doing("ask", steps))?;
    for client in Client::both(&Target::new(fake.url()?, None)?, &capable()).await? {
        let mut names = ["Ada", "Lin"].into_iter();
        let answer =
            |_: &str, _: &serde_json::Value| json!({ "action": "accept", "content": { "name": names.next() } });
        let (last, questions) = client.call_and_answer("ask", answer).await?;
        assert_eq!(questions.len(), 2);
        assert_eq!(questions[1]["message"], "and who else?");
        let text = last.result_value()["content"][0]["text"].to_string();
        assert!(text.find("Ada") < text.find("Lin") && text.contains("Ada"), "{text}");
    }
    Ok(())
}

#[tokio::test]
async fn the_scripted_server_stops_a_call_that_is_cancelled_and_tells_progress() -> TestResult {
    let fake = FakeMcp::over_http(
        &both().doing("hang", vec![Step::Hang]).doing("steps", vec![Step::Progress { times: 2, every_ms: 1 }]),
    )?;
    for client in Client::both(&Target::new(fake.url()?, None)?, &capable()).await? {
        let params = json!({ "name": "steps", "arguments": {}, "_meta": { "progressToken": "pt-9" } });
        let (_, mut exchange) = client.begin("tools/call", params).await?;
        for number in 1..=2 {
            let told = exchange.until("notifications/progress").await?.params_value();
            assert_eq!((&told["progressToken"], &told["progress"]), (&json!("pt-9"), &json!(number)));
        }
        assert_eq!(exchange.result().await?["content"][0]["text"], "done");
    }
    let client = Client::open(&Target::new(fake.url()?, None)?, json!({})).await?;
    let call = json!({ "name": "hang", "arguments": {} });
    let waits = client.begin("tools/call", call);
    let cancels = async {
        let call = fake.called("hang").await?;
        client.cancel(&call.json()["id"].to_string()).await?;
        TestResult::Ok(call.json()["id"].to_string())
    };
    let (exchange, id) = tokio::join!(waits, cancels);
    assert!(exchange?.1.next().await?.is_none(), "a cancelled call has no answer");
    let told = fake.log()?.into_iter().find(|entry| entry.event == log::CANCELLED).ok_or("nothing was cancelled")?;
    assert_eq!(told.text, id?);
    Ok(())
}

#[tokio::test]
async fn the_scripted_server_forgets_sessions_and_lists_in_pages() -> TestResult {
    let script = Script { count: 7, page: 3, forgets_after: vec![1, 0], ..Script::with_tools(&["echo"]) };
    let fake = FakeMcp::over_http(&script)?;
    let target = Target::new(fake.url()?, None)?;
    let first = Client::open(&target, json!({})).await?;
    assert_eq!(first.session(), Some("s-1"));
    assert_eq!(first.tool_names().await?.len(), 8);
    assert_eq!(fake.received("tools/list")?.len(), 3);
    assert!(first.call("echo", json!({})).await?.result.is_some());
    assert_eq!(first.begin("tools/list", json!({})).await?.1.status, 404);
    let second = Client::open(&target, json!({})).await?;
    assert_eq!(second.tool_names().await?.len(), 8, "it is known until it calls");
    assert_eq!(second.begin("tools/call", json!({ "name": "echo" })).await?.1.status, 404);
    let third = Client::open(&target, json!({})).await?;
    for _ in 0..3 {
        assert!(third.call("echo", json!({})).await?.result.is_some());
    }
    Ok(())
}

#[tokio::test]
async fn the_scripted_server_tells_that_its_list_changed() -> TestResult {
    let fake = FakeMcp::over_http(&both().doing("change", vec![Step::ReplaceTools(vec![tool("new")])]))?;
    let [session, stateless] = Client::both(&Target::new(fake.url()?, None)?, &json!({})).await?;
    let (mut one, mut other) = (session.listen(None).await?, stateless.listen(None).await?);
    session.call("change", json!({})).await?;
    one.until("notifications/tools/list_changed").await?;
    other.until("notifications/tools/list_changed").await?;
    assert_eq!(stateless.tool_names().await?, ["new"]);
    Ok(())
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_scripted_server_prints_noise_and_outlives_its_input() -> TestResult {
    use std::process::{Command, Stdio};

    let noise = vec!["build ok".to_owned()];
    let script = Script { noise, ignores_end: true, ignores_term: true, grandchild: true, ..Script::default() };
    let fake = FakeMcp::new(&script)?;
    let mut child =
        Command::new(fake.command()?).args(fake.args()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    let mut output = std::io::BufReader::new(child.stdout.take().ok_or("no output")?);
    std::io::BufRead::read_line(&mut output, &mut line)?;
    assert_eq!(line, "build ok\n");
    drop(child.stdin.take());
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)?;
    // Two processes name the folder, and neither ends by itself.
    let left = || async { Ok((integration_tests::leftovers::of(&[fake.folder()])?.len() == 2).then_some(())) };
    integration_tests::eventually::eventually("it and its grandchild run", left).await?;
    assert!(child.try_wait()?.is_none());
    child.kill()?;
    child.wait()?;
    integration_tests::leftovers::kill(&[fake.folder()])
}
