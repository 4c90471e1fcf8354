//! `auth` and `tls` of a server that is reached over HTTP. What is wrong with a credential is said without showing it.

use footbridge_shared::ErrorCode;
use http::header::{AUTHORIZATION, COOKIE, HeaderName, HeaderValue};
use reqwest::{Certificate, Url};
use serde_json::{Value as Json, json};

use crate::sources::configured::mcp::config::{Auth, ClientCredentials, Tls};
use crate::yaml::fields::Fields;
use crate::yaml::{KeyPath, Node, Problem, Value, did_you_mean, shown};

/// The kinds of `auth`.
const KINDS: [&str; 5] = ["none", "bearer", "basic", "apiKey", "oauth2ClientCredentials"];
/// Where an API key can stand.
const PLACES: [&str; 3] = ["header", "query", "cookie"];

/// The JSON Schema of `auth`, for people: it is read here, so that no message quotes a credential.
pub(super) fn schema_of_auth() -> Json {
    json!({
        "description": "Credentials: {type: none}, {type: bearer, token}, {type: basic, user, password}, {type: apiKey, in: \
                        header | query | cookie, name, value}, or {type: oauth2ClientCredentials, tokenUrl, clientId, \
                        clientSecret, scopes}. They go to the server's own origin alone.",
    })
}

/// The JSON Schema of `tls`.
pub(super) fn schema_of_tls() -> Json {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "skipVerification": {"type": "boolean", "default": false, "description": "Take any certificate."},
            "caPem": {"type": "string", "description": "Certificates of authorities to trust beside the public ones, as PEM."},
        },
    })
}

/// Reads `auth`; `None`: a problem was reported.
pub(super) fn read(node: &Node, path: &KeyPath, problems: &mut Vec<Problem>) -> Option<Auth> {
    if node.as_text() == Some("none") {
        return Some(Auth::None);
    }
    let before = problems.len();
    let mut fields = Fields::of(node, path.clone(), problems)?;
    let kind = fields.required_text("type")?;
    let auth = match kind {
        "none" => Some(Auth::None),
        "bearer" => secret(&mut fields, "token").map(|token| format!("Bearer {token}")).and_then(|value| {
            header_value(&value).map(|value| Auth::Header(AUTHORIZATION, value)).or_else(|| unfit(&mut fields, "token"))
        }),
        "basic" => {
            let user = fields.required_text("user");
            let password = secret(&mut fields, "password");
            user.zip(password).and_then(|(user, password)| {
                if user.contains(':') {
                    fields.report("user", "a user name holds no colon");
                    return None;
                }
                basic(user, &password)
            })
        }
        "apiKey" => api_key(&mut fields),
        "oauth2ClientCredentials" => client_credentials(&mut fields),
        other => {
            let hint = match did_you_mean(other, KINDS) {
                Some(word) => format!("did you mean `{word}`?"),
                None => format!("the types are {}", KINDS.join(", ")),
            };
            fields.report("type", format!("there is no `auth` of the type `{}`", shown(other))).hint = Some(hint);
            return None;
        }
    };
    fields.finish();
    auth.filter(|_| problems.len() == before)
}

/// `Authorization: Basic …`.
pub(super) fn basic(user: &str, password: &str) -> Option<Auth> {
    use base64::Engine as _;
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    Some(Auth::Header(AUTHORIZATION, header_value(&format!("Basic {pair}"))?))
}

/// A value that no log shows.
pub(super) fn header_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A text that is never quoted.
fn secret(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<String> {
    let Some(node) = fields.node(key) else {
        fields.report(key, format!("the key `{key}` is missing, or has no value"));
        return None;
    };
    match &node.value {
        Value::Text(text) if !text.is_empty() => Some(text.clone()),
        _ => {
            fields.report(key, "it must be a text that is not empty").hint = Some("write it in quotes".to_owned());
            None
        }
    }
}

fn unfit<T>(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<T> {
    fields.report(key, "it holds a character that no header may hold");
    None
}

fn api_key(fields: &mut Fields<'_, '_>) -> Option<Auth> {
    let place = fields.text("in").unwrap_or("header");
    let name = fields.required_text("name");
    let value = secret(fields, "value");
    let (name, value) = (name?, value?);
    match place {
        "header" => {
            let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
                fields.report("name", "this is no name of a header");
                return None;
            };
            header_value(&value).map(|value| Auth::Header(name, value)).or_else(|| unfit(fields, "value"))
        }
        "query" => Some(Auth::Query(name.to_owned(), value)),
        "cookie" => {
            let token = |c: char| c.is_ascii_graphic() && !"()<>@,;:\\\"/[]?={}".contains(c);
            let legal = |c: char| c.is_ascii_graphic() && !"\",;\\".contains(c);
            if !name.chars().all(token) {
                fields.report("name", "this is no name of a cookie");
            } else if !value.chars().all(legal) {
                fields.report("value", "it holds a character that no cookie may hold");
            } else {
                return header_value(&format!("{name}={value}")).map(|value| Auth::Header(COOKIE, value));
            }
            None
        }
        other => {
            let message = format!("it must be one of {}, it is `{}`", PLACES.join(", "), shown(other));
            fields.report("in", message);
            None
        }
    }
}

fn client_credentials(fields: &mut Fields<'_, '_>) -> Option<Auth> {
    let token_url = fields.required_text("tokenUrl");
    let client_id = fields.required_text("clientId");
    let client_secret = secret(fields, "clientSecret");
    let scopes = fields.texts("scopes").unwrap_or_default().into_iter().map(|(text, ..)| text.to_owned()).collect();
    let token_url = match Url::parse(token_url?) {
        Ok(url) if ["http", "https"].contains(&url.scheme()) && url.host().is_some() => url,
        _ => {
            fields.report("tokenUrl", "this is no address that starts with https:// or http://");
            return None;
        }
    };
    let (client_id, client_secret) = (client_id?.to_owned(), client_secret?);
    Some(Auth::ClientCredentials(ClientCredentials { token_url, client_id, client_secret, scopes }))
}

/// Reads `tls`, which has passed its schema; `None`: a problem was reported.
pub(super) fn read_tls(node: &Node, path: &KeyPath, problems: &mut Vec<Problem>) -> Option<Tls> {
    let skip_verification = matches!(node.get("skipVerification").map(|node| &node.value), Some(Value::Bool(true)));
    let Some(pem) = node.get("caPem") else { return Some(Tls { skip_verification, ca_pem: None }) };
    match Certificate::from_pem_bundle(pem.as_text()?.as_bytes()) {
        Ok(ca) if !ca.is_empty() => Some(Tls { skip_verification, ca_pem: pem.as_text().map(str::to_owned) }),
        _ => {
            let problem = Problem::new(pem.at, path.key("caPem"), "these are no certificates as PEM");
            problems.push(problem.code(ErrorCode::InvalidDocument));
            None
        }
    }
}
