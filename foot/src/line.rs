//! The way to the hub for what is said beside calls and their answers: what local servers tell, what they ask the clients of
//! calls, and answers to the hub's own requests. It outlives connections.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use footbridge_mcp::RpcError;
use footbridge_shared::id::CallId;
use footbridge_shared::limits::MAX_UPCALLS_PER_FOOT;
use footbridge_shared::message::{FootToHub, Notify, Raw, Response, Upcall, UpcallCancel, UpcallResult};
use tokio::sync::oneshot;

use crate::clock::millis;

/// Notifications that wait to be sent. What comes beyond is dropped, the newest first: a server that floods costs what it says
/// after.
const MAX_NOTES: usize = 256;
/// What they may have in bytes of JSON, all together. One alone may have more: else it could never be told.
const MAX_NOTE_BYTES: usize = 4 * 1024 * 1024;

/// Both ends of the way. Clones are one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// There is something to send.
    news: tokio::sync::Notify,
}

#[derive(Debug, Default)]
struct State {
    /// A hub is connected.
    up: bool,
    notes: VecDeque<Notify>,
    /// What the notes have in bytes.
    note_bytes: usize,
    /// Notes that were dropped since the last were sent.
    dropped: usize,
    /// Answers to requests.
    answers: VecDeque<Response>,
    /// Questions that the hub may know, and that nobody wants answered any more.
    withdrawn: VecDeque<UpcallCancel>,
    questions: BTreeMap<u64, Question>,
    asked: u64,
}

/// A question that is not answered yet.
#[derive(Debug)]
struct Question {
    message: Upcall,
    /// The hub was told of it on this connection.
    told: bool,
    /// The hub was told of it on some connection of the session.
    known: bool,
    answer: oneshot::Sender<Result<Raw, RpcError>>,
}

impl Line {
    /// Asks the client of a call. To lose this future is to withdraw the question. `None`: nobody can be asked, or the hub
    /// was away for too long.
    pub(crate) async fn ask(
        &self,
        call: &CallId,
        method: &str,
        params: Raw,
        within: Duration,
    ) -> Option<Result<Raw, RpcError>> {
        let (answer, answered) = oneshot::channel();
        let number = {
            let mut state = self.state();
            if !state.up || state.questions.len() >= MAX_UPCALLS_PER_FOOT {
                return None;
            }
            state.asked += 1;
            let number = state.asked;
            let message = Upcall {
                call: call.clone(),
                id: number.to_string(),
                method: method.to_owned(),
                params,
                timeout_ms: millis(within),
            };
            state.questions.insert(number, Question { message, told: false, known: false, answer });
            number
        };
        self.0.news.notify_one();
        let _open = Open { line: self, number };
        tokio::time::timeout(within, answered).await.ok()?.ok()
    }

    /// Tells something; it is lost where no hub is connected, and where there is no room.
    pub(crate) fn tell(&self, note: Notify) {
        let mut state = self.state();
        if !state.up {
            return;
        }
        let bytes = state.note_bytes + note.params.get().len();
        if !state.notes.is_empty() && (state.notes.len() >= MAX_NOTES || bytes > MAX_NOTE_BYTES) {
            state.dropped += 1;
            if state.dropped == 1 {
                // Once: where there is no room for one, there is none for hundreds.
                tracing::warn!(
                    server = note.server,
                    method = note.method,
                    "a notification of a server is dropped: the hub takes them slower than they come"
                );
            }
            return;
        }
        state.note_bytes = bytes;
        state.notes.push_back(note);
        drop(state);
        self.0.news.notify_one();
    }

    /// Answers a request of the hub; whoever serves requests bounds how many there are. A request does not outlive its
    /// connection, so nobody waits where no hub is connected.
    pub(crate) fn respond(&self, response: Response) {
        let mut state = self.state();
        if state.up {
            state.answers.push_back(response);
        }
        drop(state);
        self.0.news.notify_one();
    }

    /// The hub answered a question.
    pub(crate) fn answered(&self, result: UpcallResult) {
        let UpcallResult { call, id, result, error } = result;
        let question = {
            let mut state = self.state();
            let number = state.questions.iter().find(|(_, q)| q.message.id == id && q.message.call == call);
            let number = number.map(|(number, _)| *number);
            number.and_then(|number| state.questions.remove(&number))
        };
        let Some(question) = question else {
            tracing::debug!(%call, "an answer to what is no longer asked");
            return;
        };
        let answer = match (result, error) {
            (Some(result), _) => Ok(result),
            (None, error) => Err(error
                .and_then(|error| serde_json::from_str(error.get()).ok())
                .unwrap_or_else(|| RpcError::new(footbridge_mcp::codes::INTERNAL_ERROR, "the answer is empty"))),
        };
        // Whoever asked may have given up.
        let _ = question.answer.send(answer);
    }

    /// A hub is connected. Where the session goes on it is told of the open questions once more, under the same ids.
    pub(crate) fn connected(&self, resumed: bool) {
        if !resumed {
            self.abandon();
        }
        let mut state = self.state();
        state.up = true;
        state.questions.values_mut().for_each(|question| question.told = false);
        drop(state);
        self.0.news.notify_one();
    }

    /// No hub is connected any more. It may come back.
    pub(crate) fn disconnected(&self) {
        let mut state = self.state();
        state.up = false;
        state.forget_notes();
        state.answers.clear();
    }

    /// The hub was away for longer than anybody waits: what was asked is answered by nobody.
    pub(crate) fn abandon(&self) {
        let mut state = self.state();
        state.forget_notes();
        state.answers.clear();
        state.withdrawn.clear();
        state.questions.clear();
    }

