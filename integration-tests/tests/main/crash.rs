//! A hub that is killed loses no write that it acknowledged, and keeps no half of one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use integration_tests::hub::TestHub;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::TestResult;

const WRITES: usize = 1_000;
const WRITERS: usize = 8;
/// The hub is killed after so many acknowledged writes.
const KILLED_AT: [usize; 3] = [120, 400, 777];

/// How often the count of writes is looked at: a small part of the time that a hundred writes take.
const POLL: Duration = Duration::from_millis(1);
/// What the writes of one round may take, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A text whose every part depends on its number: half of it, or a mixture of two, is told from it whole.
fn text(number: usize) -> String {
    format!("document {number}\n{}", format!("{number:06} ").repeat(500))
}

fn note(written: &[usize], acknowledged: &mut [bool]) {
    for number in written {
        acknowledged[*number] = true;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_nine_during_a_thousand_writes() -> TestResult {
    let mut hub = TestHub::start().await?;
    let mut acknowledged = vec![false; WRITES];
    let next = Arc::new(AtomicUsize::new(0));
    for stop_at in KILLED_AT.into_iter().chain([WRITES]) {
        let done = Arc::new(AtomicUsize::new(acknowledged.iter().filter(|done| **done).count()));
        let mut writers = JoinSet::new();
        for _ in 0..WRITERS {
            let (api, next, done) = (hub.api()?, next.clone(), done.clone());
            writers.spawn(async move {
                let mut mine = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= WRITES {
                        return mine;
                    }
                    let path = format!("documents/documents/{number}.md");
                    match api.put(&path, &text(number)).await {
                        Ok(answer) if answer.status.is_success() => {
                            mine.push(number);
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                        // The hub is gone; what this write came to is not known, and not claimed.
                        _ => return mine,
                    }
                }
            });
        }
        if stop_at < WRITES {
            // Writers that end before their time, for whatever reason, are no reason to wait for ever.
            let enough = async {
                while done.load(Ordering::Relaxed) < stop_at {
                    tokio::time::sleep(POLL).await;
                }
            };
            let ended = async {
                while let Some(mine) = writers.join_next().await {
                    note(&mine?, &mut acknowledged);
                }
                TestResult::<()>::Ok(())
            };
            tokio::select! {
                            biased;
                            () = enough => {}
                            ended = tokio::time::timeout(PATIENCE, ended) => {
                                ended.map_err(|_| format!("no {stop_at} writes in {PATIENCE:?}"))??;
            let written = done.load(Ordering::Relaxed);
                                assert!(written >= stop_at, "the writers ended after {written} of {stop_at} acknowledged writes");
                            }
                        }
            hub.process.kill()?;
        }
        while let Some(mine) = writers.join_next().await {
            note(&mine?, &mut acknowledged);
        }
        if stop_at < WRITES {
            hub.kill_and_restart()?;
        }
    }
    hub.kill_and_restart()?;
    let api = hub.api()?;
    let (mut kept, mut extra) = (0, 0);
    for (number, acknowledged) in acknowledged.iter().enumerate() {
        let answer = api.get(&format!("documents/documents/{number}.md")).await?;
        if *acknowledged {
            assert_eq!(answer.text, text(number), "an acknowledged write is there, whole");
            kept += 1;
        } else if answer.status.is_success() {
            assert_eq!(answer.text, text(number), "an unacknowledged write is there whole, or not at all");
            extra += 1;
        }
    }
    assert!(kept > WRITES - KILLED_AT.len() * WRITERS - 1, "{kept} acknowledged, {extra} more were kept");
    let listed: Value = api.get("documents?prefix=documents/&limit=1000").await?.json();
    let own = listed["documents"].as_array().into_iter().flatten().filter(|document| document["layer"] == "project");
    assert_eq!(own.count(), kept + extra, "the listing agrees with what can be read");
    Ok(())
}
