//! Rows of keyed calls.

use footbridge_shared::id::CallId;
use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;

use super::{Subject, waiting};
use crate::clock::Clock as _;
use crate::store::{StoreError, StoredCall};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

fn id(text: &str) -> CallId {
    CallId::parse(text).unwrap()
}

fn in_an_hour(subject: &Subject) -> Timestamp {
    subject.clock.now() + HOUR
}

fn running(head: &str) -> StoredCall {
    StoredCall { head: head.to_owned(), end: None }
}

pub(in crate::store) async fn a_call_is_inserted_once_and_reads_back(subject: &Subject) {
    let (store, later) = (&subject.store, in_an_hour(subject));
    assert_eq!(store.call(&id("a")).await.unwrap(), None);
    assert_eq!(store.insert_call(&id("a"), "{\"n\":1.10, \"é\":\"\\u0000\"}", later).await.unwrap(), None);
    let there = Some(running("{\"n\":1.10, \"é\":\"\\u0000\"}"));
    assert_eq!(store.insert_call(&id("a"), "another", later).await.unwrap(), there);
    assert_eq!(store.call(&id("a")).await.unwrap(), there);
    assert_eq!(store.call(&id("A")).await.unwrap(), None, "ids are told apart by their bytes");
}

pub(in crate::store) async fn of_many_that_insert_at_once_one_does(subject: &Subject) {
    const TASKS: usize = 32;
    let later = in_an_hour(subject);
    let mut tasks = JoinSet::new();
    for number in 0..TASKS {
        let store = subject.store.clone();
        tasks.spawn(async move { (number, store.insert_call(&id("a"), &number.to_string(), later).await.unwrap()) });
    }
    let answers = tasks.join_all().await;
    let winners: Vec<_> = answers.iter().filter(|(_, there)| there.is_none()).collect();
    let [(winner, _)] = winners[..] else { panic!("{} inserted", winners.len()) };
    let wanted = running(&winner.to_string());
    assert!(answers.iter().filter_map(|(_, there)| there.as_ref()).all(|there| *there == wanted), "{answers:?}");
}

pub(in crate::store) async fn the_first_end_stays(subject: &Subject) {
    let store = &subject.store;
    store.insert_call(&id("a"), "head", in_an_hour(subject)).await.unwrap();
    assert!(store.end_call(&id("a"), "first").await.unwrap());
    assert!(!store.end_call(&id("a"), "second").await.unwrap());
    let ended = StoredCall { head: "head".to_owned(), end: Some("first".to_owned()) };
    assert_eq!(store.call(&id("a")).await.unwrap(), Some(ended.clone()));
    assert_eq!(store.insert_call(&id("a"), "head", in_an_hour(subject)).await.unwrap(), Some(ended));
}

pub(in crate::store) async fn what_is_not_there_does_not_end(Subject { store, .. }: &Subject) {
    let lost = store.end_call(&id("a"), "end").await;
    assert!(matches!(lost, Err(StoreError::NotFound)), "{lost:?}");
    assert_eq!(store.call(&id("a")).await.unwrap(), None);
}

pub(in crate::store) async fn a_removed_call_may_be_inserted_anew(subject: &Subject) {
    let store = &subject.store;
    store.remove_call(&id("a")).await.unwrap();
    store.insert_call(&id("a"), "one", in_an_hour(subject)).await.unwrap();
    store.end_call(&id("a"), "end").await.unwrap();
    store.remove_call(&id("a")).await.unwrap();
    assert_eq!(store.call(&id("a")).await.unwrap(), None);
    assert_eq!(store.insert_call(&id("a"), "two", in_an_hour(subject)).await.unwrap(), None);
    assert_eq!(store.call(&id("a")).await.unwrap(), Some(running("two")));
}

pub(in crate::store) async fn an_expired_call_is_as_good_as_gone(subject: &Subject) {
    let store = &subject.store;
    store.insert_call(&id("a"), "one", in_an_hour(subject)).await.unwrap();
    store.end_call(&id("a"), "end").await.unwrap();
    subject.clock.advance(HOUR - SignedDuration::from_millis(1));
    assert!(store.call(&id("a")).await.unwrap().is_some());
    subject.clock.advance(SignedDuration::from_millis(1));
    assert_eq!(store.call(&id("a")).await.unwrap(), None);
    assert_eq!(store.insert_call(&id("a"), "two", in_an_hour(subject)).await.unwrap(), None);
    assert_eq!(store.call(&id("a")).await.unwrap(), Some(running("two")));
}

pub(in crate::store) async fn a_purge_takes_the_longest_expired_and_no_more_than_it_may(subject: &Subject) {
    let store = &subject.store;
    for number in 0..5 {
        let expires_at = subject.clock.now() + HOUR * (5 - number);
        store.insert_call(&id(&format!("c{number}")), "head", expires_at).await.unwrap();
    }
    assert_eq!(store.purge_calls(10).await.unwrap(), 0);
    subject.clock.advance(HOUR * 3);
    assert_eq!(store.purge_calls(2).await.unwrap(), 2);
    subject.clock.advance(HOUR * -3);
    // Seen before their time, those that are left are there again.
    let mut left = Vec::new();
    for number in 0..5 {
        left.push(store.call(&id(&format!("c{number}"))).await.unwrap().is_some());
    }
    assert_eq!(left, [true, true, true, false, false]);
    subject.clock.advance(HOUR * 5);
    assert_eq!(store.purge_calls(10).await.unwrap(), 3);
}

pub(in crate::store) async fn calls_are_announced_to_nobody(subject: &Subject) {
    let store = &subject.store;
    let mut changes = store.changes();
    store.insert_call(&id("a"), "head", in_an_hour(subject)).await.unwrap();
    store.end_call(&id("a"), "end").await.unwrap();
    store.remove_call(&id("a")).await.unwrap();
    assert_eq!(waiting(&mut changes), Vec::<String>::new());
}
