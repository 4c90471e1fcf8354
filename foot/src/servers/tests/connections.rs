//! What becomes of one connection.

use footbridge_mcp::{Lifecycle, RequestOptions};

use super::played::played;
use super::*;
use crate::clock::Clock as _;
use crate::servers::router::For;

#[tokio::test(start_paused = true)]
async fn what_runs_on_a_connection_that_is_given_up_runs_to_its_end_and_then_it_ends() {
    let (stage, mut server) = played(Lifecycle::Session, For::Everybody, None).await;
    stage.tasks.run(stage.attached.listen());
    let bystander = stage.attached.clone();
    let asked = bystander.connection.request("tools/call", None, RequestOptions::default());
    let play = async {
        let request = server.next().await.unwrap();
        stage.attached.give_up();
        assert!(stage.attached.is_over());
        server.answer(&request, json!({"content": []})).await;
    };
    let (answer, ()) = tokio::join!(asked, play);
    assert_eq!(answer.unwrap().get(), r#"{"content":[]}"#);
    assert!(!stage.attached.connection.closed().is_cancelled());
    drop((bystander, stage));
    assert_eq!(server.next().await, None, "the last who held it ended it");
}

#[tokio::test]
async fn a_connection_is_idle_from_the_end_of_its_last_call() {
    let (stage, _server) = played(Lifecycle::Session, For::Everybody, None).await;
    let router = &stage.attached.router;
    let running = router.enter(&context::detached().0);
    stage.clock.advance(Duration::from_secs(16 * 60));
    assert_eq!(router.idle_since(), None);
    drop(running);
    assert_eq!(router.idle_since(), Some(stage.clock.boot()));
}
