//! What local MCP servers ask the clients of calls. Each question waits in a task of its own: a client, or a person, may take
//! its time, and holds up nothing else of the foot.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use footbridge_mcp::{RpcError, codes};
use footbridge_shared::id::CallId;
use footbridge_shared::limits::MAX_UPCALLS_PER_FOOT;
use footbridge_shared::message::{Raw, Upcall, UpcallResult};
use serde_json::value::to_raw_value;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::foot::{Foot, Link, State};
use crate::domain::call::CallClock;
use crate::domain::mcp::{McpClient, declined};

/// Most that the open questions of one foot may take together, in bytes.
pub(super) const MAX_QUESTION_BYTES: usize = 32 * 1024 * 1024;
/// What a question takes at least, in bytes: that bounds their number.
const MIN_QUESTION_BYTES: usize = MAX_QUESTION_BYTES / MAX_UPCALLS_PER_FOOT;

/// The open questions of one call or request by their ids. They are withdrawn when it ends.
#[derive(Debug, Default)]
pub(super) struct Questions(BTreeMap<String, Question>);

#[derive(Debug)]
struct Question {
    /// Of the connection over which it was asked last: its answer goes there.
    epoch: u64,
    /// What the client said, while the foot is away or has not asked again.
    answer: Option<UpcallResult>,
    _withdraw: DropGuard,
    room: OwnedSemaphorePermit,
}

/// A call or request that runs on the foot, as far as questions and notifications go.
struct Host<'a> {
    client: Option<&'a Arc<dyn McpClient>>,
    clock: &'a CallClock,
    cancel: &'a CancellationToken,
    questions: &'a mut Questions,
}

/// What to do about an `upcall`.
pub(super) enum Asked {
    /// Answer it.
    Answered(UpcallResult),
    /// Spawn [`Asking::run`].
    Begun(Asking),
    /// Nothing: it is known and waits for its client, or it came too late.
    Waits,
}

/// A question on its way to a client.
pub(super) struct Asking {
    foot: Arc<Foot>,
    client: Arc<dyn McpClient>,
    clock: CallClock,
    cancel: CancellationToken,
    withdrawn: CancellationToken,
    upcall: Upcall,
}

impl State {
    fn host(&mut self, call: &CallId) -> Option<Host<'_>> {
        if let Some(pending) = self.pending.get_mut(call) {
            let (ctx, questions) = (&pending.ctx, &mut pending.questions);
            return Some(Host { client: ctx.client.as_ref(), clock: &ctx.clock, cancel: &ctx.cancel, questions });
        }
        let request = self.requests.get_mut(call)?;
        let (asker, questions) = (&*request.asker, &mut request.questions);
        Some(Host { client: asker.client.as_ref(), clock: &asker.clock, cancel: &asker.cancel, questions })
    }
}

impl Foot {
    /// Takes a question of one of the foot's servers.
    pub(super) fn question(self: &Arc<Self>, epoch: u64, upcall: Upcall) -> Asked {
        let mut state = self.state.lock();
        if state.epoch != epoch {
            return Asked::Waits;
        }
        let Some(Host { client, clock, cancel, questions }) = state.host(&upcall.call) else {
            return Asked::Answered(answer(&upcall.call, &upcall.id, declined(&upcall.method)));
        };
        if let Some(known) = questions.0.get_mut(&upcall.id) {
            // Asked again over another connection.
            known.epoch = epoch;
            return match known.answer.take() {
                Some(answer) => {
                    questions.0.remove(&upcall.id);
                    Asked::Answered(answer)
                }
                None => Asked::Waits,
            };
        }
        let Some(client) = client.cloned() else {
            return Asked::Answered(answer(&upcall.call, &upcall.id, declined(&upcall.method)));
        };
        let bytes = upcall.params.get().len().max(MIN_QUESTION_BYTES);
        let room = self.questions.clone().try_acquire_many_owned(u32::try_from(bytes).unwrap_or(u32::MAX));
        let Ok(room) = room else {
            let error = RpcError::new(codes::INTERNAL_ERROR, "the foot asks too much at a time");
            return Asked::Answered(answer(&upcall.call, &upcall.id, Err(error)));
        };
        let withdrawn = CancellationToken::new();
        let (clock, cancel) = (clock.clone(), cancel.clone());
        let question = Question { epoch, answer: None, _withdraw: withdrawn.clone().drop_guard(), room };
        questions.0.insert(upcall.id.clone(), question);
        drop(state);
        Asked::Begun(Asking { foot: self.clone(), client, clock, cancel, withdrawn, upcall })
    }

    /// The foot wants an answer no more.
    pub(super) fn withdraw_question(&self, epoch: u64, call: &CallId, id: &str) {
        let mut state = self.state.lock();
        if state.epoch == epoch
            && let Some(host) = state.host(call)
        {
            host.questions.0.remove(id);
        }
    }

    /// Tells the client of a call or request something.
    pub(super) fn tell_client(&self, epoch: u64, call: &CallId, method: &str, params: Raw) {
        let mut state = self.state.lock();
        let host = if state.epoch == epoch { state.host(call) } else { None };
        let client = host.and_then(|host| host.client.cloned());
        drop(state);
        if let Some(client) = client {
            client.notify(method, params);
        }
    }

    /// The client has answered. Whoever asked and went away gets the answer when it asks again.
    fn answered(&self, call: &CallId, id: &str, said: Result<Raw, RpcError>) {
        let said = answer(call, id, said);
        let mut state = self.state.lock();
        let here = (state.link == Link::Open).then_some(state.epoch);
        let Some(Host { questions, .. }) = state.host(call) else { return };
        let Some(question) = questions.0.get_mut(id) else { return };
        if here != Some(question.epoch) {
            question.answer = Some(said);
        } else if let Some(Question { room, .. }) = questions.0.remove(id) {
            state.outbox.answer_question(said, room);
        }
    }
}

impl Asking {
    /// Waits for the client. While it does, the call is not idle.
    pub(super) async fn run(self) {
        let Self { foot, client, clock, cancel, withdrawn, upcall } = self;
        let Upcall { call, id, method, params, timeout_ms } = upcall;
        let patience = Duration::from_millis(timeout_ms).min(clock.left());
        let failed = |why: &str| Err(RpcError::new(codes::INTERNAL_ERROR, why));
        let said = tokio::select! {
            biased;
            () = withdrawn.cancelled() => return,
            () = cancel.cancelled() => failed("the call was cancelled"),
            said = clock.awake_during(client.request(&method, params)) => said,
            () = tokio::time::sleep(patience) => failed("the client did not answer in time"),
        };
        foot.answered(&call, &id, said);
    }
}

/// The answer to a question.
pub(super) fn answer(call: &CallId, id: &str, said: Result<Raw, RpcError>) -> UpcallResult {
    let (result, error) = match said {
        Ok(result) => (Some(result), None),
        Err(error) => (None, to_raw_value(&error).ok()),
    };
    UpcallResult { call: call.clone(), id: id.to_owned(), result, error }
}
