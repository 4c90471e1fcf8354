//! H12: a server that forgets the hub's session.

use futures::future::join_all;
use integration_tests::clients::raw::Client;
use integration_tests::clients::stage::{McpStage, OWNER, Way};
use integration_tests::eventually::eventually;
use integration_tests::fake_mcp::FakeMcp;
use integration_tests::fake_mcp::script::{Script, Step};
use serde_json::json;

use crate::TestResult;

/// How often the server was opened.
fn opened(fake: &FakeMcp) -> TestResult<usize> {
    Ok(fake.received("initialize")?.len())
}

#[tokio::test]
async fn a_forgotten_session_is_renewed_once_and_the_call_succeeds() -> TestResult {
    for way in Way::ALL {
        let script = Script { forgets_after: vec![1], ..Script::with_tools(&["echo"]) };
        let fake = FakeMcp::over_http(&script)?;
        let stage = McpStage::start().await?;
        let _foot = stage.offer(way, "crm", &fake, json!({})).await?;
        let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
        assert_eq!(opened(&fake)?, 1, "{way:?}");
        for _ in 0..3 {
            let answer = client.call("crm__echo", json!({})).await?;
            assert!(answer.result.is_some(), "{way:?}: {}", answer.error_value());
        }
        assert_eq!(opened(&fake)?, 2, "{way:?}");
        for entry in fake.received("initialize")? {
            assert_eq!(entry.session, None, "a new session is opened without the old one");
        }
        assert_eq!(fake.received("notifications/initialized")?.len(), 2);
        // Listed again: before, and after the renewal.
        eventually("it is listed again", || async { Ok((fake.received("tools/list")?.len() >= 2).then_some(())) })
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_session_that_is_forgotten_again_is_an_error_and_no_loop() -> TestResult {
    for way in Way::ALL {
        let script = Script { forgets_after: vec![0; 50], ..Script::with_tools(&["echo"]) };
        let fake = FakeMcp::over_http(&script)?;
        let stage = McpStage::start().await?;
        let _foot = stage.offer(way, "crm", &fake, json!({})).await?;
        let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
        let before = opened(&fake)?;
        let answer = client.call("crm__echo", json!({})).await?;
        let failed = answer.error.is_some() || answer.result_value()["isError"] == true;
        assert!(failed, "{way:?}: {}", answer.result_value());
        assert!(opened(&fake)? <= before + 2, "{way:?}: opened {} times for one call", opened(&fake)? - before);
    }
    Ok(())
}

#[tokio::test]
async fn a_server_error_is_no_forgotten_session() -> TestResult {
    for way in Way::ALL {
        let script = Script { statuses: vec![500, 0], ..Script::with_tools(&["echo"]) };
        let fake = FakeMcp::over_http(&script)?;
        let stage = McpStage::start().await?;
        let _foot = stage.offer(way, "crm", &fake, json!({})).await?;
        let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
        let answer = client.call("crm__echo", json!({})).await?;
        assert!(answer.error.is_some() || answer.result_value()["isError"] == true, "{way:?}");
        assert!(client.call("crm__echo", json!({})).await?.result.is_some(), "{way:?}: the next call works");
        assert_eq!(opened(&fake)?, 1, "{way:?}: no new session");
        assert_eq!(fake.calls_of("echo")?.len(), 1, "{way:?}: the failed call was not sent again");
    }
    Ok(())
}

#[tokio::test]
async fn calls_at_once_share_one_renewal() -> TestResult {
    const CALLS: usize = 16;
    for way in Way::ALL {
        let script = Script { forgets_after: vec![1], ..Script::with_tools(&["echo"]) };
        let fake = FakeMcp::over_http(&script)?;
        let stage = McpStage::start().await?;
        let _foot = stage.offer(way, "crm", &fake, json!({})).await?;
        let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
        client.call("crm__echo", json!({})).await?;
        for answer in join_all((0..CALLS).map(|_| client.call("crm__echo", json!({})))).await {
            let answer = answer?;
            assert!(answer.result.is_some(), "{way:?}: {}", answer.error_value());
        }
        assert_eq!(opened(&fake)?, 2, "{way:?}");
    }
    Ok(())
}

/// The list is another after the renewal: who listens is told.
#[tokio::test]
async fn a_list_that_changed_with_the_session_is_announced() -> TestResult {
    let mut fake = FakeMcp::over_http(&Script::with_tools(&["echo"]))?;
    let stage = McpStage::start().await?;
    stage.attach("crm", &fake, json!({})).await?;
    let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    client.call("crm__echo", json!({})).await?;
    let mut told = client.listen(None).await?;
    // The server comes back as another process, which knows no session and offers more.
    fake.stop_http()?;
    let more = Script::with_tools(&["echo"]).doing("more", vec![Step::text("more")]);
    fake.rewrite(&more)?;
    fake.start_http(&fake.address()?)?;
    assert!(client.call("crm__echo", json!({})).await?.result.is_some(), "the call meets a forgotten session");
    told.until("notifications/tools/list_changed").await?;
    assert!(client.tool_names().await?.contains(&"crm__more".to_owned()));
    Ok(())
}
