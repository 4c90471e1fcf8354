//! "Input required": a server without sessions answers with what it wants to know, and is asked again with the answers.

use std::sync::Arc;

use footbridge_mcp::{Fields, Raw, RpcError, can_be_asked};
use serde_json::value::RawValue;

use crate::domain::mcp::{McpClient, declined};

/// How often a server may answer so to one request.
pub(super) const MAX_ROUNDS: usize = 10;
/// The value of `resultType` that says so.
const INPUT_REQUIRED: &str = "input_required";
/// The fields of such a result, and of the request that follows.
const REQUESTS: &str = "inputRequests";
const RESPONSES: &str = "inputResponses";
const STATE: &str = "requestState";

/// What a server wants to know.
pub(super) struct InputRequired {
    /// Key, method and parameters of each question.
    requests: Vec<(String, String, Raw)>,
    state: Option<Raw>,
}

impl InputRequired {
    /// Reads a result; `None`: it is a result.
    pub(super) fn of(result: &RawValue) -> Option<Self> {
        // Results are large, and hardly one is such.
        if !result.get().contains(INPUT_REQUIRED) {
            return None;
        }
        let fields = Fields::of(result)?;
        if fields.read::<String>("resultType")? != INPUT_REQUIRED {
            return None;
        }
        let requests: Fields = fields.read(REQUESTS).unwrap_or_default();
        let requests = requests.iter().filter_map(|(key, request)| {
            let request = Fields::of(request)?;
            let params = request.get("params").cloned().unwrap_or_else(|| Fields::new().to_raw());
            Some((key.to_owned(), request.read("method")?, params))
        });
        Some(Self { requests: requests.collect(), state: fields.get(STATE).cloned() })
    }

    /// Whether a client that states these capabilities can answer all of it.
    pub(super) fn is_for(&self, capabilities: &RawValue) -> bool {
        self.requests.iter().all(|(_, method, _)| can_be_asked(capabilities, method))
    }

    /// The result with changed parameters of its questions.
    pub(super) fn named(&self, result: &RawValue, rename: impl Fn(&str, Raw) -> Raw) -> Raw {
        let Some(mut fields) = Fields::of(result) else { return result.to_owned() };
        let Some(mut requests) = fields.read::<Fields>(REQUESTS) else { return result.to_owned() };
        for (key, method, params) in &self.requests {
            let Some(mut request) = requests.get(key).and_then(|request| Fields::of(request)) else { continue };
            if request.get("params").is_some() {
                request.set("params", rename(method, params.clone()));
                requests.set(key, request.to_raw());
            }
        }
        fields.set(REQUESTS, requests.to_raw());
        fields.to_raw()
    }

    /// Has a client answer the questions, one after the other; without one they are declined.
    ///
    /// # Errors
    /// A question that has no answer: the request cannot go on.
    pub(super) async fn answers(
        &self,
        client: Option<&Arc<dyn McpClient>>,
        rename: impl Fn(&str, Raw) -> Raw,
    ) -> Result<Fields, RpcError> {
        let mut answers = Fields::new();
        for (key, method, params) in &self.requests {
            let answer = match client {
                Some(client) => client.request(method, rename(method, params.clone())).await,
                None => declined(method),
            };
            let answer = match answer {
                Ok(answer) => answer,
                // An answer is a result: a person who cannot be asked has not agreed.
                Err(_) if method == "elicitation/create" => declined(method)?,
                Err(error) => return Err(error),
            };
            answers.set(key, answer);
        }
        Ok(answers)
    }

    /// Makes the request that follows.
    pub(super) fn put_into(&self, params: &mut Fields, answers: Fields) {
        params.set(RESPONSES, answers.to_raw());
        match &self.state {
            Some(state) => params.set(STATE, state.clone()),
            None => drop(params.take(STATE)),
        }
    }
}
