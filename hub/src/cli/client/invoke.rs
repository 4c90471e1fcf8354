//! A call that is followed: what it says while it runs, and how it ends. One with a key is taken up again when the
//! connection breaks: it goes on without it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use footbridge_shared::{ErrorCode, Outcome};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::request::{header, unreachable};
use super::sse::{Decoder, Event};
use super::{At, Client};
use crate::api::calls::{CallView, InvokeReply, InvokeRequest, OutputEvent, ProgressEvent, SkippedEvent};
use crate::api::problem::Problem;
use crate::api::{CALL_HEADER, IDEMPOTENCY_KEY_HEADER};
use crate::cli::error::CliError;

const EVENT_STREAM: &str = "text/event-stream";
/// How long a hub may be away before a call is given up that it would still know.
const HUB_PATIENCE: Duration = Duration::from_secs(60);
/// Time before the first try to take a call up again; each one that fails doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Longest time between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Something a call said.
#[derive(Debug)]
pub enum Update {
    /// How far it is.
    Progress(ProgressEvent),
    /// Partial output.
    Output(OutputEvent),
    /// What it said is not kept any more.
    Skipped(SkippedEvent),
    /// The connection broke, and is made anew.
    Broken,
    /// Its end.
    Ended(Box<InvokeReply<'static>>),
}

/// A call under way.
pub struct Invocation {
    /// Its id, by which it can be cancelled.
    pub id: Option<String>,
    hub: String,
    response: Response,
    decoder: Decoder,
    /// A hub that does not stream answers with the result alone.
    whole: Option<Vec<u8>>,
    updates: VecDeque<Update>,
    /// Present for a call with a key.
    again: Option<Again>,
}

impl std::fmt::Debug for Invocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Invocation").field("id", &self.id).field("hub", &self.hub).finish_non_exhaustive()
    }
}

/// How a call is taken up again.
struct Again {
    client: Client,
    tool: String,
    request: InvokeRequest,
    key: String,
    /// The id of the last event that came.
    seen: Option<String>,
    /// Present while there is no connection.
    attempt: Option<Attempt>,
    pause: Duration,
    /// Since when nothing has come from a hub; `None`: it is there.
    away_since: Option<Instant>,
    /// When the connection broke last.
    broke: Option<Instant>,
}

type Attempt = Pin<Box<dyn Future<Output = Result<Response, CliError>> + Send>>;

impl Again {
    fn new(client: Client, tool: &str, request: &InvokeRequest, key: &str) -> Self {
        let (tool, request, key) = (tool.to_owned(), request.clone(), key.to_owned());
        Self {
            client,
            tool,
            request,
            key,
            seen: None,
            attempt: None,
            pause: FIRST_PAUSE,
            away_since: None,
            broke: None,
        }
    }

    /// Begins the next try: the same call once more. A hub that was killed knows the key and has to be told the rest, for it
    /// may not have sent the call on.
    fn begin(&mut self) {
        let (client, tool, request, key) =
            (self.client.clone(), self.tool.clone(), self.request.clone(), self.key.clone());
        let (seen, pause) = (self.seen.clone(), self.pause);
        if self.away_since.is_none() {
            self.away_since = Some(Instant::now());
            self.broke.get_or_insert_with(Instant::now);
        }
        self.pause = (2 * pause).min(LONGEST_PAUSE);
        self.attempt = Some(Box::pin(async move {
            tokio::time::sleep(pause).await;
            client.send_call(&tool, &request, Some(&key), seen.as_deref()).await
        }));
    }

    /// Sends it until a hub answers.
    ///
    /// # Errors
    /// The hub's problem, or that it did not come back in time.
    async fn sent(&mut self) -> Result<Response, CliError> {
        loop {
            self.begin();
            let Some(attempt) = self.attempt.take() else { continue };
            match attempt.await {
                Err(CliError::Unreachable { .. } | CliError::NoHub { .. }) if self.may_return() => {}
                sent => return sent,
            }
        }
    }

    /// Whether a hub that has just come back may say so only because its feet have not.
    fn is_too_early(&self, update: &Update) -> bool {
        let Update::Ended(reply) = update else { return false };
        reply.code == Some(ErrorCode::FootUnavailable)
            && reply.outcome == Some(Outcome::Unknown)
            && self.broke.is_some_and(|broke| broke.elapsed() < HUB_PATIENCE)
    }

    /// Whether a hub that is away may still come back in time.
    fn may_return(&self) -> bool {
        self.away_since.is_none_or(|since| since.elapsed() < HUB_PATIENCE)
    }

    /// Something came.
    fn heard(&mut self, id: Option<String>) {
        self.seen = id.or(self.seen.take());
        self.pause = FIRST_PAUSE;
        self.away_since = None;
    }
}

