//! A foot that is played by hand.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signer as _, SigningKey};
use footbridge_shared::id::{CallId, SessionId};
use footbridge_shared::limits::BULK_BYTES;
use footbridge_shared::message::{Call, Credit, FootToHub, Hello, HubToFoot, InFlightState, Pong, ToolsAck, Welcome};
use footbridge_shared::part::{Part, PartsId};
use footbridge_shared::parts::{Assembly, Taken};
use footbridge_shared::proof::signed_bytes;
use futures::channel::mpsc;
use futures::{SinkExt as _, StreamExt as _};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::{Hub, principal, tool};
use crate::sources::feet::{Close, Frame, SocketError};

/// Who a foot says it is.
#[derive(Clone)]
pub(in super::super) struct Identity {
    pub(in super::super) key: SigningKey,
    pub(in super::super) name: String,
    pub(in super::super) instance: String,
}

impl Identity {
    /// The key is made from the name.
    pub(in super::super) fn new(name: &str) -> Self {
        Self::with_key(name, name)
    }

    pub(in super::super) fn with_key(name: &str, seed: &str) -> Self {
        let key = SigningKey::from_bytes(blake3::hash(seed.as_bytes()).as_bytes());
        Self { key, name: name.to_owned(), instance: "i1".to_owned() }
    }

    /// The same foot as a new process.
    pub(in super::super) fn restarted(&self) -> Self {
        Self { instance: format!("{}x", self.instance), ..self.clone() }
    }

    pub(in super::super) fn hello(&self, nonce: &str) -> Hello {
        let proof = self.key.sign(&signed_bytes(nonce));
        serde_json::from_value(json!({
            "proof": URL_SAFE_NO_PAD.encode(proof.to_bytes()),
            "foot": {
                "name": self.name, "id": URL_SAFE_NO_PAD.encode(self.key.verifying_key().to_bytes()),
                "instance": self.instance, "version": "1", "os": "linux", "arch": "x86_64", "hostname": "box",
            },
            "tenant": "acme", "project": "shop", "maxConcurrent": 64,
        }))
        .unwrap()
    }
}

/// The foot's end of a socket.
pub(in super::super) struct TestFoot {
    pub(in super::super) identity: Identity,
    pub(in super::super) to_hub: mpsc::Sender<Result<Frame, SocketError>>,
    pub(in super::super) from_hub: mpsc::Receiver<Frame>,
    pub(in super::super) session: Option<SessionId>,
    /// Leaves heartbeats unanswered.
    pub(in super::super) deaf: bool,
    /// Unfinished messages of the hub.
    pub(in super::super) parts: HashMap<PartsId, Assembly>,
}

/// What a foot hears.
#[derive(Debug)]
pub(in super::super) enum Heard {
    Message(HubToFoot),
    Closed(Close),
    End,
}

/// Hears a message of this type, or fails.
macro_rules! hear {
    ($foot:expr, $kind:ident) => {
        match $foot.hear().await {
            $crate::sources::feet::tests::harness::Heard::Message(footbridge_shared::message::HubToFoot::$kind(
                message,
            )) => message,
            other => panic!("{other:?} instead of {}", stringify!($kind)),
        }
    };
}
pub(in super::super) use hear;

impl TestFoot {
    /// Answers the challenge, and expects to be welcome.
    pub(in super::super) async fn greet(&mut self, change: impl FnOnce(&mut Hello)) -> Welcome {
        self.say_hello(change).await;
        let welcome = hear!(self, Welcome);
        self.session = Some(welcome.session.clone());
        welcome
    }

    /// Answers the challenge.
    pub(in super::super) async fn say_hello(&mut self, change: impl FnOnce(&mut Hello)) {
        let challenge = hear!(self, Challenge);
        let mut hello = self.identity.hello(&challenge.nonce);
        change(&mut hello);
        self.say(Box::new(hello)).await;
    }

    pub(in super::super) async fn say(&mut self, message: impl Into<FootToHub>) {
        self.say_text(&message.into().encode()).await;
    }

    pub(in super::super) async fn say_text(&mut self, text: &str) {
        self.say_frame(Frame::Text(text.to_owned().into())).await;
    }

    /// A frame to a hub that is gone is lost.
    pub(in super::super) async fn say_frame(&mut self, frame: Frame) {
        let _ = self.to_hub.send(Ok(frame)).await;
    }

