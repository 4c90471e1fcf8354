//! Where decisions are carried out: a person is asked, answers are remembered, and all of it is written down.

use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::message::Caller;
use footbridge_shared::{ErrorCode, Outcome};

use super::ask::{Question, client};
use super::audit::cut;
use super::remembered::Answer;
use super::{Action, Asker, Audit, AuditLine, Decision, Headless, Literal, Reason, Remembered, Verdict, shown};
use crate::clock::{SharedClock, SystemClock, millis};
use crate::failure::Failure;
use crate::tools::CallContext;

/// Longest wait for a person.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(120);
/// Time between two signs of life while a person is asked.
const STILL_ASKING: Duration = Duration::from_secs(5);
/// What a caller is told meanwhile.
const AWAITING_APPROVAL: &str = "awaiting_approval";

/// Who is asked, what they said, and what is written down. It outlives changes of the settings.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) asker: Box<dyn Asker>,
    pub(crate) remembered: Arc<Remembered>,
    pub(crate) audit: Audit,
    pub(crate) clock: SharedClock,
}

impl Desk {
    /// With nobody to ask and nothing to keep.
    pub(crate) fn closed() -> Self {
        Self {
            asker: Box::new(Headless),
            remembered: Arc::new(Remembered::in_memory()),
            audit: Audit::none(),
            clock: Arc::new(SystemClock),
        }
    }

    /// What a person said of this very action, once and for all.
    pub(super) fn remembered(&self, tool: &str, action: &Action, caller: &Caller) -> Option<Verdict> {
        self.remembered.said_of(&Literal::of(caller.subject.as_str(), tool, action)?)
    }

    /// Carries a decision out.
    pub(super) async fn settle(
        &self,
        tool: &str,
        action: &Action,
        ctx: &CallContext,
        decision: Decision,
        ask_client: bool,
    ) -> Result<(), Failure> {
        let Decision { verdict, reason } = decision;
        let (said, result) = match verdict {
            Verdict::Allow => ("allow", Ok(())),
            Verdict::Deny => ("deny", Err(denied(&reason))),
            Verdict::Ask => self.ask(tool, action, ctx, &reason, ask_client).await,
        };
        self.write(tool, AuditLine::about(action), ctx, said, reason.to_string());
        result
    }

    /// Writes down what was refused without asking the rules.
    pub(super) fn refused(&self, tool: &str, failure: &Failure, ctx: &CallContext) {
        self.write(tool, AuditLine::default(), ctx, "deny", cut(&failure.message));
    }

    fn write(&self, tool: &str, about: AuditLine, ctx: &CallContext, decision: &str, by: String) {
        let wall = i64::try_from(millis(self.clock.wall())).unwrap_or(i64::MAX);
        let time = jiff::Timestamp::from_millisecond(wall).map(|time| time.to_string()).unwrap_or_default();
        self.audit.write(AuditLine {
            time,
            call: ctx.call.to_string(),
            subject: ctx.caller.subject.to_string(),
            process: ctx.caller.process.as_ref().map(|process| cut(process.as_ref())),
            tool: tool.to_owned(),
            decision: decision.to_owned(),
            by,
            ..about
        });
    }