    /// Completes when there is something to send. Losing this future loses nothing.
    pub(crate) async fn news(&self) {
        loop {
            let notified = self.0.news.notified();
            if self.state().has_news() {
                return;
            }
            notified.await;
        }
    }

    /// What is to be sent now.
    pub(crate) fn take(&self) -> Vec<FootToHub> {
        let mut state = self.state();
        if state.dropped > 0 {
            tracing::warn!(dropped = state.dropped, "notifications of servers were dropped");
        }
        (state.note_bytes, state.dropped) = (0, 0);
        let State { notes, answers, withdrawn, questions, .. } = &mut *state;
        let mut messages: Vec<FootToHub> = notes.drain(..).map(FootToHub::from).collect();
        for question in questions.values_mut().filter(|question| !question.told) {
            (question.told, question.known) = (true, true);
            messages.push(question.message.clone().into());
        }
        messages.extend(withdrawn.drain(..).map(FootToHub::from));
        messages.extend(answers.drain(..).map(FootToHub::from));
        messages
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn forget_notes(&mut self) {
        self.notes.clear();
        (self.note_bytes, self.dropped) = (0, 0);
    }

    fn has_news(&self) -> bool {
        self.up
            && (!self.notes.is_empty()
                || !self.answers.is_empty()
                || !self.withdrawn.is_empty()
                || self.questions.values().any(|question| !question.told))
    }
}

/// A question that somebody waits for.
struct Open<'a> {
    line: &'a Line,
    number: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut state = self.line.state();
        // It was answered, or given up with all others.
        let Some(question) = state.questions.remove(&self.number) else { return };
        if question.known {
            let Upcall { call, id, .. } = question.message;
            state.withdrawn.push_back(UpcallCancel { call, id });
            drop(state);
            self.line.0.news.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn said(line: &Line) -> Vec<Value> {
        line.take().iter().map(|message| serde_json::from_str(&message.encode()).unwrap()).collect()
    }

    fn call() -> CallId {
        CallId::parse("c-1").unwrap()
    }

    fn params() -> Raw {
        crate::tools::raw(&json!({"message": "sure?"}))
    }

    async fn ask(line: &Line) -> Option<Value> {
        let answer = line.ask(&call(), "elicitation/create", params(), Duration::from_secs(60)).await?;
        Some(answer.map_or_else(|error| json!(error), |raw| serde_json::from_str(raw.get()).unwrap()))
    }

    fn answer(id: &Value, result: Value) -> UpcallResult {
        serde_json::from_value(json!({"call": "c-1", "id": id, "result": result})).unwrap()
    }

    #[tokio::test]
    async fn a_question_is_asked_again_where_the_session_goes_on_and_answered_once() {
        let line = Line::default();
        assert_eq!(ask(&line).await, None, "there is no hub");
        line.connected(false);
        let hub = async {
            line.news().await;
            let first = said(&line);
            assert_eq!((first.len(), &first[0]["type"], &first[0]["timeoutMs"]), (1, &json!("upcall"), &json!(60_000)));
            assert!(said(&line).is_empty(), "it is told once a connection");
            line.disconnected();
            assert!(said(&line).is_empty());
            line.connected(true);
            line.news().await;
            assert_eq!(said(&line), first);
            line.answered(answer(&json!("other"), json!({})));
            line.answered(answer(&first[0]["id"], json!({"action": "accept"})));
        };
        let (answer, ()) = tokio::join!(ask(&line), hub);
        assert_eq!(answer, Some(json!({"action": "accept"})));
        assert!(said(&line).is_empty(), "nothing is withdrawn that was answered");
    }

    #[tokio::test]
    async fn a_question_that_nobody_waits_for_is_withdrawn_and_a_lost_session_answers_none() {
        let line = Line::default();
        line.connected(false);
        tokio::select! {
            biased;
            _ = ask(&line) => panic!("nobody answers"),
            () = async { line.news().await; said(&line); } => {}
        }
        let withdrawn = said(&line);
        assert_eq!((withdrawn.len(), &withdrawn[0]["type"]), (1, &json!("upcallCancel")));

        let away = async {
            line.news().await;
            said(&line);
            line.disconnected();
        };
        tokio::select! {
            biased;
            _ = ask(&line) => panic!("nobody answers"),
            () = away => {}
        }
        assert!(said(&line).iter().all(|message| message["type"] == "upcallCancel"), "it is told when the hub is back");
        line.connected(false);

        let lost = async {
            line.news().await;
            line.disconnected();
            line.connected(false);
        };
        let (answer, ()) = tokio::join!(ask(&line), lost);
        assert_eq!(answer, None);
    }

    #[test]
    fn notifications_are_bounded_and_lost_without_a_hub() {
        let line = Line::default();
        let note = || Notify {
            call: None,
            audience: None,
            server: "s".to_owned(),
            method: "notifications/message".to_owned(),
            params: params(),
        };
        line.tell(note());
        line.connected(false);
        assert!(said(&line).is_empty());
        for _ in 0..MAX_NOTES + 10 {
            line.tell(note());
        }
        assert_eq!(said(&line).len(), MAX_NOTES);

        let large = |bytes: usize| Notify { params: crate::tools::raw(&"x".repeat(bytes)), ..note() };
        line.tell(large(2 * MAX_NOTE_BYTES));
        line.tell(note());
        assert_eq!(said(&line).len(), 1, "one alone goes through");
        for _ in 0..4 {
            line.tell(large(MAX_NOTE_BYTES / 3));
        }
        assert_eq!(said(&line).len(), 2, "what is beyond the limit is dropped");
        line.tell(note());
        assert_eq!(said(&line).len(), 1, "and there is room again");
    }
}