    /// The next thing that is no heartbeat and no unfinished message. Bulk is returned at once.
    pub(in super::super) async fn hear(&mut self) -> Heard {
        loop {
            let (text, bulk) = match self.from_hub.next().await {
                None => return Heard::End,
                Some(Frame::Close(close)) => return Heard::Closed(close),
                Some(Frame::Text(text)) => {
                    let bytes = text.len();
                    (text, bytes)
                }
                Some(Frame::Binary(frame)) => {
                    let part = Part::decode(&frame).unwrap();
                    self.say(credit(part.id, frame.len())).await;
                    match self.parts.entry(part.id).or_default().take(&part, usize::MAX, |_| true) {
                        Taken::Whole(text) => {
                            self.parts.remove(&part.id);
                            (text.into(), 0)
                        }
                        Taken::Kept | Taken::Dropped => continue,
                        odd => panic!("{odd:?}"),
                    }
                }
                Some(other) => panic!("a hub does not send {other:?}"),
            };
            let message = HubToFoot::decode(std::str::from_utf8(&text).unwrap()).unwrap();
            if let Some(id) = message.call().and_then(CallId::to_bytes).filter(|_| bulk >= BULK_BYTES) {
                self.say(credit(id, bulk)).await;
            }
            match message {
                HubToFoot::Ping(ping) if !self.deaf => {
                    self.say(Pong { echo_ms: ping.sent_ms, sent_ms: 0 }).await;
                }
                HubToFoot::Ping(_) | HubToFoot::Pong(_) => {}
                message => return Heard::Message(message),
            }
        }
    }

    /// The code of the close, after whatever is said before it.
    pub(in super::super) async fn hear_close(&mut self) -> u16 {
        loop {
            match self.hear().await {
                Heard::Closed(close) => return close.code,
                Heard::Message(_) => {}
                Heard::End => panic!("the socket ended without a close"),
            }
        }
    }

    /// Offers simple tools and reads the answer.
    pub(in super::super) async fn offer(&mut self, revision: u64, names: &[&str]) -> ToolsAck {
        let upsert: Vec<Value> = names.iter().map(|name| tool(name)).collect();
        self.change(revision, json!(upsert), &[]).await
    }

    /// Changes what is offered and reads the answer.
    pub(in super::super) async fn change(&mut self, revision: u64, upsert: Value, remove: &[&str]) -> ToolsAck {
        let change = json!({"type": "tools", "revision": revision, "upsert": upsert, "remove": remove});
        self.say_text(&change.to_string()).await;
        hear!(self, ToolsAck)
    }

    /// Answers a call with one text.
    pub(in super::super) async fn answer(&mut self, call: &Call, text: &str) {
        let content = json!([{"type": "text", "text": text}]);
        self.say(footbridge_shared::message::CallResult {
            call: call.call.clone(),
            origin: call.origin.clone(),
            content: to_raw_value(&content).unwrap(),
            structured: None,
            is_error: false,
            meta: None,
            extra: None,
        })
        .await;
    }

    /// Comes back over a new socket: the same process, its session, and these calls.
    pub(in super::super) async fn resume(
        &self,
        hub: &Hub,
        owner: &str,
        calls: &[(&Call, InFlightState)],
    ) -> (Self, Welcome) {
        let mut foot = hub.dial(principal(owner), self.identity.clone());
        let session = self.session.clone().unwrap();
        let welcome = foot
            .greet(|hello| {
                hello.resume = Some(footbridge_shared::message::Resume { session });
                hello.in_flight = calls
                    .iter()
                    .map(|(call, state)| footbridge_shared::message::InFlight {
                        call: call.call.clone(),
                        digest: None,
                        state: *state,
                        origin: call.origin.clone(),
                    })
                    .collect();
            })
            .await;
        (foot, welcome)
    }

    /// Answers every call with its foot's name, the tool and the arguments, until the hub closes.
    pub(in super::super) async fn echo(mut self) {
        while let Heard::Message(message) = self.hear().await {
            if let HubToFoot::Call(call) = message {
                let text = format!("{} {} {}", self.identity.name, call.tool, call.arguments.get());
                self.answer(&call, &text).await;
            }
        }
    }
}

/// Returns bulk.
fn credit(id: PartsId, bytes: usize) -> Credit {
    Credit { call: CallId::from_bytes(id), bytes: bytes as u64, hold: false }
}
