//! Calls with a side effect while the network between foot and hub rages, and while hub and feet are killed: what was
//! acknowledged ran exactly once, everything else at most once, and nobody is told what is not true.
//!
//! `FOOTBRIDGE_FAULT_SEED` replays the faults of a run, `FOOTBRIDGE_FAULT_CALLS` makes it longer or shorter.

mod callers;
mod ledger;

use std::time::{Duration, Instant};

use integration_tests::bench::say;
use integration_tests::eventually::eventually;
use integration_tests::foot::TestFoot;
use integration_tests::hub::{Options, TestHub};
use integration_tests::leftovers::end;
use integration_tests::proxy::{Counts, Fault, FaultProxy, Plan, seed};
use integration_tests::scale;
use tempfile::TempDir;

use crate::TestResult;
use callers::{Manner, Work};
use ledger::{Ledger, Tally};

/// Calls of one story, unless `FOOTBRIDGE_FAULT_CALLS` says otherwise.
const CALLS: u64 = 5_000;
const CALLERS: usize = 64;
/// Feet, each behind a proxy of its own.
const FEET: usize = 4;
/// How long the calls are spread over, and the weather is bad.
const RAGE: Duration = Duration::from_secs(10);
/// Time between two kills of the hub, or of one foot.
const KILL_EVERY: Duration = Duration::from_secs(3);
/// A hub that notices soon that a foot is gone, milliseconds.
const HEARTBEAT_MS: u64 = 1_000;
/// Fewer faults are no bad weather.
const MIN_FAULTS: u64 = 15;

/// Lines that a failure shows of each foot.
const LAST_LINES: usize = 8;

/// Who is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Killed {
    Nobody,
    Hub,
    Feet,
}

/// The hub, its feet, and what stands between them.
struct Stage {
    hub: TestHub,
    feet: Vec<TestFoot>,
    proxies: Vec<FaultProxy>,
    seed: u64,
    folder: TempDir,
}

impl Stage {
    async fn set() -> TestResult<Self> {
        let env = vec![("FOOTBRIDGE_FEET_HEARTBEAT_MS".to_owned(), HEARTBEAT_MS.to_string())];
        let hub = TestHub::start_with(Options { env, ..Options::default() }).await?;
        let (folder, seed) = (tempfile::tempdir()?, seed()?);
        let lines = folder.path().join("lines").to_string_lossy().into_owned();
        let (mut feet, mut proxies) = (Vec::new(), Vec::new());
        let plan = Plan::raging(seed);
        for number in 0..FEET {
            let proxy = FaultProxy::start(&hub.url, plan.clone()).await?;
            let (name, more) = (format!("foot{number}"), ["--echo-append", lines.as_str()]);
            feet.push(TestFoot::start_via(&hub, proxy.url(), "ann", &name, folder.path(), &more).await?);
            proxies.push(proxy);
        }
        Ok(Self { hub, feet, proxies, seed, folder })
    }

    fn faults(&self) -> Counts {
        Counts::sum(self.proxies.iter().map(FaultProxy::counts))
    }

    /// Makes calls through bad weather, heals, waits for every answer, and compares.
    async fn tell(mut self, manner: Manner, killed: Killed) -> TestResult<Tally> {
        let calls = usize::try_from(scale::number("FOOTBRIDGE_FAULT_CALLS")?.unwrap_or(CALLS))?;
        let api = self.hub.api()?.with_token(&self.hub.token("ann", &["engine", "viewer"]).await?);
        let work = Work { api, manner, calls, callers: CALLERS, feet: FEET, over: RAGE, seed: self.seed };
        let begun = Instant::now();
        let mut callers = work.start();
        let kills = self.rage(killed).await?;
        self.proxies.iter().for_each(FaultProxy::heal);
        let mut ledger = Ledger::default();
        while let Some(answers) = callers.join_next().await {
            ledger.append(answers?.map_err(|error| format!("{error}\n{}", self.last_words()))?);
        }
        self.nothing_runs().await?;
        let (counts, seed, count) = (self.faults(), self.seed, ledger.len());
        let lines = self.end()?;
        let tally = ledger.judge(&lines)?;
        let took = begun.elapsed().as_secs();
        say(&format!(
            "{manner:?}, {killed:?} killed {kills} times, {took} s, seed {seed}: {count} calls: {tally}\n  {counts}"
        ));
        assert!(counts.total() >= MIN_FAULTS, "the weather was fine: {counts}");
        Ok(tally)
    }

