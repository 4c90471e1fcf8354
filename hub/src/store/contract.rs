//! The shared suite: what every store must do, told once.
//!
//! A store's own tests say `store_contract!(async |clock| …)` with a constructor that gives a [`Fixture`] over an empty
//! store. That makes one test of each case below.

use std::any::Any;
use std::sync::Arc;

use super::{Change, Store};
use crate::clock::manual::ManualClock;
use crate::domain::document::DocumentPath;
use crate::domain::scope::Scope;

pub(super) mod calls;
pub(super) mod changes;
pub(super) mod documents;
pub(super) mod listing;
pub(super) mod records;

/// An empty store, and what must live as long as it does.
pub(super) struct Fixture {
    pub(super) store: Arc<dyn Store>,
    _keep: Box<dyn Any + Send + Sync>,
}

impl Fixture {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, _keep: Box::new(()) }
    }

    /// Keeps a folder or a server alive for as long as the store is in use.
    pub(super) fn keeping(store: Arc<dyn Store>, keep: impl Any + Send + Sync) -> Self {
        Self { store, _keep: Box::new(keep) }
    }
}

/// What a case works with: the store, and the clock that dates its writes.
pub(super) struct Subject {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<ManualClock>,
}

/// Makes a test of every case, each over a store of its own.
macro_rules! store_contract {
    ($make:expr) => {
        $crate::store::contract::store_contract! { @cases $make;
            documents: a_document_reads_back_as_it_was_written;
            documents: odd_texts_come_back_whole;
            documents: a_stale_write_changes_nothing;
            documents: only_the_first_of_two_creations_wins;
            documents: writing_what_is_not_there_at_a_version_is_refused;
            documents: a_delete_wants_its_document_at_its_version;
            documents: counting_goes_on_after_a_delete;
            documents: the_last_versions_are_kept_newest_first;
            documents: scopes_do_not_see_each_other;
            documents: concurrent_rewrites_lose_none;
            listing: paths_come_in_byte_order;
            listing: a_prefix_is_taken_literally;
            listing: a_prefix_covers_its_keys_up_to_the_last_character;
            listing: pages_follow_each_other_without_gap_or_overlap;
            listing: what_was_deleted_is_not_listed;
            listing: sizes_are_bytes_and_times_those_of_the_version;
            listing: reading_all_gives_the_texts_of_what_is_listed;
            records: a_record_reads_back_as_it_was_written;
            records: preconditions_hold_for_records_too;
            records: counting_goes_on_after_a_record_was_deleted;
            records: kinds_do_not_see_each_other;
            records: records_come_by_key_in_byte_order;
            records: concurrent_increments_lose_none;
            calls: a_call_is_inserted_once_and_reads_back;
            calls: of_many_that_insert_at_once_one_does;
            calls: the_first_end_stays;
            calls: what_is_not_there_does_not_end;
            calls: a_removed_call_may_be_inserted_anew;
            calls: an_expired_call_is_as_good_as_gone;
            calls: a_purge_takes_the_longest_expired_and_no_more_than_it_may;
            calls: calls_are_announced_to_nobody;
            changes: a_revision_counts_the_writes_of_its_scope;
            changes: a_change_is_there_once_the_write_returned;
            changes: what_was_refused_changed_nothing;
            changes: changes_come_in_the_order_of_the_versions;
            changes: closing_twice_is_closing_once;
        }
    };
    (@cases $make:expr; $($module:ident: $case:ident;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let clock = $crate::clock::manual::ManualClock::new();
                let fixture: $crate::store::contract::Fixture = ($make)(clock.clone()).await;
                let subject = $crate::store::contract::Subject { store: fixture.store.clone(), clock };
                $crate::store::contract::$module::$case(&subject).await;
            }
        )+
    };
}
pub(super) use store_contract;

fn path(path: &str) -> DocumentPath {
    DocumentPath::parse(path).unwrap()
}

fn scope(text: &str) -> Scope {
    let (tenant, project) = text.split_once('/').unwrap();
    Scope::new(tenant.parse().unwrap(), project.parse().unwrap())
}

/// The changes that wait for a subscriber, as `acme/main/a.md` and `kind:key`.
fn waiting(changes: &mut tokio::sync::broadcast::Receiver<Change>) -> Vec<String> {
    std::iter::from_fn(|| changes.try_recv().ok())
        .map(|change| match change {
            Change::Document { scope, path } => format!("{scope}/{path}"),
            Change::Record { kind, key } => format!("{kind}:{key}"),
        })
        .collect()
}
