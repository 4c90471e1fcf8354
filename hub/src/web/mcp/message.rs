//! What a client posts, and what it is answered: JSON-RPC, taken apart only where it is routed.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use footbridge_mcp::headers::JSON;
use footbridge_mcp::{Fields, Message, Raw, RequestId, RpcError, codes, meta as names, response_text};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Most messages of one batch.
pub(super) const MAX_BATCH: usize = 100;
/// Longest id of a request, in bytes of its JSON.
pub(super) const MAX_ID_BYTES: usize = 256;
/// Longest token under which progress is told, in bytes of its JSON.
pub(super) const MAX_PROGRESS_TOKEN_BYTES: usize = 256;
/// Fields of `params`, and of what is taken apart in it: each takes many times the bytes that it came with. What is in
/// `arguments` does not count.
pub(super) const MAX_FIELDS: usize = 1_000;
/// Most that a client can say of what it can do, in bytes: a session keeps it.
pub(super) const MAX_CAPABILITIES_BYTES: usize = 64 * 1024;

/// A request of a client.
pub(super) struct Request {
    pub(super) id: RequestId,
    pub(super) method: String,
    /// Its parameters, `_meta` included.
    pub(super) params: Fields,
    /// What is in `_meta`.
    pub(super) meta: Fields,
}

/// A message of a client.
pub(super) enum Incoming {
    Request(Request),
    Notification { method: String, params: Fields },
    Response { id: Option<RequestId>, outcome: Result<Raw, RpcError> },
}

impl Incoming {
    fn of(message: Message) -> Result<Self, Refusal> {
        match message {
            // It is kept, and comes back with all that is said of the request.
            Message::Request { id, .. } if id.as_json().len() > MAX_ID_BYTES => {
                let error = too_long(codes::INVALID_REQUEST, "the id", MAX_ID_BYTES, "number the requests");
                Err(Refusal::bad(error))
            }
            Message::Request { id, method, params } => match fields(params) {
                Ok((params, meta)) => Ok(Self::Request(Request { id, method, params, meta })),
                Err(error) => Err(Refusal { id: Some(id), ..Refusal::bad(error) }),
            },
            Message::Notification { method, params } => {
                let (params, _) = fields(params).map_err(Refusal::bad)?;
                Ok(Self::Notification { method, params })
            }
            Message::Response { id, outcome } => Ok(Self::Response { id, outcome }),
        }
    }
}

/// Parameters and what is in their `_meta`.
fn fields(params: Option<Raw>) -> Result<(Fields, Fields), RpcError> {
    let Some(params) = params else { return Ok((Fields::new(), Fields::new())) };
    let params = taken_apart("`params`", &params)?;
    let meta = match params.get("_meta") {
        None => Fields::new(),
        Some(meta) => taken_apart("`params._meta`", meta)?,
    };
    if meta.get(names::PROGRESS_TOKEN).is_some_and(|token| token.get().len() > MAX_PROGRESS_TOKEN_BYTES) {
        let what = "`params._meta.progressToken`";
        return Err(too_long(codes::INVALID_PARAMS, what, MAX_PROGRESS_TOKEN_BYTES, "number the requests"));
    }
    if meta.get(names::CLIENT_CAPABILITIES).is_some_and(|raw| raw.get().len() > MAX_CAPABILITIES_BYTES) {
        return Err(too_many_capabilities());
    }
    Ok((params, meta))
}

/// Something of the client that is kept is longer than may be.
pub(super) fn too_long(code: i64, what: &str, max: usize, hint: &str) -> RpcError {
    let data = object([("maxBytes", max.into()), ("hint", hint.into())]);
    RpcError { data: Some(data), ..RpcError::new(code, format!("{what} is longer than {max} bytes")) }
}

/// The client can do more than can be kept.
pub(super) fn too_many_capabilities() -> RpcError {
    let hint = "name what the client can do; settings of its own belong elsewhere";
    too_long(codes::INVALID_PARAMS, "what the client says of its capabilities", MAX_CAPABILITIES_BYTES, hint)
}

/// A body.
pub(super) enum Body {
    One(Incoming),
    /// Messages in an array, each as far as it can be read.
    Batch(Vec<Result<Incoming, Refusal>>),
}

/// Reads a body.
///
/// # Errors
/// It is no JSON-RPC message, and no array of such.
pub(super) fn read(body: &[u8]) -> Result<Body, Refusal> {
    let text = std::str::from_utf8(body)
        .map_err(|_| Refusal::bad(RpcError::new(codes::PARSE_ERROR, "the body is not UTF-8 text")))?;
    let one = |text: &str| Message::parse(text).map_err(Refusal::bad).and_then(Incoming::of);
    if !text.trim_start().starts_with('[') {
        return one(text).map(Body::One);
    }
    let Listed(messages, count) = serde_json::from_str(text)
        .map_err(|error| Refusal::bad(RpcError::new(codes::PARSE_ERROR, format!("this is no JSON: {error}"))))?;
    if count == 0 || count > MAX_BATCH {
        let message = format!("a batch has 1 to {MAX_BATCH} messages");
        return Err(Refusal::bad(RpcError::new(codes::INVALID_REQUEST, message)));
    }
    Ok(Body::Batch(messages.into_iter().map(|message| one(message.get())).collect()))
}

/// The messages of a batch, as many as may be, and how many there are.
struct Listed<'a>(Vec<&'a RawValue>, usize);

