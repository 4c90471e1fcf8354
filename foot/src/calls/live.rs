//! A call that waits or runs, and its limits.

use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::id::{CallId, Subject};
use footbridge_shared::message::{Call, Caller, InFlightState, Raw};
use footbridge_shared::{ErrorCode, Outcome};
use tokio::sync::mpsc;
use tokio::task::Id;
use tokio_util::sync::CancellationToken;

use crate::clock::SharedClock;
use crate::failure::Failure;
use crate::journal::{Begun, Entry, Journal, KEYED_FOR, Start, Ticket, UNKEYED_FOR};
use crate::line::Line;
use crate::tools::context::{Activity, Phase, Progression, Sign};
use crate::tools::{Arguments, CallContext, Registered, ToolOutput};

/// How long work may take to end once it is told to, before the call is answered without it.
pub(super) const STOP_GRACE: Duration = Duration::from_secs(2);

/// Why a call stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The hub said so.
    Cancelled,
    /// The hard limit.
    Deadline,
    /// No sign of life for this long.
    Idle(Duration),
    /// The foot ends.
    Leaving,
    /// The hub was away for longer than anybody waits, and the work had not begun.
    Away,
}

/// How the task of a call ends.
#[derive(Debug)]
pub(crate) enum End {
    /// With what came of it.
    Here(Result<ToolOutput, Failure>),
    /// Another process of this foot began the same call: it did not run here.
    Before(Entry),
}

/// One call under way.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) tool: String,
    pub(super) keyed: bool,
    pub(super) digest: Option<String>,
    pub(super) origin: String,
    pub(super) deadline: Duration,
    idle: Duration,
    pub(super) stage: Stage,
}

/// How far it is.
#[derive(Debug)]
pub(super) enum Stage {
    /// It waits; what it takes to run it.
    Queued(Option<Box<Work>>),
    /// It runs.
    Running(Running),
}

/// What it takes to run a call.
#[derive(Debug)]
pub(super) struct Work {
    tool: Arc<Registered>,
    arguments: Raw,
    caller: Caller,
    extra: Option<Raw>,
}

/// A running call.
#[derive(Debug)]
pub(super) struct Running {
    task: Option<Id>,
    cancel: CancellationToken,
    activity: Arc<Activity>,
    progression: Arc<Progression>,
    /// Under which its start is in the journal once its work has begun. None for what changes nothing.
    ticket: Option<Ticket>,
    stopping: Option<(Stop, Duration)>,
}

impl Running {
    /// Asks the work to end; says until when that may take. The first reason stands.
    pub(super) fn stop(&mut self, why: Stop, now: Duration) -> Duration {
        self.cancel.cancel();
        self.stopping.get_or_insert((why, now + STOP_GRACE)).1
    }
}

impl Live {
    pub(super) fn queued(call: Call, tool: Arc<Registered>, deadline: Duration) -> Self {
        let Call { keyed, digest, tool: name, arguments, idle_ms, origin, caller, extra, .. } = call;
        let stage = Stage::Queued(Some(Box::new(Work { tool, arguments, caller, extra })));
        Self { tool: name, keyed, digest, origin, deadline, idle: Duration::from_millis(idle_ms), stage }
    }

    /// Turns to running; the future is the work. `None` if it runs already.
    pub(super) fn start(
        &mut self,
        call: &CallId,
        clock: &SharedClock,
        told: &mpsc::Sender<Sign>,
        journal: &Journal,
        (line, owner): (&Line, Option<&Subject>),
    ) -> Option<impl Future<Output = End> + use<>> {
        let Stage::Queued(work) = &mut self.stage else { return None };
        let Work { tool, arguments, caller, extra } = *work.take()?;
        let by_owner = owner == Some(&caller.subject);
        let (cancel, activity) = (CancellationToken::new(), Activity::new(clock.clone()));
        let ctx = CallContext::new(call.clone(), caller, self.deadline, cancel.clone(), activity.clone(), told.clone());
        let ctx = ctx.over(line.clone(), extra, by_owner);
        let progression = ctx.progression();
        // What changes nothing has no business with the journal.
        let entry = (!tool.tool.is_read_only()).then(|| (journal.clone(), self.to_begin(call), journal.ticket()));
        let ticket = entry.as_ref().map(|(.., ticket)| *ticket);
        self.stage = Stage::Running(Running { task: None, cancel, activity, progression, ticket, stopping: None });
        Some(run(tool, Arguments::new(arguments), ctx, entry))
    }

    fn to_begin(&self, call: &CallId) -> Start {
        let (keyed, digest, origin) = (self.keyed, self.digest.clone(), self.origin.clone());
        let until = self.deadline + if keyed { KEYED_FOR } else { UNKEYED_FOR };
        Start { call: call.clone(), keyed, digest, origin, until }
    }

    /// The ticket of work that has begun and is in the journal.
    pub(super) fn began(&self) -> Option<Ticket> {
        match &self.stage {
            Stage::Running(running) if running.progression.phase() == Phase::Working => running.ticket,
            _ => None,
        }
    }

    /// Gives it up if its work has not begun; it never will.
    pub(super) fn give_up(&mut self, now: Duration) {
        if let Stage::Running(running) = &mut self.stage
            && running.progression.close() != Phase::Working
        {
            running.stop(Stop::Away, now);
        }
    }

    pub(super) fn set_task(&mut self, id: Id) {
        if let Stage::Running(running) = &mut self.stage {
            running.task = Some(id);
        }
    }

