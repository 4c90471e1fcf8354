//! Plays the client in the suite's scenarios for clients, on the client with which the hub reaches servers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use footbridge_mcp::headers::ParamHeaders;
use footbridge_mcp::{
    Connection, Events, Fields, HttpTarget, Lifecycle, Open, Preferred, Raw, RequestOptions, RpcError, Spawn, Tag,
    Version, codes,
};
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use crate::Result;

/// How long the handshake may take, and the end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a scenario may take. The suite waits for the end of a client that it gave up, so this one ends by itself.
const WHOLE: Duration = Duration::from_secs(25);
/// Rounds of questions that one call may have.
const ROUNDS: usize = 10;

/// What the suite says besides the server's address.
#[derive(Debug, Default)]
pub struct Script {
    /// The scenario.
    pub scenario: String,
    /// The version to speak.
    pub version: String,
    /// What is special about it; `null` if nothing is.
    pub context: Value,
}

/// Plays a scenario with the server at `url`.
///
/// # Errors
/// When the server cannot be reached or the scenario is unknown.
pub async fn play(url: &str, script: &Script) -> Result<()> {
    // A second installation answers an error, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let tasks = Arc::new(Tasks::default());
    let lifecycle = Version::parse(&script.version).map_or(Lifecycle::Session, Version::lifecycle);
    let open = Open {
        preferred: Preferred::Lifecycle(lifecycle),
        client_info: raw(&json!({ "name": "footbridge-conformance", "version": env!("CARGO_PKG_VERSION") }))?,
        capabilities: raw(&capabilities())?,
        timeout: PATIENCE,
        events: Arc::new(Person),
        spawn: tasks.clone(),
    };
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build()?;
    let target = HttpTarget { url: url.parse()?, headers: http::HeaderMap::new(), client };
    let player = Player { connection: Connection::over_http(target, open).await? };
    let played = tokio::time::timeout(WHOLE, player.play(&script.scenario, &script.context)).await;
    player.connection.close(PATIENCE).await;
    let mut tasks = std::mem::take(&mut *tasks.0.lock().unwrap_or_else(PoisonError::into_inner));
    tasks.shutdown().await;
    played.map_err(|_| format!("the scenario does not end within {WHOLE:?}"))?
}

struct Player {
    connection: Connection,
}

impl Player {
    async fn play(&self, scenario: &str, context: &Value) -> Result<()> {
        let tools = self.list("tools/list", "tools").await?;
        match scenario {
            "initialize" | "request-metadata" | "json-schema-ref-no-deref" => Ok(()),
            "tools_call" => self.call(&tools, "add_numbers", &json!({ "a": 5, "b": 3 })).await,
            "elicitation-sep1034-client-defaults" => {
                self.call(&tools, "test_client_elicitation_defaults", &json!({})).await
            }
            "sse-retry" => self.call(&tools, "test_reconnection", &json!({})).await,
            "sep-2322-client-request-state" => self.states(&tools).await,
            "http-standard-headers" => self.everything(&tools).await,
            "http-custom-headers" => {
                for call in context["toolCalls"].as_array().ok_or("no calls in the context")? {
                    let name = call["name"].as_str().ok_or("a call without a name")?;
                    self.call(&tools, name, &call["arguments"]).await?;
                }
                Ok(())
            }
            "http-invalid-tool-headers" => {
                for tool in tools.iter().filter(|tool| tool.headers.is_ok()) {
                    self.call(&tools, &tool.name, &json!({ "region": "here" })).await?;
                }
                Ok(())
            }
            "json-schema-2020-12-preservation" => {
                let focal = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
                let schema = focal.and_then(|tool| tool.fields.get("inputSchema")).ok_or("no schema")?;
                self.call(&tools, "json_schema_echo", &Map::from_iter([("schema".to_owned(), value(schema)?)])).await
            }
            other => Err(format!("the scenario `{other}` is not played").into()),
        }
    }

    /// One call whose answer waits while another goes on, and those that the suite looks at besides.
    async fn states(&self, tools: &[Tool]) -> Result<()> {
        let first = self.round(tools, "test_mrtr_echo_state", &json!({}), None).await?;
        self.call(tools, "test_mrtr_unrelated", &json!({})).await?;
        let more = asked(&first).ok_or("nothing was asked")?;
        self.round(tools, "test_mrtr_echo_state", &json!({}), Some(&more)).await?;
        self.call(tools, "test_mrtr_no_state", &json!({})).await?;
        self.call(tools, "test_mrtr_no_result_type", &json!({})).await
    }

    /// Every kind of request that has a name.
    async fn everything(&self, tools: &[Tool]) -> Result<()> {
        for tool in tools {
            self.call(tools, &tool.name, &json!({})).await?;
        }
        for resource in self.list("resources/list", "resources").await? {
            let uri: String = resource.fields.read("uri").ok_or("a resource without an address")?;
            self.request("resources/read", &json!({ "uri": uri }), None).await?;
        }
        for prompt in self.list("prompts/list", "prompts").await? {
            self.request("prompts/get", &json!({ "name": prompt.name }), None).await?;
        }
        Ok(())
    }

