//! `file_write`: a file, whole.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use footbridge_shared::ErrorCode;
use footbridge_shared::content::ContentHash;
use rustix::fs::RawMode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::blocking::FileTool;
use super::digest::{expect_hash, hash_of, if_hash_schema};
use super::turns::Turn;
use super::{CallContext, ToolOutput};
use crate::failure::{Failure, escaped, shown};
use crate::permissions::Access;
use crate::policy::Gate;

/// Largest file that is written, in bytes.
pub(super) const MAX_BYTES: usize = 16 * 1024 * 1024;

pub(super) struct FileWrite;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    content: String,
    #[serde(default)]
    encoding: Encoding,
    if_hash: Option<ContentHash>,
    #[serde(default)]
    if_absent: bool,
    #[serde(default)]
    create_folders: bool,
    mode: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    #[default]
    Utf8,
    Base64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    path: String,
    bytes: usize,
    hash: ContentHash,
    /// There was no file before.
    created: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_hash: Option<ContentHash>,
}

impl FileTool for FileWrite {
    const NAME: &'static str = "file_write";
    const TITLE: &'static str = "Write a file";
    const DESCRIPTION: &'static str = "Writes a file on the developer's machine, whole: it is made, or replaced in one \
        step. Use file_edit to change parts of a file. With `ifHash` it goes on only if the file still is what was read, \
        with `ifAbsent` only if there is none. The answer tells the new `hash`.";
    const PRIMARY: bool = true;
    const ACCESS: Access = Access::Write;
    type Arguments = Arguments;

    fn properties() -> Value {
        json!({
            "path": {"type": "string", "minLength": 1, "maxLength": 4096,
                "description": "The file. Relative paths start at the project root."},
            "content": {"type": "string", "description": "The whole content, at most 16 MiB."},
            "encoding": {"enum": ["utf8", "base64"], "default": "utf8",
                "description": "`base64` for content that is no text."},
            "ifHash": if_hash_schema(),
            "ifAbsent": {"type": "boolean", "default": false, "description": "Go on only if there is no file yet."},
            "createFolders": {"type": "boolean", "default": false, "description": "Make folders that are missing."},
            "mode": {"type": "string", "pattern": "^0?[0-7]{3}$",
                "description": "Permission bits in octal, for instance `755` for a program. An existing file keeps its \
                    own unless told."},
        })
    }

    fn required() -> &'static [&'static str] {
        &["path", "content"]
    }

    fn path(arguments: &Arguments) -> &str {
        &arguments.path
    }

    fn resolve(gate: &Gate, arguments: &Arguments) -> Result<PathBuf, Failure> {
        if arguments.if_absent && arguments.if_hash.is_some() {
            return Err(Failure::invalid_arguments("`ifAbsent` and `ifHash` exclude each other"));
        }
        gate.resolve_new(&arguments.path)
    }

    fn run(gate: &Gate, real: &Path, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let Arguments { path: given, content, encoding, if_hash, if_absent, create_folders, mode } = arguments;
        let content = match encoding {
            Encoding::Utf8 => content.into_bytes(),
            Encoding::Base64 => STANDARD.decode(content.as_bytes()).map_err(|error| {
                Failure::invalid_arguments(format!("`content` is no base64 of the standard alphabet: {error}"))
            })?,
        };
        expect_size(content.len(), &given)?;
        let mode = mode.and_then(|octal| RawMode::from_str_radix(&octal, 8).ok());

        let _turn = Turn::take(real, ctx)?;
        // A file that is to be known cannot lie in a folder that is still to be made.
        let place = gate.place(real, &given, create_folders && if_hash.is_none())?;
        let mut previous = gate.current(&place, &given)?;
        if if_absent && previous.is_some() {
            let message = format!("there is a file at `{}` already; nothing was written", shown(&given));
            return Err(Failure::not_run(ErrorCode::AlreadyExists, message));
        }
        let before = previous.as_mut().map(|found| hash_of(&mut found.file, &given, ctx)).transpose()?;
        expect_hash(if_hash, before, &given)?;
        ctx.check()?;
        place.write(&given, &content, previous.as_ref(), mode)?;

        let written = Written {
            path: gate.show(real),
            bytes: content.len(),
            hash: ContentHash::of(&content),
            created: previous.is_none(),
            previous_hash: before.flatten(),
        };
        let what = if written.created { "made" } else { "replaced" };
        let text = format!("{what} {}: {} bytes, hash {}", escaped(&written.path), written.bytes, written.hash);
        Ok(ToolOutput::text(&text).with_structured(&written))
    }
}

/// Refuses content that is larger than files may be made.
pub(super) fn expect_size(bytes: usize, given: &str) -> Result<(), Failure> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let message = format!("`{}` would have {bytes} bytes; a file that is written may have {MAX_BYTES}", shown(given));
    Err(Failure::not_run(ErrorCode::PayloadTooLarge, message))
}

#[cfg(test)]
mod tests;
