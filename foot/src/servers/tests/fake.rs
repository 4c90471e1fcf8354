//! A server that is this test program, started once more.

use std::collections::VecDeque;
use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

/// What makes this test program a server: the harness takes the name of a test, and that one is it. What the harness itself
/// writes to standard output is noise between the messages.
pub(crate) const TEST: &str = "servers::tests::fake::is_a_server_when_a_test_starts_it_as_one";
/// Set, it says what kind of server it is: `session` or `stateless`, or `old`, which ends at what it does not know.
pub(crate) const KIND: &str = "FAKE_MCP_SERVER";
/// Set, it is the file that gets a line each time it is started.
pub(crate) const LOG: &str = "FAKE_MCP_LOG";

#[test]
fn is_a_server_when_a_test_starts_it_as_one() {
    if let Some(kind) = std::env::var_os(KIND) {
        if let Some(log) = std::env::var_os(LOG) {
            let mut log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
            log.write_all(b"started\n").unwrap();
        }
        let (stateless, old) = (kind == "stateless", kind == "old");
        Server { stateless, old, capabilities: Value::Null, more: false, calls: 0, waiting: VecDeque::new() }.serve();
        std::process::exit(0);
    }
}

struct Server {
    stateless: bool,
    old: bool,
    capabilities: Value,
    /// Whether it offers one tool more.
    more: bool,
    calls: u64,
    waiting: VecDeque<Value>,
}

fn say(message: &Value) {
    let mut out = std::io::stdout();
    writeln!(out, "{message}").unwrap();
    out.flush().unwrap();
}

fn read() -> Option<Value> {
    let mut line = String::new();
    (std::io::stdin().lock().read_line(&mut line).unwrap() > 0).then(|| serde_json::from_str(&line).unwrap())
}

impl Server {
    fn serve(&mut self) {
        writeln!(std::io::stderr(), "the fake is up").unwrap();
        while let Some(message) = self.waiting.pop_front().or_else(read) {
            let (method, params) = (message["method"].as_str().unwrap_or_default(), &message["params"]);
            if message["id"].is_null() {
                continue;
            }
            let reply = match (method, self.stateless) {
                ("initialize", false) => {
                    self.capabilities = params["capabilities"].clone();
                    Ok(json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "fake", "icon": "x"},
                        "capabilities": {"tools": {"listChanged": true}, "resources": {}}, "instructions": "Be kind."}))
                }
                ("server/discover", true) => Ok(json!({"supportedVersions": ["2026-07-28"], "resultType": "complete",
                    "capabilities": {"tools": {}}, "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fake"}}})),
                ("tools/list", _) => Ok(self.list(params)),
                ("tools/call", _) => {
                    self.calls += 1;
                    self.call(params)
                }
                ("subscriptions/listen", true) => {
                    for uri in params["notifications"]["resourceSubscriptions"].as_array().into_iter().flatten() {
                        say(
                            &json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}),
                        );
                    }
                    continue;
                }
                ("resources/read", _) => Ok(json!({"contents": [{"uri": params["uri"], "text": "x".repeat(100_000)}]})),
                ("prompts/get", _) => {
                    let answer = self.ask(&json!({"message": "a prompt"}));
                    Ok(json!({"messages": [], "answer": answer}))
                }
                ("server/discover", false) if self.old => std::process::exit(3),
                _ => Err(json!({"code": -32601, "message": "no such method"})),
            };
            say(&match reply {
                Ok(result) => json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
                Err(error) => json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
            });
        }
    }

    fn list(&self, params: &Value) -> Value {
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        if params["cursor"].is_null() {
            let echo = json!({"name": "Echo It", "title": "Echo", "description": "Echoes.", "icons": [{"src": "i"}],
                "inputSchema": {"type": "object", "properties": {"n": {"type": "number"}}},
                "annotations": {"readOnlyHint": true}, "outputSchema": {"type": "object"}, "_meta": {"k": 1}});
            return json!({"tools": [echo, {"name": "odd"}, tool("state")], "nextCursor": "p2"});
        }
        let mut tools = vec![tool("ask"), tool("progress"), tool("fail"), tool("die"), tool("change"), tool("hang")];
        if self.more {
            tools.push(tool("more"));
        }
        json!({"tools": tools})
    }

    fn call(&mut self, params: &Value) -> Result<Value, Value> {
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        match params["name"].as_str().unwrap() {
            "Echo It" => Ok(json!({"content": text("echo"), "structuredContent": {"params": params}, "isError": true,
                "_meta": {"m": 1.10}, "beyond": {"n": 9_007_199_254_740_993_u64}})),
            "state" => Ok(json!({"content": [], "structuredContent": {"pid": std::process::id(), "calls": self.calls,
                "capabilities": self.capabilities, "home": std::env::var_os("HOME").is_some(),
                "secret": std::env::var_os("FAKE_SECRET").is_some()}})),
            "ask" if self.stateless => {
                if params["inputResponses"].is_null() {
                    return Ok(json!({"resultType": "input_required", "requestState": "s1",
                        "inputRequests": {"q": {"method": "elicitation/create", "params": {"message": "sure?"}}}}));
                }
                assert_eq!(params["requestState"], "s1");
                Ok(json!({"content": [], "structuredContent": {"answer": params["inputResponses"]["q"],
                    "capabilities": params["_meta"]["io.modelcontextprotocol/clientCapabilities"]}}))
            }
            "ask" => {
                let answer = self.ask(&json!({"message": "sure?"}));
                Ok(json!({"content": [], "structuredContent": {"answer": answer}}))
            }
            "progress" => {
                for step in 1..=3 {
                    say(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params":
                        {"progressToken": params["_meta"]["progressToken"], "progress": step, "total": 3, "message": "on"}}));
                }
                say(
                    &json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hello"}}),
                );
                Ok(json!({"content": []}))
            }
            "fail" => Err(json!({"code": -32602, "message": "that\u{202e} is wrong", "data": {"n": 1}})),
            "change" => {
                self.more = true;
                say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                Ok(json!({"content": []}))
            }
            "hang" => {
                say(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "I hang"}}));
                // Until it is cancelled, and then it says nothing.
                while let Some(message) = read() {
                    if message["method"] == "notifications/cancelled" {
                        return Ok(json!({"content": []}));
                    }
                    self.waiting.push_back(message);
                }
                std::process::exit(0)
            }
            _ => std::process::exit(7),
        }
    }

    /// Asks the client, and waits.
    fn ask(&mut self, params: &Value) -> Value {
        say(&json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}));
        while let Some(message) = read() {
            if message["id"] == "q" && message["method"].is_null() {
                return message["result"].clone();
            }
            self.waiting.push_back(message);
        }
        std::process::exit(0)
    }
}
