//! Requests of MCP to the local servers of a foot: anything but calls of tools. One belongs to the connection that it went
//! out on, and fails with it.

use std::sync::Arc;
use std::time::Duration;

use footbridge_mcp::RpcError;
use footbridge_shared::id::{CallId, EntryName};
use footbridge_shared::limits::{BUSY_RETRY_AFTER_MS, MAX_MESSAGE_BYTES};
use footbridge_shared::message::{Caller, CallerClient, HubToFoot, Raw, Request as Message, Response};
use footbridge_shared::{ErrorCode, Outcome};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::sync::CancellationToken;

use super::call_frame::CallFrame;
use super::config::millis;
use super::foot::{Foot, Link, cancel};
use super::parts::Incoming;
use super::questions::Questions;
use crate::clock::random_id;
use crate::domain::call::{CallClock, CallContext, Expired};
use crate::domain::failure::Failure;
use crate::domain::mcp::{McpClient, rpc_error};

/// Requests that one foot may have at a time.
const MAX_REQUESTS: usize = 256;

/// What a request ends with.
pub(super) type Answer = Result<Raw, RpcError>;

/// In whose name a request is made, and how long it may take.
#[derive(Clone)]
pub(super) struct Asker {
    caller: Caller,
    pub(super) clock: CallClock,
    pub(super) cancel: CancellationToken,
    pub(super) client: Option<Arc<dyn McpClient>>,
}

impl Asker {
    /// Whoever made that call.
    pub(super) fn of(ctx: &CallContext) -> Self {
        let CallContext { clock, cancel, client, .. } = ctx;
        Self { caller: caller(ctx), clock: clock.clone(), cancel: cancel.clone(), client: client.clone() }
    }

    /// The hub, for itself: in the name of the foot's owner.
    pub(super) fn hub(foot: &Foot, time: Duration) -> Self {
        let caller = Caller { subject: foot.owner.clone(), process: None, client: None };
        Self { caller, clock: CallClock::start(time, time), cancel: CancellationToken::new(), client: None }
    }
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker").field("caller", &self.caller).finish_non_exhaustive()
    }
}

/// Who calls, for a foot.
pub(super) fn caller(ctx: &CallContext) -> Caller {
    let client = |client: &Arc<dyn McpClient>| CallerClient {
        protocol: client.version().to_string(),
        capabilities: client.capabilities().clone(),
        session: client.session().map(str::to_owned),
    };
    Caller {
        subject: ctx.caller.subject.clone(),
        process: ctx.caller.process.clone(),
        client: ctx.client.as_ref().map(client).map(Box::new),
    }
}

/// A request that a foot has, or is about to have.
#[derive(Debug)]
pub(super) struct Request {
    frame: Arc<CallFrame>,
    pub(super) asker: Arc<Asker>,
    reply: oneshot::Sender<Answer>,
    /// What is here of an answer that comes in parts.
    pub(super) parts: Option<Box<Incoming>>,
    pub(super) questions: Questions,
    /// What its frame takes of the foot's room, until it ends.
    _room: OwnedSemaphorePermit,
}

/// The waiting side of a request. Dropped before the end, it takes the request back.
struct Waiting<'a> {
    foot: &'a Foot,
    call: CallId,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.foot.state.lock();
        let Some(request) = state.requests.remove(&self.call) else { return };
        if !request.frame.withdraw() && state.link == Link::Open {
            state.outbox.control(cancel(&self.call));
        }
    }
}

impl Foot {
    /// Asks one of the foot's servers. Dropped, the request is taken back.
    ///
    /// # Errors
    /// The server's own, or the hub's: the foot or its server is not here or goes away, has enough to do, does not answer
    /// in time, or answers what is no answer.
    pub(super) async fn ask(&self, server: &EntryName, method: &str, params: Raw, asker: Asker) -> Answer {
        let asker = Arc::new(asker);
        let (call, reply) = self.send(server, method, params, asker.clone()).map_err(|failure| rpc_error(&failure))?;
        let _waiting = Waiting { foot: self, call };
        let failure = tokio::select! {
            biased;
            answer = reply => match answer {
                Ok(answer) => return answer,
                Err(_) => unavailable(server, "the connection to it broke before it answered"),
            },
            () = asker.cancel.cancelled() => Failure::new(
                ErrorCode::Cancelled,
                Outcome::Unknown,
                "the request was cancelled",
            ),
            expired = asker.clock.expired() => late(server, expired),
        };
        Err(rpc_error(&failure))
    }

