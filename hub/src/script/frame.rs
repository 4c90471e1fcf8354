//! What hub and worker say to each other: frames of four bytes length (little endian) and that much JSON.
//!
//! The worker speaks first (`ready`), runs one script at a time, and says `ready` again when nothing of it is left:
//!
//! ```text
//! worker: ready                      hub: run
//! worker: ask, log                   hub: answer (to each ask)
//! worker: done, ready
//! ```
//!
//! The hub trusts nothing that comes from a worker: frames are bounded and what is no frame costs the worker its life.

use std::io::{self, Read, Write};
use std::sync::Arc;

use footbridge_shared::message::Raw;
use footbridge_shared::{ErrorCode, Outcome};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::deadline::Deadline;
use super::limits::{MAX_ANSWER_BYTES, MAX_INPUT_BYTES, MAX_SOURCE_BYTES, MAX_VALUE_BYTES};

/// Room for what surrounds the payload of a frame, in bytes.
const ENVELOPE_BYTES: usize = 64 * 1024;
/// Bytes that one byte of a text may take in JSON: a control character becomes `\u00XX`.
const ESCAPED_BYTES: usize = 6;
/// Largest frame that a worker reads, in bytes.
pub(super) const MAX_TO_WORKER: usize =
    max(ESCAPED_BYTES * MAX_SOURCE_BYTES + MAX_INPUT_BYTES, MAX_ANSWER_BYTES) + ENVELOPE_BYTES;
/// Largest frame that the hub reads, in bytes.
pub(super) const MAX_FROM_WORKER: usize = MAX_VALUE_BYTES + ENVELOPE_BYTES;

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// One script to run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Run {
    /// JavaScript.
    pub(super) source: String,
    /// Top-level variables.
    pub(super) inputs: Vec<(String, Raw)>,
    /// `vance.params`.
    pub(super) params: Raw,
    /// `vance.context`.
    pub(super) context: Raw,
}

/// From the hub.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToWorker {
    /// Run this until then.
    Run(Deadline, Arc<Run>),
    /// The answer to the last question.
    Answer(Result<Raw, HostError>),
}

/// A host call that failed, as the script sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct HostError {
    /// Becomes `.code`.
    pub(super) code: ErrorCode,
    /// Becomes `.message`.
    pub(super) message: String,
    /// Becomes `.hint`.
    pub(super) hint: Option<String>,
    /// Becomes `.outcome`.
    pub(super) outcome: Outcome,
}

/// What a script asks of the hub.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ask {
    /// `vance.tools.call`; answered with the tool's value.
    Call {
        /// The tool.
        name: String,
        /// A JSON object.
        params: Raw,
    },
    /// `vance.tools.list`; answered with `[{name, description}]`.
    List,
    /// `vance.tools.has`; answered with a boolean.
    Has {
        /// The tool.
        name: String,
    },
    /// `vance.documents.read`; answered with a string.
    Read {
        /// The document.
        path: String,
    },
}

/// Weight of a line in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// `debug` and `trace`.
    Debug,
    /// `info`, and whatever is no level.
    Info,
    /// `warn`.
    Warn,
    /// `error`.
    Error,
}

/// How well a worker is locked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Confinement {
    /// No files, no network, no processes: two layers of the kernel say so.
    Full,
    /// The same by the filter of system calls alone: this kernel has no Landlock.
    FilterOnly,
    /// By nothing but the interpreter: this system has no kernel sandbox, or does not grant it and the operator accepts
    /// that.
    None,
}

/// Why a script gave no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Thrown {
    /// What kind of end this is.
    pub(super) cause: Cause,
    /// Class of the exception.
    pub(super) class: String,
    /// Its message.
    pub(super) message: String,
    /// Where it was thrown, counted from 1.
    pub(super) line: Option<u32>,
    /// Where in the line, counted from 1.
    pub(super) column: Option<u32>,
}

/// Kinds of a script's failing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cause {
    /// It threw, or could not be compiled.
    Exception,
    /// Memory, stack, steps, or the shape of its result.
    Limit,
    /// The result is larger than [`MAX_VALUE_BYTES`].
    ResultSize,
}

/// How a run ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Done {
    /// With a value, as JSON.
    Value(Raw),
    /// Without one.
    Threw(Thrown),
    /// At its deadline.
    Deadline,
}

/// From the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromWorker {
    /// Nothing runs and nothing is left of what ran.
    Ready(Confinement),
    /// It cannot lock itself in and therefore runs nothing. Why.
    Refused(String),
    /// A question; the script waits for the answer.
    Ask(Ask),
    /// A line for the log.
    Log(Level, String),
    /// The run is over.
    Done(Done),
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a frame is too large")
}

fn encode<T: Serialize>(message: &T, max: usize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let length = frame.len() - 4;
    let prefix = u32::try_from(length).ok().filter(|_| length <= max).ok_or_else(too_large)?;
    frame[..4].copy_from_slice(&prefix.to_le_bytes());
    Ok(frame)
}

fn body_length(prefix: [u8; 4], max: usize) -> io::Result<usize> {
    let length = u32::from_le_bytes(prefix) as usize;
    if length <= max { Ok(length) } else { Err(too_large()) }
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(body)?)
}

/// Writes one frame, blocking.
pub(super) fn write(to: &mut impl Write, message: &FromWorker) -> io::Result<()> {
    to.write_all(&encode(message, MAX_FROM_WORKER)?)?;
    to.flush()
}

/// Reads one frame, blocking. `None` at the end of the stream.
pub(super) fn read(from: &mut impl Read) -> io::Result<Option<ToWorker>> {
    let mut prefix = [0; 4];
    match from.read_exact(&mut prefix) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let mut body = vec![0; body_length(prefix, MAX_TO_WORKER)?];
    from.read_exact(&mut body)?;
    decode(&body).map(Some)
}

/// Sends one frame to a worker. Not to be resumed when dropped.
pub(super) async fn send(to: &mut (impl AsyncWrite + Unpin), message: &ToWorker) -> io::Result<()> {
    to.write_all(&encode(message, MAX_TO_WORKER)?).await?;
    to.flush().await
}

/// Receives one frame from a worker. Not to be resumed when dropped.
pub(super) async fn receive(from: &mut (impl AsyncRead + Unpin)) -> io::Result<FromWorker> {
    let mut prefix = [0; 4];
    from.read_exact(&mut prefix).await?;
    let mut body = vec![0; body_length(prefix, MAX_FROM_WORKER)?];
    from.read_exact(&mut body).await?;
    decode(&body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    #[test]
    fn raw_json_and_big_numbers_cross_the_pipe_unchanged() {
        let value = RawValue::from_string(r#"{"n":123456789012345678901234567890,"s":"\u0041"}"#.to_owned()).unwrap();
        let mut pipe = Vec::new();
        write(&mut pipe, &FromWorker::Done(Done::Value(value.clone()))).unwrap();
        match decode(&pipe[4..]).unwrap() {
            FromWorker::Done(Done::Value(got)) => assert_eq!(got.get(), value.get()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_anything_is_allocated() {
        let mut claims = &u32::MAX.to_le_bytes()[..];
        assert_eq!(read(&mut claims).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(read(&mut &b""[..]).unwrap().is_none(), "the end of the stream is no error");
    }
}
