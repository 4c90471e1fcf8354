//! Records by kind and key.

use tokio::task::JoinSet;

use super::Subject;
use crate::store::{Precondition, Record, StoreError};

pub(in crate::store) async fn a_record_reads_back_as_it_was_written(Subject { store, .. }: &Subject) {
    assert_eq!(store.record("token", "a").await.unwrap(), None);
    // The value is a text to the store: neither its keys nor its numbers are touched.
    let value = r#"{"$schema":"x","a.b":{"$gt":""},"big":9007199254740993,"":null, "spaced" : "é\u0000"}"#;
    for (version, key) in [(1, "a"), (1, "a/b:c %_'é"), (1, ""), (2, "a")] {
        let written = store.put_record("token", key, value, Precondition::Any).await.unwrap();
        assert_eq!(written, Record { key: key.to_owned(), version, value: value.to_owned() });
        assert_eq!(store.record("token", key).await.unwrap(), Some(written));
    }
}

pub(in crate::store) async fn preconditions_hold_for_records_too(Subject { store, .. }: &Subject) {
    let put = async |value: &str, precondition| store.put_record("token", "a", value, precondition).await;
    let early = put("lost", Precondition::Version(1)).await;
    assert!(matches!(early, Err(StoreError::VersionMismatch { current: None })), "{early:?}");
    put("1", Precondition::Absent).await.unwrap();
    let twice = put("lost", Precondition::Absent).await;
    assert!(matches!(twice, Err(StoreError::VersionMismatch { current: Some(1) })), "{twice:?}");
    put("2", Precondition::Version(1)).await.unwrap();
    let stale = put("lost", Precondition::Version(1)).await;
    assert!(matches!(stale, Err(StoreError::VersionMismatch { current: Some(2) })), "{stale:?}");
    let stale = store.delete_record("token", "a", Precondition::Version(1)).await;
    assert!(matches!(stale, Err(StoreError::VersionMismatch { current: Some(2) })), "{stale:?}");
    assert_eq!(store.record("token", "a").await.unwrap().unwrap().value, "2");
}

pub(in crate::store) async fn counting_goes_on_after_a_record_was_deleted(Subject { store, .. }: &Subject) {
    let nothing = store.delete_record("token", "a", Precondition::Any).await;
    assert!(matches!(nothing, Err(StoreError::NotFound)), "{nothing:?}");
    store.put_record("token", "a", "1", Precondition::Any).await.unwrap();
    store.delete_record("token", "a", Precondition::Version(1)).await.unwrap();
    assert_eq!(store.record("token", "a").await.unwrap(), None);
    assert_eq!(store.records("token", "").await.unwrap(), []);
    let again = store.delete_record("token", "a", Precondition::Any).await;
    assert!(matches!(again, Err(StoreError::NotFound)), "{again:?}");

    let stale = store.put_record("token", "a", "lost", Precondition::Version(1)).await;
    assert!(matches!(stale, Err(StoreError::VersionMismatch { current: None })), "{stale:?}");
    assert_eq!(store.put_record("token", "a", "2", Precondition::Absent).await.unwrap().version, 2);
}

pub(in crate::store) async fn kinds_do_not_see_each_other(Subject { store, .. }: &Subject) {
    store.put_record("token", "a", "a token", Precondition::Absent).await.unwrap();
    store.put_record("tenant", "a", "a tenant", Precondition::Absent).await.unwrap();
    store.delete_record("token", "a", Precondition::Any).await.unwrap();
    assert_eq!(store.record("tenant", "a").await.unwrap().unwrap().value, "a tenant");
    assert_eq!(store.records("token", "").await.unwrap(), []);
    assert_eq!(store.records("ten", "").await.unwrap(), []);
}

pub(in crate::store) async fn records_come_by_key_in_byte_order(Subject { store, .. }: &Subject) {
    let all = ["\u{1f600}", "\u{ff5e}", "b", "a/b", "a%", "a", "A", "a\u{10ffff}", ""];
    for key in all {
        store.put_record("binding", key, key, Precondition::Any).await.unwrap();
    }
    for prefix in ["", "a", "a/", "a%", "a\u{10ffff}", "\u{ff5e}", "c"] {
        let mut wanted: Vec<_> = all.into_iter().filter(|key| key.starts_with(prefix)).collect();
        wanted.sort_unstable();
        let found = store.records("binding", prefix).await.unwrap();
        assert_eq!(found.iter().map(|record| record.key.as_str()).collect::<Vec<_>>(), wanted, "{prefix:?}");
        assert!(found.iter().all(|record| record.value == record.key && record.version == 1));
    }
}

pub(in crate::store) async fn concurrent_increments_lose_none(Subject { store, .. }: &Subject) {
    const TASKS: u64 = 8;
    const INCREMENTS: u64 = 25;
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let store = store.clone();
        tasks.spawn(async move {
            let mut left = INCREMENTS;
            while left > 0 {
                let read = store.record("counter", "n").await.unwrap();
                let precondition =
                    read.as_ref().map_or(Precondition::Absent, |read| Precondition::Version(read.version));
                let next = read.map_or(0, |read| read.value.parse::<u64>().unwrap()) + 1;
                match store.put_record("counter", "n", &next.to_string(), precondition).await {
                    Ok(_) => left -= 1,
                    Err(StoreError::VersionMismatch { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        });
    }
    tasks.join_all().await;
    let last = store.record("counter", "n").await.unwrap().unwrap();
    assert_eq!((last.value, last.version), ((TASKS * INCREMENTS).to_string(), TASKS * INCREMENTS));
}
