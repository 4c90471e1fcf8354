//! What a running tool knows of its call, and how it says that it is alive.

mod sign;

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use footbridge_mcp::RpcError;
use footbridge_shared::ErrorCode;
use footbridge_shared::Outcome;
use footbridge_shared::id::CallId;
use footbridge_shared::message::{Caller, Progress, Raw, Stream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) use sign::Sign;

use crate::clock::{SharedClock, millis};
use crate::failure::Failure;
use crate::line::Line;

/// Least time between two progress messages of one call.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);
/// Time between two signs of life of a call whose client is asked something.
const STILL_ASKED: Duration = Duration::from_secs(1);

/// The last sign of life of a call, on the foot's clock.
#[derive(Debug)]
pub(crate) struct Activity {
    clock: SharedClock,
    last_ms: AtomicU64,
}

impl Activity {
    pub(crate) fn new(clock: SharedClock) -> Arc<Self> {
        let last_ms = AtomicU64::new(millis(clock.boot()));
        Arc::new(Self { clock, last_ms })
    }

    /// When the call last showed life.
    pub(crate) fn last(&self) -> Duration {
        Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }

    fn touch(&self) {
        self.last_ms.store(millis(self.clock.boot()), Ordering::Relaxed);
    }
}

/// How far a call is that has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its arguments and what it would do are being looked at. Nothing is done.
    Preparing,
    /// A person is asked. Nothing is done.
    Asking,
    /// The work has begun.
    Working,
    /// The call was answered before any work began, and none will.
    Closed,
}

/// The phase of one call, as the call and whoever watches it see it.
#[derive(Debug, Default)]
pub(crate) struct Progression(AtomicU8);

impl Progression {
    /// Where it is.
    pub(crate) fn phase(&self) -> Phase {
        Self::of(self.0.load(Ordering::Acquire))
    }

    /// Ends it unless work has begun, for good; says where it was. Whoever answers `not_run` closes first: after that no
    /// work begins, however late what came before it ends.
    pub(crate) fn close(&self) -> Phase {
        self.turn(|phase| (phase != Phase::Working).then_some(Phase::Closed)).unwrap_or_else(|phase| phase)
    }

    /// Goes on to another phase, if `next` names one; the phase before, either way.
    fn turn(&self, next: impl Fn(Phase) -> Option<Phase>) -> Result<Phase, Phase> {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| next(Self::of(now)).map(|phase| phase as u8))
            .map(Self::of)
            .map_err(Self::of)
    }

    const fn of(value: u8) -> Phase {
        match value {
            0 => Phase::Preparing,
            1 => Phase::Asking,
            2 => Phase::Working,
            _ => Phase::Closed,
        }
    }
}

/// One running call, handed to the tool.
#[derive(Debug, Clone)]
pub(crate) struct CallContext {
    /// The call.
    pub(crate) call: CallId,
    /// For whom it runs.
    pub(crate) caller: Caller,
    /// What an MCP client sent with it beside name and arguments: a JSON object.
    pub(crate) extra: Option<Raw>,
    /// Whether the caller is the owner of this foot, as the hub says.
    pub(crate) by_owner: bool,
    /// When it has to be over, on the foot's clock.
    deadline: Duration,
    cancel: CancellationToken,
    activity: Arc<Activity>,
    progression: Arc<Progression>,
    signs: mpsc::Sender<Sign>,
    told_ms: Arc<AtomicU64>,
    told_output: Arc<Mutex<sign::Told>>,
    line: Line,
}

impl CallContext {
    pub(crate) fn new(
        call: CallId,
        caller: Caller,
        deadline: Duration,
        cancel: CancellationToken,
        activity: Arc<Activity>,
        signs: mpsc::Sender<Sign>,
    ) -> Self {
        let (progression, told_ms, told_output) = Default::default();
        let (extra, by_owner, line) = Default::default();
        Self {
            call,
            caller,
            extra,
            by_owner,
            deadline,
            cancel,
            activity,
            progression,
            signs,
            told_ms,
            told_output,
            line,
        }
    }

    /// The same, with a way back to the client that it came through.
    #[must_use]
    pub(crate) fn over(self, line: Line, extra: Option<Raw>, by_owner: bool) -> Self {
        Self { line, extra, by_owner, ..self }
    }

    /// Fires when the work must stop.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Asks the MCP client that it came through, within what is left of it. As long as somebody is asked it shows life. To
    /// lose this future is to withdraw the question. `None`: there is no such client, or no way to it.
    pub(crate) async fn ask_client(&self, method: &str, params: Raw) -> Option<Result<Raw, RpcError>> {
        self.caller.client.as_ref()?;
        let asked = self.line.ask(&self.call, method, params, self.left());
        let alive = async {
            let mut signs = tokio::time::interval(STILL_ASKED);
            loop {
                signs.tick().await;
                self.activity.touch();
            }
        };
        tokio::select! {
            answer = asked => answer,
            () = alive => None,
        }
    }

    /// What is left until its deadline.
    pub(crate) fn left(&self) -> Duration {
        self.deadline.saturating_sub(self.activity.clock.boot())
    }

    /// How far it is, for whoever watches it.
    pub(crate) fn progression(&self) -> Arc<Progression> {
        self.progression.clone()
    }

