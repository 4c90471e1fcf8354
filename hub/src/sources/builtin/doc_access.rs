//! What the document tools share: the path they are given, and what they may not write.

use footbridge_shared::ErrorCode;

use crate::documents::WriteCondition;
use crate::domain::call::CallContext;
use crate::domain::document::DocumentPath;
use crate::domain::failure::Failure;

/// Reads the path argument.
pub(super) fn path_of(text: &str) -> Result<DocumentPath, Failure> {
    path_in("path", text)
}

/// Reads a path from an argument of another name.
pub(super) fn path_in(argument: &str, text: &str) -> Result<DocumentPath, Failure> {
    DocumentPath::parse(text).map_err(|error| Failure::not_run(ErrorCode::InvalidPath, format!("/{argument}: {error}")))
}

/// Reads the path argument of a tool that writes. Configuration says what tools exist: a model must not change that, unless
/// its process was given the role for it.
pub(super) fn writable_path_of(text: &str, ctx: &CallContext) -> Result<DocumentPath, Failure> {
    writable(path_of(text)?, ctx)
}

/// Lets a path be written that is no configuration, or by whom that may be.
pub(super) fn writable(path: DocumentPath, ctx: &CallContext) -> Result<DocumentPath, Failure> {
    if path.is_config() && !ctx.caller.may_configure() {
        return Err(Failure::not_run(
            ErrorCode::ConfigPath,
            format!("`{path}` is a configuration document; tools may not write it"),
        )
        .hint("write it over the API with a token that has the role `configure`"));
    }
    Ok(path)
}

/// The condition behind an `etag` argument.
pub(super) fn condition(etag: Option<String>) -> WriteCondition {
    etag.map_or(WriteCondition::Any, |etag| WriteCondition::Matches(vec![etag.trim_matches('"').to_owned()]))
}

/// There is no document to work on.
pub(super) fn missing(path: &DocumentPath) -> Failure {
    Failure::not_run(ErrorCode::NotFound, format!("there is no document `{path}`"))
        .hint("`doc_list` lists documents by prefix")
}
