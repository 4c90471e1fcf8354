//! Texts from files and standard input.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use super::error::CliError;
use super::out::remark;

/// Stands for standard input.
const STDIN: &str = "-";

/// Reads a file; `-` or nothing is standard input.
///
/// # Errors
/// It cannot be read, or is no UTF-8.
pub(super) fn read(file: Option<&Path>) -> Result<String, CliError> {
    match file {
        Some(path) if path != Path::new(STDIN) => {
            std::fs::read_to_string(path).map_err(|source| CliError::File { path: path.to_owned(), source })
        }
        _ => read_stdin(),
    }
}

fn read_stdin() -> Result<String, CliError> {
    if io::stdin().is_terminal() {
        remark("reading from the terminal; end with Ctrl-D");
    }
    let mut text = String::new();
    let read = io::stdin().lock().read_to_string(&mut text);
    read.map_err(|source| CliError::File { path: PathBuf::from("standard input"), source })?;
    Ok(text)
}

/// A value of the command line that may lie elsewhere: `@file`, `-` for standard input, else the text itself.
///
/// # Errors
/// As for [`read`].
pub(super) fn value(text: &str) -> Result<String, CliError> {
    match text.strip_prefix('@') {
        Some(file) => read(Some(Path::new(file))),
        None if text == STDIN => read(None),
        None => Ok(text.to_owned()),
    }
}
