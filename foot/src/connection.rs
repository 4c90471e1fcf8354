//! One connection: dial, prove who we are, be welcomed.

pub(crate) mod backoff;
pub(crate) mod tls;

use std::time::Duration;

use footbridge_shared::ErrorCode;
use footbridge_shared::limits::{
    CLOSE_DRAINING, CLOSE_NAME_TAKEN, CLOSE_REFUSED, CLOSE_SUPERSEDED, CLOSE_UNAUTHORIZED, HELLO_TIMEOUT,
    MAX_SOCKET_MESSAGE_BYTES,
};
use footbridge_shared::message::{FootToHub, Hello, HubToFoot, Pong, Welcome, WireError};
use footbridge_shared::version::FOOTBRIDGE_V1;
use futures::{SinkExt as _, StreamExt as _};
use http::{Response, StatusCode};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::ClientRequestBuilder;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, client_async_tls_with_config};

use crate::clock::{Clock as _, SystemClock, millis};
use crate::config::{FootConfig, HubUrl, Token, TokenSource};
use crate::error::FootError;

/// How long a connection may take up to the upgrade.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes that are gathered before they go out: enough to join small frames, little enough for a heartbeat to pass.
const WRITE_BUFFER_BYTES: usize = 16 * 1024;

/// The socket of a connection.
pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Why there is no connection, or no longer.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Nothing to be done without a person.
    Final(FootError),
    /// A newer process of this foot took over.
    Superseded,
    /// Try again.
    Lost {
        /// Why, for people.
        why: String,
        /// The hub asked for this wait.
        wait: Option<Duration>,
    },
}

impl Ended {
    pub(crate) fn lost(why: impl Into<String>) -> Self {
        Self::Lost { why: why.into(), wait: None }
    }

    /// What a close means, given the last `error` before it.
    pub(crate) fn closed(frame: Option<&CloseFrame>, error: Option<&WireError>, name: &str) -> Self {
        let reason = frame.map(|frame| frame.reason.as_str()).filter(|reason| !reason.is_empty());
        let message = error.map(|error| error.message.as_str()).or(reason).unwrap_or("it gives no reason");
        let owned = || crate::failure::shown(message);
        match frame.map(|frame| u16::from(frame.code)) {
            Some(CLOSE_UNAUTHORIZED) => Self::Final(FootError::Unauthorized(owned())),
            Some(CLOSE_REFUSED) => {
                let code = error.map_or(ErrorCode::Forbidden, |error| error.code);
                Self::Final(FootError::Refused { code, message: owned() })
            }
            Some(CLOSE_NAME_TAKEN) => Self::Final(FootError::NameTaken { name: name.to_owned(), message: owned() }),
            Some(CLOSE_SUPERSEDED) => Self::Superseded,
            Some(CLOSE_DRAINING) => Self::lost("the hub goes down"),
            // Not every proxy passes a close code on: what the hub said before counts, too.
            code => match error.and_then(|error| FootError::by_code(error.code, &owned(), name)) {
                Some(error) => Self::Final(error),
                None => Self::lost(match code {
                    Some(code) => format!("the hub closed the connection ({code}): {}", owned()),
                    None => format!("the connection ended: {}", owned()),
                }),
            },
        }
    }
}

/// What it takes to dial a hub.
pub(crate) struct Dialer {
    hub: HubUrl,
    token: TokenSource,
    name: String,
    connector: Connector,
}

/// A hub that wants to know who we are.
pub(crate) struct Challenged {
    socket: Socket,
    name: String,
    /// To be signed.
    pub(crate) nonce: String,
}

impl Dialer {
    pub(crate) fn new(config: &FootConfig) -> Result<Self, FootError> {
        let connector = if config.hub.is_tls() { tls::connector(config.ca.as_deref())? } else { Connector::Plain };
        let (hub, token) = (config.hub.clone(), config.token.clone());
        Ok(Self { hub, token, name: config.name.to_string(), connector })
    }

    /// Connects and waits for the challenge.
    pub(crate) async fn dial(&self) -> Result<Challenged, Ended> {
        let token = self.token().await?;
        let connected = timeout(CONNECT_TIMEOUT, self.connect(&token.bearer())).await;
        let mut socket = connected.map_err(|_| Ended::lost("the hub does not answer"))??;
        let challenge = expect(&mut socket, &self.name, |message| match message {
            HubToFoot::Challenge(challenge) => Some(challenge),
            _ => None,
        });
        let nonce = challenge.await?.nonce;
        Ok(Challenged { socket, name: self.name.clone(), nonce })
    }

    /// The token as it is now. Whatever its file lies on must not hold up the calls that go on meanwhile.
    async fn token(&self) -> Result<Token, Ended> {
        let source = self.token.clone();
        match tokio::task::spawn_blocking(move || source.read()).await {
            Ok(Ok(token)) => Ok(token),
            // A file that is being exchanged may be away for a moment.
            Ok(Err(error)) => Err(Ended::lost(error.to_string())),
            Err(broken) => Err(Ended::lost(broken.to_string())),
        }
    }

