//! The environment of commands, and the programs that are found in it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, shown};

/// Where programs are if nobody says so.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Longest name of a variable, in bytes.
const MAX_NAME_BYTES: usize = 128;
/// Longest value of a variable, in bytes: the kernel takes 128 KiB for one with its name.
const MAX_VALUE_BYTES: usize = 64 * 1024;

/// What a command inherits.
#[derive(Debug, Clone)]
pub(crate) struct Inherited {
    variables: Vec<(OsString, OsString)>,
    path: Vec<PathBuf>,
}

impl Inherited {
    /// Of these variables, as they went through. Programs are looked for in absolute folders outside of the roots: what lies
    /// in a root may be anybody's.
    pub(crate) fn new(variables: Vec<(OsString, OsString)>, roots: &[PathBuf]) -> Self {
        let (path, variables): (Vec<_>, Vec<_>) = variables.into_iter().partition(|(name, _)| name == "PATH");
        let path = path.into_iter().next().map_or_else(|| OsString::from(DEFAULT_PATH), |(_, path)| path);
        let mut folders = Vec::new();
        for folder in std::env::split_paths(&path) {
            let real = std::fs::canonicalize(&folder).unwrap_or_else(|_| folder.clone());
            let in_a_root = roots.iter().any(|root| real.starts_with(root) || folder.starts_with(root));
            if folder.is_absolute() && !in_a_root && !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        Self { variables, path: folders }
    }

    /// The folders of programs.
    pub(crate) fn path(&self) -> &[PathBuf] {
        &self.path
    }

    /// The whole environment of a command, with what its caller sets.
    pub(crate) fn with(&self, more: &BTreeMap<String, String>, temporary: &Path) -> Vec<(OsString, OsString)> {
        let mut all: BTreeMap<OsString, OsString> = self.variables.iter().cloned().collect();
        // A folder with a colon in its name cannot stand in it, and did not come out of one.
        all.insert("PATH".into(), std::env::join_paths(&self.path).unwrap_or_else(|_| DEFAULT_PATH.into()));
        all.extend(more.iter().map(|(name, value)| (name.into(), value.into())));
        all.insert("TMPDIR".into(), temporary.into());
        all.into_iter().collect()
    }

    /// The file that a command's first word means: one without a slash is looked for in the folders of programs and nowhere
    /// else, one with a slash from the command's folder. It need not be there.
    ///
    /// # Errors
    /// `not_found`: no folder of programs has it.
    pub(crate) fn program(&self, word: &str, cwd: &Path) -> Result<PathBuf, Failure> {
        if word.contains('/') {
            return Ok(cwd.join(word));
        }
        let found = self.path.iter().map(|folder| folder.join(word)).find(|file| is_program(file));
        found.ok_or_else(|| {
            let message = format!("there is no program `{}` in PATH", shown(word));
            let folders = std::env::join_paths(&self.path).unwrap_or_default();
            let hint = format!("looked in {}; write ./name for one in a folder of yours", folders.to_string_lossy());
            Failure::not_run(footbridge_shared::ErrorCode::NotFound, message).hint(hint)
        })
    }
}

fn is_program(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Checks what a caller sets in the environment. Whether it may set what loads other code, `LD_PRELOAD` or `PATH`, is for the
/// rules to say: one that allows a program allows no variable that it does not name.
///
/// # Errors
/// `invalid_arguments`.
pub(crate) fn check(variables: &BTreeMap<String, String>) -> Result<(), Failure> {
    for (name, value) in variables {
        let proper = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && name.len() <= MAX_NAME_BYTES;
        if !proper {
            let message = format!("`{}` is no name of a variable: use letters, digits and _", shown(name));
            return Err(Failure::invalid_arguments(message));
        }
        if value.contains('\0') || value.len() > MAX_VALUE_BYTES {
            let message = format!("the value of `{name}` holds a NUL byte or more than {MAX_VALUE_BYTES} bytes");
            return Err(Failure::invalid_arguments(message));
        }
        if name == "TMPDIR" || name.starts_with("FOOTBRIDGE_") {
            return Err(Failure::invalid_arguments(format!("`{name}` is set by the foot alone")));
        }
    }
    Ok(())
}

/// A word of a command, as the system takes it.
///
/// # Errors
/// `invalid_arguments`: it holds a NUL byte.
pub(crate) fn word(text: &str) -> Result<&OsStr, Failure> {
    if text.contains('\0') {
        return Err(Failure::invalid_arguments("a word of the command holds a NUL byte"));
    }
    Ok(OsStr::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inherited(path: &str, roots: &[PathBuf]) -> Inherited {
        Inherited::new(vec![("PATH".into(), path.into()), ("HOME".into(), "/h".into())], roots)
    }

    fn executable(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn programs_come_from_path_and_never_from_where_a_caller_can_put_them() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let (root, tools) = (top.join("root"), top.join("tools"));
        for file in [root.join("git"), root.join("bin/git"), tools.join("git"), top.join("git")] {
            executable(&file);
        }
        std::os::unix::fs::symlink(root.join("bin"), top.join("link")).unwrap();
        std::fs::write(tools.join("data"), "").unwrap();
        let path = format!(".::bin:{0}/bin:{1}/link:{0}:{1}/tools:{1}/tools", root.display(), top.display());
        let found = inherited(&path, std::slice::from_ref(&root));
        assert_eq!(found.path(), std::slice::from_ref(&tools), "relative ones, and those in a root, do not count");
        assert_eq!(found.program("git", &root).unwrap(), tools.join("git"));
        assert_eq!(found.program("./git", &root).unwrap(), root.join("./git"), "who writes a path means it");
        for missing in ["data", "none", ""] {
            let failure = found.program(missing, &root).unwrap_err();
            assert_eq!(failure.outcome, footbridge_shared::Outcome::NotRun, "{missing}");
        }
    }

    #[test]
    fn the_caller_adds_to_what_is_inherited() {
        let more = [("A".to_owned(), "1".to_owned()), ("HOME".to_owned(), "/x".to_owned())].into();
        let all = inherited("/usr/bin", &[]).with(&more, Path::new("/tmp/t"));
        let all: Vec<String> = all.iter().map(|(n, v)| format!("{}={}", n.display(), v.display())).collect();
        assert_eq!(all, ["A=1", "HOME=/x", "PATH=/usr/bin", "TMPDIR=/tmp/t"]);
    }

    #[test]
    fn variables_have_proper_names_and_those_of_the_foot_stay_its_own() {
        let one = |name: &str, value: &str| check(&[(name.to_owned(), value.to_owned())].into());
        assert!(one("RUST_LOG", "debug").is_ok() && one("_x1", "").is_ok());
        for name in ["TMPDIR", "FOOTBRIDGE_JOB", "a=b", "", "1a", "a b", "a\0"] {
            assert!(one(name, "x").is_err(), "{name}");
        }
        assert!(one("A", "x\0y").is_err());
    }
}