    pub(super) fn runs_as(&self, id: Id) -> bool {
        matches!(&self.stage, Stage::Running(running) if running.task == Some(id))
    }

    pub(super) fn state(&self) -> InFlightState {
        match self.stage {
            Stage::Queued(_) => InFlightState::Queued,
            Stage::Running(ref running) => match running.progression.phase() {
                Phase::Asking => InFlightState::Asking,
                Phase::Preparing | Phase::Working | Phase::Closed => InFlightState::Running,
            },
        }
    }

    /// Which limit is reached, if one is. Work that was told to end and did not reaches its limit again.
    pub(super) fn over(&self, now: Duration) -> Option<Stop> {
        if let Stage::Running(Running { stopping: Some((why, until)), .. }) = self.stage {
            return (now >= until).then_some(why);
        }
        if now >= self.deadline {
            return Some(Stop::Deadline);
        }
        (now >= self.idle_end(now)).then_some(Stop::Idle(self.idle))
    }

    /// When the next limit may be reached.
    pub(super) fn next_limit(&self, now: Duration) -> Duration {
        match self.stage {
            Stage::Running(Running { stopping: Some((_, until)), .. }) => until,
            _ => self.deadline.min(self.idle_end(now)),
        }
    }

    /// Only what runs can be idle: nobody expects signs of life from what waits.
    fn idle_end(&self, now: Duration) -> Duration {
        match &self.stage {
            // A person takes as long as a person takes.
            Stage::Running(running) if running.progression.phase() == Phase::Asking => now.saturating_add(self.idle),
            Stage::Running(running) => running.activity.last().saturating_add(self.idle),
            // It may start any moment.
            Stage::Queued(_) => now.saturating_add(self.idle),
        }
    }

    /// What the call answers, now that its work has ended with `result`.
    pub(super) fn verdict(&self, result: Result<ToolOutput, Failure>) -> Result<ToolOutput, Failure> {
        let Stage::Running(running) = &self.stage else { return result };
        let begun = running.progression.phase() == Phase::Working;
        // Whatever it says of itself: before the work there is nothing that could have been done.
        let result = result.map_err(|own| if begun { own } else { Failure { outcome: Outcome::NotRun, ..own } });
        let Some((why, _)) = running.stopping else { return result };
        match (result, why) {
            // It was done when it was told to stop: that is the truth, and whoever still waits may have it.
            (Ok(output), Stop::Cancelled | Stop::Leaving) => Ok(output),
            (Ok(_), _) => Err(failure(why, Outcome::Completed)),
            (Err(own), _) => {
                // Work that ended because it was told to knows best what would have spared it that.
                let hint = own.hint.filter(|_| own.code == ErrorCode::Cancelled);
                Err(Failure { cause: own.cause, hint, ..failure(why, own.outcome) })
            }
        }
    }

    /// What the call answers without the end of its work, which does not begin any more.
    pub(super) fn unfinished(&self, why: Stop) -> Failure {
        let began = match &self.stage {
            Stage::Queued(_) => false,
            Stage::Running(running) => running.progression.close() == Phase::Working,
        };
        failure(why, if began { Outcome::Unknown } else { Outcome::NotRun })
    }
}

/// Checks what a call would do, has it permitted, has its start written down unless it changes nothing, and does it.
async fn run(
    tool: Arc<Registered>,
    arguments: Arguments,
    ctx: CallContext,
    entry: Option<(Journal, Start, Ticket)>,
) -> End {
    let planned = async {
        // On the session's thread, and soon done: arguments are a part of one frame.
        tool.schema.check(&arguments)?;
        let plan = tool.tool.plan(arguments, &ctx).await;
        let plan = plan.inspect_err(|failure| tool.permissions.refused(tool.name(), failure, &ctx))?;
        tool.permissions.admit(tool.name(), plan.action(), &ctx).await?;
        Ok(plan)
    };
    let plan = match planned.await {
        Ok(plan) => plan,
        Err(failure) => return End::Here(Err(failure)),
    };
    let Some((journal, start, ticket)) = entry else {
        return match ctx.working() {
            Ok(()) => End::Here(plan.run(ctx).await),
            Err(stopped) => End::Here(Err(stopped)),
        };
    };
    if let Err(stopped) = ctx.check() {
        return End::Here(Err(stopped));
    }
    let (call, until) = (start.call.clone(), start.until);
    match journal.begin(start, ticket).await {
        Begun::Yes => {}
        Begun::Before(entry) => return End::Before(entry),
        Begun::Refused(refusal) => return End::Here(Err(refusal.into())),
    }
    if let Err(stopped) = ctx.working() {
        journal.ended(call, ticket, stopped.outcome, until);
        return End::Here(Err(stopped));
    }
    End::Here(plan.run(ctx).await)
}

fn failure(why: Stop, outcome: Outcome) -> Failure {
    let (code, message) = match why {
        Stop::Cancelled => (ErrorCode::Cancelled, "the call was cancelled".to_owned()),
        Stop::Leaving => (ErrorCode::Cancelled, "the foot was stopped".to_owned()),
        Stop::Away => (ErrorCode::FootGone, "the hub was away for too long".to_owned()),
        Stop::Deadline => (ErrorCode::DeadlineExceeded, "the call reached its deadline".to_owned()),
        Stop::Idle(limit) => {
            (ErrorCode::DeadlineExceeded, format!("the tool gave no sign of life for {} ms", limit.as_millis()))
        }
    };
    Failure::new(code, outcome, message)
}