    /// A person is asked from now on: that shows life as long as it takes.
    pub(crate) fn asking(&self) {
        // Too late is no harm: the work does not begin.
        let _ = self.progression.turn(|phase| (phase == Phase::Preparing).then_some(Phase::Asking));
    }

    /// The work begins: from now on it may have been done.
    ///
    /// # Errors
    /// `cancelled`, `not_run`: the call was stopped before. The work must not begin.
    pub(crate) fn working(&self) -> Result<(), Failure> {
        if self.cancel.is_cancelled() {
            self.progression.close();
        }
        self.activity.touch();
        let begun = self.progression.turn(|phase| (phase != Phase::Closed).then_some(Phase::Working));
        let stopped = || Failure::not_run(ErrorCode::Cancelled, "the call was stopped before its work began");
        begun.map(drop).map_err(|_| stopped())
    }

    /// Completes when the work must stop.
    pub(crate) async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// For work that cannot await: an error when it must stop.
    ///
    /// # Errors
    /// `cancelled`, with an unknown outcome; the foot answers with the true reason in its place.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.cancel.is_cancelled() {
            return Err(Failure::new(ErrorCode::Cancelled, Outcome::Unknown, "the call was stopped"));
        }
        Ok(())
    }

    /// A sign of life: resets the idle limit, never the deadline. Passed on to the caller now and then; never waits.
    pub(crate) fn progress(&self, progress: f64, total: Option<f64>, message: &str) {
        self.activity.touch();
        let now = millis(self.activity.last());
        let told = self.told_ms.load(Ordering::Relaxed);
        if told != 0 && now.saturating_sub(told) < millis(PROGRESS_INTERVAL) {
            return;
        }
        self.told_ms.store(now, Ordering::Relaxed);
        let message = (!message.is_empty()).then(|| message.to_owned());
        // Full: the session has more urgent things to do than to say how far this is.
        let progress = Progress { call: self.call.clone(), progress, total, message };
        let _ = self.signs.try_send(Sign::Progress(progress));
    }

    /// How far a server says that it is, passed on each time: the client counts on it. Never waits.
    pub(crate) fn relay_progress(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        self.activity.touch();
        let progress = Progress { call: self.call.clone(), progress, total, message };
        let _ = self.signs.try_send(Sign::Progress(progress));
    }

    /// What the work wrote: a sign of life, too. Passed on as far as there is room, and what is not is counted; never
    /// waits.
    pub(crate) fn output(&self, stream: Stream, text: &str) {
        self.activity.touch();
        let now = millis(self.activity.last());
        let mut told = self.told_output.lock().unwrap_or_else(PoisonError::into_inner);
        told.output(&self.call, stream, text, now, &self.signs);
    }
}

/// A context outside of any session.
#[cfg(test)]
pub(crate) fn detached() -> (CallContext, mpsc::Receiver<Sign>, CancellationToken) {
    let cancel = CancellationToken::new();
    let (ctx, signs) = cancelled_by(cancel.clone());
    (ctx, signs, cancel)
}

/// The same, for a call that somebody else cancels.
#[cfg(test)]
pub(crate) fn cancelled_by(cancel: CancellationToken) -> (CallContext, mpsc::Receiver<Sign>) {
    use crate::clock::Clock as _;
    let (sender, receiver) = mpsc::channel(16);
    let clock = crate::clock::ManualClock::shared();
    let caller = Caller { subject: footbridge_shared::id::Subject::parse("ada").unwrap(), process: None, client: None };
    let call = CallId::parse("c-1").unwrap();
    let deadline = clock.boot() + Duration::from_secs(60);
    (CallContext::new(call, caller, deadline, cancel, Activity::new(clock), sender), receiver)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, ManualClock};

    #[test]
    fn progress_shows_life_each_time_and_is_told_now_and_then() {
        let clock = ManualClock::shared();
        let (template, _, cancel) = detached();
        let (sender, mut told) = mpsc::channel(16);
        let activity = Activity::new(clock.clone());
        let ctx = CallContext::new(template.call, template.caller, Duration::MAX, cancel, activity.clone(), sender);
        for step in 0..10 {
            clock.advance(Duration::from_millis(100));
            ctx.progress(f64::from(step), None, "");
            assert_eq!(activity.last(), clock.boot());
        }
        let mut frames = 0;
        while told.try_recv().is_ok() {
            frames += 1;
        }
        assert_eq!(frames, 4, "ten signs of life within a second, 100 ms apart");
    }

    #[test]
    fn a_stopped_call_says_so_to_work_that_cannot_await() {
        let (ctx, _, cancel) = detached();
        assert!(ctx.check().is_ok());
        cancel.cancel();
        assert_eq!(ctx.check().unwrap_err().code, ErrorCode::Cancelled);
        assert_eq!(ctx.working().unwrap_err().outcome, Outcome::NotRun);
    }

    #[test]
    fn work_begins_or_the_call_is_closed_and_never_both() {
        let (ctx, ..) = detached();
        ctx.asking();
        assert_eq!(ctx.progression().close(), Phase::Asking);
        assert!(ctx.working().is_err(), "whoever closed it has said that it does not run");
        ctx.asking();
        assert_eq!(ctx.progression().phase(), Phase::Closed);

        let (ctx, ..) = detached();
        ctx.working().unwrap();
        assert_eq!(ctx.progression().close(), Phase::Working);
        assert_eq!(ctx.progression().phase(), Phase::Working, "what has begun is not undone by a word");
    }
}
