//! What becomes of one connection.

use footbridge_mcp::{Lifecycle, RequestOptions};

use super::played::played;
use super::*;
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
