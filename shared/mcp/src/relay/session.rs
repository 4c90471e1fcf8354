//! The session that a relayed client opened, and how to open it again.

use parking_lot::Mutex;
use serde_json::value::RawValue;

use crate::fields::read_field;
use crate::message::Message;
use crate::streamable::Speech;

#[derive(Default)]
pub(super) struct Session {
    state: Mutex<State>,
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// The client's `initialize`, once it was answered.
    hello: Option<Message>,
    speech: Speech,
    listens: bool,
}

impl Session {
    /// It is open.
    pub(super) fn begin(&self, hello: &Message, result: &RawValue) {
        let version = read_field::<String>(result, "protocolVersion");
        let mut state = self.state.lock();
        state.hello = Some(hello.clone());
        state.speech = version.map(|version| Speech::named(&version)).unwrap_or_default();
    }

    /// What opened it.
    pub(super) fn hello(&self) -> Option<Message> {
        self.state.lock().hello.clone()
    }

    /// How is spoken in it.
    pub(super) fn speech(&self) -> Speech {
        self.state.lock().speech.clone()
    }

    /// Whether to follow the server's own stream now: in a session, and once.
    pub(super) fn may_listen(&self) -> bool {
        let mut state = self.state.lock();
        state.hello.is_some() && !std::mem::replace(&mut state.listens, true)
    }

    /// Held by whoever opens it again.
    pub(super) async fn renewing(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.renewing.lock().await
    }
}