    async fn list(&self, method: &str, field: &str) -> Result<Vec<Tool>> {
        let result = self.request(method, &json!({}), None).await?;
        let entries: Vec<Raw> = Fields::of(&result).and_then(|fields| fields.read(field)).ok_or("no list")?;
        entries.iter().map(|entry| Tool::of(entry)).collect()
    }

    /// Calls a tool, in as many rounds as it takes.
    async fn call(&self, tools: &[Tool], name: &str, arguments: &(impl Serialize + Sync)) -> Result<()> {
        let mut more = None;
        for _ in 0..ROUNDS {
            more = asked(&self.round(tools, name, arguments, more.as_ref()).await?);
            if more.is_none() {
                return Ok(());
            }
        }
        Err(format!("`{name}` asks without end").into())
    }

    async fn round(
        &self,
        tools: &[Tool],
        name: &str,
        arguments: &(impl Serialize + Sync),
        more: Option<&Map<String, Value>>,
    ) -> Result<Value> {
        let tool = tools.iter().find(|tool| tool.name == name).ok_or_else(|| format!("there is no tool `{name}`"))?;
        let headers = tool.headers.clone()?;
        let mut params = json!({ "name": name, "arguments": arguments });
        for (field, value) in more.into_iter().flatten() {
            params[field] = value.clone();
        }
        value(&self.request("tools/call", &params, Some(Arc::new(headers))).await?)
    }

    async fn request(
        &self,
        method: &str,
        params: &(impl Serialize + Sync),
        param_headers: Option<Arc<ParamHeaders>>,
    ) -> Result<Raw> {
        let options = RequestOptions { capabilities: Some(raw(&capabilities())?), param_headers, ..Default::default() };
        Ok(self.connection.request(method, Some(raw(params)?), options).await?)
    }
}

/// One entry of a listing.
struct Tool {
    name: String,
    fields: Fields,
    headers: std::result::Result<ParamHeaders, String>,
}

impl Tool {
    fn of(entry: &Raw) -> Result<Self> {
        let fields = Fields::of(entry).ok_or("an entry is no object")?;
        let name = fields.read("name").ok_or("an entry without a name")?;
        let headers =
            fields.get("inputSchema").map_or_else(|| Ok(ParamHeaders::default()), |schema| ParamHeaders::of(schema));
        Ok(Self { name, fields, headers })
    }
}

/// What a call has to bring along when it is made again, if its result wants to know something.
fn asked(result: &Value) -> Option<Map<String, Value>> {
    if result["resultType"] != "input_required" {
        return None;
    }
    let requests = result["inputRequests"].as_object().into_iter().flatten();
    let answers = requests.map(|(key, request)| {
        let answer = answer(request["method"].as_str().unwrap_or_default(), &request["params"]);
        (key.clone(), answer.unwrap_or_default())
    });
    let mut more = Map::from_iter([("inputResponses".to_owned(), Value::Object(answers.collect()))]);
    if let Some(state) = result.get("requestState") {
        more.insert("requestState".to_owned(), state.clone());
    }
    Some(more)
}

/// What this client can be asked for.
fn capabilities() -> Value {
    json!({ "elicitation": { "form": { "applyDefaults": true } }, "sampling": {}, "roots": {} })
}

/// Answers everything: a form with its defaults.
fn answer(method: &str, params: &Value) -> Option<Value> {
    match method {
        "elicitation/create" => {
            let fields = params["requestedSchema"]["properties"].as_object().into_iter().flatten();
            let filled = fields.filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone())));
            Some(json!({ "action": "accept", "content": filled.collect::<Map<_, _>>() }))
        }
        "sampling/createMessage" => {
            let content = json!({ "type": "text", "text": "An answer." });
            Some(json!({ "role": "assistant", "model": "none", "content": content }))
        }
        "roots/list" => Some(json!({ "roots": [] })),
        _ => None,
    }
}

/// Whoever sits before this client.
struct Person;

#[async_trait]
impl Events for Person {
    async fn request(&self, _tag: Option<Tag>, method: &str, params: Option<Raw>) -> Result<Raw, RpcError> {
        let params = params.and_then(|params| value(&params).ok()).unwrap_or_default();
        let answer = answer(method, &params).and_then(|answer| raw(&answer).ok());
        answer.ok_or_else(|| RpcError::new(codes::METHOD_NOT_FOUND, "this is not known here"))
    }

    fn notification(&self, _tag: Option<Tag>, _method: &str, _params: Option<Raw>) {}
}

/// The tasks of the connection.
#[derive(Default)]
struct Tasks(Mutex<JoinSet<()>>);

impl Spawn for Tasks {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).spawn(task);
    }
}

fn raw(value: &(impl Serialize + ?Sized)) -> Result<Raw> {
    Ok(to_raw_value(value)?)
}

fn value(raw: &Raw) -> Result<Value> {
    Ok(serde_json::from_str(raw.get())?)
}
