//! Requests that wait for their client, which has no session: it is answered what is asked, with a ticket, and comes again
//! with the ticket and its answers. The very request goes on then.

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use footbridge_mcp::{Fields, Raw, RpcError, codes};
use footbridge_shared::id::Subject;
use footbridge_shared::{ErrorCode, Outcome};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::client::{Ask, Client, MAX_ASKS};
use super::peer::{View, rpc_error};
use super::work::Work;
use crate::clock::random_id;
use crate::domain::failure::Failure;
use crate::domain::scope::Scope;

/// Tickets of one hub.
const MAX_TICKETS: usize = 2_000;
/// Of these, those of one subject.
const MAX_TICKETS_OF_A_SUBJECT: usize = 64;
/// How long a ticket is good. The request that waits has its own limits, which may be shorter.
const TICKET_LIFE: Duration = Duration::from_secs(15 * 60);
/// Bytes of the questions of one request that are open at once: a question may show a picture.
const MAX_QUESTION_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of the questions of all tickets of one subject.
const MAX_QUESTION_BYTES_OF_A_SUBJECT: usize = 64 * 1024 * 1024;
/// Bytes of the questions of all tickets.
const MAX_QUESTION_BYTES_OF_ALL: usize = 256 * 1024 * 1024;
/// What tickets begin with, before what is random of the process that made them: other states are those of servers, which may
/// be hubs themselves, and go to them.
const PREFIX: &str = "footbridge-ticket:";

/// What a request is about: a ticket is good for the same only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct About {
    pub(super) scope: Arc<Scope>,
    pub(super) subject: Subject,
    pub(super) view: View,
    pub(super) method: String,
    /// A digest of the name of the tool, prompt or resource, which may be long.
    pub(super) name: Option<blake3::Hash>,
}

/// A request that its client can be asked because of.
pub(super) struct Asked {
    pub(super) work: Work<Result<Raw, RpcError>>,
    pub(super) client: Arc<Client>,
    pub(super) asks: mpsc::Receiver<Ask>,
    /// Questions that are open, by the name that the client was given for them.
    pub(super) open: Vec<(String, Ask)>,
    /// Questions so far.
    pub(super) count: usize,
    /// Fires with the token that it began with.
    pub(super) token: CancellationToken,
}

/// A request that waits for its client.
struct Ticket {
    about: About,
    /// Behind a lock because what runs may not be shared; it is never waited for.
    asked: Mutex<Asked>,
    until: Instant,
    /// Fires with the token of whoever it was made for.
    token: CancellationToken,
    /// Of its questions.
    bytes: usize,
}

impl Ticket {
    fn is_good(&self) -> bool {
        Instant::now() < self.until && !self.token.is_cancelled()
    }
}

/// The tickets.
pub(super) struct Tickets {
    prefix: String,
    waiting: DashMap<String, Ticket>,
    closed: CancellationToken,
}

impl Default for Tickets {
    fn default() -> Self {
        Self { prefix: format!("{PREFIX}{}:", random_id()), waiting: DashMap::new(), closed: CancellationToken::new() }
    }
}

impl Tickets {
    /// Whether a state is a ticket of this hub.
    pub(super) fn is_ticket(&self, state: &str) -> bool {
        state.starts_with(&self.prefix)
    }

    /// Takes the request behind a ticket. Who it is not for is told what everybody is told of one that is not there.
    pub(super) fn take(&self, state: &str, about: &About) -> Option<Asked> {
        let taken = self.waiting.remove_if(state, |_, ticket| ticket.about == *about && ticket.is_good());
        taken.map(|(_, ticket)| ticket.asked.into_inner())
    }

