//! Small calls beside large results, where the link to the foot is slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::json;
use tokio::task::JoinSet;

use super::callers::{Answer, Post};
use super::effort::Effort;
use super::relay::INVOKE;
use super::stage::Stage;
use super::table::{Row, print};
use crate::Result;
use crate::proxy::{FaultProxy, Link, Plan};

/// Speed of the link, bits a second.
const RATE: u64 = 2_000_000;
/// Its latency, each way.
const LATENCY: Duration = Duration::from_millis(20);
/// Bytes of a small call, each way.
const SMALL: usize = 1024;
/// Bytes of a large result; in a tiny run so many that there is still something to be in the way of.
const LARGE: usize = 5 * 1024 * 1024;
const TINY: usize = 256 * 1024;
/// Large results at once.
const TRANSFERS: usize = 2;
/// Small calls on the link alone.
const ALONE: usize = 200;
/// Pause between small calls: they alone should not fill the link.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a small call may take beyond its round trip.
const ALLOWED: Duration = Duration::from_secs(1);

/// Measures and prints.
///
/// # Errors
/// When any part does not come up, or any call fails.
pub(super) async fn run(effort: Effort) -> Result<()> {
    let mut proxy = None;
    let stage = Stage::set(async |url: String| {
        let started = FaultProxy::start_on(&url, Plan::calm(), Link::slow(RATE, LATENCY)).await?;
        Ok(proxy.insert(started).url().to_owned())
    })
    .await?;
    let body = json!({ "arguments": { "text": "x".repeat(SMALL) } }).to_string();
    let small = Post::new(&stage.api, INVOKE, &body, Answer::Relayed(SMALL));
    let alone = small_calls(&small, if effort.is_tiny() { ALONE / 10 } else { ALONE }, &AtomicBool::new(false)).await?;

    let large = if effort.is_tiny() { TINY } else { LARGE };
    let body = json!({ "arguments": { "bytes": large } }).to_string();
    let bulk = Post::new(&stage.api, "/v1/local/main/tools/echo_bytes/invoke", &body, Answer::Relayed(large));
    let (done, begun) = (Arc::new(AtomicBool::new(false)), Instant::now());
    let mut transfers = JoinSet::new();
    for _ in 0..TRANSFERS {
        transfers.spawn(bulk.clone().call());
    }
    let (beside, took) = tokio::try_join!(small_calls(&small, usize::MAX, &done), async {
        while let Some(transferred) = transfers.join_next().await {
            transferred??;
        }
        let took = begun.elapsed();
        done.store(true, Ordering::Relaxed);
        Result::<Duration>::Ok(took)
    })?;

    let micros = |histogram: &Histogram<u64>, quantile| histogram.value_at_quantile(quantile) as f64;
    let round_trip = micros(&alone, 0.5);
    let allowed = ALLOWED.as_secs_f64() * 1e6 + round_trip;
    let ideal = (TRANSFERS * large) as f64 * 8.0 / RATE as f64;
    let rows = [
        Row::time("p50 of small calls (1 s + round trip)".to_owned(), micros(&beside, 0.5), allowed, 1.0),
        Row::time("p99 of small calls (1 s + round trip)".to_owned(), micros(&beside, 0.99), allowed, 1.0),
        Row::time(
            "time of the large results (what the link needs)".to_owned(),
            took.as_secs_f64() * 1e6,
            ideal * 1e6,
            1.5,
        ),
    ];
    let (size, alone_p50, alone_p99) = (large / 1024, round_trip / 1e3, micros(&alone, 0.99) / 1e3);
    print(
        &format!(
            "1 KiB calls beside {TRANSFERS} results of {size} KiB on a link of 2 Mbit/s, 20 ms each way; without those they take \
             {alone_p50:.0} ms (p50), {alone_p99:.0} ms (p99)"
        ),
        &rows,
    );
    Ok(())
}

/// Makes small calls, one after the other, until there are enough or `stop` is set.
async fn small_calls(small: &Post, enough: usize, stop: &AtomicBool) -> Result<Histogram<u64>> {
    let mut times = Histogram::new(3)?;
    for _ in 0..enough {
        let begun = Instant::now();
        small.clone().call().await?;
        times.record(u64::try_from(begun.elapsed().as_micros())?)?;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(times)
}
