//! A call that is followed: what it says while it runs, and how it ends.

use std::collections::VecDeque;

use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;

use super::request::{header, unreachable};
use super::sse::{Decoder, Event};
use super::{At, Client};
use crate::api::CALL_HEADER;
use crate::api::calls::{CallView, InvokeReply, InvokeRequest, OutputEvent, ProgressEvent};
use crate::api::problem::Problem;
use crate::cli::error::CliError;

const EVENT_STREAM: &str = "text/event-stream";

/// Something a call said.
#[derive(Debug)]
pub enum Update {
    /// How far it is.
    Progress(ProgressEvent),
    /// Partial output.
    Output(OutputEvent),
    /// Its end.
    Ended(Box<InvokeReply>),
}

/// A call under way.
#[derive(Debug)]
pub struct Invocation {
    /// Its id, by which it can be cancelled.
    pub id: Option<String>,
    hub: String,
    response: Response,
    decoder: Decoder,
    /// A hub that does not stream answers with the result alone.
    whole: Option<Vec<u8>>,
    updates: VecDeque<Update>,
}

impl Client {
    /// Starts a call. Dropping what comes back ends the connection, and with it the call.
    ///
    /// # Errors
    /// The hub's problem when the call did not start, or that no hub answers.
    pub async fn invoke(&self, tool: &str, request: &InvokeRequest) -> Result<Invocation, CliError> {
        let request = self.post(At::Scope(&["tools", tool, "invoke"]))?.json_body(request)?;
        let response = request.send(EVENT_STREAM, None).await?;
        let streams = header(response.headers(), CONTENT_TYPE.as_str()).is_some_and(|t| t.starts_with(EVENT_STREAM));
        Ok(Invocation {
            id: header(response.headers(), CALL_HEADER).map(str::to_owned),
            hub: self.address(),
            response,
            decoder: Decoder::default(),
            whole: (!streams).then(Vec::new),
            updates: VecDeque::new(),
        })
    }

    /// Asks for the end of a call, and learns how it stands a moment later. It may end otherwise first.
    ///
    /// # Errors
    /// The hub's problem, or that no hub answers.
    pub async fn cancel(&self, call: &str) -> Result<CallView, CliError> {
        self.delete(At::Scope(&["calls", call]))?.json().await
    }
}

impl Invocation {
    /// The next thing the call says. Can be dropped and asked again without losing anything.
    ///
    /// # Errors
    /// The hub's problem, or that the connection broke: the call's fate is unknown then.
    pub async fn next(&mut self) -> Result<Update, CliError> {
        loop {
            if let Some(update) = self.updates.pop_front() {
                return Ok(update);
            }
            let chunk = self.response.chunk().await.map_err(|error| unreachable(&self.hub, &error))?;
            match (chunk, &mut self.whole) {
                (Some(bytes), Some(whole)) => whole.extend_from_slice(&bytes),
                (None, Some(whole)) => return read(&std::mem::take(whole)).map(|r| Update::Ended(Box::new(r))),
                (Some(bytes), None) => {
                    self.decoder.push(&bytes);
                    while let Some(event) = self.decoder.next().map_err(|error| CliError::Answer(error.to_string()))? {
                        self.updates.extend(update(&event)?);
                    }
                }
                (None, None) => return Err(self.broken()),
            }
        }
    }

    fn broken(&self) -> CliError {
        CliError::Unreachable {
            url: self.hub.clone(),
            reason: "the connection ended before the call did; whether the tool ran is unknown".to_owned(),
            hint: self.id.as_ref().map(|id| format!("`footbridge calls get {id}` may know")),
        }
    }
}

/// What an event says; events of another version say nothing.
fn update(event: &Event) -> Result<Option<Update>, CliError> {
    let data = event.data.as_bytes();
    match event.name.as_str() {
        "progress" => read(data).map(|progress| Some(Update::Progress(progress))),
        "output" => read(data).map(|output| Some(Update::Output(output))),
        "result" => read(data).map(|reply| Some(Update::Ended(Box::new(reply)))),
        "error" => Err(CliError::Problem(Box::new(read::<Problem>(data)?))),
        _ => Ok(None),
    }
}

fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, CliError> {
    serde_json::from_slice(json).map_err(|error| CliError::Answer(error.to_string()))
}
