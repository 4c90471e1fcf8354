//! Answers to a server without sessions that wants to know something.

use std::sync::Arc;

use footbridge_mcp::{Fields, InputRequired, RpcError};

use crate::domain::call::CallClock;
use crate::domain::mcp::{McpClient, declined};

/// Has a client answer the questions, one after the other; without one they are declined. Meanwhile its call is not idle.
///
/// # Errors
/// A question that has no answer: the request cannot go on.
pub(super) async fn answers(
    asked: &InputRequired,
    client: Option<&Arc<dyn McpClient>>,
    clock: &CallClock,
) -> Result<Fields, RpcError> {
    let mut answers = Fields::new();
    for question in asked.questions() {
        let method = &question.method;
        let answer = match client {
            Some(client) => clock.awake_during(client.request(method, question.params.clone())).await,
            None => declined(method),
        };
        let answer = match answer {
            Ok(answer) => answer,
            // An answer is a result: a person who cannot be asked has not agreed.
            Err(_) if method == "elicitation/create" => declined(method)?,
            Err(error) => return Err(error),
        };
        answers.set(&question.key, answer);
    }
    Ok(answers)
}
