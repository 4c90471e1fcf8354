//! A client of the HTTP API that hides nothing: status, headers and body as they come.

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;

use crate::Result;

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: reqwest::header::HeaderMap,
    /// The body.
    pub text: String,
}

impl Answer {
    /// The body as JSON; `null` when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// The `code` of a problem or of a failed call.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The ETag.
    pub fn etag(&self) -> String {
        self.headers.get("etag").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    }

    /// The answer itself, if its status is a success.
    ///
    /// # Errors
    /// The status and body otherwise.
    pub fn ok(self) -> Result<Self> {
        if self.status.is_success() { Ok(self) } else { Err(format!("{}: {}", self.status, self.text).into()) }
    }
}

/// A client with a token.
#[derive(Debug, Clone)]
pub struct Api {
    http: reqwest::Client,
    url: String,
    token: Option<String>,
    scope: String,
}

impl Api {
    /// A client of the hub at `url`, in the scope `local/main`.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn new(url: &str, token: Option<&str>) -> Result<Self> {
        // A second installation answers an error, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build()?;
        Ok(Self { http, url: url.to_owned(), token: token.map(str::to_owned), scope: "local/main".to_owned() })
    }

    /// The same client in another scope.
    #[must_use]
    pub fn in_scope(&self, scope: &str) -> Self {
        Self { scope: scope.to_owned(), ..self.clone() }
    }

    /// The same client with another token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// The token it sends.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// A request to an absolute path of the hub.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// A request below the client's scope.
    pub fn scoped(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, &format!("/v1/{}/{path}", self.scope))
    }

    /// GET below the scope.
    ///
    /// # Errors
    /// When the hub does not answer.
    pub async fn get(&self, path: &str) -> Result<Answer> {
        send(self.scoped(Method::GET, path)).await
    }

    /// PUT of a text below the scope.
    ///
    /// # Errors
    /// When the hub does not answer.
    pub async fn put(&self, path: &str, text: &str) -> Result<Answer> {
        send(self.scoped(Method::PUT, path).body(text.to_owned())).await
    }

    /// DELETE below the scope.
    ///
    /// # Errors
    /// When the hub does not answer.
    pub async fn delete(&self, path: &str) -> Result<Answer> {
        send(self.scoped(Method::DELETE, path)).await
    }

    /// How many calls run now, of those that the token may see.
    ///
    /// # Errors
    /// When the hub does not list them.
    pub async fn running_calls(&self) -> Result<usize> {
        let calls = self.get("calls").await?.ok()?.json();
        let calls = calls["calls"].as_array().ok_or("no list of calls")?;
        Ok(calls.iter().filter(|call| call["state"] == "running").count())
    }

    /// Calls a tool directly.
    ///
    /// # Errors
    /// When the hub does not answer.
    pub async fn invoke(&self, tool: &str, arguments: Value) -> Result<Answer> {
        let body = serde_json::json!({ "arguments": arguments });
        send(self.scoped(Method::POST, &format!("tools/{tool}/invoke")).json(&body)).await
    }

    /// Calls a tool directly and answers its structured result.
    ///
    /// # Errors
    /// When the call fails in any way.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Value> {
        let answer = self.invoke(tool, arguments).await?.ok()?;
        let json = answer.json();
        if json["isError"] == Value::Bool(false) { Ok(json["structured"].clone()) } else { Err(answer.text.into()) }
    }
}

/// Sends a request.
///
/// # Errors
/// When there is no answer.
pub async fn send(request: RequestBuilder) -> Result<Answer> {
    let response = request.send().await?;
    let (status, headers) = (response.status(), response.headers().clone());
    Ok(Answer { status, headers, text: response.text().await? })
}
