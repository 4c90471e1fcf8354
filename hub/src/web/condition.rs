//! Conditional requests: `If-Match`, `If-None-Match` and `ETag`.

use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use footbridge_shared::ErrorCode;

use super::error::{ApiError, ApiResult};
use crate::documents::WriteCondition;

/// The condition of a write.
pub(super) fn of_write(headers: &HeaderMap) -> ApiResult<WriteCondition> {
    let (matches, absent) = (etags(headers, &IF_MATCH)?, etags(headers, &IF_NONE_MATCH)?);
    match (matches, absent) {
        (None, None) => Ok(WriteCondition::Any),
        (Some(Etags::Any), None) => Ok(WriteCondition::Present),
        (Some(Etags::These(these)), None) => Ok(WriteCondition::Matches(these)),
        (None, Some(Etags::Any)) => Ok(WriteCondition::Absent),
        (None, Some(Etags::These(_))) => {
            Err(ApiError::new(ErrorCode::BadRequest, "a write understands `If-None-Match: *` alone"))
        }
        (Some(_), Some(_)) => {
            Err(ApiError::new(ErrorCode::BadRequest, "`If-Match` and `If-None-Match` do not go together"))
        }
    }
}

/// The condition of a delete: there is nothing to say about what is not there.
pub(super) fn of_delete(headers: &HeaderMap) -> ApiResult<WriteCondition> {
    match of_write(headers)? {
        WriteCondition::Absent => {
            Err(ApiError::new(ErrorCode::BadRequest, "a delete does not understand `If-None-Match`"))
        }
        condition => Ok(condition),
    }
}

/// Whether the reader already has this ETag.
pub(super) fn not_modified(headers: &HeaderMap, etag: &str) -> bool {
    match etags(headers, &IF_NONE_MATCH) {
        Ok(Some(Etags::Any)) => true,
        Ok(Some(Etags::These(these))) => these.iter().any(|known| known == etag),
        Ok(None) | Err(_) => false,
    }
}

/// The header value of an ETag.
pub(super) fn etag_header(etag: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("\"{etag}\"")).ok()
}

enum Etags {
    Any,
    These(Vec<String>),
}

/// Reads a list of ETags. Ours hold neither commas nor quotes, so splitting at commas is enough.
fn etags(headers: &HeaderMap, name: &HeaderName) -> ApiResult<Option<Etags>> {
    let (mut all, mut any) = (Vec::new(), false);
    for value in headers.get_all(name) {
        let malformed = || {
            ApiError::new(ErrorCode::BadRequest, format!("`{name}` is no list of ETags"))
                .hint("write an ETag with its quotes, as the `ETag` header shows it")
        };
        for part in value.to_str().map_err(|_| malformed())?.split(',').map(str::trim) {
            if part == "*" {
                any = true;
                continue;
            }
            let strong = part.strip_prefix("W/").unwrap_or(part);
            let bare = strong.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).ok_or_else(malformed)?;
            all.push(bare.to_owned());
        }
    }
    match (any, all.is_empty()) {
        (true, true) => Ok(Some(Etags::Any)),
        (true, false) => Err(ApiError::new(ErrorCode::BadRequest, format!("in `{name}`, `*` stands alone"))),
        (false, true) => Ok(None),
        (false, false) => Ok(Some(Etags::These(all))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn conditions_are_read_as_the_standard_says() {
        let matches = WriteCondition::Matches(vec!["a-1".to_owned(), "b-2".to_owned()]);
        assert_eq!(of_write(&headers(&[(IF_MATCH, "\"a-1\", W/\"b-2\"")])).ok(), Some(matches));
        assert_eq!(of_write(&headers(&[(IF_MATCH, "*")])).ok(), Some(WriteCondition::Present));
        assert_eq!(of_write(&headers(&[(IF_NONE_MATCH, "*")])).ok(), Some(WriteCondition::Absent));
        assert_eq!(of_write(&headers(&[])).ok(), Some(WriteCondition::Any));
        for bad in [
            vec![(IF_MATCH, "a-1")],
            vec![(IF_NONE_MATCH, "\"a\"")],
            vec![(IF_MATCH, "*"), (IF_NONE_MATCH, "*")],
            vec![(IF_MATCH, "\"a-1\", *")],
            vec![(IF_MATCH, "*"), (IF_MATCH, "\"a-1\"")],
        ] {
            assert!(of_write(&headers(&bad)).is_err(), "{bad:?}");
        }
        assert!(not_modified(&headers(&[(IF_NONE_MATCH, "\"x\", \"a-1\"")]), "a-1"));
        assert!(!not_modified(&headers(&[(IF_NONE_MATCH, "\"x\"")]), "a-1"));
    }
}