impl Client {
    /// Starts a call. Dropping what comes back ends the connection, and with it a call without a key.
    ///
    /// # Errors
    /// The hub's problem when the call did not start, or that no hub answers.
    pub async fn invoke(&self, tool: &str, request: &InvokeRequest, key: Option<&str>) -> Result<Invocation, CliError> {
        let mut again = key.map(|key| Again::new(self.clone(), tool, request, key));
        let response = match (self.send_call(tool, request, key, None).await, &mut again) {
            // It was there, and may have taken the call before it went.
            (Err(CliError::Unreachable { maybe_sent: true, .. }), Some(again)) => again.sent().await?,
            (sent, _) => sent?,
        };
        let id = header(response.headers(), CALL_HEADER).map(str::to_owned);
        Ok(Invocation {
            id,
            hub: self.address(),
            decoder: Decoder::default(),
            whole: (!streams(&response)).then(Vec::new),
            updates: VecDeque::new(),
            again,
            response,
        })
    }

    /// Sends a call; `seen` is the last event of it that came, if it was sent before.
    async fn send_call(
        &self,
        tool: &str,
        request: &InvokeRequest,
        key: Option<&str>,
        seen: Option<&str>,
    ) -> Result<Response, CliError> {
        let request = self.post(At::Scope(&["tools", tool, "invoke"]))?.json_body(request)?;
        request.header(IDEMPOTENCY_KEY_HEADER, key).header("last-event-id", seen).send(EVENT_STREAM, None).await
    }

    /// Asks for the end of a call, and learns how it stands a moment later. It may end otherwise first.
    ///
    /// # Errors
    /// The hub's problem, or that no hub answers.
    pub async fn cancel(&self, call: &str) -> Result<CallView<'static>, CliError> {
        self.delete(At::Scope(&["calls", call]))?.json().await
    }
}

impl Invocation {
    /// The next thing the call says. Can be dropped and asked again without losing anything.
    ///
    /// # Errors
    /// The hub's problem, or that the connection broke: the call's fate is unknown then. One with a key is looked for as long
    /// as a hub may need to come back.
    pub async fn next(&mut self) -> Result<Update, CliError> {
        loop {
            if let Some(update) = self.updates.pop_front() {
                match self.again.as_mut().filter(|again| again.is_too_early(&update)) {
                    Some(again) => again.begin(),
                    None => return Ok(update),
                }
            }
            if self.take_up_again().await? {
                continue;
            }
            let chunk = match (self.response.chunk().await, &mut self.whole) {
                (Ok(chunk), whole) if chunk.is_some() || whole.is_some() => chunk,
                (broken, _) => {
                    let Some(again) = self.again.as_mut().filter(|again| again.may_return()) else {
                        return Err(broken.err().map_or_else(|| self.broken(), |error| unreachable(&self.hub, &error)));
                    };
                    let first = again.away_since.is_none();
                    again.begin();
                    if first {
                        return Ok(Update::Broken);
                    }
                    continue;
                }
            };
            match (chunk, &mut self.whole) {
                (Some(bytes), Some(whole)) => whole.extend_from_slice(&bytes),
                (Some(bytes), None) => self.take(&bytes)?,
                (None, whole) => {
                    let reply = read(&whole.take().unwrap_or_default())?;
                    self.updates.push_back(Update::Ended(Box::new(reply)));
                }
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.decoder.push(bytes);
        while let Some(event) = self.decoder.next().map_err(|error| CliError::Answer(error.to_string()))? {
            self.updates.extend(update(&event)?);
            if let Some(again) = &mut self.again {
                again.heard(event.id);
            }
        }
        Ok(())
    }

    /// Makes the connection anew where it is broken. `false`: it is not.
    async fn take_up_again(&mut self) -> Result<bool, CliError> {
        let Some(again) = &mut self.again else { return Ok(false) };
        let Some(attempt) = &mut again.attempt else { return Ok(false) };
        match attempt.await {
            Ok(response) => {
                again.attempt = None;
                self.whole = (!streams(&response)).then(Vec::new);
                (self.response, self.decoder) = (response, Decoder::default());
            }
            Err(CliError::Unreachable { .. } | CliError::NoHub { .. }) if again.may_return() => again.begin(),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    fn broken(&self) -> CliError {
        CliError::Unreachable {
            url: self.hub.clone(),
            maybe_sent: true,
            reason: "the connection ended before the call did; whether the tool ran is unknown".to_owned(),
            hint: self.id.as_ref().map(|id| format!("`footbridge calls get {id}` may know")),
        }
    }
}

/// Whether an answer is a stream of events.
fn streams(response: &Response) -> bool {
    header(response.headers(), CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with(EVENT_STREAM))
}

/// What an event says; events of another version say nothing.
fn update(event: &Event) -> Result<Option<Update>, CliError> {
    let data = event.data.as_bytes();
    match event.name.as_str() {
        "progress" => read(data).map(|progress| Some(Update::Progress(progress))),
        "output" => read(data).map(|output| Some(Update::Output(output))),
        "skipped" => read(data).map(|skipped| Some(Update::Skipped(skipped))),
        "result" => read(data).map(|reply| Some(Update::Ended(Box::new(reply)))),
        "error" => Err(CliError::Problem(Box::new(read::<Problem>(data)?))),
        _ => Ok(None),
    }
}

fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, CliError> {
    serde_json::from_slice(json).map_err(|error| CliError::Answer(error.to_string()))
}
