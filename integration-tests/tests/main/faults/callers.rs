//! Those who call while everything breaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use integration_tests::api::{Api, send};
use reqwest::Method;
use serde_json::json;
use tokio::task::JoinSet;

use super::ledger::{Answer, Ledger};
use crate::TestResult;

/// What a call without a key may take, milliseconds.
const PLAIN_MS: u64 = 5_000;
/// What a call with a key may take: it outlives every fault.
const KEYED_MS: u64 = 60_000;
/// How much later than that its answer may come: the hub waits a moment for the foot to say what became of the work, and
/// the machine is busy.
const SLACK: Duration = Duration::from_secs(5);
/// How long a call without a key is made again that did not run: longer than any weather, and than a foot waits at most
/// before it dials again.
const PLAIN_PATIENCE: Duration = Duration::from_secs(120);
/// Pause before a call that did not run is made again.
const PAUSE: Duration = Duration::from_millis(120);
/// How long one attempt with a key waits before it is given up and made again, milliseconds.
const ATTEMPT_MS: std::ops::Range<u64> = 200..3_000;

/// What a hub says that cannot ask the foot just now: the same key gets a better answer later.
const MAY_BE_KNOWN_LATER: [&str; 3] = ["foot_unavailable", "foot_gone", "id_conflict"];
/// How often a call is asked for again whose foot came back as a new process: the hub's own guess is one answer, what the
/// foot finds in its journal is another.
const RESTARTS: usize = 2;

/// How long the tool works: long enough for faults to fall into calls, milliseconds.
const WORK_MS: std::ops::Range<u64> = 0..120;

/// How calls are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Each once. One that did not run is another call when it is made again.
    Plain,
    /// Each with a key, again and again until there is an answer; callers lose patience and go away in between.
    Keyed,
    /// The same, and each twice at once.
    Twice,
}

/// The calls to be made.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) api: Api,
    pub(super) manner: Manner,
    /// How many.
    pub(super) calls: usize,
    /// Who makes them: caller `n` calls foot `n % feet`.
    pub(super) callers: usize,
    pub(super) feet: usize,
    /// Time that they are spread over.
    pub(super) over: Duration,
    pub(super) seed: u64,
}

impl Work {
    /// Starts the callers.
    pub(super) fn start(&self) -> JoinSet<TestResult<Ledger>> {
        let mut callers = JoinSet::new();
        let next = Arc::new(AtomicUsize::new(0));
        for number in 0..self.callers {
            let caller = Caller { work: self.clone(), tool: format!("foot{}__echo_append", number % self.feet) };
            callers.spawn(caller.run(next.clone(), number));
        }
        callers
    }
}

struct Caller {
    work: Work,
    tool: String,
}

impl Caller {
    async fn run(self, next: Arc<AtomicUsize>, number: usize) -> TestResult<Ledger> {
        let mut ledger = Ledger::default();
        let mut random = fastrand::Rng::with_seed(self.work.seed ^ number as u64);
        // Calls come evenly, whatever the weather: else they would all be made in one fine moment.
        let share = u32::try_from(self.work.calls.div_ceil(self.work.callers))?;
        let mut pace = tokio::time::interval(self.work.over / share);
        loop {
            let call = next.fetch_add(1, Ordering::Relaxed);
            if call >= self.work.calls {
                return Ok(ledger);
            }
            pace.tick().await;
            let id = format!("call-{call}");
            let work_ms = random.u64(WORK_MS);
            match self.work.manner {
                Manner::Plain => self.plain(&id, &mut ledger, &mut random).await?,
                Manner::Keyed => {
                    let answer = self.keyed(&id, work_ms, &mut random).await?;
                    ledger.note(&id, answer);
                }
                Manner::Twice => {
                    let mut other = random.fork();
                    let (one, two) =
                        tokio::try_join!(self.keyed(&id, work_ms, &mut random), self.keyed(&id, work_ms, &mut other))?;
                    if one != two {
                        return Err(format!("{id} was answered with {one:?} and with {two:?}").into());
                    }
                    ledger.note(&id, one);
                }
            }
        }
    }

    async fn plain(&self, id: &str, ledger: &mut Ledger, random: &mut fastrand::Rng) -> TestResult {
        let end = Instant::now() + PLAIN_PATIENCE;
        let mut attempt = 0;
        loop {
            let id = format!("{id}.{attempt}");
            let arguments = json!({"line": id, "ms": random.u64(WORK_MS)});
            let body = json!({"arguments": arguments, "timeoutMs": PLAIN_MS, "maxTimeoutMs": PLAIN_MS});
            let request = self.work.api.scoped(Method::POST, &format!("tools/{}/invoke", self.tool)).json(&body);
            let limit = Duration::from_millis(PLAIN_MS) + SLACK;
            let answer = tokio::time::timeout(limit, send(request)).await;
            let answer = answer.map_err(|_| format!("{id} hangs past its deadline"))?;
            let answer = answer.as_ref().map_or(Answer::Silent, Answer::of);
            let again = answer.did_not_run() || answer == Answer::Silent;
            if again && Instant::now() >= end {
                return Err(format!("{id} did not run within {PLAIN_PATIENCE:?}; the last answer: {answer:?}").into());
            }
            ledger.note(&id, answer);
            if !again {
                return Ok(());
            }
            attempt += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn keyed(&self, id: &str, work_ms: u64, random: &mut fastrand::Rng) -> TestResult<Answer> {
        let end = Instant::now() + Duration::from_millis(KEYED_MS) + SLACK;
        let (mut last, mut restarts) = (Answer::Silent, 0);
        // The same each time: another call would be refused under the same key.
        let arguments = json!({"line": id, "ms": work_ms});
        while Instant::now() < end {
            let body = json!({"arguments": arguments, "timeoutMs": KEYED_MS, "maxTimeoutMs": KEYED_MS});
            let request = self.work.api.scoped(Method::POST, &format!("tools/{}/invoke", self.tool));
            let request = request.header("Idempotency-Key", id).json(&body);
            let patience = Duration::from_millis(random.u64(ATTEMPT_MS));
            if let Ok(Ok(answer)) = tokio::time::timeout(patience, send(request)).await {
                last = Answer::of(&answer);
                match &last {
                    Answer::Failed(code, _) if code == "foot_restarted" && restarts < RESTARTS => restarts += 1,
                    Answer::Failed(code, _) if last.did_not_run() || MAY_BE_KNOWN_LATER.contains(&code.as_str()) => {}
                    _ => return Ok(last),
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(format!("{id} has no answer after {KEYED_MS} ms; the last one: {last:?}").into())
    }
}
