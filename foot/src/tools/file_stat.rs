//! `file_stat`: what is at a path.

use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path};

use footbridge_shared::content::ContentHash;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::blocking::FileTool;
use super::digest::hash_of;
use super::{CallContext, ToolOutput};
use crate::failure::{Failure, escaped};
use crate::policy::Gate;

pub(super) struct FileStat;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    #[serde(default)]
    hash: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Stat {
    path: String,
    kind: &'static str,
    size: u64,
    modified_at: Option<Timestamp>,
    /// Permission bits, octal.
    mode: String,
    /// Where the path leads, when a link is on the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    leads_to: Option<String>,
    /// On request, of a file that is not too large for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<ContentHash>,
}

impl FileTool for FileStat {
    const NAME: &'static str = "file_stat";
    const TITLE: &'static str = "Look at a path";
    const DESCRIPTION: &'static str = "Says what is at a path on the developer's machine: file, folder or something \
        else, its size in bytes, the time of its last change and its permission bits. Fails with `not_found` when there \
        is nothing, so it also answers whether a file exists.";
    const PRIMARY: bool = false;
    type Arguments = Arguments;

    fn properties() -> Value {
        json!({
            "path": {"type": "string", "minLength": 1, "maxLength": 4096,
                "description": "File or folder. Relative paths start at the project root."},
            "hash": {"type": "boolean", "default": false,
                "description": "Read the file and tell the hash of its content, if it has at most 1 GiB."},
        })
    }

    fn required() -> &'static [&'static str] {
        &["path"]
    }

    fn path(arguments: &Arguments) -> &str {
        &arguments.path
    }

    fn run(gate: &Gate, real: &Path, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let metadata = gate.look(real, &arguments.path)?;
        let hash = if arguments.hash && metadata.is_file() {
            hash_of(&mut gate.open_file(real, &arguments.path)?, &arguments.path, ctx)?
        } else {
            None
        };
        let modified_at = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
        let shown_path = gate.show(real);
        let written = gate.written(&arguments.path);
        let steps_out = written.components().any(|part| part == Component::ParentDir);
        // Comparing paths does not count `.` and slashes at the end.
        let through_link = !steps_out && written != *real;
        let stat = Stat {
            kind: kind(&metadata),
            size: metadata.len(),
            modified_at: modified_at.and_then(|at| Timestamp::from_second(at.as_second()).ok()),
            mode: format!("{:04o}", metadata.permissions().mode() & 0o7777),
            leads_to: through_link.then(|| shown_path.clone()),
            path: shown_path,
            hash,
        };
        let at = stat.modified_at.map(|at| at.to_string()).unwrap_or_default();
        let mut text =
            format!("{}: {}, {} bytes, changed {at}, mode {}", escaped(&stat.path), stat.kind, stat.size, stat.mode);
        if let Some(hash) = stat.hash {
            text += &format!(", hash {hash}");
        }
        Ok(ToolOutput::text(&text).with_structured(&stat))
    }
}

fn kind(metadata: &Metadata) -> &'static str {
    if metadata.is_file() {
        "file"
    } else if metadata.is_dir() {
        "folder"
    } else {
        "other"
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::testing::{Tree, structured};
    use footbridge_shared::content::ContentHash;
    use serde_json::json;

    #[test]
    fn it_says_what_is_there() {
        let tree = Tree::new(&[("dir/a", "12345")]);
        std::os::unix::fs::symlink("dir/a", tree.path("link")).unwrap();
        std::fs::set_permissions(tree.path("dir/a"), std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
        let stat = |path: &str| structured(&tree.run("file_stat", &json!({"path": path})).unwrap());
        let file = stat("dir/a");
        assert_eq!((&file["kind"], &file["size"], &file["mode"]), (&json!("file"), &json!(5), &json!("0640")));
        assert!(file["modifiedAt"].as_str().is_some_and(|at| at.ends_with('Z')) && file.get("leadsTo").is_none());
        assert_eq!(stat("dir/")["kind"], "folder");
        assert_eq!(stat("./dir/a").get("leadsTo"), None);
        assert_eq!(stat("link")["leadsTo"], "dir/a");
        assert!(tree.run("file_stat", &json!({"path": "none"})).is_err());
        let hashed = |path: &str| structured(&tree.run("file_stat", &json!({"path": path, "hash": true})).unwrap());
        assert_eq!(hashed("link")["hash"], json!(ContentHash::of(b"12345")));
        assert_eq!(hashed("dir").get("hash"), None);
        // Neither is opened: the one may not be, the other would be waited for.
        std::fs::set_permissions(tree.path("dir/a"), std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
        let pipe = tree.path("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        assert_eq!((&stat("dir/a")["mode"], &stat("pipe")["kind"]), (&json!("0000"), &json!("other")));
    }
}
