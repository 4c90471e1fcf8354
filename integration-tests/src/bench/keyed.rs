//! What a key costs: durable writes, and nothing else to speak of.

use serde_json::json;

use super::callers::{Answer, Post};
use super::durable::GroupCommit;
use super::effort::Effort;
use super::load::{Measured, measure};
use super::relay::{CALLERS, INVOKE};
use super::stage::Stage;
use super::table::{Row, print};
use crate::Result;

/// Bytes that a call carries, and gets back.
const PAYLOAD: usize = 1024;
/// Durable writes of the hub for a keyed call: that it goes out, and what came back.
const OF_HUB: usize = 2;
/// Those of the foot for a call that may change something: that it starts, and that it ended.
const OF_FOOT: usize = 2;

/// Measures and prints.
///
/// # Errors
/// When any part does not come up, or any call fails.
pub(super) async fn run(effort: Effort) -> Result<()> {
    let stage = Stage::direct().await?;
    let text = "x".repeat(PAYLOAD);
    let reading = json!({ "arguments": { "text": text } }).to_string();
    let reading = Post::new(&stage.api, INVOKE, &reading, Answer::Relayed(PAYLOAD));
    let writing = json!({ "arguments": { "line": text } }).to_string();
    let writing = Post::new(&stage.api, "/v1/local/main/tools/echo_append/invoke", &writing, Answer::Relayed(PAYLOAD));
    let mut rows = Vec::new();
    for callers in CALLERS {
        for (what, keyed, writes) in [
            ("reading tool", &reading.clone().keyed(), OF_HUB),
            ("writing tool", &writing.clone().keyed(), OF_HUB + OF_FOOT),
        ] {
            let [keyed, plain, durable] = turns(effort, callers, keyed, &reading, writes).await?;
            rows.extend(compare(what, callers, &keyed, &plain, &durable));
        }
    }
    print("Keyed calls, 1 KiB; comparison: the same reading call without a key + bare group-committed writes", &rows);
    Ok(())
}

/// Ours with a key, without, and bare writes to the same disk.
async fn turns(effort: Effort, callers: usize, keyed: &Post, plain: &Post, writes: usize) -> Result<[Measured; 3]> {
    let folder = tempfile::tempdir()?;
    let disk = GroupCommit::open(&folder.path().join("journal"))?;
    let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
    let calls = effort.of_weight(4);
    for round in 0..=effort.rounds {
        let durable = measure(callers, calls, || disk.caller(writes)).await?;
        let plain = measure(callers, calls, || plain.caller()).await?;
        let keyed = measure(callers, calls, || keyed.caller()).await?;
        if round > 0 {
            a.push(keyed);
            b.push(plain);
            c.push(durable);
        }
    }
    Ok([a, b, c].map(|rounds| Measured::median(&rounds)))
}

fn compare(tool: &str, callers: usize, keyed: &Measured, plain: &Measured, durable: &Measured) -> Vec<Row> {
    let what = |figure: &str| format!("{tool}, {callers} caller(s), {figure}");
    let mut rows = vec![
        Row::time(what("p50"), keyed.p50_us, plain.p50_us + durable.p50_us, 1.5),
        Row::time(what("p99"), keyed.p99_us, plain.p99_us + durable.p99_us, 2.0),
    ];
    if callers > 1 {
        let slower = plain.per_second.min(durable.per_second);
        rows.push(Row::throughput(what("throughput (slower of the two)"), keyed.per_second, slower, 0.6));
    }
    rows
}
