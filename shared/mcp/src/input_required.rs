//! "Input required": how a server without sessions asks. It answers with what it wants to know, and is asked again with the
//! answers.

use serde_json::value::RawValue;

use crate::{Fields, Raw, can_be_asked};

/// The value of `resultType` that says so.
const INPUT_REQUIRED: &str = "input_required";
/// The fields of such a result, and of the request that follows.
const REQUESTS: &str = "inputRequests";
const RESPONSES: &str = "inputResponses";
const STATE: &str = "requestState";

/// A result that asks.
#[derive(Debug)]
pub struct InputRequired {
    result: Fields,
    questions: Vec<Question>,
}

/// One of its questions.
#[derive(Debug)]
pub struct Question {
    /// Its name within the result.
    pub key: String,
    /// What is asked, for instance `elicitation/create`.
    pub method: String,
    /// With what; an empty object where nothing stands.
    pub params: Raw,
}

impl InputRequired {
    /// How often one request may be answered so before it is given up.
    pub const MAX_ROUNDS: usize = 10;

    /// Reads a result. `None`: it does not ask. A question that cannot be read is none.
    pub fn of(result: &RawValue) -> Option<Self> {
        // Results are large, and hardly one is such.
        if !result.get().contains(INPUT_REQUIRED) {
            return None;
        }
        let result = Fields::of(result)?;
        if result.read::<String>("resultType")? != INPUT_REQUIRED {
            return None;
        }
        let requests: Fields = result.read(REQUESTS).unwrap_or_default();
        let questions = requests.iter().filter_map(|(key, request)| {
            let request = Fields::of(request)?;
            let params = request.get("params").cloned().unwrap_or_else(|| Fields::new().to_raw());
            Some(Question { key: key.to_owned(), method: request.read("method")?, params })
        });
        Some(Self { questions: questions.collect(), result })
    }

    /// What is asked, in the order in which it stands.
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Whether a client that states these capabilities can answer all of it.
    pub fn is_for(&self, capabilities: &RawValue) -> bool {
        self.questions.iter().all(|question| can_be_asked(capabilities, &question.method, &question.params))
    }

    /// The result with other parameters of its questions; what `change` does not know it gives back.
    pub fn with_params(mut self, change: impl Fn(&str, Raw) -> Raw) -> Raw {
        let mut requests: Fields = self.result.read(REQUESTS).unwrap_or_default();
        for Question { key, method, params } in self.questions {
            let Some(mut request) = requests.get(&key).and_then(|request| Fields::of(request)) else { continue };
            if request.get("params").is_some() {
                request.set("params", change(&method, params));
                requests.set(&key, request.to_raw());
            }
        }
        self.result.set(REQUESTS, requests.to_raw());
        self.result.to_raw()
    }

    /// The parameters of the request that follows, from those of the one before.
    pub fn next(&self, mut params: Fields, answers: &Fields) -> Fields {
        params.set(RESPONSES, answers.to_raw());
        match self.result.get(STATE) {
            Some(state) => params.set(STATE, state.clone()),
            None => drop(params.take(STATE)),
        }
        params
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        serde_json::from_str(text).unwrap()
    }

    const ASKS: &str = r#"{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"n":1.10}},
        "r":{"method":"roots/list"},"odd":7},"requestState":"s","x":1.10}"#;

    #[test]
    fn a_result_that_asks_is_told_from_one_that_does_not() {
        for text in [r#"{"content":[{"type":"text","text":"input_required"}]}"#, r#""input_required""#, "{}"] {
            assert!(InputRequired::of(&raw(text)).is_none(), "{text}");
        }
        let asked = InputRequired::of(&raw(ASKS)).unwrap();
        let methods: Vec<_> = asked.questions().iter().map(|question| &*question.method).collect();
        assert_eq!(methods, ["elicitation/create", "roots/list"]);
        let url = ASKS.replace(r#""n":1.10"#, r#""mode":"url""#);
        assert!(!InputRequired::of(&raw(&url)).unwrap().is_for(&raw(r#"{"elicitation":{"form":{}},"roots":{}}"#)));
        assert!(asked.is_for(&raw(r#"{"elicitation":{},"roots":{}}"#)) && !asked.is_for(&raw(r#"{"roots":{}}"#)));
    }

    #[test]
    fn what_is_not_changed_stays_as_it_came() {
        let changed = InputRequired::of(&raw(ASKS)).unwrap().with_params(|_, params| params);
        let fields = Fields::of(&changed).unwrap();
        assert_eq!(fields.get("x").unwrap().get(), "1.10");
        let requests = fields.get(REQUESTS).unwrap().get();
        assert!(requests.contains(r#""params":{"n":1.10}"#) && requests.contains(r#""odd":7"#), "{requests}");
    }

    #[test]
    fn the_next_request_carries_the_answers_and_the_state_of_the_last_result() {
        let asked = InputRequired::of(&raw(ASKS)).unwrap();
        let before = Fields::of(&raw(r#"{"name":"t","requestState":"old"}"#)).unwrap();
        let mut answers = Fields::new();
        answers.set_value("q", &1);
        let next = asked.next(before.clone(), &answers);
        assert_eq!(next.to_raw().get(), r#"{"name":"t","requestState":"s","inputResponses":{"q":1}}"#);
        let stateless = raw(r#"{"resultType":"input_required","inputRequests":{}}"#);
        let next = InputRequired::of(&stateless).unwrap().next(before, &answers);
        assert!(next.get(STATE).is_none());
    }
}
