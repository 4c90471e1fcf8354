use futures::FutureExt as _;

use super::*;
use crate::client::testing::{Heard, Recorder};

/// Keeps the tasks, and runs none of them.
#[derive(Default)]
struct Kept(Mutex<Vec<BoxFuture<'static, ()>>>);

impl Spawn for Kept {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.lock().push(task);
    }
}

/// Gives back what would be sent.
struct Sent(tokio::sync::mpsc::UnboundedSender<Message>);

impl Replies for Sent {
    fn reply(self: Arc<Self>, message: Message) -> BoxFuture<'static, ()> {
        let _ = self.0.send(message);
        std::future::ready(()).boxed()
    }
}

struct Routed {
    router: Arc<Router>,
    tasks: Arc<Kept>,
    replies: Arc<Sent>,
    sent: tokio::sync::mpsc::UnboundedReceiver<Message>,
    heard: tokio::sync::mpsc::UnboundedReceiver<Heard>,
}

fn routed() -> Routed {
    let (recorder, heard) = Recorder::new();
    let tasks = Arc::new(Kept::default());
    let spawn = Arc::clone(&tasks) as Arc<dyn Spawn>;
    let router = Router::new(Arc::new(recorder), spawn, CancellationToken::new());
    let (send, sent) = tokio::sync::mpsc::unbounded_channel();
    Routed { router, tasks, replies: Arc::new(Sent(send)), sent, heard }
}

impl Routed {
    fn take(&self, text: &str) {
        let origin = Origin { tag: None, until: CancellationToken::new() };
        let replies = || Arc::clone(&self.replies) as Arc<dyn Replies>;
        self.router.take(Message::parse(text).unwrap(), &origin, replies);
    }

    fn expect(&self, id: u64, server_may_end: bool) -> oneshot::Receiver<Result<Raw, RequestError>> {
        let (answers, answer) = oneshot::channel();
        let call = Call { answer: Some(answers), progress: None, started: true, server_may_end };
        self.router.expect(id, call).unwrap();
        answer
    }

    fn tasks(&self) -> usize {
        self.tasks.0.lock().len()
    }
}

#[test]
fn a_flood_of_questions_leaves_a_bounded_number_of_tasks() {
    for method in ["ping", "wait"] {
        let mut routed = routed();
        for id in 0..10_000 {
            routed.take(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#));
        }
        assert!(routed.tasks() <= MAX_QUESTIONS + MAX_SIDE_REPLIES, "{method}: {}", routed.tasks());
        // When those are sent there is room again.
        for task in std::mem::take(&mut *routed.tasks.0.lock()) {
            let _ = task.now_or_never();
        }
        while routed.sent.try_recv().is_ok() {}
        routed.take(r#"{"jsonrpc":"2.0","id":"again","method":"ping"}"#);
        let _ = routed.tasks.0.lock().pop().unwrap().now_or_never();
        assert!(matches!(routed.sent.try_recv(), Ok(Message::Response { outcome: Ok(_), .. })), "{method}");
    }
}

#[test]
fn questions_that_are_large_are_few() {
    let mut routed = routed();
    let large = format!(r#""{}""#, "x".repeat(MAX_QUESTION_BYTES / 3));
    for id in 0..4 {
        routed.take(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"wait","params":{{"a":{large}}}}}"#));
    }
    for task in &mut *routed.tasks.0.lock() {
        let _ = task.now_or_never();
    }
    let asked = std::iter::from_fn(|| routed.heard.try_recv().ok()).count();
    let refused = std::iter::from_fn(|| routed.sent.try_recv().ok()).count();
    assert_eq!((asked, refused), (2, 2));
}

#[test]
fn a_server_cancels_its_own_questions_and_subscriptions_and_no_other_request() {
    let routed = routed();
    let (mut call, mut subscription) = (routed.expect(1, false), routed.expect(2, true));
    for id in [1, 2] {
        routed
            .take(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#));
    }
    assert!(matches!(subscription.try_recv(), Ok(Err(RequestError::Lost(_)))));
    assert!(call.try_recv().is_err());
    routed.take(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert!(matches!(call.try_recv(), Ok(Ok(_))));
}

#[test]
fn an_error_without_an_id_ends_the_only_request_if_it_says_that_none_was_read() {
    let routed = routed();
    let error = |code: i64| format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"no"}}}}"#);
    for code in [PARSE_ERROR, INVALID_REQUEST] {
        let mut call = routed.expect(1, false);
        routed.take(&error(INTERNAL_ERROR));
        assert!(call.try_recv().is_err());
        routed.take(&error(code));
        assert!(matches!(call.try_recv(), Ok(Err(RequestError::Rpc(error))) if error.code == code));
    }
    let mut calls = [routed.expect(1, false), routed.expect(2, false)];
    routed.take(&error(PARSE_ERROR));
    assert!(calls.iter_mut().all(|call| call.try_recv().is_err()));
}

#[test]
fn what_is_answered_another_way_goes_on_to_hear_of_progress() {
    let routed = routed();
    let call = Call { answer: None, progress: None, started: true, server_may_end: false };
    routed.router.expect(1, call).unwrap();
    routed.take(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#);
    routed.take(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert!(routed.router.forget(1).is_some());
}
