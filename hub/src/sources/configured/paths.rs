//! Document paths in parameters.

use footbridge_shared::ErrorCode;

use crate::domain::document::DocumentPath;
use crate::yaml::{KeyPath, Node, Problem};

/// Reads the path of a document that must lie under one of `folders` (each ends with `/`).
pub(super) fn under(
    folders: &[&str],
    node: &Node,
    path: &KeyPath,
    problems: &mut Vec<Problem>,
) -> Option<DocumentPath> {
    let text = node.as_text()?;
    let refuse = |message: String| Problem::new(node.at, path.clone(), message).code(ErrorCode::InvalidPath);
    let places = folders.iter().map(|folder| format!("`{folder}`")).collect::<Vec<_>>().join(" or ");
    match DocumentPath::parse(text) {
        Ok(document) if folders.iter().any(|folder| document.as_str().starts_with(folder)) => Some(document),
        Ok(document) => {
            problems.push(refuse(format!("`{document}` does not lie under {places}")));
            None
        }
        Err(error) => {
            problems.push(refuse(error.to_string()).hint(format!("a path under {places}, without `..`")));
            None
        }
    }
}
