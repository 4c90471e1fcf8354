//! How large a story is: the one place that reads the environment of the tests.

use crate::Result;

/// A number that a variable holds; `None`: it is not set.
///
/// # Errors
/// When it is set to something else.
pub fn number(variable: &str) -> Result<Option<u64>> {
    let Some(text) = std::env::var_os(variable) else { return Ok(None) };
    let number = text.to_str().and_then(|text| text.trim().parse().ok());
    number.map(Some).ok_or_else(|| format!("{variable} is {text:?}; it takes a whole number").into())
}
