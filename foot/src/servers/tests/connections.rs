//! What becomes of one connection.

use footbridge_mcp::{Events as _, Lifecycle, RequestOptions, changes};
use footbridge_shared::message::{Audience, Notify};

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

fn ada() -> Audience {
    Audience { subject: Subject::parse("ada").unwrap(), session: Some("m-1".to_owned()) }
}

fn told(line: &Line) -> Vec<Notify> {
    let notes = line.take().into_iter().map(|message| match message {
        FootToHub::Notify(note) => note,
        other => panic!("{other:?}"),
    });
    notes.collect()
}

#[tokio::test]
async fn what_is_asked_and_said_because_of_a_call_that_is_over_reaches_nobody_else() {
    let (stage, _server) = played(Lifecycle::Session, For::Somebody(ada()), None).await;
    let router = &stage.attached.router;
    let ctx = context::detached().0.over(stage.line.clone(), None, false);
    let over = router.enter(&ctx).tag;
    let _other = router.enter(&ctx);
    let answer = soon(router.request(Some(over), "elicitation/create", None)).await.unwrap();
    assert_eq!(answer.get(), r#"{"action":"decline"}"#);
    assert!(stage.line.take().is_empty(), "nobody was asked");

    router.notification(Some(over), "notifications/message", None);
    router.notification(None, "notifications/message", None);
    let told: Vec<_> =
        told(&stage.line).into_iter().map(|note| (note.call.is_some(), note.audience.is_some())).collect();
    assert_eq!(told, [(false, true), (true, false)]);
}

#[tokio::test]
async fn word_of_a_resource_goes_to_all_for_whom_the_connection_is_and_to_no_call() {
    for (whom, somebody) in [(For::Everybody, false), (For::Somebody(ada()), true)] {
        let (stage, _server) = played(Lifecycle::Session, whom, None).await;
        let router = &stage.attached.router;
        let running = router.enter(&context::detached().0);
        for tag in [None, Some(running.tag)] {
            router.notification(tag, changes::RESOURCE, Some(raw(&json!({"uri": "a:b"}))));
            let [note] = told(&stage.line).try_into().unwrap();
            assert_eq!((note.call.is_none(), note.audience.is_some()), (true, somebody));
            assert_eq!(note.params.get(), r#"{"uri":"a:b"}"#);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_list_its_tools_is_given_up_on_and_told_so() {
    let (stage, mut server) = played(Lifecycle::Session, For::Everybody, None).await;
    let page = Duration::from_secs(5);
    let silent = async {
        let request = server.next().await.unwrap();
        assert_eq!(server.next().await.unwrap()["params"]["requestId"], request["id"]);
    };
    let (listed, ()) = tokio::join!(crate::servers::listing::tools(&stage.attached.connection, page), silent);
    let why = listed.unwrap_err();
    assert!(why.contains("20s") && why.contains("initTimeoutSeconds"), "{why}");
}
