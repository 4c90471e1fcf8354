//! Servers over HTTP, and the tokens that some of them want.

use std::time::Duration;

use async_trait::async_trait;
use footbridge_mcp::{ConnectError, Connection, HttpClientOptions, HttpTarget, Open, http_client};
use footbridge_shared::ErrorCode;
use http::header::{AUTHORIZATION, HeaderValue};
use reqwest::Client;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::config::{ClientCredentials, Endpoint, Tls};
use super::dial::{Dial, Dialed, Unavailable};
use super::redact::Redactor;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long giving out a token may take.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(30);
/// A token is not used any more so long before it ends.
const TOKEN_MARGIN: Duration = Duration::from_secs(60);
/// How long a token is good for that does not say.
const TOKEN_LIFE: Duration = Duration::from_secs(300);
/// How long a token is used at most, whatever it says.
const MAX_TOKEN_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// Largest answer of who gives out tokens, in bytes.
const MAX_TOKEN_ANSWER_BYTES: usize = 64 * 1024;

/// What servers answer that know nothing of streamable HTTP.
const MAYBE_LEGACY: [u16; 3] = [400, 404, 405];

/// Opens connections to a server over HTTP.
pub(super) struct HttpDial {
    endpoint: Endpoint,
    redactor: Redactor,
    client: Result<Client, String>,
    token: Mutex<Option<Token>>,
}

struct Token {
    header: HeaderValue,
    good_until: Instant,
}

/// How long a token is used that is good for so many seconds.
fn used_for(life: Option<u64>) -> Duration {
    let life = life.map_or(TOKEN_LIFE, Duration::from_secs).min(MAX_TOKEN_LIFE);
    life.saturating_sub(TOKEN_MARGIN).max(life / 2)
}

impl HttpDial {
    pub(super) fn new(endpoint: Endpoint, redactor: Redactor) -> Self {
        let client = client(&endpoint);
        Self { endpoint, redactor, client, token: Mutex::new(None) }
    }

    async fn target(&self) -> Result<HttpTarget, Unavailable> {
        let client = self.client.clone().map_err(|why| {
            Unavailable::lasting(ErrorCode::ServerUnavailable, format!("there can be no HTTP client: {why}"))
        })?;
        let mut headers = self.endpoint.headers.clone();
        if let Some(credentials) = &self.endpoint.oauth {
            headers.insert(AUTHORIZATION, self.token(&client, credentials).await?);
        }
        Ok(HttpTarget { url: self.endpoint.url.clone(), headers, client })
    }

    /// A token that is good, fetched by one at a time.
    async fn token(&self, client: &Client, credentials: &ClientCredentials) -> Result<HeaderValue, Unavailable> {
        let mut token = self.token.lock().await;
        if let Some(token) = token.as_ref().filter(|token| Instant::now() < token.good_until) {
            return Ok(token.header.clone());
        }
        let fetched = fetch(client, credentials, &self.redactor).await.map_err(|why| {
            let host = credentials.token_url.origin().ascii_serialization();
            Unavailable::now(format!("{host} gave out no token: {}", self.redactor.text(&why)))
        })?;
        Ok(token.insert(fetched).header.clone())
    }

    async fn open(&self, open: Open) -> Result<Connection, Failed> {
        let target = self.target().await.map_err(Failed::Before)?;
        if self.endpoint.legacy {
            return Connection::over_sse(target, open).await.map_err(Failed::Connect);
        }
        let error = match Connection::over_http(target.clone(), open.clone()).await {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };
        // There may be a server of the first revision at that address.
        if matches!(error, ConnectError::Status(status) if MAYBE_LEGACY.contains(&status))
            && let Ok(connection) = Connection::over_sse(target, open).await
        {
            return Ok(connection);
        }
        Err(Failed::Connect(error))
    }
}

enum Failed {
    Before(Unavailable),
    Connect(ConnectError),
}

