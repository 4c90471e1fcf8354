//! A foot that keeps its promises on a network that keeps none: whatever is cut wherever, every call runs at most once,
//! and its caller gets its own result.

use std::collections::HashMap;
use std::time::Duration;

use footbridge_shared::id::CallId;
use footbridge_shared::message::{Call, HubToFoot, InFlightState};
use serde_json::json;

use super::harness::{Heard, Hub, TestFoot};
use crate::sources::feet::FeetConfig;

/// Small numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// The journal of a foot: what it was asked, and whether that is done.
#[derive(Default)]
struct Journal {
    calls: HashMap<CallId, (Call, bool)>,
    runs: HashMap<CallId, u32>,
}

async fn answer(foot: &mut TestFoot, call: &Call) {
    foot.answer(call, call.arguments.get()).await;
}

/// Lives through cuts until the calls are all acknowledged.
async fn live(hub: &Hub, mut foot: TestFoot, mut dice: Dice, expected: usize) -> Journal {
    let mut journal = Journal::default();
    let mut cuts = 0;
    loop {
        let heard = tokio::time::timeout(Duration::from_millis(20), foot.hear()).await;
        match heard {
            Ok(Heard::Message(HubToFoot::Call(call))) => {
                let (_, done) = journal.calls.entry(call.call.clone()).or_insert_with(|| {
                    *journal.runs.entry(call.call.clone()).or_default() += 1;
                    (call.clone(), false)
                });
                // Some results are there at once, some only after a while.
                *done |= dice.roll(2) == 0;
                if *done {
                    answer(&mut foot, &call).await;
                }
            }
            Ok(Heard::Message(HubToFoot::Ack(ack))) => {
                journal.calls.remove(&ack.call);
            }
            Ok(other) => panic!("{other:?}"),
            Err(_) => {
                let open: Vec<Call> =
                    journal.calls.values().filter(|(_, done)| !done).map(|(call, _)| call.clone()).collect();
                if open.is_empty() && journal.calls.is_empty() && journal.runs.len() == expected {
                    return journal;
                }
                for call in open {
                    journal.calls.insert(call.call.clone(), (call.clone(), true));
                    answer(&mut foot, &call).await;
                }
            }
        }
        if cuts < 15 && dice.roll(4) == 0 {
            cuts += 1;
            foot.to_hub.close_channel();
            if dice.roll(2) == 0 {
                // What was on its way is lost; or the new socket is there before the hub has noticed.
                tokio::time::sleep(Duration::from_millis(dice.roll(500))).await;
            }
            let state = |done: bool| if done { InFlightState::Done } else { InFlightState::Running };
            let known: Vec<_> = journal.calls.values().map(|(call, done)| (call, state(*done))).collect();
            let (resumed, welcome) = foot.resume(hub, "ada", &known).await;
            assert!(welcome.resumed);
            foot = resumed;
            let done: Vec<Call> =
                journal.calls.values().filter(|(_, done)| *done).map(|(call, _)| call.clone()).collect();
            for call in done {
                answer(&mut foot, &call).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_runs_once_whatever_is_cut() {
    const CALLS: usize = 12;
    for seed in 0..12 {
        let hub = Hub::with(FeetConfig { resume_grace: Duration::from_secs(2), ..FeetConfig::default() }).await;
        let mut foot = hub.foot("ada", "dev").await;
        foot.offer(1, &["build"]).await;
        let mut calls = Vec::new();
        for number in 0..CALLS {
            calls.push((number, hub.call("ada", "build", json!({"number": number})).await));
        }
        hub.settles(|counts| counts.pending == CALLS).await;
        let journal = live(&hub, foot, Dice(seed), CALLS).await;
        assert!(journal.runs.values().all(|runs| *runs == 1), "seed {seed}: {:?}", journal.runs);
        for (number, call) in &mut calls {
            assert_eq!(call.text().await, json!({"number": number}).to_string(), "seed {seed}");
        }
        hub.ends_clean().await;
    }
}
