//! Cursors of lists: the last thing of a page, and where it was; opaque to the client.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use footbridge_mcp::{Fields, Raw, RpcError, codes};
use serde_json::value::{RawValue, to_raw_value};

/// Things of one page.
pub(super) const PAGE: usize = 500;
/// Bytes of one page, from which on it ends: clients take no message of any size. One thing is on it, however large.
pub(super) const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// Behind what the page starts, as the client says: `None` is the first page.
///
/// # Errors
/// The cursor is none of ours.
pub(super) fn after(params: &Fields) -> Result<Option<String>, RpcError> {
    let Some(cursor) = params.get("cursor").filter(|cursor| cursor.get() != "null") else { return Ok(None) };
    serde_json::from_str::<String>(cursor.get())
        .ok()
        .and_then(|cursor| URL_SAFE_NO_PAD.decode(cursor).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .map(Some)
        .ok_or_else(stale)
}

/// The cursor leads nowhere (any more).
pub(super) fn stale() -> RpcError {
    RpcError::new(codes::INVALID_PARAMS, "the cursor is none of this list; start without one")
}

/// The cursor that leads behind this.
pub(super) fn cursor(last: &str) -> String {
    URL_SAFE_NO_PAD.encode(last)
}

/// A page as a result.
pub(super) fn result(field: &str, things: &[Raw], next: Option<String>) -> Raw {
    let mut result = Fields::new();
    result.set(field, array(things));
    if let Some(next) = next {
        result.set_value("nextCursor", &next);
    }
    result.to_raw()
}

fn array(things: &[Raw]) -> Raw {
    // Raw values can always be written.
    to_raw_value(things).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The page of a list of things with keys and a size in bytes, behind `after`, and what the next one starts behind: the place and key of the last
/// thing. The place alone would lead astray in a list that changed, and the key alone in one that has it twice.
///
/// # Errors
/// There is nothing with that key any more.
pub(super) fn of<T>(
    things: Vec<(String, T)>,
    after: Option<&str>,
    size: impl Fn(&T) -> usize,
) -> Result<(Vec<T>, Option<String>), RpcError> {
    let start = match after {
        None => 0,
        Some(after) => {
            let (place, wanted) = after.split_once(' ').ok_or_else(stale)?;
            let place: usize = place.parse().map_err(|_| stale())?;
            let places = things.iter().enumerate().filter(|(_, (key, _))| key == wanted).map(|(index, _)| index);
            places.min_by_key(|index| index.abs_diff(place)).ok_or_else(stale)? + 1
        }
    };
    let mut bytes = 0;
    let fits = |(_, thing): &&(String, T)| {
        let is_first = bytes == 0;
        bytes += size(thing).max(1);
        is_first || bytes <= MAX_PAGE_BYTES
    };
    let count = things.iter().skip(start).take(PAGE).take_while(fits).count();
    let more = things.len() > start + count;
    let (keys, page): (Vec<String>, Vec<T>) = things.into_iter().skip(start).take(count).unzip();
    let last = keys.last().filter(|_| more).map(|key| format!("{} {key}", start + count - 1));
    Ok((page, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none<T>(_: &T) -> usize {
        0
    }

    #[test]
    fn a_page_ends_with_its_bytes_and_has_something() {
        let list = || [1, MAX_PAGE_BYTES - 1, 1, 3 * MAX_PAGE_BYTES, 1].map(|size| (size.to_string(), size)).to_vec();
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = of(list(), after.as_deref(), |size| *size).unwrap();
            pages.push(page);
            after = next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(pages, [vec![1, MAX_PAGE_BYTES - 1], vec![1], vec![3 * MAX_PAGE_BYTES], vec![1]]);
    }

    #[test]
    fn pages_follow_each_other_and_a_lost_place_is_told() {
        let list = || (0..PAGE + 2).map(|n| (n.to_string(), n)).collect::<Vec<_>>();
        let (first, next) = of(list(), None, none).unwrap();
        assert_eq!((first.len(), next.as_deref()), (PAGE, Some("499 499")));
        let (second, next) = of(list(), Some("499 499"), none).unwrap();
        assert_eq!((second, next), (vec![500, 501], None));
        // The list has become shorter meanwhile.
        let shorter = list().split_off(3);
        assert_eq!(of(shorter, Some("499 499"), none).unwrap().0, [500, 501]);
        for gone in ["499 gone", "499", "gone", "-1 499", ""] {
            assert!(of(list(), Some(gone), none).is_err(), "{gone}");
        }
        let mut params = Fields::new();
        params.set_value("cursor", &cursor("499"));
        assert_eq!(after(&params).unwrap().as_deref(), Some("499"));
        params.set_value("cursor", "!");
        assert!(after(&params).is_err());
    }

    #[test]
    fn what_has_the_same_key_is_paged_once_each() {
        let list = || (0..2 * PAGE + 7).map(|n| ("same".to_owned(), n)).collect::<Vec<_>>();
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = of(list(), after.as_deref(), none).unwrap();
            all.extend(page);
            after = next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(all, (0..2 * PAGE + 7).collect::<Vec<_>>());
    }
}
