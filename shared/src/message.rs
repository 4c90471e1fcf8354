//! The messages of `footbridge.v1`. The direction is in the name of the enum.
//!
//! Every message is one JSON object with a `type`: a text frame, or what the parts of a longer one add up to
//! ([`crate::parts`]). [`FootToHub::decode`] and [`HubToFoot::decode`] read the type first
//! and then the same bytes into that type's struct, because payloads are [`RawValue`]s, which derived tagging cannot hold:
//! neither side parses a payload that it only passes on.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::id::CallId;

/// Declares a wire struct: camelCase, unknown fields ignored, so that a newer peer can say more.
macro_rules! wire {
    ($($(#[$doc:meta])* struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $($(#[$field_meta])* pub $field: $ty,)* }
    )*};
}

mod call;
mod mcp;
mod session;
mod tools;

pub use call::{
    Ack, Call, CallFailure, CallResult, Caller, CallerClient, Cancel, Credit, InFlight, InFlightState, Output,
    PartsFrom, Progress, Stream,
};
pub use mcp::{Audience, Notify, Request, Response, Servers, Upcall, UpcallCancel, UpcallResult};
pub use session::{
    Bye, Challenge, Draining, FootInfo, Hello, Ping, Pong, Resume, ServerInfo, Share, Superseded, Welcome, WireError,
};
pub use tools::{RejectedTool, ToolEntry, Tools, ToolsAck};

/// Raw JSON, passed on as it came.
pub type Raw = Box<RawValue>;

/// Why a frame is no message.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The frame is no JSON object with a `type`, or its fields are not those of the type.
    #[error("malformed frame: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The frame is larger than [`crate::limits::MAX_FRAME_BYTES`].
    #[error("frame of {0} bytes, the limit is {limit}", limit = crate::limits::MAX_FRAME_BYTES)]
    TooLarge(usize),
}

#[derive(Deserialize)]
struct TypeOnly<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
}

/// The type of a message whose first field it is, as this build writes them. Saves a walk over the payload.
fn leading_type(frame: &str) -> Option<&str> {
    let (kind, _) = frame.strip_prefix(r#"{"type":""#)?.split_once('"')?;
    (!kind.contains('\\')).then_some(kind)
}

/// How much of an unknown type's name is kept, in characters.
const MAX_SHOWN_TYPE_CHARS: usize = 64;

/// Declares a direction: an enum over its message structs with encode and decode.
macro_rules! direction {
    ($(#[$doc:meta])* $name:ident { $($variant:ident($body:ty) = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`")] $variant($body),)*
            /// A type that this build does not know: ignored and counted.
            Unknown(String),
        }

        impl $name {
            /// All types of this direction.
            pub const TYPES: &'static [&'static str] = &[$($text,)*];

            /// The `type` on the wire.
            pub fn kind(&self) -> &str {
                match self { $(Self::$variant(_) => $text,)* Self::Unknown(kind) => kind }
            }

            /// Reads one text frame.
            ///
            /// # Errors
            /// As [`Self::decode`], and [`DecodeError::TooLarge`]: a message of this size comes in parts.
            pub fn decode_frame(frame: &str) -> Result<Self, DecodeError> {
                if frame.len() > crate::limits::MAX_FRAME_BYTES {
                    return Err(DecodeError::TooLarge(frame.len()));
                }
                Self::decode(frame)
            }

            /// Reads one message, however it came.
            ///
            /// # Errors
            /// [`DecodeError`] for a text that is no JSON, has no `type` or not its type's fields.
            pub fn decode(frame: &str) -> Result<Self, DecodeError> {
                if let Some(kind) = leading_type(frame)
                    && let Some(message) = Self::decode_as(kind, frame)?
                {
                    return Ok(message);
                }
                let TypeOnly { kind } = serde_json::from_str(frame)?;
                Ok(match Self::decode_as(&kind, frame)? {
                    Some(message) => message,
                    None => Self::Unknown(kind.chars().take(MAX_SHOWN_TYPE_CHARS).collect()),
                })
            }

            /// `None`: there is no such type here.
            fn decode_as(kind: &str, frame: &str) -> Result<Option<Self>, DecodeError> {
                Ok(match kind {
                    $($text => Some(Self::$variant(serde_json::from_str(frame)?)),)*
                    _ => None,
                })
            }

            /// Writes the message. It may be larger than a frame may be: then it goes in parts.
            pub fn encode(&self) -> String {
                #[derive(Serialize)]
                struct Tagged<'a, T> { #[serde(rename = "type")] kind: &'a str, #[serde(flatten)] body: &'a T }
                let kind = self.kind();
                match self {
                    $(Self::$variant(body) => serde_json::to_string(&Tagged { kind, body }),)*
                    Self::Unknown(_) => serde_json::to_string(&Tagged { kind, body: &Empty {} }),
                }
                // Writing plain structs to memory cannot fail; an empty frame would be refused by the other side.
                .unwrap_or_default()
            }
        }

        $(impl From<$body> for $name { fn from(body: $body) -> Self { Self::$variant(body) } })*
    };
}

