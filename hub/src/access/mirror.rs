//! The records of one kind in memory, each parsed once a version.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::store::Record;

/// A value kept as a record.
pub(super) trait Recorded: Sized {
    /// The kind of its records.
    const KIND: &'static str;

    /// Reads the value of a record.
    fn parse(record: &Record) -> serde_json::Result<Self>;
}

/// The records as they were last read. Never changed: what is read next makes a new one, which shares what stayed.
pub(super) struct Mirror<T> {
    entries: BTreeMap<String, Entry<T>>,
}

struct Entry<T> {
    version: u64,
    /// `None`: the record cannot be read, so there is nothing that it allows.
    value: Option<Arc<T>>,
}

impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Self { version: self.version, value: self.value.clone() }
    }
}

impl<T> Default for Mirror<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new() }
    }
}

impl<T: Recorded> Mirror<T> {
    /// What there is once exactly these records are there.
    pub(super) fn of(&self, records: Vec<Record>) -> Self {
        Self { entries: records.into_iter().map(|record| self.entry(record)).collect() }
    }

    /// What there is once this record is there as well.
    pub(super) fn with(&self, record: Record) -> Self {
        let mut entries = self.entries.clone();
        entries.extend([self.entry(record)]);
        Self { entries }
    }

    /// What there is once nothing has this key.
    pub(super) fn without(&self, key: &str) -> Self {
        let mut entries = self.entries.clone();
        entries.remove(key);
        Self { entries }
    }

    /// The value at a key.
    pub(super) fn get(&self, key: &str) -> Option<&Arc<T>> {
        self.entries.get(key)?.value.as_ref()
    }

    /// All values, by key.
    pub(super) fn values(&self) -> impl Iterator<Item = &Arc<T>> {
        self.entries.values().filter_map(|entry| entry.value.as_ref())
    }

    /// The values that `newer` no longer has, or has as another version.
    pub(super) fn gone_from<'a>(&'a self, newer: &'a Self) -> impl Iterator<Item = &'a Arc<T>> {
        self.entries.iter().filter_map(|(key, entry)| {
            let value = entry.value.as_ref()?;
            newer.get(key).is_none_or(|kept| !Arc::ptr_eq(kept, value)).then_some(value)
        })
    }

    fn entry(&self, record: Record) -> (String, Entry<T>) {
        if let Some(entry) = self.entries.get(&record.key).filter(|entry| entry.version == record.version) {
            return (record.key, entry.clone());
        }
        let value = T::parse(&record)
            .inspect_err(|error| tracing::error!(kind = T::KIND, key = record.key, %error, "a record cannot be read"))
            .ok()
            .map(Arc::new);
        (record.key, Entry { version: record.version, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Number(u64);

    impl Recorded for Number {
        const KIND: &'static str = "number";

        fn parse(record: &Record) -> serde_json::Result<Self> {
            serde_json::from_str(&record.value).map(Self)
        }
    }

    fn record(key: &str, version: u64, value: &str) -> Record {
        Record { key: key.to_owned(), version, value: value.to_owned() }
    }

    #[test]
    fn what_did_not_change_stays_the_same_value() {
        let first = Mirror::<Number>::default().of(vec![record("a", 1, "1"), record("b", 1, "2"), record("c", 1, "3")]);
        let second = first.of(vec![record("a", 1, "1"), record("b", 2, "20")]);
        assert!(Arc::ptr_eq(first.get("a").unwrap(), second.get("a").unwrap()));
        assert_eq!(first.gone_from(&second).map(|number| number.0).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(second.values().map(|number| number.0).collect::<Vec<_>>(), [1, 20]);
    }

    #[test]
    fn a_record_that_cannot_be_read_stands_for_nothing() {
        let first = Mirror::<Number>::default().of(vec![record("a", 1, "1")]);
        let second = first.with(record("a", 2, "x")).with(record("b", 1, "2"));
        assert_eq!(second.get("a"), None);
        assert_eq!(first.gone_from(&second).count(), 1);
        assert_eq!(second.with(record("a", 3, "3")).without("b").values().map(|n| n.0).collect::<Vec<_>>(), [3]);
    }
}
