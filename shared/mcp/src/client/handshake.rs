//! How client and server come to know each other: by `server/discover`, which servers of 2026-07-28 answer, or by
//! `initialize`.

use std::time::Duration;

use footbridge_shared::message::Raw;
use footbridge_shared::text::clean_and_cut;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::opened::{Channel, Failed};
use super::router::empty_object;
use super::voice::Voice;
use super::{Open, Preferred, RequestOptions, ServerDescription};
use crate::codes;
use crate::error::{ConnectError, RequestError};
use crate::fields::{Fields, read_field};
use crate::message::cut;
use crate::meta;
use crate::version::{Lifecycle, Version};

/// How long a server may be silent when asked for its discovery. One that knows no such request may ignore it.
const DISCOVERY_WAIT: Duration = Duration::from_secs(5);
/// That is at most this share of the time for the whole handshake.
const DISCOVERY_SHARE: u32 = 3;
/// Bytes of a server's `instructions`: what is more is cut. They are kept for as long as the connection is.
const MAX_INSTRUCTIONS_BYTES: usize = 64 * 1024;
/// Stands where they were cut.
const CUT_MARK: &str = "\n[cut here: the server's instructions are longer]";
/// Bytes of a server's `serverInfo`, and of its capabilities, as JSON. A server that states more is not connected to.
const MAX_STATED_BYTES: usize = 64 * 1024;
/// Characters of a foreign version that are repeated.
const MAX_VERSION_CHARS: usize = 100;

/// Comes to know the server on a channel.
pub(crate) async fn shake_hands(
    channel: &impl Channel,
    open: &Open,
) -> Result<(Voice, ServerDescription), ConnectError> {
    let hands = Hands { channel, open };
    let shaken = async {
        match open.preferred {
            Preferred::Lifecycle(Lifecycle::Session) => hands.with_session().await,
            Preferred::Newest | Preferred::Lifecycle(Lifecycle::Stateless) => match hands.discover().await? {
                Discovery::Found(voice, server) => Ok((voice, server)),
                _ => hands.with_session().await,
            },
        }
    };
    tokio::time::timeout(open.timeout, shaken).await.unwrap_or(Err(ConnectError::Timeout(open.timeout)))
}

struct Hands<'a, C> {
    channel: &'a C,
    open: &'a Open,
}

enum Discovery {
    Found(Voice, ServerDescription),
    /// The server refuses the version and names those that it speaks.
    Supported(Vec<Version>),
    /// The server knows no discovery, or speaks no version that goes without sessions.
    NotKnown,
}

impl<C: Channel> Hands<'_, C> {
    fn voice(&self, version: Option<Version>) -> Voice {
        Voice { version, client_info: self.open.client_info.clone(), capabilities: self.open.capabilities.clone() }
    }

    /// Opens a session, unless the server knows none: it may have been slow to say so.
    async fn with_session(&self) -> Result<(Voice, ServerDescription), ConnectError> {
        match self.initialize().await {
            Err(failed) if wants_no_session(&failed) => match self.discover().await? {
                Discovery::Found(voice, server) => Ok((voice, server)),
                _ => Err(connect_error(failed)),
            },
            Err(failed) => Err(connect_error(failed)),
            Ok(server) => server,
        }
    }

    async fn discover(&self) -> Result<Discovery, ConnectError> {
        match self.discover_once().await? {
            // It refused the very version that it asks for, which servers do until they are ready for it.
            Discovery::Supported(versions) if versions.contains(&Version::LATEST) => {
                match self.discover_once().await? {
                    Discovery::Supported(_) => Ok(Discovery::NotKnown),
                    discovery => Ok(discovery),
                }
            }
            Discovery::Supported(_) => Ok(Discovery::NotKnown),
            discovery => Ok(discovery),
        }
    }

    async fn discover_once(&self) -> Result<Discovery, ConnectError> {
        let voice = self.voice(Some(Version::LATEST));
        let wait = DISCOVERY_WAIT.min(self.open.timeout / DISCOVERY_SHARE);
        let asked = self.channel.request(&voice, "server/discover", None, RequestOptions::default());
        let failed = match tokio::time::timeout(wait, asked).await {
            // It says nothing.
            Err(_) => return Ok(Discovery::NotKnown),
            Ok(Ok(result)) => return found(voice, &result),
            Ok(Err(failed)) => failed,
        };
        match failed.error {
            RequestError::Rpc(error) if error.code == codes::UNSUPPORTED_VERSION => {
                let supported = error.data.as_deref().and_then(|data| read_field(data, "supported"));
                common(supported.unwrap_or_default()).map(Discovery::Supported)
            }
            // These come from servers that know what was asked.
            RequestError::Rpc(error) if matches!(error.code, codes::MISSING_CAPABILITY | codes::HEADER_MISMATCH) => {
                Err(ConnectError::Refused(error))
            }
            RequestError::Rpc(_) => Ok(Discovery::NotKnown),
            RequestError::Lost(_) if self.channel.closed().is_cancelled() => Err(ConnectError::EndedAtDiscovery),
            _ if failed.status.is_some_and(|status| (400..500).contains(&status)) => Ok(Discovery::NotKnown),
            _ => Err(connect_error(failed)),
        }
    }

    /// The outer error is what the request ended with, the inner one what its result is worth.
    async fn initialize(&self) -> Result<Result<(Voice, ServerDescription), ConnectError>, Failed> {
        let mut params = Fields::new();
        params.set_value("protocolVersion", Version::LATEST_WITH_SESSION.as_str());
        params.set("capabilities", self.open.capabilities.clone());
        params.set("clientInfo", self.open.client_info.clone());
        let silent = self.voice(None);
        let params = params.to_raw();
        let result = self.channel.request(&silent, "initialize", Some(&params), RequestOptions::default()).await?;
        let (version, server) = match initialized(&result) {
            Ok(server) => server,
            Err(error) => return Ok(Err(error)),
        };
        let voice = self.voice(Some(version));
        self.channel.notify(&voice, "notifications/initialized", None).await?;
        Ok(Ok((voice, server)))
    }
}