direction! {
    /// What a foot says to its hub.
    FootToHub {
        Hello(Box<Hello>) = "hello",
        Tools(Tools) = "tools",
        Progress(Progress) = "progress",
        Output(Output) = "output",
        Result(CallResult) = "result",
        Failure(CallFailure) = "failure",
        Upcall(Upcall) = "upcall",
        UpcallCancel(UpcallCancel) = "upcallCancel",
        Response(Response) = "response",
        Notify(Notify) = "notify",
        Servers(Servers) = "servers",
        Bye(Bye) = "bye",
        Ping(Ping) = "ping",
        Pong(Pong) = "pong",
        Credit(Credit) = "credit",
        PartsFrom(PartsFrom) = "partsFrom",
        Error(WireError) = "error",
    }
}

direction! {
    /// What a hub says to a foot.
    HubToFoot {
        Challenge(Challenge) = "challenge",
        Welcome(Welcome) = "welcome",
        ToolsAck(ToolsAck) = "toolsAck",
        Call(Call) = "call",
        Request(Request) = "request",
        Cancel(Cancel) = "cancel",
        Ack(Ack) = "ack",
        UpcallResult(UpcallResult) = "upcallResult",
        Draining(Draining) = "draining",
        Superseded(Superseded) = "superseded",
        Ping(Ping) = "ping",
        Pong(Pong) = "pong",
        Credit(Credit) = "credit",
        PartsFrom(PartsFrom) = "partsFrom",
        Error(WireError) = "error",
    }
}

impl FootToHub {
    /// The call that it is about.
    pub fn call(&self) -> Option<&CallId> {
        Some(match self {
            Self::Progress(message) => &message.call,
            Self::Output(message) => &message.call,
            Self::Result(message) => &message.call,
            Self::Failure(message) => &message.call,
            Self::Upcall(message) => &message.call,
            Self::UpcallCancel(message) => &message.call,
            Self::Response(message) => &message.call,
            Self::Credit(message) => &message.call,
            Self::PartsFrom(message) => &message.call,
            Self::Notify(message) => return message.call.as_ref(),
            Self::Hello(_)
            | Self::Tools(_)
            | Self::Servers(_)
            | Self::Bye(_)
            | Self::Ping(_)
            | Self::Pong(_)
            | Self::Error(_)
            | Self::Unknown(_) => return None,
        })
    }
}

impl HubToFoot {
    /// The call that it is about.
    pub fn call(&self) -> Option<&CallId> {
        Some(match self {
            Self::Call(message) => &message.call,
            Self::Request(message) => &message.call,
            Self::Cancel(message) => &message.call,
            Self::Ack(message) => &message.call,
            Self::UpcallResult(message) => &message.call,
            Self::Credit(message) => &message.call,
            Self::PartsFrom(message) => &message.call,
            Self::Challenge(_)
            | Self::Welcome(_)
            | Self::ToolsAck(_)
            | Self::Draining(_)
            | Self::Superseded(_)
            | Self::Ping(_)
            | Self::Pong(_)
            | Self::Error(_)
            | Self::Unknown(_) => return None,
        })
    }
}

#[derive(Serialize)]
struct Empty {}
