//! Reading, writing, preconditions and versions of documents.

use jiff::SignedDuration;
use tokio::task::JoinSet;

use super::{Subject, path, scope};
use crate::clock::Clock as _;
use crate::domain::document::{Document, MAX_DOCUMENT_BYTES, MAX_VERSIONS};
use crate::store::{Precondition, StoreError};

pub(in crate::store) async fn a_document_reads_back_as_it_was_written(Subject { store, clock }: &Subject) {
    let (main, a) = (scope("acme/main"), path("server-tools/a.yaml"));
    assert_eq!(store.get(&main, &a).await.unwrap(), None);

    // Finer than a millisecond: what a store cannot keep must not be promised by `put` either.
    clock.advance(SignedDuration::from_micros(1_700));
    let first = store.put(&main, &a, "one", "ada", Precondition::Any).await.unwrap();
    assert_eq!((first.text.as_str(), first.version, first.created_by.as_str()), ("one", 1, "ada"));
    assert_eq!((&first.path, first.updated_at), (&a, first.created_at));
    assert_eq!(clock.now().duration_since(first.created_at), SignedDuration::from_micros(700));
    assert_eq!(store.get(&main, &a).await.unwrap().as_ref(), Some(&first));

    clock.advance(SignedDuration::from_secs(60));
    let second = store.put(&main, &a, "two", "bob", Precondition::Any).await.unwrap();
    assert_eq!((second.text.as_str(), second.version, second.created_by.as_str()), ("two", 2, "bob"));
    assert_eq!(second.created_at, first.created_at);
    assert_eq!(second.updated_at.duration_since(first.updated_at), SignedDuration::from_secs(60));
    assert_eq!(store.get(&main, &a).await.unwrap(), Some(second));
}

pub(in crate::store) async fn odd_texts_come_back_whole(Subject { store, .. }: &Subject) {
    let (main, a) = (scope("acme/main"), path("documents/é 漢 %_'\".md"));
    let largest = "é".repeat(MAX_DOCUMENT_BYTES / 2);
    for text in ["", "\0before and behind a NUL\0", "'; DROP TABLE documents; --", "\u{feff}\r\n\u{10ffff}", &largest] {
        store.put(&main, &a, text, "o'brien", Precondition::Any).await.unwrap();
        assert_eq!(store.get(&main, &a).await.unwrap().unwrap().text, text);
        let listed = store.list(&main, "", None, 10).await.unwrap();
        assert_eq!(listed[0].bytes, text.len() as u64);
    }
}

pub(in crate::store) async fn a_stale_write_changes_nothing(Subject { store, .. }: &Subject) {
    let (main, a) = (scope("acme/main"), path("a.md"));
    store.put(&main, &a, "one", "ada", Precondition::Absent).await.unwrap();
    store.put(&main, &a, "two", "ada", Precondition::Version(1)).await.unwrap();

    let stale = store.put(&main, &a, "lost", "bob", Precondition::Version(1)).await;
    assert!(matches!(stale, Err(StoreError::VersionMismatch { current: Some(2) })), "{stale:?}");
    let early = store.put(&main, &a, "lost", "bob", Precondition::Version(3)).await;
    assert!(matches!(early, Err(StoreError::VersionMismatch { current: Some(2) })), "{early:?}");
    assert_eq!(texts(&store.versions(&main, &a).await.unwrap()), ["two", "one"]);
}

pub(in crate::store) async fn only_the_first_of_two_creations_wins(Subject { store, .. }: &Subject) {
    let (main, a) = (scope("acme/main"), path("a.md"));
    store.put(&main, &a, "one", "ada", Precondition::Absent).await.unwrap();
    let second = store.put(&main, &a, "two", "bob", Precondition::Absent).await;
    assert!(matches!(second, Err(StoreError::VersionMismatch { current: Some(1) })), "{second:?}");
    assert_eq!(store.get(&main, &a).await.unwrap().unwrap().text, "one");
}

pub(in crate::store) async fn writing_what_is_not_there_at_a_version_is_refused(Subject { store, .. }: &Subject) {
    let (main, a) = (scope("acme/main"), path("a.md"));
    for version in [0, 1] {
        let refused = store.put(&main, &a, "one", "ada", Precondition::Version(version)).await;
        assert!(matches!(refused, Err(StoreError::VersionMismatch { current: None })), "{refused:?}");
    }
    assert_eq!(store.get(&main, &a).await.unwrap(), None);
    assert_eq!(store.put(&main, &a, "one", "ada", Precondition::Any).await.unwrap().version, 1);
}

pub(in crate::store) async fn a_delete_wants_its_document_at_its_version(Subject { store, .. }: &Subject) {
    let (main, a) = (scope("acme/main"), path("a.md"));
    for precondition in [Precondition::Any, Precondition::Absent, Precondition::Version(1)] {
        let nothing = store.delete(&main, &a, "ada", precondition).await;
        assert!(matches!(nothing, Err(StoreError::NotFound)), "{nothing:?}");
    }
    store.put(&main, &a, "one", "ada", Precondition::Any).await.unwrap();
    for precondition in [Precondition::Absent, Precondition::Version(2)] {
        let refused = store.delete(&main, &a, "ada", precondition).await;
        assert!(matches!(refused, Err(StoreError::VersionMismatch { current: Some(1) })), "{refused:?}");
    }
    assert!(store.get(&main, &a).await.unwrap().is_some());

    store.delete(&main, &a, "ada", Precondition::Version(1)).await.unwrap();
    assert_eq!(store.get(&main, &a).await.unwrap(), None);
    let again = store.delete(&main, &a, "ada", Precondition::Any).await;
    assert!(matches!(again, Err(StoreError::NotFound)), "{again:?}");
}