    async fn connect(&self, bearer: &str) -> Result<Socket, Ended> {
        let io = |error: std::io::Error| Ended::lost(format!("{} cannot be reached: {error}", self.hub));
        let stream = TcpStream::connect(self.hub.address()).await.map_err(io)?;
        // A name that should mean this machine may be made to mean another one.
        if !self.hub.is_tls() && !stream.peer_addr().map_err(io)?.ip().is_loopback() {
            return Err(Ended::lost(format!("{} leads to another machine and is not encrypted", self.hub)));
        }
        stream.set_nodelay(true).map_err(io)?;
        let uri = self.hub.socket().parse().map_err(|error| Ended::lost(format!("{}: {error}", self.hub)))?;
        let request = ClientRequestBuilder::new(uri)
            .with_header("Authorization", bearer)
            .with_header("User-Agent", concat!("footbridge-foot/", env!("CARGO_PKG_VERSION")))
            .with_sub_protocol(FOOTBRIDGE_V1);
        let config = WebSocketConfig::default()
            .write_buffer_size(WRITE_BUFFER_BYTES)
            .max_message_size(Some(MAX_SOCKET_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_SOCKET_MESSAGE_BYTES));
        let upgraded = client_async_tls_with_config(request, stream, Some(config), Some(self.connector.clone()));
        upgraded.await.map(|(socket, _)| socket).map_err(not_upgraded)
    }
}

impl Challenged {
    /// Says hello and waits for the welcome.
    pub(crate) async fn hello(mut self, hello: Hello) -> Result<(Socket, Welcome), Ended> {
        let frame = FootToHub::from(Box::new(hello)).encode();
        let sent = timeout(HELLO_TIMEOUT, self.socket.send(Message::text(frame))).await;
        sent.map_err(|_| Ended::lost("the hub does not take our hello"))?
            .map_err(|error| Ended::lost(error.to_string()))?;
        let welcome = expect(&mut self.socket, &self.name, |message| match message {
            HubToFoot::Welcome(welcome) => Some(welcome),
            _ => None,
        });
        let welcome = welcome.await?;
        Ok((self.socket, welcome))
    }

    /// Leaves without having said anything.
    pub(crate) async fn leave(mut self) {
        // Whether the hub hears it does not matter.
        let _ = timeout(HELLO_TIMEOUT, self.socket.close(None)).await;
    }
}

/// Waits for one message of the handshake.
async fn expect<T>(
    socket: &mut Socket,
    name: &str,
    wanted: impl Fn(HubToFoot) -> Option<T> + Send,
) -> Result<T, Ended> {
    let wait = async {
        let mut error: Option<WireError> = None;
        loop {
            let text = match socket.next().await {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(frame))) => return Err(Ended::closed(frame.as_ref(), error.as_ref(), name)),
                Some(Ok(_)) => continue,
                Some(Err(broken)) if error.is_none() => return Err(Ended::lost(broken.to_string())),
                Some(Err(_)) | None => return Err(Ended::closed(None, error.as_ref(), name)),
            };
            match HubToFoot::decode_frame(&text) {
                Err(malformed) => return Err(Ended::lost(format!("the hub does not speak our protocol: {malformed}"))),
                Ok(HubToFoot::Error(said)) => error = Some(said),
                Ok(HubToFoot::Superseded(_)) => return Err(Ended::Superseded),
                // The hub wants to know whether we are still here before it gives us another connection's place.
                Ok(HubToFoot::Ping(ping)) => {
                    let pong = Pong { echo_ms: ping.sent_ms, sent_ms: millis(SystemClock.boot()) };
                    let sent = socket.send(Message::text(FootToHub::from(pong).encode())).await;
                    sent.map_err(|error| Ended::lost(error.to_string()))?;
                }
                Ok(HubToFoot::Draining(draining)) => {
                    let wait = Some(Duration::from_millis(draining.reconnect_after_ms));
                    return Err(Ended::Lost { why: "the hub goes down".to_owned(), wait });
                }
                Ok(message) => {
                    if let Some(found) = wanted(message) {
                        return Ok(found);
                    }
                }
            }
        }
    };
    timeout(HELLO_TIMEOUT, wait).await.unwrap_or_else(|_| Err(Ended::lost("the hub says nothing")))
}

/// Why there is no WebSocket.
fn not_upgraded(error: tungstenite::Error) -> Ended {
    match error {
        tungstenite::Error::Http(response) => refused(&response),
        tungstenite::Error::Protocol(ProtocolError::SecWebSocketSubProtocolError(_)) => {
            Ended::Final(FootError::Version { message: "it accepts the connection without it".to_owned() })
        }
        other => Ended::lost(other.to_string()),
    }
}

fn refused(response: &Response<Option<Vec<u8>>>) -> Ended {
    let status = response.status();
    let message = said(response.body().as_deref()).unwrap_or_else(|| format!("HTTP {status}"));
    match status {
        StatusCode::UNAUTHORIZED => Ended::Final(FootError::Unauthorized(message)),
        StatusCode::FORBIDDEN => Ended::Final(FootError::Refused { code: ErrorCode::Forbidden, message }),
        StatusCode::BAD_REQUEST => Ended::Final(FootError::Version { message }),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            let header = response.headers().get(http::header::RETRY_AFTER);
            let seconds = header.and_then(|value| value.to_str().ok()?.trim().parse().ok());
            Ended::Lost { why: message, wait: seconds.map(Duration::from_secs) }
        }
        StatusCode::NOT_FOUND => Ended::lost("HTTP 404: there is no hub at this address"),
        _ if status.is_redirection() => Ended::lost(format!("HTTP {status}: give the address that it leads to")),
        _ => Ended::lost(message),
    }
}

/// What a problem document says, cut for a log line.
fn said(body: Option<&[u8]>) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Problem {
        detail: Option<String>,
        title: Option<String>,
    }
    let problem: Problem = serde_json::from_slice(body?).ok()?;
    problem.detail.or(problem.title).map(|text| crate::failure::shown(&text))
}