    fn send(
        &self,
        server: &EntryName,
        method: &str,
        params: Raw,
        asker: Arc<Asker>,
    ) -> Result<(CallId, oneshot::Receiver<Answer>), Failure> {
        let call = CallId::parse(&random_id())
            .map_err(|error| Failure::not_run(ErrorCode::Internal, "no request id could be made").cause(error))?;
        let message = Message {
            call: call.clone(),
            server: server.to_string(),
            method: method.to_owned(),
            params,
            deadline_ms: millis(asker.clock.left()),
            sent_ms: self.node.now_ms(),
            caller: asker.caller.clone(),
        };
        let text = HubToFoot::from(message).encode();
        if text.len() > MAX_MESSAGE_BYTES {
            let message = format!("the request has {} bytes, the limit is {MAX_MESSAGE_BYTES}", text.len());
            return Err(Failure::not_run(ErrorCode::PayloadTooLarge, message));
        }
        let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let frame = Arc::new(CallFrame::new(&call, text));
        let (reply, answer) = oneshot::channel();
        let mut state = self.state.lock();
        if !state.share.admits(&self.owner, &asker.caller.subject) {
            return Err(Failure::not_run(ErrorCode::NotFound, format!("there is no server `{server}` here")));
        }
        if state.link != Link::Open || !state.servers.contains_key(server) {
            return Err(unavailable(server, "it is not connected"));
        }
        let busy = || {
            Failure::not_run(ErrorCode::FootBusy, format!("the foot `{}` has enough to do", self.name))
                .retry_after_ms(BUSY_RETRY_AFTER_MS)
        };
        if state.requests.len() >= MAX_REQUESTS {
            return Err(busy());
        }
        let room = self.room.clone().try_acquire_many_owned(bytes).map_err(|_| busy())?;
        state.outbox.call(frame.clone()).map_err(|_| busy())?;
        let questions = Questions::default();
        state.requests.insert(call.clone(), Request { frame, asker, reply, parts: None, questions, _room: room });
        Ok((call, answer))
    }

    /// The end of a request, as the foot tells it. `false`: nobody waits for it.
    pub(super) fn responded(&self, epoch: u64, call: &CallId, answer: Answer) -> bool {
        let mut state = self.state.lock();
        let request = if state.epoch == epoch { state.requests.remove(call) } else { None };
        drop(state);
        request.map(|request| request.reply.send(answer)).is_some()
    }
}

/// What a `response` says.
pub(super) fn answer_of(response: Response) -> Answer {
    match response {
        Response { result: Some(result), error: None, .. } => Ok(result),
        Response { result: None, error: Some(error), .. } => {
            Err(serde_json::from_str(error.get()).unwrap_or_else(|_| unreadable("its error is none of JSON-RPC")))
        }
        Response { .. } => Err(unreadable("it is either a result or an error")),
    }
}

/// The answer cannot be used.
pub(super) fn unreadable(why: &str) -> RpcError {
    let message = format!("the answer of the server cannot be read: {why}");
    rpc_error(&Failure::new(ErrorCode::BadAnswer, Outcome::Unknown, message))
}

/// The server is not there, or not any more.
pub(super) fn unavailable(server: &EntryName, why: &str) -> Failure {
    let message = format!("the MCP server `{server}` cannot be asked: {why}");
    Failure::new(ErrorCode::ServerUnavailable, Outcome::Unknown, message)
}

fn late(server: &EntryName, expired: Expired) -> Failure {
    let (code, how) = match expired {
        Expired::Idle(idle) => (ErrorCode::Timeout, format!("within {idle:?}")),
        Expired::Hard => (ErrorCode::DeadlineExceeded, "in time".to_owned()),
    };
    let message = format!("the MCP server `{server}` did not answer {how}");
    Failure::new(code, Outcome::Unknown, message)
}
