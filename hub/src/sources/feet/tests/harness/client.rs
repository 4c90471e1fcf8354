//! An MCP client that is played by hand.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_mcp::{RpcError, Version};
use footbridge_shared::message::Raw;
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{mpsc, oneshot};

use crate::domain::mcp::McpClient;

/// A question that the client was asked. Its answer goes there; once nobody waits for that, it was withdrawn.
pub(in super::super) struct Put {
    pub(in super::super) method: String,
    pub(in super::super) params: Raw,
    pub(in super::super) answer: oneshot::Sender<Result<Raw, RpcError>>,
}

impl Put {
    pub(in super::super) fn answer(self, answer: &Value) {
        assert!(self.answer.send(Ok(to_raw_value(answer).unwrap())).is_ok(), "it was withdrawn");
    }
}

/// See the module.
pub(in super::super) struct Client {
    capabilities: Raw,
    questions: mpsc::UnboundedSender<Put>,
    /// What it was told.
    pub(in super::super) told: Mutex<Vec<(String, String)>>,
}

impl Client {
    /// The client, and what it is asked.
    pub(in super::super) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Put>) {
        let (questions, put) = mpsc::unbounded_channel();
        let capabilities = RawValue::from_string(r#"{"elicitation":{}}"#.to_owned()).unwrap();
        (Arc::new(Self { capabilities, questions, told: Mutex::default() }), put)
    }
}

#[async_trait]
impl McpClient for Client {
    fn version(&self) -> Version {
        Version::V2025_11_25
    }

    fn capabilities(&self) -> &Raw {
        &self.capabilities
    }

    fn session(&self) -> Option<&str> {
        Some("m-1")
    }

    async fn request(&self, method: &str, params: Raw) -> Result<Raw, RpcError> {
        let (answer, said) = oneshot::channel();
        self.questions.send(Put { method: method.to_owned(), params, answer }).unwrap();
        said.await.unwrap()
    }

    fn notify(&self, method: &str, params: Raw) {
        self.told.lock().push((method.to_owned(), params.get().to_owned()));
    }
}
