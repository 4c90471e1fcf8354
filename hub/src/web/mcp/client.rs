//! The MCP client behind a request: what of it reaches the client while it runs, and how the client can be asked.

use std::sync::{Arc, LazyLock, OnceLock, Weak};

use async_trait::async_trait;
use footbridge_mcp::{Fields, InputRequired, Raw, RpcError, Version, call_text, changes, codes};
use footbridge_shared::message::Stream as OutputStream;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::level::{Level, level_of};
use super::message::object;
use super::peer::{Peer, View};
use super::session::Session;
use super::stream::Stream;
use crate::dispatch::catalog::Resolution;
use crate::domain::call::{CallEvent, EventSink};
use crate::domain::mcp::{McpClient, McpServer, can_be_asked, declined};
use crate::domain::tool::Origin;

/// A question to a person.
const ELICITATION: &str = "elicitation/create";

/// Questions of one call that wait for its client at once.
pub(super) const MAX_ASKS: usize = 16;

static NO_CAPABILITIES: LazyLock<Raw> = LazyLock::new(|| object([]));

/// A question that the client is told of in the answer to its request.
pub(super) struct Ask {
    pub(super) method: String,
    pub(super) params: Raw,
    pub(super) reply: oneshot::Sender<Result<Raw, RpcError>>,
}

/// How a client is asked.
pub(super) enum Way {
    /// Not at all.
    Nobody,
    /// By a request on the stream of its own request.
    Session(Arc<Session>),
    /// By the answer to its request.
    Answer(mpsc::Sender<Ask>),
}

/// Whose question it is.
pub(super) enum Asking {
    /// That of whatever is behind this tool.
    Tool(String),
    /// This server's.
    Server(String),
}

/// The client of one request.
pub(super) struct Client {
    peer: Weak<Peer>,
    version: Version,
    way: Way,
    /// Its session, whether or not it can be asked there.
    session: Option<Arc<Session>>,
    /// What it can do, where that came with the request.
    capabilities: Option<Raw>,
    /// From which level on it wants log messages, where that came with the request.
    level: Option<Level>,
    /// Under which progress is told, and how far it was.
    progress: Mutex<Option<(Raw, Option<f64>)>>,
    asking: OnceLock<Asking>,
    stream: Mutex<Arc<Stream>>,
}

/// What a request itself says of its client.
#[derive(Default)]
pub(super) struct Stated {
    pub(super) capabilities: Option<Raw>,
    pub(super) level: Option<Level>,
    pub(super) progress: Option<Raw>,
}

impl Client {
    pub(super) fn new(peer: &Arc<Peer>, way: Way, stated: Stated, stream: Arc<Stream>) -> Arc<Self> {
        Arc::new(Self {
            peer: Arc::downgrade(peer),
            version: peer.version,
            way,
            session: peer.session.clone(),
            capabilities: stated.capabilities,
            level: stated.level,
            progress: Mutex::new(stated.progress.map(|token| (token, None))),
            asking: OnceLock::new(),
            stream: Mutex::new(stream),
        })
    }

    /// Whether it wants to hear of what the call says.
    fn listens(&self) -> bool {
        self.progress.lock().is_some() || self.wants_output()
    }

    /// Whether it may come to listen while the call runs: with the answers to what it is asked.
    pub(super) fn may_listen(&self) -> bool {
        let capabilities = McpClient::capabilities(self).get();
        self.listens() || (matches!(self.way, Way::Answer(_)) && capabilities != NO_CAPABILITIES.get())
    }

    /// From now on what it is told goes here, and progress under this token.
    pub(super) fn attach(&self, stream: Arc<Stream>, progress: Option<Raw>) {
        *self.stream.lock() = stream;
        *self.progress.lock() = progress.map(|token| (token, None));
    }

    /// Says whose questions it will be asked.
    pub(super) fn asked_by(&self, asking: Asking) {
        // The first one counts: a request has one server.
        let _ = self.asking.set(asking);
    }

    fn stream(&self) -> Arc<Stream> {
        self.stream.lock().clone()
    }

    /// What a call prints is told only to whoever said that they want to hear of the level `info`.
    fn wants_output(&self) -> bool {
        let level = match &self.session {
            Some(session) => session.level(),
            None => self.level,
        };
        level.is_some_and(|level| level <= Level::Info)
    }

    /// Without a word of the client a server in a session tells what it wants; without a session nothing is told unasked.
    fn wants_log(&self, params: &Raw) -> bool {
        let wanted = match &self.session {
            Some(session) => session.level(),
            None => match self.level {
                Some(level) => Some(level),
                None => return false,
            },
        };
        wanted.is_none_or(|wanted| level_of(params).is_none_or(|level| level >= wanted))
    }

