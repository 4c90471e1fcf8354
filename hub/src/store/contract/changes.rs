//! Revisions, notices and the end.

use tokio::task::JoinSet;

use super::{Subject, path, scope, waiting};
use crate::store::Precondition;

pub(in crate::store) async fn a_revision_counts_the_writes_of_its_scope(Subject { store, .. }: &Subject) {
    let (main, other, a) = (scope("acme/main"), scope("acme/other"), path("a.md"));
    assert_eq!(store.revision(&main).await.unwrap(), 0);
    store.put(&main, &a, "one", "ada", Precondition::Any).await.unwrap();
    assert_eq!(store.revision(&main).await.unwrap(), 1);
    store.put(&main, &path("b.md"), "one", "ada", Precondition::Any).await.unwrap();
    assert_eq!(store.revision(&main).await.unwrap(), 2);
    store.delete(&main, &a, "ada", Precondition::Any).await.unwrap();
    assert_eq!(store.revision(&main).await.unwrap(), 3);

    assert!(store.put(&main, &a, "lost", "ada", Precondition::Version(1)).await.is_err());
    assert!(store.delete(&main, &a, "ada", Precondition::Any).await.is_err());
    store.put_record("token", "a", "{}", Precondition::Any).await.unwrap();
    assert_eq!(store.revision(&main).await.unwrap(), 3, "neither what was refused nor a record counts");
    assert_eq!(store.revision(&other).await.unwrap(), 0);
}

pub(in crate::store) async fn a_change_is_there_once_the_write_returned(Subject { store, .. }: &Subject) {
    let (main, a) = (scope("acme/main"), path("a.md"));
    store.put(&main, &path("before.md"), "one", "ada", Precondition::Any).await.unwrap();
    let mut changes = store.changes();
    assert_eq!(waiting(&mut changes), [""; 0], "only what comes from now on");

    store.put(&main, &a, "one", "ada", Precondition::Any).await.unwrap();
    assert_eq!(waiting(&mut changes), ["acme/main/a.md"]);
    store.put_record("token", "t", "{}", Precondition::Any).await.unwrap();
    store.delete(&main, &a, "ada", Precondition::Any).await.unwrap();
    store.delete_record("token", "t", Precondition::Any).await.unwrap();
    assert_eq!(waiting(&mut changes), ["token:t", "acme/main/a.md", "token:t"]);
}

pub(in crate::store) async fn what_was_refused_changed_nothing(Subject { store, .. }: &Subject) {
    let (main, a) = (scope("acme/main"), path("a.md"));
    let mut changes = store.changes();
    assert!(store.put(&main, &a, "lost", "ada", Precondition::Version(1)).await.is_err());
    assert!(store.delete(&main, &a, "ada", Precondition::Any).await.is_err());
    assert!(store.put_record("token", "t", "lost", Precondition::Version(1)).await.is_err());
    assert!(store.delete_record("token", "t", Precondition::Any).await.is_err());
    assert_eq!(waiting(&mut changes), [""; 0]);
    assert_eq!(store.revision(&main).await.unwrap(), 0);
    assert_eq!(store.versions(&main, &a).await.unwrap(), []);
}

pub(in crate::store) async fn changes_come_in_the_order_of_the_versions(Subject { store, .. }: &Subject) {
    const WRITES: u64 = 64;
    let (log, mut changes) = (scope("acme/main"), store.changes());
    let mut writes = JoinSet::new();
    for number in 0..WRITES {
        let (store, log) = (store.clone(), log.clone());
        writes.spawn(async move {
            // Every write also goes to one shared path: its version says which place the write took among all.
            let place = store.put(&log, &path("shared"), "", "ada", Precondition::Any).await.unwrap().version;
            store.put_record("place", &format!("{place:03}"), &number.to_string(), Precondition::Absent).await.unwrap();
        });
    }
    writes.join_all().await;
    let seen = waiting(&mut changes);
    let shared = seen.iter().filter(|change| *change == "acme/main/shared").count() as u64;
    assert_eq!((shared, seen.len() as u64), (WRITES, 2 * WRITES), "none is missing, none comes twice");
    for (index, change) in seen.iter().enumerate() {
        let Some(place) = change.strip_prefix("place:") else { continue };
        let ahead = seen[..index].iter().filter(|change| *change == "acme/main/shared").count();
        assert!(ahead >= place.parse::<usize>().unwrap(), "record {place} came ahead of the write it tells of");
    }
}

pub(in crate::store) async fn closing_twice_is_closing_once(Subject { store, .. }: &Subject) {
    let (main, a) = (scope("acme/main"), path("a.md"));
    store.put(&main, &a, "one", "ada", Precondition::Any).await.unwrap();
    store.close().await.unwrap();
    store.close().await.unwrap();
}