    fn put(&self, about: About, asked: Asked) -> Result<String, RpcError> {
        let bytes = asked.bytes();
        let (mut all_bytes, mut own, mut own_bytes) = (bytes, 0, bytes);
        for ticket in &self.waiting {
            all_bytes += ticket.bytes;
            if ticket.about.subject == about.subject {
                own += 1;
                own_bytes += ticket.bytes;
            }
        }
        if self.waiting.len() >= MAX_TICKETS
            || own >= MAX_TICKETS_OF_A_SUBJECT
            || own_bytes > MAX_QUESTION_BYTES_OF_A_SUBJECT
            || all_bytes > MAX_QUESTION_BYTES_OF_ALL
        {
            // It began, and is cancelled now.
            let failure =
                Failure::new(ErrorCode::Overloaded, Outcome::Unknown, "too many requests wait for their clients");
            return Err(rpc_error(&failure.hint("answer those that wait, or let them end")));
        }
        let state = format!("{}{}", self.prefix, random_id());
        let (until, token) = (Instant::now() + TICKET_LIFE, asked.token.clone());
        self.waiting.insert(state.clone(), Ticket { about, asked: Mutex::new(asked), until, token, bytes });
        if self.closed.is_cancelled() {
            self.waiting.remove(&state);
            return Err(rpc_error(&Failure::new(
                ErrorCode::Draining,
                Outcome::Unknown,
                "the hub is going down, and its client could not answer any more",
            )));
        }
        Ok(state)
    }

    /// Lets go of those that are no good any more: their requests are cancelled.
    pub(super) fn sweep(&self) {
        self.waiting.retain(|_, ticket| ticket.is_good());
    }

    /// Lets go of all, and of those that come: nobody can answer any more.
    pub(super) fn close(&self) {
        self.closed.cancel();
        self.waiting.clear();
    }
}

/// Runs a request until it has a result or a question. With a question the answer is one that names it, and the request
/// waits.
pub(super) async fn result_or_question(
    tickets: &Tickets,
    about: About,
    mut asked: Asked,
) -> Option<Result<Raw, RpcError>> {
    while asked.open.is_empty() {
        tokio::select! {
            biased;
            outcome = asked.work.outcome() => return outcome,
            Some(ask) = asked.asks.recv() => asked.admit(ask),
        }
        // What is asked at the same time is told at the same time.
        while let Ok(ask) = asked.asks.try_recv() {
            asked.admit(ask);
        }
    }
    // While nobody waits for it here it runs elsewhere: its limits go on.
    asked.work.detach();
    let mut requests = Fields::new();
    for (key, ask) in &asked.open {
        let mut request = Fields::new();
        request.set_value("method", &ask.method);
        request.set("params", ask.params.clone());
        requests.set(key, request.to_raw());
    }
    Some(tickets.put(about, asked).map(|state| {
        let mut result = Fields::new();
        result.set_value("resultType", "input_required");
        result.set("inputRequests", requests.to_raw());
        result.set_value("requestState", &state);
        result.to_raw()
    }))
}

impl Asked {
    /// A request that begins.
    pub(super) fn begin(
        work: Work<Result<Raw, RpcError>>,
        client: Arc<Client>,
        asks: mpsc::Receiver<Ask>,
        token: CancellationToken,
    ) -> Self {
        Self { work, client, asks, open: Vec::new(), count: 0, token }
    }

    /// Of the questions that are open.
    fn bytes(&self) -> usize {
        self.open.iter().map(|(_, ask)| ask.params.get().len()).sum()
    }

    fn admit(&mut self, ask: Ask) {
        // Whoever asked may not want to know any more.
        if ask.reply.is_closed() || self.open.len() >= MAX_ASKS {
            return;
        }
        if self.bytes() + ask.params.get().len() > MAX_QUESTION_BYTES {
            let error = RpcError::new(codes::INTERNAL_ERROR, "the client is asked too many things at once");
            let _ = ask.reply.send(Err(error));
            return;
        }
        self.count += 1;
        self.open.push((format!("input_{}", self.count), ask));
    }

    /// Hands on what the client answered. What it did not answer stays open.
    pub(super) fn answer(&mut self, responses: &Fields) {
        for (key, ask) in std::mem::take(&mut self.open) {
            match responses.get(&key) {
                Some(response) => reply(ask.reply, response.clone()),
                None if ask.reply.is_closed() => {}
                None => self.open.push((key, ask)),
            }
        }
    }
}

fn reply(to: oneshot::Sender<Result<Raw, RpcError>>, response: Raw) {
    // Whoever asked may be gone: a limit was reached.
    let _ = to.send(Ok(response));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_of_another_hub_are_none_of_this_one() {
        let (ours, theirs) = (Tickets::default(), Tickets::default());
        let ticket = format!("{}{}", ours.prefix, random_id());
        assert!(ours.is_ticket(&ticket) && !theirs.is_ticket(&ticket));
        assert!(theirs.prefix.starts_with(PREFIX) && !ours.is_ticket(PREFIX));
    }
}
