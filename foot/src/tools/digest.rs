//! The content of a file, what stands for it, and writing only if it still is what the caller knows.

use std::fs::File;
use std::io::{ErrorKind, Read as _};

use footbridge_shared::ErrorCode;
use footbridge_shared::content::{CONTENT_HASH_PATTERN, ContentHash, ContentHasher};
use serde_json::{Value, json};

use super::CallContext;
use crate::failure::{Failure, shown};

/// Largest file that is read just to tell its hash, in bytes.
pub(super) const MAX_HASHED_BYTES: u64 = 1024 * 1024 * 1024;
/// Bytes that one read asks for.
const CHUNK_BYTES: usize = 128 * 1024;
/// Chunks between two signs of life: 64 MiB.
const PROGRESS_EVERY: u64 = 512;

/// The hash of a whole file, from where it stands. `None` if it is larger than [`MAX_HASHED_BYTES`].
///
/// # Errors
/// `tool_failed` when it cannot be read, `cancelled`.
pub(super) fn hash_of(file: &mut File, given: &str, ctx: &CallContext) -> Result<Option<ContentHash>, Failure> {
    if file.metadata().is_ok_and(|found| found.len() > MAX_HASHED_BYTES) {
        return Ok(None);
    }
    let mut hasher = ContentHasher::default();
    let mut chunk = vec![0; CHUNK_BYTES];
    let (mut total, mut chunks) = (0_u64, 0_u64);
    loop {
        ctx.check()?;
        let count = match file.read(&mut chunk) {
            Ok(0) => return Ok(Some(hasher.hash())),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(unreadable(given, error)),
        };
        total += count as u64;
        // It may grow meanwhile.
        if total > MAX_HASHED_BYTES {
            return Ok(None);
        }
        hasher.update(chunk.get(..count).unwrap_or_default());
        chunks += 1;
        if chunks.is_multiple_of(PROGRESS_EVERY) {
            #[expect(clippy::cast_precision_loss, reason = "a count for people")]
            ctx.progress(total as f64, None, "reading");
        }
    }
}

/// The text of a whole file of at most `max` bytes.
///
/// # Errors
/// `too_large` for a larger one, `not_a_file` for one that is no UTF-8, `tool_failed` when it cannot be read. Nothing is
/// done then.
pub(super) fn whole_text(file: &mut File, max: usize, too_large: ErrorCode, given: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    // One byte more than is wanted tells that there is more.
    file.take(max as u64 + 1).read_to_end(&mut bytes).map_err(|error| unreadable(given, error))?;
    if bytes.len() > max {
        let message = format!("`{}` has more than the {max} bytes that this works on", shown(given));
        return Err(Failure::not_run(too_large, message));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::not_run(ErrorCode::NotAFile, format!("`{}` is no UTF-8 text: byte {at} fits nothing", shown(given)))
    })
}

/// A file that was opened and then could not be read.
pub(super) fn unreadable(given: &str, error: std::io::Error) -> Failure {
    let message = format!("`{}` cannot be read: {}", shown(given), error.kind());
    Failure::completed(ErrorCode::ToolFailed, message).cause(error)
}

/// Schema of the argument `ifHash`.
pub(super) fn if_hash_schema() -> Value {
    json!({"type": "string", "pattern": CONTENT_HASH_PATTERN,
        "description": "Go on only if the file still has this `hash`, as file_read told it."})
}

/// Lets a call go on whose file is what the caller knows. `current` is `None` where there is no file, and holds `None`
/// for one that is too large to tell.
///
/// # Errors
/// `file_changed`, with the hash that the file has.
pub(super) fn expect_hash(
    if_hash: Option<ContentHash>,
    current: Option<Option<ContentHash>>,
    given: &str,
) -> Result<(), Failure> {
    let Some(wanted) = if_hash else { return Ok(()) };
    let given = shown(given);
    let message = match current {
        Some(Some(hash)) if hash == wanted => return Ok(()),
        Some(Some(hash)) => format!("`{given}` changed: its hash is {hash} now, nothing was written"),
        Some(None) => format!("`{given}` has more than {MAX_HASHED_BYTES} bytes and no hash; nothing was written"),
        None => format!("`{given}` is not there any more; nothing was written"),
    };
    Err(Failure::not_run(ErrorCode::FileChanged, message).hint("read the file again"))
}
