//! Lists that come in pages.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use footbridge_shared::message::Raw;

use crate::client::{Connection, RequestOptions};
use crate::error::RequestError;
use crate::fields::{Fields, read_array, read_field};

/// Bytes of a cursor. It is sent back with the request for the next page.
const MAX_CURSOR_BYTES: usize = 64 * 1024;

/// How much of a list is taken.
#[derive(Debug, Clone, Copy)]
pub struct ListLimits {
    /// Pages.
    pub pages: usize,
    /// Entries.
    pub items: usize,
    /// Bytes of JSON, all entries together.
    pub bytes: usize,
}

/// A list.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// Its entries, as they came.
    pub items: Vec<Raw>,
    /// Why there are not all of them: a limit was reached, or the server said again what it had said before.
    pub cut: Option<String>,
}

/// Lists all that `method` (`tools/list` and the like) has in `field`, page by page. `options` are those of each page.
///
/// # Errors
/// A page did not come, or is no page.
pub async fn list_all(
    connection: &Connection,
    method: &str,
    field: &str,
    limits: ListLimits,
    options: RequestOptions,
) -> Result<Listed, RequestError> {
    let mut listed = Listed::default();
    let mut bytes = 0;
    // What a cursor hashes to is enough to know it again, and takes no room, however many there are.
    let (hasher, mut seen) = (RandomState::new(), HashSet::new());
    let mut params = None;
    for _ in 0..limits.pages {
        let page = connection.request(method, params.take(), options.clone()).await?;
        let Some(items) = read_array(&page, field, limits.items - listed.items.len() + 1) else {
            return Err(RequestError::BadAnswer(format!("it has no `{field}`")));
        };
        for item in items {
            bytes += item.get().len();
            if listed.items.len() == limits.items {
                listed.cut = Some(format!("there are more than {} entries", limits.items));
                return Ok(listed);
            }
            if bytes > limits.bytes {
                listed.cut = Some(format!("it has more than {} bytes", limits.bytes));
                return Ok(listed);
            }
            listed.items.push(item);
        }
        let cursor = read_field::<Option<String>>(&page, "nextCursor").flatten().filter(|cursor| !cursor.is_empty());
        let Some(cursor) = cursor else { return Ok(listed) };
        if cursor.len() > MAX_CURSOR_BYTES {
            listed.cut = Some(format!("the server gave a cursor of more than {MAX_CURSOR_BYTES} bytes"));
            return Ok(listed);
        }
        if !seen.insert(hasher.hash_one(&cursor)) {
            listed.cut = Some("the server gave a page's cursor twice".to_owned());
            return Ok(listed);
        }
        let mut next = Fields::new();
        next.set_value("cursor", &cursor);
        params = Some(next.to_raw());
    }
    listed.cut = Some(format!("it has more than {} pages", limits.pages));
    Ok(listed)
}
