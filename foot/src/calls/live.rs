//! A call that waits or runs, and its limits.

use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::id::CallId;
use footbridge_shared::message::{Call, Caller, InFlightState, Progress, Raw};
use footbridge_shared::{ErrorCode, Outcome};
use tokio::sync::mpsc;
use tokio::task::Id;
use tokio_util::sync::CancellationToken;

use crate::clock::SharedClock;
use crate::failure::Failure;
use crate::tools::context::{Activity, Phase, Progression};
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
}

/// A running call.
#[derive(Debug)]
pub(super) struct Running {
    task: Option<Id>,
    cancel: CancellationToken,
    activity: Arc<Activity>,
    progression: Arc<Progression>,
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
        let Call { keyed, digest, tool: name, arguments, idle_ms, origin, caller, .. } = call;
        let stage = Stage::Queued(Some(Box::new(Work { tool, arguments, caller })));
        Self { tool: name, keyed, digest, origin, deadline, idle: Duration::from_millis(idle_ms), stage }
    }

    /// Turns to running; the future is the work. `None` if it runs already.
    pub(super) fn start(
        &mut self,
        call: &CallId,
        clock: &SharedClock,
        told: &mpsc::Sender<Progress>,
    ) -> Option<impl Future<Output = Result<ToolOutput, Failure>> + use<>> {
        let Stage::Queued(work) = &mut self.stage else { return None };
        let Work { tool, arguments, caller } = *work.take()?;
        let (cancel, activity) = (CancellationToken::new(), Activity::new(clock.clone()));
        let ctx = CallContext::new(call.clone(), caller, self.deadline, cancel.clone(), activity.clone(), told.clone());
        let progression = ctx.progression();
        self.stage = Stage::Running(Running { task: None, cancel, activity, progression, stopping: None });
        Some(async move {
            let arguments = Arguments::new(arguments);
            // On the session's thread, and soon done: arguments are a part of one frame.
            tool.schema.check(&arguments)?;
            let plan = tool.tool.plan(arguments, &ctx).await?;
            tool.permissions.admit(tool.name(), plan.action(), &ctx).await?;
            ctx.working();
            plan.run(ctx).await
        })
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
                Phase::Preparing | Phase::Working => InFlightState::Running,
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
        let Stage::Running(Running { stopping: Some((why, _)), .. }) = self.stage else { return result };
        match (result, why) {
            // It was done when it was told to stop: that is the truth, and whoever still waits may have it.
            (Ok(output), Stop::Cancelled | Stop::Leaving) => Ok(output),
            (Ok(_), _) => Err(failure(why, Outcome::Completed)),
            (Err(own), _) => Err(Failure { cause: own.cause, ..failure(why, own.outcome) }),
        }
    }

    /// What the call answers without the end of its work.
    pub(super) fn unfinished(&self, why: Stop) -> Failure {
        let began = match &self.stage {
            Stage::Queued(_) => false,
            Stage::Running(running) => running.progression.phase() == Phase::Working,
        };
        failure(why, if began { Outcome::Unknown } else { Outcome::NotRun })
    }
}

fn failure(why: Stop, outcome: Outcome) -> Failure {
    let (code, message) = match why {
        Stop::Cancelled => (ErrorCode::Cancelled, "the call was cancelled".to_owned()),
        Stop::Leaving => (ErrorCode::Cancelled, "the foot was stopped".to_owned()),
        Stop::Deadline => (ErrorCode::DeadlineExceeded, "the call reached its deadline".to_owned()),
        Stop::Idle(limit) => {
            (ErrorCode::DeadlineExceeded, format!("the tool gave no sign of life for {} ms", limit.as_millis()))
        }
    };
    Failure::new(code, outcome, message)
}
