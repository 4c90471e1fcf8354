//! The token that a foot shows its hub.

use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Longest token, in bytes.
const MAX_TOKEN_BYTES: u64 = 8 * 1024;

/// Why there is no token. The token itself is never part of it.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("the token file `{}` cannot be read: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// There is no token in the file or variable, or more than one line.
    #[error("{0} holds no token: one line of printable ASCII")]
    Malformed(String),
}

/// A token. Neither shown nor logged.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Takes a token from text; blanks around it do not count.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Self(text.to_owned()))
    }

    /// The value of the `Authorization` header.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

/// Where the token comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// A value, for instance from the environment.
    Value(Token),
    /// A file that is read again for each connection, so that a token can be exchanged while the foot runs.
    File(PathBuf),
}

impl TokenSource {
    /// The token as it is now.
    ///
    /// # Errors
    /// [`TokenError`]: the file cannot be read, or holds no token.
    pub fn read(&self) -> Result<Token, TokenError> {
        match self {
            Self::Value(token) => Ok(token.clone()),
            Self::File(path) => {
                let unreadable = |cause| TokenError::Unreadable { path: path.clone(), cause };
                let length = std::fs::metadata(path).map_err(unreadable)?.len();
                let malformed = || TokenError::Malformed(format!("the file `{}`", path.display()));
                if length > MAX_TOKEN_BYTES {
                    return Err(malformed());
                }
                Token::parse(&std::fs::read_to_string(path).map_err(unreadable)?).ok_or_else(malformed)
            }
        }
    }
}

/// Who beside its owner may read or write a file: `None` if nobody.
pub(crate) fn open_to_others(path: &Path) -> Option<String> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| format!("{mode:04o}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_file_holds_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            TokenSource::File(path.clone()).read()
        };
        assert_eq!(read("fbt_abc\n").unwrap().bearer(), "Bearer fbt_abc");
        for bad in ["", "\n", "a b", "a\nb", "é", &"x".repeat(10_000)] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains("holds no token"), "{error}");
        }
        assert!(TokenSource::File(dir.path().join("none")).read().is_err());
        assert_eq!(format!("{:?}", Token::parse("secret")), "Some(Token(…))");
    }

    #[test]
    fn a_file_that_others_can_read_is_noticed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let set = |mode| std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o600);
        assert_eq!(open_to_others(file.path()), None);
        set(0o644);
        assert_eq!(open_to_others(file.path()).as_deref(), Some("0644"));
    }
}
