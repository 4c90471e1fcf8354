//! A client of streamable HTTP that hides nothing: it sends the text that it is given, and hands out each message as it came,
//! in the order that it came.

use std::sync::atomic::{AtomicU64, Ordering};

use footbridge_mcp::Fields;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use super::exchange::Exchange;
use crate::Result;
use crate::fake_mcp::message::{self, Message, raw};

/// The newest version with sessions.
pub const SESSION_VERSION: &str = "2025-11-25";
/// The version without.
pub const STATELESS_VERSION: &str = "2026-07-28";
const SESSION: &str = "mcp-session-id";

/// An endpoint, and who calls.
#[derive(Debug, Clone)]
pub struct Target {
    http: reqwest::Client,
    /// The endpoint.
    pub url: String,
    token: Option<String>,
}

impl Target {
    /// An endpoint.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn new(url: &str, token: Option<&str>) -> Result<Self> {
        // A second installation answers an error, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build()?;
        Ok(Self { http, url: url.to_owned(), token: token.map(str::to_owned) })
    }

    /// A request, with the token.
    pub fn request(&self, method: Method) -> RequestBuilder {
        let request = self.http.request(method, &self.url);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }
}

/// How the client and the server know each other.
#[derive(Debug, Clone)]
enum Lifecycle {
    Session { id: Option<String>, version: String },
    Stateless { capabilities: Value },
}

/// A client.
#[derive(Debug)]
pub struct Client {
    target: Target,
    lifecycle: Lifecycle,
    ids: AtomicU64,
    /// What the server says of itself.
    pub server: Value,
}

/// What a client can do that can do everything.
pub fn capable() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": { "listChanged": true } })
}

