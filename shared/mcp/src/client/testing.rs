//! What tests of connections share: who owns the tasks, and who hears the server.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use footbridge_shared::message::Raw;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Events, Open, Preferred, Spawn, Tag};
use crate::error::RpcError;

pub(crate) fn raw(text: &str) -> Raw {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[derive(Default)]
pub(crate) struct Tasks(Mutex<JoinSet<()>>);

impl Tasks {
    /// Ends when all have ended.
    pub(crate) async fn join(&self) {
        let mut tasks = std::mem::take(&mut *self.0.lock());
        while tasks.join_next().await.is_some() {}
    }
}

impl Spawn for Tasks {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.lock().spawn(task);
    }
}

/// What a server said by itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Asked(Option<Tag>, String, Option<String>),
    Withdrawn(String),
    Told(Option<Tag>, String, Option<String>),
}

/// Tells the test what it hears. Answers `echo` with its parameters and refuses `refuse`; all else it leaves open.
pub(crate) struct Recorder(mpsc::UnboundedSender<Heard>);

impl Recorder {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Heard>) {
        let (tell, heard) = mpsc::unbounded_channel();
        (Self(tell), heard)
    }
}

struct Withdrawal(mpsc::UnboundedSender<Heard>, String);

impl Drop for Withdrawal {
    fn drop(&mut self) {
        let _ = self.0.send(Heard::Withdrawn(std::mem::take(&mut self.1)));
    }
}

#[async_trait]
impl Events for Recorder {
    async fn request(&self, tag: Option<Tag>, method: &str, params: Option<Raw>) -> Result<Raw, RpcError> {
        let text = params.as_ref().map(|params| params.get().to_owned());
        let _ = self.0.send(Heard::Asked(tag, method.to_owned(), text));
        match method {
            "echo" => Ok(params.unwrap_or_else(|| raw("{}"))),
            "refuse" => Err(RpcError::new(-1, "no")),
            _ => {
                let _withdrawal = Withdrawal(self.0.clone(), method.to_owned());
                std::future::pending().await
            }
        }
    }

    fn notification(&self, tag: Option<Tag>, method: &str, params: Option<Raw>) {
        let text = params.as_ref().map(|params| params.get().to_owned());
        let _ = self.0.send(Heard::Told(tag, method.to_owned(), text));
    }
}

/// How tests connect, and what the server says by itself.
pub(crate) fn open(preferred: Preferred) -> (Open, mpsc::UnboundedReceiver<Heard>, Arc<Tasks>) {
    let (recorder, heard) = Recorder::new();
    let tasks = Arc::new(Tasks::default());
    let open = Open {
        preferred,
        client_info: raw(r#"{"name":"test","version":"1"}"#),
        capabilities: raw(r#"{"roots":{}}"#),
        timeout: Duration::from_secs(60),
        events: Arc::new(recorder),
        spawn: Arc::clone(&tasks) as Arc<dyn Spawn>,
    };
    (open, heard, tasks)
}

/// Hears `all` that is told, and says how much of it came at most between two turns of its own.
pub(crate) async fn most_in_a_turn(heard: &mpsc::UnboundedReceiver<Heard>, all: usize) -> usize {
    let (mut last, mut most) = (0, 0);
    while last < all {
        tokio::task::yield_now().await;
        let now = heard.len();
        most = most.max(now - last);
        last = now;
    }
    most
}

/// More than a reader may take in one turn.
pub(crate) const TOO_MANY_IN_A_TURN: usize = 400;
