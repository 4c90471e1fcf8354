//! Cursors: the last name of a page, opaque to the client.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use footbridge_shared::ErrorCode;

use super::error::{ApiError, ApiResult};
use crate::api::{DEFAULT_PAGE, MAX_PAGE};

/// The size of a page, from what was asked for.
pub(super) fn size(limit: Option<usize>) -> ApiResult<usize> {
    match limit {
        None => Ok(DEFAULT_PAGE),
        Some(limit @ 1..=MAX_PAGE) => Ok(limit),
        Some(_) => Err(ApiError::new(ErrorCode::BadRequest, format!("`limit` must be 1 to {MAX_PAGE}"))),
    }
}

/// Where the next page starts: after this name.
pub(super) fn cursor(last: &str) -> String {
    URL_SAFE_NO_PAD.encode(last)
}

/// The name behind a cursor.
pub(super) fn after(cursor: Option<&str>) -> ApiResult<Option<String>> {
    let Some(cursor) = cursor else { return Ok(None) };
    URL_SAFE_NO_PAD
        .decode(cursor)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .map(Some)
        .ok_or_else(|| ApiError::new(ErrorCode::BadRequest, "`cursor` is none of ours; start without one"))
}
