//! What every store decides alike: whether a write may happen, what time it bears, and which keys a prefix covers.

use std::ops::Bound;

use jiff::Timestamp;

use super::{Precondition, StoreError, StoreResult};
use crate::clock::Clock;

/// Refuses a write whose precondition does not hold. `current` is the version that is there; `None`: nothing is.
pub(super) fn check(precondition: Precondition, current: Option<u64>) -> StoreResult<()> {
    let holds = match precondition {
        Precondition::Any => true,
        Precondition::Absent => current.is_none(),
        Precondition::Version(wanted) => current == Some(wanted),
    };
    if holds { Ok(()) } else { Err(StoreError::VersionMismatch { current }) }
}

/// Refuses a delete of what is not there, whatever its precondition, and of what is there at another version.
pub(super) fn check_delete(precondition: Precondition, current: Option<u64>) -> StoreResult<()> {
    if current.is_none() { Err(StoreError::NotFound) } else { check(precondition, current) }
}

/// The time of a write, in whole milliseconds: the finest that every store can keep.
pub(super) fn write_time(clock: &dyn Clock) -> Timestamp {
    let now = clock.now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

/// A run of keys in byte order: from `start`, which is in it, to `end`, which is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyRange {
    /// The least key it may hold.
    pub(super) start: String,
    /// The least key beyond it; `None` when no key lies beyond.
    pub(super) end: Option<String>,
}

impl KeyRange {
    /// The keys that start with `prefix` and come after `after`.
    pub(super) fn new(prefix: &str, after: Option<&str>) -> Self {
        // In byte order nothing lies between a text and the same text with a NUL behind it.
        let start = after.map(|after| format!("{after}\0")).filter(|start| start.as_str() > prefix);
        Self { start: start.unwrap_or_else(|| prefix.to_owned()), end: end_of_prefix(prefix) }
    }

    /// As the bounds of an ordered map; `None` when the range is empty, which such a map would not take.
    pub(super) fn bounds(&self) -> Option<(Bound<&str>, Bound<&str>)> {
        match &self.end {
            Some(end) if self.start >= *end => None,
            end => Some((Bound::Included(&self.start), end.as_deref().map_or(Bound::Unbounded, Bound::Excluded))),
        }
    }
}

/// The least text above all texts that start with `prefix`, if there is one.
///
/// UTF-8 sorts as its characters do, so that is the prefix with its last character raised by one. The highest
/// character cannot be raised: it is dropped, and the one before it raised.
fn end_of_prefix(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // Stepping a range of `char` also steps over the surrogates, which are no characters.
        if let Some(next) = (last..=char::MAX).nth(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_prefix_ends_where_its_last_character_is_raised() {
        assert_eq!(end_of_prefix("recipes/").as_deref(), Some("recipes0"));
        assert_eq!(end_of_prefix("a\u{d7ff}").as_deref(), Some("a\u{e000}"));
        assert_eq!(end_of_prefix("a\u{7f}").as_deref(), Some("a\u{80}"));
        assert_eq!(end_of_prefix("a\u{10ffff}\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(end_of_prefix("\u{10ffff}"), None);
        assert_eq!(end_of_prefix(""), None);
    }

    /// Few characters, so that prefixes meet: the neighbours of every edge there is.
    fn key() -> impl Strategy<Value = String> {
        let edges = ['\0', 'a', 'b', '%', '\u{7f}', '\u{80}', '\u{d7ff}', '\u{e000}', '\u{10fffe}', '\u{10ffff}'];
        prop::collection::vec(prop::sample::select(edges.to_vec()), 0..4).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn a_range_holds_just_the_keys_of_its_prefix_behind_its_mark(
            key in key(), prefix in key(), after in prop::option::of(key()),
        ) {
            let range = KeyRange::new(&prefix, after.as_deref());
            let held = key >= range.start && range.end.as_ref().is_none_or(|end| key < *end);
            let wanted = key.starts_with(&prefix) && after.is_none_or(|after| key > after);
            prop_assert_eq!(held, wanted);
        }
    }
}