/// Whether `initialize` failed because the server knows no sessions.
fn wants_no_session(failed: &Failed) -> bool {
    matches!(&failed.error, RequestError::Rpc(error)
        if matches!(error.code, codes::METHOD_NOT_FOUND | codes::UNSUPPORTED_VERSION))
}

/// Whether any of the versions is spoken here.
fn common(supported: Vec<String>) -> Result<Vec<Version>, ConnectError> {
    let common: Vec<Version> = supported.iter().filter_map(|version| Version::parse(version)).collect();
    if common.is_empty() { Err(unknown_version(&supported.join(", "))) } else { Ok(common) }
}

fn unknown_version(text: &str) -> ConnectError {
    ConnectError::Version(clean_and_cut(text, MAX_VERSION_CHARS))
}

fn found(voice: Voice, result: &RawValue) -> Result<Discovery, ConnectError> {
    let no_answer = || ConnectError::Transport("the server's answer to `server/discover` is none".to_owned());
    let result = Fields::of(result).ok_or_else(no_answer)?;
    let supported = common(result.read("supportedVersions").ok_or_else(no_answer)?)?;
    if !voice.version.is_some_and(|version| supported.contains(&version)) {
        return Ok(Discovery::NotKnown);
    }
    let info = result.get("_meta").and_then(|meta| read_field(meta, meta::SERVER_INFO));
    let server = ServerDescription {
        version: Version::LATEST,
        info: stated(info, meta::SERVER_INFO)?,
        capabilities: stated(result.get("capabilities").cloned(), "capabilities")?,
        instructions: instructions(&result),
    };
    Ok(Discovery::Found(voice, server))
}

fn initialized(result: &RawValue) -> Result<(Version, ServerDescription), ConnectError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Agreed {
        protocol_version: String,
    }
    let Ok(Agreed { protocol_version }) = serde_json::from_str(result.get()) else {
        return Err(ConnectError::Transport("the server's answer to `initialize` names no version".to_owned()));
    };
    let version = Version::parse(&protocol_version).ok_or_else(|| unknown_version(&protocol_version))?;
    let result = Fields::of(result).unwrap_or_default();
    let server = ServerDescription {
        version,
        info: stated(result.get("serverInfo").cloned(), "serverInfo")?,
        capabilities: stated(result.get("capabilities").cloned(), "capabilities")?,
        instructions: instructions(&result),
    };
    Ok((version, server))
}

/// What a server states in an object; an empty one if it is none.
fn stated(object: Option<Raw>, name: &str) -> Result<Raw, ConnectError> {
    let object = object.filter(|object| object.get().starts_with('{')).unwrap_or_else(empty_object);
    if object.get().len() > MAX_STATED_BYTES {
        let why = format!("the server's `{name}` has more than {MAX_STATED_BYTES} bytes");
        return Err(ConnectError::Transport(why));
    }
    Ok(object)
}

fn instructions(result: &Fields) -> Option<String> {
    let mut text: String = result.read("instructions")?;
    if cut(&mut text, MAX_INSTRUCTIONS_BYTES) {
        text.push_str(CUT_MARK);
    }
    Some(text)
}

fn connect_error(failed: Failed) -> ConnectError {
    if let Some(status) = failed.status {
        return ConnectError::Status(status);
    }
    match failed.error {
        RequestError::Rpc(error) => ConnectError::Refused(error),
        RequestError::Unauthorized(status) => ConnectError::Unauthorized(status),
        error => ConnectError::Transport(error.to_string()),
    }
}