#[async_trait]
impl Dial for HttpDial {
    async fn dial(&self, open: Open) -> Result<Dialed, Unavailable> {
        let mut opened = self.open(open.clone()).await;
        // A token may have been withdrawn before its time.
        if matches!(opened, Err(Failed::Connect(ConnectError::Unauthorized(_)))) && self.forget_credentials().await {
            opened = self.open(open).await;
        }
        match opened {
            Ok(connection) => Ok(Dialed { connection, process: None }),
            Err(Failed::Before(unavailable)) => Err(unavailable),
            Err(Failed::Connect(error)) => Err(Unavailable::of(&error, &self.redactor)),
        }
    }

    async fn forget_credentials(&self) -> bool {
        self.token.lock().await.take();
        self.endpoint.oauth.is_some()
    }
}

fn client(endpoint: &Endpoint) -> Result<Client, String> {
    const USER_AGENT: &str = concat!("footbridge/", env!("CARGO_PKG_VERSION"));
    let Tls { skip_verification, ca_pem } = &endpoint.tls;
    if !skip_verification {
        return http_client(&HttpClientOptions {
            connect_timeout: CONNECT_TIMEOUT,
            authorities: ca_pem.as_ref().map(|pem| pem.clone().into_bytes()),
            user_agent: USER_AGENT.to_owned(),
            proxies: true,
        });
    }
    let builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        // A credential goes nowhere but where it was meant for.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(USER_AGENT)
        .tls_danger_accept_invalid_certs(true);
    builder.build().map_err(|error| innermost(&error))
}

async fn fetch(client: &Client, credentials: &ClientCredentials, redactor: &Redactor) -> Result<Token, String> {
    #[derive(Deserialize)]
    struct Given {
        access_token: String,
        #[serde(default)]
        expires_in: Option<u64>,
    }
    let mut form = url_form([("grant_type", "client_credentials")]);
    if !credentials.scopes.is_empty() {
        form = format!("{form}&{}", url_form([("scope", credentials.scopes.join(" ").as_str())]));
    }
    let request = client
        .post(credentials.token_url.clone())
        .timeout(TOKEN_TIMEOUT)
        .basic_auth(form_encoded(&credentials.client_id), Some(form_encoded(&credentials.client_secret)))
        .header(http::header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(http::header::ACCEPT, "application/json")
        .body(form);
    let mut response = request.send().await.map_err(|error| innermost(&error.without_url()))?;
    if !response.status().is_success() {
        // What it says may repeat the credentials.
        return Err(format!("HTTP {}", response.status().as_u16()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| innermost(&error.without_url()))? {
        if body.len() + chunk.len() > MAX_TOKEN_ANSWER_BYTES {
            return Err("the answer is too large".to_owned());
        }
        body.extend_from_slice(&chunk);
    }
    let given: Given = serde_json::from_slice(&body).map_err(|_| "the answer holds no `access_token`".to_owned())?;
    // A server may repeat it.
    redactor.learn(&given.access_token);
    let mut header = HeaderValue::from_str(&format!("Bearer {}", given.access_token))
        .map_err(|_| "the token holds characters that no header may hold".to_owned())?;
    header.set_sensitive(true);
    Ok(Token { header, good_until: Instant::now() + used_for(given.expires_in) })
}

fn url_form<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let pairs: Vec<String> =
        pairs.into_iter().map(|(name, value)| format!("{}={}", form_encoded(name), form_encoded(value))).collect();
    pairs.join("&")
}

/// As `application/x-www-form-urlencoded`.
fn form_encoded(text: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse("http://x/") else { return String::new() };
    url.query_pairs_mut().append_key_only(text);
    url.query().unwrap_or_default().to_owned()
}

/// The cause behind an error of the HTTP client, whose own text may hold addresses.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_used_within_its_life_and_no_longer_than_a_day() {
        let seconds = |life| used_for(life).as_secs();
        assert_eq!([seconds(Some(3_600)), seconds(Some(30)), seconds(None)], [3_540, 15, 240]);
        assert!(Instant::now().checked_add(used_for(Some(u64::MAX))).is_some());
        assert!(used_for(Some(u64::MAX)) < MAX_TOKEN_LIFE);
    }

    #[test]
    fn forms_are_encoded() {
        assert_eq!(url_form([("scope", "a b&c=é")]), "scope=a+b%26c%3D%C3%A9");
    }
}
