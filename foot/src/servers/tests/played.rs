//! A connection to a server that the test itself plays, over pipes in memory.

use footbridge_mcp::{Connection, Lifecycle, Open, Preferred};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf};

use super::*;
use crate::clock::ManualClock;
use crate::servers::attached::Attached;
use crate::servers::router::{For, Router};

/// Bytes on their way, each way.
const PIPE_BYTES: usize = 64 * 1024;

/// The server's end.
pub(super) struct Played {
    read: BufReader<ReadHalf<DuplexStream>>,
    write: WriteHalf<DuplexStream>,
}

/// A connection, and what is around it.
pub(super) struct Stage {
    pub(super) attached: Arc<Attached>,
    pub(super) line: Line,
    pub(super) clock: Arc<ManualClock>,
    pub(super) tasks: Tasks,
}

impl Played {
    /// The next message of the client; `None` when it has ended the connection.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = soon(self.read.read_line(&mut line)).await.unwrap();
        (read > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Says something.
    pub(super) async fn say(&mut self, message: Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Answers a request.
    pub(super) async fn answer(&mut self, request: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    /// Takes the next request, which is of this method, and answers it.
    pub(super) async fn serve(&mut self, method: &str, result: Value) -> Value {
        let request = self.next().await.unwrap();
        assert_eq!(request["method"], method, "{request}");
        self.answer(&request, result).await;
        request
    }
}

/// Opens one, on the stage of another one if that is over.
pub(super) async fn played(lifecycle: Lifecycle, whom: For, before: Option<&Stage>) -> (Stage, Played) {
    let (line, clock, tasks) = match before {
        Some(stage) => (stage.line.clone(), stage.clock.clone(), stage.tasks.clone()),
        None => (Line::default(), ManualClock::shared(), Tasks::default()),
    };
    line.connected(false);
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let (read, write) = tokio::io::split(theirs);
    let mut server = Played { read: BufReader::new(read), write };
    let router = Router::new(EntryName::parse("s").unwrap(), whom, line.clone(), Arc::default(), clock.clone());
    let open = Open {
        preferred: Preferred::Lifecycle(lifecycle),
        client_info: raw(&json!({"name": "test"})),
        capabilities: raw(&json!({})),
        timeout: PATIENCE,
        events: router.clone(),
        spawn: Arc::new(tasks.clone()),
    };
    let (read, write) = tokio::io::split(ours);
    let shaking = async {
        match lifecycle {
            Lifecycle::Session => {
                let agreed = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}}});
                server.serve("initialize", agreed).await;
                server.next().await;
            }
            Lifecycle::Stateless => {
                let found =
                    json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "resources": {}}});
                server.serve("server/discover", found).await;
            }
        }
    };
    let (connection, ()) = tokio::join!(Connection::over_streams(read, write, Arc::new(|_: &str| {}), open), shaking);
    let attached = Attached::new(connection.unwrap(), router);
    (Stage { attached, line, clock, tasks }, server)
}