pub(in crate::store) async fn counting_goes_on_after_a_delete(Subject { store, clock }: &Subject) {
    let (main, a) = (scope("acme/main"), path("a.md"));
    store.put(&main, &a, "one", "ada", Precondition::Any).await.unwrap();
    let second = store.put(&main, &a, "two", "ada", Precondition::Any).await.unwrap();
    store.delete(&main, &a, "ada", Precondition::Any).await.unwrap();
    assert_eq!(texts(&store.versions(&main, &a).await.unwrap()), ["two", "one"]);

    // An ETag from before the delete fits nothing that comes after it.
    let stale = store.put(&main, &a, "lost", "bob", Precondition::Version(2)).await;
    assert!(matches!(stale, Err(StoreError::VersionMismatch { current: None })), "{stale:?}");

    clock.advance(SignedDuration::from_secs(1));
    let third = store.put(&main, &a, "three", "bob", Precondition::Absent).await.unwrap();
    assert_eq!(third.version, 3);
    assert!(third.created_at > second.updated_at, "it is a new document");
    assert_eq!(texts(&store.versions(&main, &a).await.unwrap()), ["three", "two", "one"]);
}

pub(in crate::store) async fn the_last_versions_are_kept_newest_first(Subject { store, .. }: &Subject) {
    let (main, a, other) = (scope("acme/main"), path("a.md"), path("b.md"));
    assert_eq!(store.versions(&main, &a).await.unwrap(), []);
    store.put(&main, &other, "untouched", "ada", Precondition::Any).await.unwrap();
    let written = MAX_VERSIONS as u64 + 3;
    for version in 1..=written {
        store.put(&main, &a, &format!("text {version}"), "ada", Precondition::Any).await.unwrap();
    }
    let kept = store.versions(&main, &a).await.unwrap();
    let numbers: Vec<u64> = kept.iter().map(|document| document.version).collect();
    assert_eq!(numbers, (4..=written).rev().collect::<Vec<_>>());
    assert!(kept.iter().all(|document| document.text == format!("text {}", document.version)));
    assert_eq!(kept.first(), store.get(&main, &a).await.unwrap().as_ref());
    assert_eq!(texts(&store.versions(&main, &other).await.unwrap()), ["untouched"]);
}

pub(in crate::store) async fn scopes_do_not_see_each_other(Subject { store, .. }: &Subject) {
    let a = path("a.md");
    let scopes = ["acme/main", "acme/other", "acme/_tenant", "other/main"].map(scope);
    for scope in &scopes {
        assert_eq!(store.get(scope, &a).await.unwrap(), None, "{scope}");
        store.put(scope, &a, &format!("of {scope}"), "ada", Precondition::Absent).await.unwrap();
    }
    store.put(&scopes[0], &a, "changed", "ada", Precondition::Version(1)).await.unwrap();
    store.delete(&scopes[3], &a, "ada", Precondition::Version(1)).await.unwrap();

    assert_eq!(store.get(&scopes[0], &a).await.unwrap().unwrap().text, "changed");
    for scope in &scopes[1..3] {
        assert_eq!(store.get(scope, &a).await.unwrap().unwrap().text, format!("of {scope}"));
        assert_eq!(store.list(scope, "", None, 10).await.unwrap().len(), 1);
        assert_eq!(store.versions(scope, &a).await.unwrap().len(), 1);
    }
    assert_eq!(store.list(&scopes[3], "", None, 10).await.unwrap(), []);
}

pub(in crate::store) async fn concurrent_rewrites_lose_none(Subject { store, .. }: &Subject) {
    const WRITERS: u64 = 8;
    const REWRITES: u64 = 10;
    let (main, a) = (scope("acme/main"), path("count.md"));
    store.put(&main, &a, "0", "ada", Precondition::Absent).await.unwrap();
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (store, main, a) = (store.clone(), main.clone(), a.clone());
        writers.spawn(async move {
            let mut left = REWRITES;
            while left > 0 {
                let read = store.get(&main, &a).await.unwrap().unwrap();
                let next = (read.text.parse::<u64>().unwrap() + 1).to_string();
                match store.put(&main, &a, &next, "ada", Precondition::Version(read.version)).await {
                    Ok(_) => left -= 1,
                    Err(StoreError::VersionMismatch { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        });
    }
    writers.join_all().await;
    let last = store.get(&main, &a).await.unwrap().unwrap();
    assert_eq!((last.text, last.version), ((WRITERS * REWRITES).to_string(), WRITERS * REWRITES + 1));
}

fn texts(versions: &[Document]) -> Vec<&str> {
    versions.iter().map(|document| document.text.as_str()).collect()
}
