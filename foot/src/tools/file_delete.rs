//! `file_delete`: removes a file.

use std::path::Path;

use footbridge_shared::ErrorCode;
use footbridge_shared::content::ContentHash;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::blocking::FileTool;
use super::digest::{expect_hash, hash_of, if_hash_schema};
use super::turns::Turn;
use super::{CallContext, ToolOutput};
use crate::failure::{Failure, escaped, shown};
use crate::permissions::Access;
use crate::policy::Gate;

pub(super) struct FileDelete;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    if_hash: Option<ContentHash>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Deleted {
    path: String,
    deleted: bool,
    bytes: u64,
}

impl FileTool for FileDelete {
    const NAME: &'static str = "file_delete";
    const TITLE: &'static str = "Delete a file";
    const DESCRIPTION: &'static str = "Deletes a file on the developer's machine, for good. Folders are not deleted. Of a \
        link, the file that it leads to is deleted. With `ifHash` it goes on only if the file still is what was read.";
    const PRIMARY: bool = false;
    const ACCESS: Access = Access::Delete;
    type Arguments = Arguments;

    fn properties() -> Value {
        json!({
            "path": {"type": "string", "minLength": 1, "maxLength": 4096,
                "description": "The file. Relative paths start at the project root."},
            "ifHash": if_hash_schema(),
        })
    }

    fn required() -> &'static [&'static str] {
        &["path"]
    }

    fn path(arguments: &Arguments) -> &str {
        &arguments.path
    }

    fn run(gate: &Gate, real: &Path, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let Arguments { path: given, if_hash } = arguments;
        let _turn = Turn::take(real, ctx)?;
        let place = gate.place(real, &given, false)?;
        let Some(mut found) = gate.current(&place, &given)? else {
            return Err(Failure::not_run(ErrorCode::NotFound, format!("there is nothing at `{}`", shown(&given))));
        };
        if if_hash.is_some() {
            let hash = hash_of(&mut found.file, &given, ctx)?;
            expect_hash(if_hash, Some(hash), &given)?;
        }
        ctx.check()?;
        place.delete(&given, &found)?;
        let deleted = Deleted { path: gate.show(real), deleted: true, bytes: found.len() };
        let text = format!("deleted {}: {} bytes", escaped(&deleted.path), deleted.bytes);
        Ok(ToolOutput::text(&text).with_structured(&deleted))
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::testing::{Tree, structured};
    use footbridge_shared::ErrorCode;
    use footbridge_shared::content::ContentHash;
    use serde_json::json;

    #[test]
    fn a_file_goes_and_what_is_none_stays() {
        let tree = Tree::new(&[("a.txt", "12345"), ("dir/b", "")]);
        let delete = |path: &str| tree.run("file_delete", &json!({"path": path}));
        let answer = structured(&delete("a.txt").unwrap());
        assert_eq!(answer, json!({"path": "a.txt", "deleted": true, "bytes": 5}));
        assert!(!tree.path("a.txt").exists());
        for (path, code) in [
            ("a.txt", ErrorCode::NotFound),
            ("dir", ErrorCode::NotAFile),
            (".", ErrorCode::NotAFile),
            ("../x", ErrorCode::PathDenied),
        ] {
            assert_eq!(delete(path).unwrap_err().code, code, "{path}");
        }
    }

    #[test]
    fn of_a_link_the_target_goes() {
        let tree = Tree::new(&[("a.txt", "")]);
        std::os::unix::fs::symlink("a.txt", tree.path("link")).unwrap();
        tree.run("file_delete", &json!({"path": "link"})).unwrap();
        assert!(!tree.path("a.txt").exists() && tree.path("link").is_symlink());
    }

    #[test]
    fn a_file_that_changed_stays() {
        let tree = Tree::new(&[("a.txt", "new")]);
        let delete = |text: &str| {
            let hash = ContentHash::of(text.as_bytes());
            tree.run("file_delete", &json!({"path": "a.txt", "ifHash": hash}))
        };
        assert_eq!(delete("old").unwrap_err().code, ErrorCode::FileChanged);
        assert!(tree.path("a.txt").exists());
        delete("new").unwrap();
        assert!(!tree.path("a.txt").exists());
    }
}
