//! Scripts that call tools that run scripts.

use std::time::Duration;

use footbridge_hub::domain::call::{CallContext, MAX_DEPTH};
use footbridge_hub::domain::script::ScriptRunner as _;
use footbridge_shared::{ErrorCode, Outcome};
use futures::future::join_all;
use serde_json::json;

use crate::stage::{PLENTY, Stage, TestResult, alone, request};

/// Calls itself until that is refused; answers how deep it came and why it ended.
const DEEPER: &str = "try { vance.tools.call('script', { source }).value } catch (e) { [0, e.code] }";
const COUNT: &str =
    "try { const [n, why] = vance.tools.call('script', { source }).value; [n + 1, why] } catch (e) { [0, e.code] }";

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_scripts_needs_no_second_permit_and_ends_at_the_depth_limit() -> TestResult {
    let stage = Stage::new(1).await?;
    let source = format!("const source = {}; {COUNT}", json!(COUNT));
    assert_eq!(stage.value(&source).await?, json!([MAX_DEPTH, "depth_exceeded"]));
    let source = format!("const source = {}; {DEEPER}", json!(DEEPER));
    assert_eq!(stage.value(&source).await?, json!([0, "depth_exceeded"]));
    assert!(stage.pool.processes() <= usize::from(MAX_DEPTH) + 1);
    Ok(())
}

#[tokio::test]
async fn a_script_below_the_depth_limit_is_refused() -> TestResult {
    let stage = Stage::new(1).await?;
    let deep = (0..=MAX_DEPTH).fold(stage.call(PLENTY)?, |ctx: CallContext, _| ctx.inner());
    let failure = stage.pool.run(request("1", PLENTY), &deep).await.err().ok_or("it ran")?;
    assert_eq!((failure.code, failure.outcome), (ErrorCode::DepthExceeded, Outcome::NotRun));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_scripts_that_call_tools_and_scripts_do_not_starve() -> TestResult {
    let _alone = alone().await;
    let stage = Stage::new(4).await?;
    let source = "let sum = 0;
        for (let i = 0; i < 3; i++) sum += vance.tools.call('pause');
        sum + vance.tools.call('script', { source: \"vance.tools.call('pause')\" }).value";
    let runs = join_all((0..200).map(|_| stage.value(source))).await;
    for value in runs {
        // `pause` says its depth: thrice 1, and 2 from the inner script.
        assert_eq!(value?, json!(5));
    }
    assert!(stage.pool.processes() <= 2 * 4, "bounded at each depth");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inner_script_has_what_is_left_of_the_outer_ones_time() -> TestResult {
    let stage = Stage::new(1).await?;
    let limit = Duration::from_millis(200);
    let source = "try { vance.tools.call('script', { source: 'for (;;) {}' }) } catch (e) { e.code }";
    let failure = stage.pool.run(request(source, limit), &stage.call(PLENTY)?).await.err().ok_or("it ended")?;
    assert_eq!(failure.code, ErrorCode::DeadlineExceeded);
    assert_eq!(stage.value("1").await?, json!(1));
    Ok(())
}