    fn tell_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let mut params = Fields::new();
        {
            let mut place = self.progress.lock();
            let Some((token, last)) = place.as_mut() else { return };
            // It must rise. What does not is no news.
            if last.is_some_and(|last| progress <= last) {
                return;
            }
            *last = Some(progress);
            params.set("progressToken", token.clone());
        }
        params.set_value("progress", &number(progress));
        if let Some(total) = total {
            params.set_value("total", &number(total));
        }
        if let Some(message) = message {
            params.set_value("message", message);
        }
        self.stream().tell(call_text(None, "notifications/progress", Some(&params.to_raw())));
    }

    fn tell_output(&self, stream: OutputStream, data: &str) {
        if !self.wants_output() {
            return;
        }
        let logger = match stream {
            OutputStream::Stdout => "stdout",
            OutputStream::Stderr => "stderr",
        };
        let params = object([("level", "info".into()), ("logger", logger.into()), ("data", data.into())]);
        self.stream().tell(call_text(None, "notifications/message", Some(&params)));
    }

    /// In the view of everything a person must know who asks.
    async fn named(&self, method: &str, params: Raw) -> Raw {
        if method != ELICITATION {
            return params;
        }
        let Some(name) = self.asking_name().await else { return params };
        by_name(&name, method, params)
    }

    /// The same for a result by which a server without sessions asks itself.
    pub(super) async fn named_result(&self, result: Raw) -> Raw {
        let Some(asked) = InputRequired::of(&result) else { return result };
        let Some(name) = self.asking_name().await else { return result };
        asked.with_params(|method, params| by_name(&name, method, params))
    }

    async fn asking_name(&self) -> Option<String> {
        let peer = self.peer.upgrade()?;
        if peer.view != View::All {
            return None;
        }
        match self.asking.get()? {
            Asking::Server(name) => Some(name.clone()),
            Asking::Tool(tool) => {
                let servers = peer.servers().await.unwrap_or_default();
                let offers = |server: &&Arc<dyn McpServer>| {
                    server.tools().names.iter().any(|(_, public)| public.as_str() == tool)
                };
                let server = servers.iter().find(offers);
                if let Some(server) = server {
                    return Some(server.name().to_string());
                }
                let catalog = peer.state.dispatcher.catalog(&peer.scope, &peer.caller.subject).await.ok()?;
                match catalog.resolve(tool) {
                    Resolution::Tool(found) => Some(match &found.spec.origin {
                        Origin::Configured { entry, .. } => entry.to_string(),
                        Origin::Foot { foot, .. } => foot.to_string(),
                        Origin::BuiltIn => tool.clone(),
                    }),
                    _ => Some(tool.clone()),
                }
            }
        }
    }
}

/// What a person is asked, with the name of who asks.
fn by_name(name: &str, method: &str, params: Raw) -> Raw {
    if method != ELICITATION {
        return params;
    }
    let Some(mut fields) = Fields::of(&params) else { return params };
    let message = fields.read::<String>("message").unwrap_or_default();
    fields.set_value("message", &format!("{name}: {message}"));
    fields.to_raw()
}

/// A number as short as it can be written: what was whole stays whole.
fn number(number: f64) -> Value {
    /// Beyond it a double does not hold every whole number.
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < WHOLE {
        #[expect(clippy::cast_possible_truncation, reason = "whole, and within the range")]
        return Value::from(number as i64);
    }
    Value::from(number)
}

impl EventSink for Client {
    fn event(&self, event: CallEvent) {
        match event {
            CallEvent::Progress { progress, total, message } => {
                self.tell_progress(progress, total, message.as_deref());
            }
            CallEvent::Output { stream, data, .. } => self.tell_output(stream, &data),
        }
    }
}

#[async_trait]
impl McpClient for Client {
    fn version(&self) -> Version {
        self.version
    }

    fn capabilities(&self) -> &Raw {
        match (&self.way, &self.session, &self.capabilities) {
            (Way::Session(session), ..) => &session.capabilities,
            (_, None, Some(stated)) => stated,
            _ => &NO_CAPABILITIES,
        }
    }

    fn session(&self) -> Option<&str> {
        self.session.as_ref().map(|session| &*session.id)
    }

    fn ended(&self) -> Option<CancellationToken> {
        self.session.as_ref().map(|session| session.ended.clone())
    }

    async fn request(&self, method: &str, params: Raw) -> Result<Raw, RpcError> {
        if !can_be_asked(McpClient::capabilities(self), method, &params) {
            return declined(method);
        }
        let params = self.named(method, params).await;
        match &self.way {
            Way::Nobody => declined(method),
            Way::Session(session) => session.ask(&self.stream(), method, &params).await,
            Way::Answer(asks) => {
                let gone = || RpcError::new(codes::INTERNAL_ERROR, "the client has gone");
                let (reply, answer) = oneshot::channel();
                let ask = Ask { method: method.to_owned(), params, reply };
                asks.send(ask).await.map_err(|_| gone())?;
                answer.await.unwrap_or_else(|_| Err(gone()))
            }
        }
    }

    fn notify(&self, method: &str, params: Raw) {
        let wanted = match method {
            "notifications/message" => self.wants_log(&params),
            // Told to those who follow what changed, whatever call it was that changed it.
            changes::RESOURCE | changes::TOOLS | changes::RESOURCES | changes::PROMPTS => false,
            _ => true,
        };
        if wanted {
            self.stream().tell(call_text(None, method, Some(&params)));
        }
    }
}
