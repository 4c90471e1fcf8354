//! A foot driven by hand, frame by frame: for what no well-behaved foot would do.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signer as _, SigningKey};
use footbridge_shared::message::{Hello, HubToFoot};
use footbridge_shared::proof::signed_bytes;
use footbridge_shared::version::FOOTBRIDGE_V1;
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::Result;

/// How long a frame from the hub may take.
const FRAME_PATIENCE: Duration = Duration::from_secs(30);

/// Who a hand-driven foot says it is.
pub struct Identity {
    /// Its key.
    pub key: SigningKey,
    /// Its name.
    pub name: String,
    /// The process it claims to be.
    pub instance: String,
}

impl Identity {
    /// A new key under a name.
    ///
    /// # Errors
    /// When the machine has no randomness.
    pub fn new(name: &str) -> Result<Self> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        Ok(Self { key: SigningKey::from_bytes(&seed), name: name.to_owned(), instance: format!("{name}-1") })
    }

    /// The same foot after a restart.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self { key: self.key.clone(), name: self.name.clone(), instance: format!("{}x", self.instance) }
    }

    /// A `hello` for `local/main`, as JSON to be changed before it is sent.
    pub fn hello(&self, nonce: &str) -> Value {
        let proof = self.key.sign(&signed_bytes(nonce));
        json!({
            "type": "hello",
            "proof": URL_SAFE_NO_PAD.encode(proof.to_bytes()),
            "foot": {
                "name": self.name, "id": URL_SAFE_NO_PAD.encode(self.key.verifying_key().to_bytes()),
                "instance": self.instance, "version": "0", "os": "test", "arch": "test", "hostname": "test"},
            "share": "owner", "tenant": "local", "project": "main", "inFlight": [], "servers": [], "maxConcurrent": 64,
        })
    }
}

/// An open socket to a hub.
pub struct RawFoot {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl RawFoot {
    /// Dials without a word.
    ///
    /// # Errors
    /// When the hub refuses the upgrade.
    pub async fn dial(url: &str, token: &str) -> Result<Self> {
        let mut request = format!("{}/ws/foot", url.replace("http://", "ws://")).into_client_request()?;
        let headers = request.headers_mut();
        headers.insert("authorization", format!("Bearer {token}").parse()?);
        headers.insert("sec-websocket-protocol", FOOTBRIDGE_V1.parse()?);
        let (socket, _) = tokio_tungstenite::connect_async(request).await?;
        Ok(Self { socket })
    }

    /// Dials, says hello, and reads the welcome.
    ///
    /// # Errors
    /// When the hub does not welcome it.
    pub async fn connect(url: &str, token: &str, identity: &Identity) -> Result<(Self, Value)> {
        Self::connect_with(url, token, identity, |_| {}).await
    }

    /// As [`Self::connect`], with a changed `hello`.
    ///
    /// # Errors
    /// When the hub does not welcome it.
    pub async fn connect_with(
        url: &str,
        token: &str,
        identity: &Identity,
        change: impl FnOnce(&mut Value),
    ) -> Result<(Self, Value)> {
        let mut foot = Self::dial(url, token).await?;
        let challenge = foot.receive_kind("challenge").await?;
        let mut hello = identity.hello(challenge["nonce"].as_str().ok_or("no nonce")?);
        change(&mut hello);
        // What is sent is what the types describe.
        serde_json::from_value::<Hello>(hello.clone())?;
        foot.send(&hello).await?;
        let welcome = foot.receive_kind("welcome").await?;
        Ok((foot, welcome))
    }

    /// Offers tools and reads the answer.
    ///
    /// # Errors
    /// When there is no `toolsAck`.
    pub async fn offer(&mut self, revision: u64, upsert: Value) -> Result<Value> {
        self.send(&json!({"type": "tools", "revision": revision, "upsert": upsert, "remove": []})).await?;
        self.receive_kind("toolsAck").await
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the socket is closed.
    pub async fn send(&mut self, message: &Value) -> Result<()> {
        self.send_text(&message.to_string()).await
    }

    /// Sends any text as one frame.
    ///
    /// # Errors
    /// When the socket is closed.
    pub async fn send_text(&mut self, text: &str) -> Result<()> {
        Ok(self.socket.send(Message::text(text)).await?)
    }

    /// Sends any bytes as one binary frame.
    ///
    /// # Errors
    /// When the socket is closed.
    pub async fn send_binary(&mut self, frame: Vec<u8>) -> Result<()> {
        Ok(self.socket.send(Message::binary(frame)).await?)
    }

    /// The next frame that is no heartbeat, as JSON; a close becomes `{"type": "close", "code", "reason"}`. Heartbeats are
    /// answered.
    ///
    /// # Errors
    /// When nothing comes, or the socket breaks.
    pub async fn receive(&mut self) -> Result<Value> {
        loop {
            let frame = tokio::time::timeout(FRAME_PATIENCE, self.socket.next()).await?;
            match frame.ok_or("the socket ended")?? {
                Message::Text(text) => {
                    let json: Value = serde_json::from_str(&text)?;
                    // Whatever a hub says must be what the types describe.
                    if let HubToFoot::Unknown(kind) = HubToFoot::decode(&text)? {
                        return Err(format!("the hub said `{kind}`").into());
                    }
                    if json["type"] == "ping" {
                        self.send(&json!({"type": "pong", "echoMs": json["sentMs"], "sentMs": 0})).await?;
                        continue;
                    }
                    if json["type"] != "pong" {
                        return Ok(json);
                    }
                }
                Message::Close(frame) => {
                    let (code, reason) =
                        frame.map_or((1005, String::new()), |frame| (frame.code.into(), frame.reason.to_string()));
                    return Ok(json!({"type": "close", "code": code, "reason": reason}));
                }
                _ => {}
            }
        }
    }

    /// Sends a heartbeat, waits for its answer, and shows what came before that.
    ///
    /// # Errors
    /// When it is not answered.
    pub async fn heartbeat(&mut self) -> Result<Vec<Value>> {
        self.send(&json!({"type": "ping", "sentMs": 1})).await?;
        let mut between = Vec::new();
        loop {
            let frame = tokio::time::timeout(FRAME_PATIENCE, self.socket.next()).await?;
            let Message::Text(text) = frame.ok_or("the socket ended")?? else { continue };
            let json: Value = serde_json::from_str(&text)?;
            match json["type"].as_str() {
                Some("pong") => return Ok(between),
                Some("ping") => self.send(&json!({"type": "pong", "echoMs": json["sentMs"], "sentMs": 0})).await?,
                _ => between.push(json),
            }
        }
    }

    /// The next frame of a type; others in between are passed over.
    ///
    /// # Errors
    /// When the socket closes first.
    pub async fn receive_kind(&mut self, kind: &str) -> Result<Value> {
        loop {
            let frame = self.receive().await?;
            if frame["type"] == kind {
                return Ok(frame);
            }
            if frame["type"] == "close" {
                return Err(format!("closed instead of `{kind}`: {frame}").into());
            }
        }
    }

    /// Answers a call with one text.
    ///
    /// # Errors
    /// When the socket is closed.
    pub async fn answer(&mut self, call: &Value, text: &str) -> Result<()> {
        let result = json!({"type": "result", "call": call["call"], "origin": call["origin"],
            "content": [{"type": "text", "text": text}], "structured": {"text": text}, "isError": false});
        self.send(&result).await
    }
}

/// A tool without arguments, as a foot offers it.
pub fn simple_tool(name: &str) -> Value {
    json!({"name": name, "description": format!("The tool {name}."), "inputSchema": {"type": "object"}})
}