impl<'de> Deserialize<'de> for Listed<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Array;
        impl<'de> Visitor<'de> for Array {
            type Value = Listed<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Listed<'de>, A::Error> {
                let (mut messages, mut count) = (Vec::new(), 0);
                while let Some(message) = seq.next_element::<&RawValue>()? {
                    count += 1;
                    if count <= MAX_BATCH {
                        messages.push(message);
                    }
                }
                Ok(Listed(messages, count))
            }
        }
        deserializer.deserialize_seq(Array)
    }
}

/// A JSON-RPC error that is the whole answer, with its status.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) id: Option<RequestId>,
    pub(super) error: RpcError,
}

impl Refusal {
    /// The message itself is at fault.
    pub(super) fn bad(error: RpcError) -> Self {
        Self { status: StatusCode::BAD_REQUEST, id: None, error }
    }

    /// As an answer to this request.
    pub(super) fn to(id: &RequestId, error: RpcError) -> Self {
        Self { id: Some(id.clone()), ..Self::bad(error) }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        json_response(self.status, response_text(self.id.as_ref(), Err(&self.error)))
    }
}

/// A JSON answer.
pub(super) fn json_response(status: StatusCode, text: String) -> Response {
    let mut response = (status, text).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

/// Whether JSON is an object.
pub(super) fn is_object(raw: &Raw) -> bool {
    raw.get().trim_start().starts_with('{')
}

/// It is of another kind.
pub(super) fn no_object(what: &str) -> RpcError {
    RpcError::new(codes::INVALID_PARAMS, format!("{what} must be an object"))
}

/// The fields of something that the client says.
///
/// # Errors
/// It is no object, or has too many fields.
pub(super) fn taken_apart(what: &str, raw: &RawValue) -> Result<Fields, RpcError> {
    let wrong = || match raw.get().trim_start().starts_with('{') {
        true => RpcError::new(codes::INVALID_PARAMS, format!("{what} has more than {MAX_FIELDS} fields")),
        false => no_object(what),
    };
    Fields::of_at_most(raw, MAX_FIELDS).ok_or_else(wrong)
}

/// An object from fields that are values.
pub(super) fn object<const N: usize>(fields: [(&str, serde_json::Value); N]) -> Raw {
    let mut object = Fields::new();
    for (name, value) in fields {
        object.set_value(name, &value);
    }
    object.to_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_keeps_what_can_be_read_of_it() {
        let Ok(Body::Batch(read)) = read(br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"1.0"},7]"#) else {
            panic!("it is a batch")
        };
        let kinds: Vec<bool> = read.iter().map(Result::is_ok).collect();
        assert_eq!(kinds, [true, false, false]);
        assert!(super::read(b"[]").is_err());
    }

    #[test]
    fn parameters_are_objects_and_a_refusal_names_the_request() {
        let Err(refusal) = read(br#"{"jsonrpc":"2.0","id":"a","method":"ping","params":[1]}"#) else {
            panic!("a list is no object")
        };
        assert_eq!((refusal.error.code, refusal.id.unwrap().as_json()), (codes::INVALID_PARAMS, "\"a\""));
    }

    #[test]
    fn what_has_too_many_fields_is_not_taken_apart() {
        let fields = |count: usize| (0..count).map(|n| format!("\"f{n}\":{n}")).collect::<Vec<_>>().join(",");
        let request =
            |params: &str| read(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{params}}}"#).as_bytes());
        assert!(request(&format!("{{{}}}", fields(MAX_FIELDS))).is_ok());
        assert!(request(&format!(r#"{{"arguments":{{{}}}}}"#, fields(2 * MAX_FIELDS))).is_ok());
        for params in [fields(MAX_FIELDS + 1), format!(r#""_meta":{{{}}}"#, fields(MAX_FIELDS + 1))] {
            let Err(refusal) = request(&format!("{{{params}}}")) else { panic!("it has too many") };
            assert_eq!(refusal.error.code, codes::INVALID_PARAMS);
            assert!(refusal.error.message.contains("1000"), "{}", refusal.error.message);
        }
        let long = format!("[{}1]", "1,".repeat(9_999));
        let Ok(Listed(kept, count)) = serde_json::from_str(&long) else { panic!("it is a list") };
        assert_eq!((kept.len(), count), (MAX_BATCH, 10_000));
    }

    #[test]
    fn what_is_kept_of_a_client_has_an_end() {
        let request = |id: &str, meta: &str| {
            read(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping","params":{{"_meta":{meta}}}}}"#).as_bytes())
        };
        let text = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
        let capabilities = |length: usize| {
            format!(r#"{{"{}":{{"x":{}}}}}"#, names::CLIENT_CAPABILITIES, text(length - r#"{"x":}"#.len()))
        };
        let token = |length: usize| format!(r#"{{"progressToken":{}}}"#, text(length));
        for (id, meta) in [
            (text(MAX_ID_BYTES), "{}".to_owned()),
            ("1".to_owned(), token(MAX_PROGRESS_TOKEN_BYTES)),
            ("1".to_owned(), capabilities(MAX_CAPABILITIES_BYTES)),
        ] {
            assert!(request(&id, &meta).is_ok());
        }
        for (id, meta, code) in [
            (text(MAX_ID_BYTES + 1), "{}".to_owned(), codes::INVALID_REQUEST),
            ("1".to_owned(), token(MAX_PROGRESS_TOKEN_BYTES + 1), codes::INVALID_PARAMS),
            ("1".to_owned(), capabilities(MAX_CAPABILITIES_BYTES + 1), codes::INVALID_PARAMS),
        ] {
            let Err(refusal) = request(&id, &meta) else { panic!("it is too long") };
            assert_eq!(refusal.error.code, code);
            assert!(refusal.error.data.unwrap().get().contains("hint"));
        }
    }
}