impl Client {
    /// Opens a session.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn open(target: &Target, capabilities: Value) -> Result<Self> {
        Self::open_with(target, SESSION_VERSION, capabilities).await
    }

    /// Opens a session with a version.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn open_with(target: &Target, version: &str, capabilities: Value) -> Result<Self> {
        let lifecycle = Lifecycle::Session { id: None, version: version.to_owned() };
        let mut client = Self { target: target.clone(), lifecycle, ids: AtomicU64::new(1), server: Value::Null };
        let params = json!({ "protocolVersion": version, "capabilities": capabilities,
            "clientInfo": { "name": "story", "version": "1" } });
        let (_, mut exchange) = client.begin("initialize", params).await?;
        let id = exchange.headers.get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
        client.server = exchange.result().await?;
        client.lifecycle = Lifecycle::Session { id, version: version.to_owned() };
        client.notify("notifications/initialized", json!({})).await?;
        Ok(client)
    }

    /// A client that says with each request who it is.
    ///
    /// # Errors
    /// When the server does not speak so.
    pub async fn stateless(target: &Target, capabilities: Value) -> Result<Self> {
        let lifecycle = Lifecycle::Stateless { capabilities };
        let mut client = Self { target: target.clone(), lifecycle, ids: AtomicU64::new(1), server: Value::Null };
        client.server = client.request("server/discover", json!({})).await?.result_value();
        Ok(client)
    }

    /// Both ways to know a server, so that a story is told twice.
    ///
    /// # Errors
    /// When the server refuses one.
    pub async fn both(target: &Target, capabilities: &Value) -> Result<[Self; 2]> {
        let stateless = Self::stateless(target, capabilities.clone()).await?;
        Ok([Self::open(target, capabilities.clone()).await?, stateless])
    }

    /// Whether it has no session.
    pub const fn is_stateless(&self) -> bool {
        matches!(self.lifecycle, Lifecycle::Stateless { .. })
    }

    /// The id of its session.
    pub fn session(&self) -> Option<&str> {
        match &self.lifecycle {
            Lifecycle::Session { id, .. } => id.as_deref(),
            Lifecycle::Stateless { .. } => None,
        }
    }

    /// The same session, as somebody else would use it.
    #[must_use]
    pub fn as_seen_by(&self, target: &Target) -> Self {
        Self {
            target: target.clone(),
            lifecycle: self.lifecycle.clone(),
            ids: AtomicU64::new(1_000),
            server: Value::Null,
        }
    }

    /// Sends a text. Whatever comes back is shown.
    ///
    /// # Errors
    /// When nothing comes back.
    pub async fn post(&self, text: String, more: &[(&str, &str)]) -> Result<Exchange> {
        let mut request = self.target.request(Method::POST).body(text);
        request = request.header("content-type", "application/json");
        request = request.header("accept", "application/json, text/event-stream");
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        Exchange::of(self.known(request)).await
    }

    fn known(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.lifecycle {
            Lifecycle::Session { id: Some(id), version } => {
                request.header(SESSION, id).header("mcp-protocol-version", version)
            }
            Lifecycle::Session { id: None, .. } => request,
            Lifecycle::Stateless { .. } => request.header("mcp-protocol-version", STATELESS_VERSION),
        }
    }

    /// Begins a request, and answers its id.
    ///
    /// # Errors
    /// When nothing comes back.
    pub async fn begin(&self, method: &str, params: Value) -> Result<(String, Exchange)> {
        self.begin_raw(method, &params.to_string()).await
    }

    /// Begins a request whose parameters are this very text.
    ///
    /// # Errors
    /// When nothing comes back.
    pub async fn begin_raw(&self, method: &str, params: &str) -> Result<(String, Exchange)> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed).to_string();
        let Lifecycle::Stateless { capabilities } = &self.lifecycle else {
            return Ok((id.clone(), self.post(message::request(&id, method, params), &[]).await?));
        };
        let mut fields = Fields::of(&raw(params)?).ok_or("no object")?;
        let mut meta = fields.get("_meta").and_then(|meta| Fields::of(meta)).unwrap_or_default();
        meta.set_value("io.modelcontextprotocol/protocolVersion", STATELESS_VERSION);
        meta.set_value("io.modelcontextprotocol/clientInfo", &json!({ "name": "story", "version": "1" }));
        meta.set_value("io.modelcontextprotocol/clientCapabilities", capabilities);
        fields.set("_meta", meta.to_raw());
        let name = match method {
            "tools/call" | "prompts/get" => fields.read::<String>("name"),
            "resources/read" => fields.read::<String>("uri"),
            _ => None,
        };
        let mut headers = vec![("mcp-method", method)];
        if let Some(name) = &name {
            headers.push(("mcp-name", name));
        }
        let text = message::request(&id, method, fields.to_raw().get());
        Ok((id, self.post(text, &headers).await?))
    }

    /// Asks, and waits for the answer; what comes before it is passed over.
    ///
    /// # Errors
    /// When there is none.
    pub async fn request(&self, method: &str, params: Value) -> Result<Message> {
        self.begin(method, params).await?.1.answer().await
    }

    /// Calls a tool, and waits for the answer.
    ///
    /// # Errors
    /// When there is none.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Message> {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Calls a tool, answers each question with what `answer` makes of it, and shows the questions. Without a session the
    /// questions come as a result, and the call is made again.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn call_and_answer(
        &self,
        tool: &str,
        mut answer: impl FnMut(&str, &Value) -> Value,
    ) -> Result<(Message, Vec<Value>)> {
        let mut questions = Vec::new();
        let mut params = json!({ "name": tool, "arguments": {} });
        loop {
            let (_, mut exchange) = self.begin("tools/call", params.clone()).await?;
            let last = loop {
                let message = exchange.next().await?.ok_or("the stream ended without an answer")?;
                match (&message.id, &message.method) {
                    (Some(id), Some(method)) => {
                        let question = message.params_value();
                        self.answer(id.get(), answer(method, &question)).await?;
                        questions.push(question);
                    }
                    (Some(_), None) => break message,
                    _ => {}
                }
            };
            let result = last.result_value();
            if result["resultType"] != "input_required" {
                return Ok((last, questions));
            }
            let mut responses = json!({});
            for (key, question) in result["inputRequests"].as_object().into_iter().flatten() {
                responses[key] = answer(question["method"].as_str().unwrap_or_default(), &question["params"]);
                questions.push(question["params"].clone());
            }
            params["inputResponses"] = responses;
            params["requestState"] = result["requestState"].clone();
        }
    }

    /// Tells.
    ///
    /// # Errors
    /// When the server does not take it.
    pub async fn notify(&self, method: &str, params: Value) -> Result<()> {
        let headers: &[(&str, &str)] = if self.is_stateless() { &[("mcp-method", method)] } else { &[] };
        let exchange = self.post(message::notification(method, &params.to_string()), headers).await?;
        if exchange.status.is_success() { Ok(()) } else { Err(format!("{method}: {}", exchange.status).into()) }
    }

    /// Answers a question of the server.
    ///
    /// # Errors
    /// When the server does not take it.
    pub async fn answer(&self, id: &str, result: Value) -> Result<()> {
        let exchange = self.post(message::result(id, &result.to_string()), &[]).await?;
        if exchange.status.is_success() { Ok(()) } else { Err(format!("answer {id}: {}", exchange.status).into()) }
    }

    /// Cancels a request of a session.
    ///
    /// # Errors
    /// When the server does not take it.
    pub async fn cancel(&self, id: &str) -> Result<()> {
        let id: Value = serde_json::from_str(id)?;
        self.notify("notifications/cancelled", json!({ "requestId": id, "reason": "user" })).await
    }

    /// What belongs to no request, from now on or after an event.
    ///
    /// # Errors
    /// When the server has no such stream.
    pub async fn listen(&self, after: Option<&str>) -> Result<Exchange> {
        if self.is_stateless() {
            let all = json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true });
            let (_, mut exchange) = self.begin("subscriptions/listen", json!({ "notifications": all })).await?;
            exchange.until("notifications/subscriptions/acknowledged").await?;
            return Ok(exchange);
        }
        let mut request = self.target.request(Method::GET).header("accept", "text/event-stream");
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let exchange = Exchange::of(self.known(request)).await?;
        if exchange.status.is_success() { Ok(exchange) } else { Err(format!("no stream: {}", exchange.status).into()) }
    }

    /// Ends the session.
    ///
    /// # Errors
    /// When nothing comes back.
    pub async fn end(&self) -> Result<StatusCode> {
        Ok(Exchange::of(self.known(self.target.request(Method::DELETE))).await?.status)
    }

    /// All entries of a list, over all pages.
    ///
    /// # Errors
    /// When a page does not come.
    pub async fn list(&self, method: &str, field: &str) -> Result<Vec<Value>> {
        let (mut all, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
            let answer = self.request(method, params).await?;
            let mut result = answer.result_value();
            let page = result[field].as_array().cloned();
            all.extend(page.ok_or_else(|| format!("{method}: {}", answer.error_value()))?);
            cursor = result["nextCursor"].take();
            if cursor.is_null() {
                return Ok(all);
            }
        }
    }

    /// The names of all tools.
    ///
    /// # Errors
    /// When they are not listed.
    pub async fn tool_names(&self) -> Result<Vec<String>> {
        let tools = self.list("tools/list", "tools").await?;
        Ok(tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect())
    }
}
