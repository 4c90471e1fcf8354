//! How long a question waits, and with what it ends.

use tokio_util::sync::CancellationToken;

use super::*;

const SESSION: Version = Version::V2025_06_18;

/// A client whose person takes their time.
struct Thinking {
    time: Duration,
    capabilities: Raw,
    /// Fires when somebody is asked, and when nobody is any more.
    asked: CancellationToken,
    over: CancellationToken,
}

impl Thinking {
    fn of(time: Duration) -> Arc<Self> {
        let capabilities = to_raw_value(&json!({"elicitation": {}})).unwrap();
        Arc::new(Self { time, capabilities, asked: CancellationToken::new(), over: CancellationToken::new() })
    }
}

#[async_trait]
impl McpClient for Thinking {
    fn version(&self) -> Version {
        SESSION
    }
    fn capabilities(&self) -> &Raw {
        &self.capabilities
    }
    fn session(&self) -> Option<&str> {
        Some("1")
    }
    async fn request(&self, _: &str, _: Raw) -> Result<Raw, RpcError> {
        let _over = self.over.clone().drop_guard();
        self.asked.cancel();
        tokio::time::sleep(self.time).await;
        Ok(to_raw_value(&json!({"action": "accept"})).unwrap())
    }
    fn notify(&self, _: &str, _: Raw) {}
}

fn by_thinking(client: &Arc<Thinking>) -> CallContext {
    let mut ctx = plain("ann");
    ctx.client = Some(client.clone());
    ctx
}

#[tokio::test(start_paused = true)]
async fn a_call_is_not_idle_while_a_person_thinks() {
    for stateless in [false, true] {
        let lab = Lab::with(|fake| fake.stateless = stateless);
        let attachment = lab.attach(SessionMode::Subject);
        ready(&attachment).await;
        let ctx = by_thinking(&Thinking::of(Duration::from_secs(250)));
        let output = tokio::select! {
            output = call(&attachment, "ask", json!({}), &ctx) => output.unwrap(),
            expired = ctx.clock.expired() => panic!("{expired:?}"),
        };
        assert_eq!(structured(&output)["answer"], json!({"action": "accept"}), "stateless: {stateless}");
        lab.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_goes_with_its_call() {
    let mut lab = Lab::with(|fake| {
        fake.tools.get_mut().push(json!({"name": "hurry", "inputSchema": {"type": "object"}}));
    });
    let attachment = lab.attach(SessionMode::Subject);
    ready(&attachment).await;
    let client = Thinking::of(Duration::from_secs(100_000));
    let ctx = by_thinking(&client);
    let ended = async {
        client.asked.cancelled().await;
        let connection = lab.fake.clients.lock().len() - 1;
        lab.fake.answer(connection);
    };
    let (output, ()) = futures::join!(call(&attachment, "hurry", json!({}), &ctx), ended);
    output.unwrap();
    client.over.cancelled().await;
    assert_eq!(lab.hears("answer").await.1, Json::Null, "it is answered by an error");
    lab.end().await;
}
