//! Documents: texts at paths, in layers, with versions.

use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::failure::Failure;
use super::scope::Scope;

/// Longest document path, in bytes.
pub const MAX_PATH_BYTES: usize = 512;
/// Longest segment of a document path, in bytes.
pub const MAX_SEGMENT_BYTES: usize = 128;
/// Largest document, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 1024 * 1024;
/// Versions kept of each document, the current one included.
pub const MAX_VERSIONS: usize = 20;

/// Folder of tool documents.
pub const SERVER_TOOLS: &str = "server-tools/";
/// Folder of script documents.
pub const SCRIPTS: &str = "scripts/";
/// Folders whose documents say what tools exist and how they work; tools do not write there.
pub const CONFIG_PREFIXES: [&str; 5] = [SERVER_TOOLS, "recipes/", "model/", SCRIPTS, "kits/"];

/// A document path: relative, segments joined by `/`, no way out of its root.
///
/// Refused: empty segments, `.`, `..`, a leading or trailing `/`, backslashes, control characters, and the percent
/// forms of dot, slash, backslash and NUL, which some later reader might decode.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct DocumentPath(String);

/// Why a text is no document path. Safe to show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("document path `{path}` is not valid: {reason}")]
pub struct PathError {
    /// The path, cut to 80 characters and escaped.
    pub path: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl DocumentPath {
    /// Checks a path.
    ///
    /// # Errors
    /// [`PathError`] says which rule the path breaks.
    pub fn parse(path: &str) -> Result<Self, PathError> {
        let refuse =
            |reason| Err(PathError { path: path.chars().take(80).flat_map(char::escape_debug).collect(), reason });
        if path.is_empty() || path.len() > MAX_PATH_BYTES {
            return refuse("it must have 1 to 512 bytes");
        }
        if path.chars().any(footbridge_shared::text::is_hidden) || path.contains(['\n', '\t']) {
            return refuse("it holds a control or invisible character");
        }
        if path.contains('\\') {
            return refuse("segments are joined by `/`, not by `\\`");
        }
        let lower = path.to_ascii_lowercase();
        if ["%2e", "%2f", "%5c", "%00", "%25"].iter().any(|form| lower.contains(form)) {
            return refuse("it holds a percent-encoded dot, slash, backslash, NUL or percent sign");
        }
        for segment in path.split('/') {
            match segment {
                "" => return refuse("it starts or ends with `/`, or holds an empty segment"),
                "." | ".." => return refuse("`.` and `..` are no segments of a path"),
                s if s.len() > MAX_SEGMENT_BYTES => {
                    return refuse("a segment is longer than 128 bytes");
                }
                s if s.ends_with(['.', ' ']) || s.starts_with(' ') => {
                    return refuse("a segment ends with a dot or blank, or starts with a blank");
                }
                _ => {}
            }
        }
        Ok(Self(path.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the path lies in a folder whose documents configure the hub.
    ///
    /// Compared without case, so that a folder on a case-folding file system offers no way around.
    pub fn is_config(&self) -> bool {
        let lower = self.0.to_lowercase();
        CONFIG_PREFIXES.iter().any(|prefix| lower.starts_with(prefix))
    }
}

impl fmt::Display for DocumentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One place in the cascade where a document can lie, innermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// A file of the documents folder, in the project's folder.
    ProjectFolder,
    /// The project's stored documents.
    Project,
    /// A file of the documents folder, in the tenant's `_tenant` folder.
    TenantFolder,
    /// The tenant's stored documents.
    Tenant,
    /// Compiled into the hub.
    Bundled,
}

impl Layer {
    /// The text used in listings and ETags.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ProjectFolder => "project-folder",
            Self::Project => "project",
            Self::TenantFolder => "tenant-folder",
            Self::Tenant => "tenant",
            Self::Bundled => "bundled",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the cascade answers for a path: the text of the layer that won.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedDocument {
    /// The layer that won.
    pub layer: Layer,
    /// Where it lies.
    pub path: DocumentPath,
    /// Its text.
    pub text: String,
    /// Changes whenever the text does: the ETag without its quotes, `<layer>-<version or hash>`.
    pub etag: String,
}

/// Reads documents through the cascade, for parts that must not know how it works.
#[async_trait]
pub trait DocumentReader: Send + Sync {
    /// The document at `path`, from the innermost layer that has it.
    ///
    /// # Errors
    /// A failure with outcome `not_run` when a layer cannot be read: it is never skipped in favour of a lower one.
    async fn read(&self, scope: &Scope, path: &DocumentPath) -> Result<Option<ResolvedDocument>, Failure>;
}

/// One version of a stored document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Where it lies.
    pub path: DocumentPath,
    /// Its text.
    pub text: String,
    /// Counts up from 1 with each write; goes on after a delete, so that an old ETag never fits a new document.
    pub version: u64,
    /// When the first version was written.
    pub created_at: Timestamp,
    /// When this version was written.
    pub updated_at: Timestamp,
    /// Who wrote this version.
    pub created_by: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out_of_its_root() {
        for bad in [
            "",
            "/etc/hostname",
            "documents/../x",
            "documents/./x",
            "a//b",
            "a/",
            "documents\\x",
            "a/%2e%2e/b",
            "a/%2E%2e/b",
            "a%2fb",
            "a%5cb",
            "x\0y",
            "x\u{200b}y",
            "a/..",
            "..",
            "a/.. /b",
            "a/%252e%252e/b",
        ] {
            assert!(DocumentPath::parse(bad).is_err(), "{bad:?}");
        }
        for good in ["documents/a..b.md", "documents/100%.md", "a", "documents/é 漢.md", ".hidden/x"] {
            assert!(DocumentPath::parse(good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn configuration_folders_are_known_in_any_case() {
        let config = |p: &str| DocumentPath::parse(p).map(|p| p.is_config());
        assert_eq!(config("Server-Tools/x.yaml"), Ok(true));
        assert_eq!(config("scripts/x.js"), Ok(true));
        assert_eq!(config("documents/scripts/x.js"), Ok(false));
    }
}