    async fn ask(
        &self,
        tool: &str,
        action: &Action,
        ctx: &CallContext,
        reason: &Reason,
        ask_client: bool,
    ) -> (&'static str, Result<(), Failure>) {
        let client = ask_client && client::can_be_asked(ctx);
        if !client && !self.asker.is_there() {
            return ("nobody", Err(nobody(reason)));
        }
        let wait = ctx.left().min(MAX_WAIT);
        let question = Question {
            subject: ctx.caller.subject.to_string(),
            process: ctx.caller.process.as_ref().map(ToString::to_string),
            tool: tool.to_owned(),
            lines: shown::lines(action),
            because: reason.to_string(),
            seconds: wait.as_secs(),
        };
        ctx.asking();
        let asked = async {
            if !client {
                return self.asker.ask(question).await;
            }
            match client::ask(ctx, &question).await {
                Some(reply) => Some(reply),
                None if self.asker.is_there() => self.asker.ask(question).await,
                None => None,
            }
        };
        let still = async {
            let mut signs = tokio::time::interval(STILL_ASKING);
            let mut seconds = 0.0;
            loop {
                signs.tick().await;
                ctx.progress(seconds, None, AWAITING_APPROVAL);
                seconds += STILL_ASKING.as_secs_f64();
            }
        };
        tokio::select! {
            biased;
            () = ctx.cancelled() => {
                let failure = Failure::not_run(ErrorCode::Cancelled, "the call was stopped while a person was asked");
                ("withdrawn", Err(failure))
            }
            reply = asked => match reply {
                None => ("nobody", Err(nobody(reason))),
                Some(reply) => {
                    if reply.always {
                        self.remember(tool, action, ctx, reply.allow).await;
                    }
                    if reply.allow {
                        ("ask-yes", Ok(()))
                    } else {
                        let failure = Failure::not_run(ErrorCode::PermissionDenied, "the owner of this foot said no");
                        ("ask-no", Err(failure.hint("do not try the same again; ask the person what to do instead")))
                    }
                }
            },
            () = tokio::time::sleep(wait) => ("expired", Err(expired(reason, wait))),
            () = still => ("expired", Err(expired(reason, wait))),
        }
    }

    async fn remember(&self, tool: &str, action: &Action, ctx: &CallContext, allow: bool) {
        let Some(about) = Literal::of(ctx.caller.subject.as_str(), tool, action) else {
            tracing::warn!(tool, "an answer is not remembered: a name in it is no UTF-8");
            return;
        };
        let answer = Answer { allow, about, given_ms: millis(self.clock.wall()) };
        let remembered = self.remembered.clone();
        match tokio::task::spawn_blocking(move || remembered.keep(answer)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "an answer is not remembered"),
            Err(error) => tracing::warn!(%error, "an answer is not remembered"),
        }
    }
}

fn denied(reason: &Reason) -> Failure {
    let failure = Failure::not_run(ErrorCode::PermissionDenied, "the owner of this foot does not allow this");
    let hint = match reason {
        Reason::Floor => "it works on what this foot never serves".to_owned(),
        Reason::Rule(place) => format!("{} in the foot's settings speaks against it", place.short()),
        Reason::Remembered(_) => {
            "the owner said so once and for all; `foot permissions list` on that machine shows it".to_owned()
        }
        Reason::Mode(key, mode) => {
            format!("`{key}: {mode}` is in force there; a rule under permissions.allow in foot.yaml can allow it")
        }
        Reason::Server(..) => {
            format!("`{reason}` is in force there; a rule under permissions.allow in foot.yaml can allow it")
        }
        Reason::TooMuch => "make it shorter, or nest it less".to_owned(),
        Reason::Reading | Reason::Configured => return failure,
    };
    failure.hint(hint)
}

/// What would have to be changed so that nobody needs to be asked.
fn setting(reason: &Reason) -> String {
    match reason {
        Reason::Rule(place) => place.short(),
        Reason::Mode(key, mode) => format!("`{key}: {mode}`"),
        other => other.to_string(),
    }
}

fn nobody(reason: &Reason) -> Failure {
    let failure =
        Failure::not_run(ErrorCode::PermissionDenied, "the owner would have to be asked, and nobody is there");
    failure.hint(format!(
        "{} asks, and this foot has no terminal to ask at; the owner can allow it in foot.yaml, under permissions.allow",
        setting(reason)
    ))
}

fn expired(reason: &Reason, wait: Duration) -> Failure {
    let message = format!("the owner was asked and did not answer within {} s", wait.as_secs());
    Failure::new(ErrorCode::PermissionDenied, Outcome::NotRun, message).hint(format!(
        "{} asks; the owner can allow it in foot.yaml, under permissions.allow, or answer at the terminal next time",
        setting(reason)
    ))
}