    /// Bad weather; returns how many processes were killed.
    async fn rage(&mut self, killed: Killed) -> TestResult<usize> {
        let begun = Instant::now();
        let every = if killed == Killed::Feet { KILL_EVERY / FEET as u32 } else { KILL_EVERY };
        let mut kills = 0;
        let all_kinds = |counts: &Counts| Fault::DEADLY.into_iter().all(|fault| counts.of(fault) > 0);
        while begun.elapsed() < RAGE || (!all_kinds(&self.faults()) && begun.elapsed() < 2 * RAGE) {
            tokio::time::sleep(every).await;
            match killed {
                Killed::Nobody => continue,
                Killed::Hub => tokio::task::block_in_place(|| self.hub.kill_and_restart())?,
                Killed::Feet => tokio::task::block_in_place(|| self.feet[kills % FEET].kill_and_restart())?,
            }
            kills += 1;
        }
        Ok(kills)
    }

    /// What each foot said last.
    fn last_words(&self) -> String {
        let said = self.feet.iter().map(|foot| {
            let output = foot.process.output();
            let last: Vec<&str> = output.lines().rev().take(LAST_LINES).collect();
            format!("{}, latest first:\n{}", foot.name, last.join("\n"))
        });
        said.collect::<Vec<_>>().join("\n")
    }

    async fn nothing_runs(&self) -> TestResult {
        let root = self.hub.api()?;
        eventually("no call runs any more", || async { Ok((root.running_calls().await? == 0).then_some(())) }).await
    }

    /// Ends everything in order, and returns the lines that were written by then.
    fn end(self) -> TestResult<String> {
        end(self.hub, self.feet, self.folder.path())?;
        Ok(std::fs::read_to_string(self.folder.path().join("lines"))?)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_through_a_raging_network_run_at_most_once_and_nobody_is_lied_to() -> TestResult {
    let tally = Stage::set().await?.tell(Manner::Plain, Killed::Nobody).await?;
    assert_eq!(tally.silent, 0, "the hub always answers: {tally}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_while_the_hub_is_killed() -> TestResult {
    Stage::set().await?.tell(Manner::Plain, Killed::Hub).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_while_the_feet_are_killed() -> TestResult {
    let tally = Stage::set().await?.tell(Manner::Plain, Killed::Feet).await?;
    assert_eq!(tally.silent, 0, "the hub always answers: {tally}");
    Ok(())
}

/// Callers lose patience and come again, two of them at once: each call runs once all the same, and both get its result.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_makes_it_exactly_once_however_often_it_is_sent() -> TestResult {
    let tally = Stage::set().await?.tell(Manner::Twice, Killed::Nobody).await?;
    assert_eq!(tally.done, tally.all(), "every call has its result: {tally}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_outlives_the_hub() -> TestResult {
    let tally = Stage::set().await?.tell(Manner::Keyed, Killed::Hub).await?;
    assert_eq!(tally.done, tally.all(), "every call has its result: {tally}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_makes_it_at_most_once_while_the_feet_are_killed() -> TestResult {
    let tally = Stage::set().await?.tell(Manner::Keyed, Killed::Feet).await?;
    assert_eq!(tally.silent, 0, "{tally}");
    assert!(tally.done * 2 > tally.all(), "most calls have their result: {tally}");
    Ok(())
}
