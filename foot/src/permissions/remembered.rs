//! Answers that a person gave once and for all. Each is about one action of one caller, to the letter: nothing in it is a
//! pattern.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::{Access, Action, CommandLine, ServerAction, Verdict};

/// Most answers that are kept.
const MAX_ANSWERS: usize = 2_000;

/// Why answers cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RememberedError {
    /// The file cannot be read or written.
    #[error("the remembered answers `{}` cannot be read or written: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// The file is not one of answers.
    #[error("`{}` holds no remembered answers ({reason}); move it away to be asked anew", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// There are as many as are kept.
    #[error("{MAX_ANSWERS} answers are remembered already; `foot permissions forget` makes room")]
    Full,
    /// There is no such answer.
    #[error("there is no answer {0}; `foot permissions list` shows them")]
    NoSuch(usize),
}

/// An action, to the letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Literal {
    /// Who called.
    pub(crate) subject: String,
    /// The tool.
    pub(crate) tool: String,
    /// What it would do.
    pub(crate) what: What,
}

/// What an action does, to the letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind", deny_unknown_fields)]
pub(crate) enum What {
    /// Nothing that is known.
    Tool,
    /// Something with one file.
    File {
        /// `read`, `write` or `delete`.
        access: String,
        /// Its real path.
        path: String,
    },
    /// A program with its arguments.
    Argv {
        /// All words.
        argv: Vec<String>,
        /// Where it starts.
        cwd: String,
        /// BLAKE3 of the names and values that the caller sets; values may be secrets.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        env: Option<String>,
    },
    /// A script.
    Shell {
        /// Its text.
        script: String,
        /// As for [`What::Argv`].
        cwd: String,
        /// As for [`What::Argv`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        env: Option<String>,
    },
    /// Something of a local MCP server.
    Server {
        /// The server.
        server: String,
        /// Its tool, or the method of MCP.
        asked: String,
        /// BLAKE3 of what it is given; that may hold secrets.
        arguments: String,
    },
}

impl Literal {
    /// The action of a caller; `None` for one that cannot be written down to the letter.
    pub(crate) fn of(subject: &str, tool: &str, action: &Action) -> Option<Self> {
        let text = |path: &Path| path.to_str().map(str::to_owned);
        let what = match action {
            Action::Nothing => What::Tool,
            Action::File { access, path } => What::File { access: access.as_str().to_owned(), path: text(path)? },
            Action::Run(command) => {
                let (cwd, env) = (text(&command.cwd)?, digest(&command.env, command.stdin.as_deref()));
                match command.line.clone() {
                    CommandLine::Argv(argv) => What::Argv { argv, cwd, env },
                    CommandLine::Shell(script) => What::Shell { script, cwd, env },
                }
            }
            Action::Server(ServerAction { server, what, arguments, .. }) => What::Server {
                server: server.clone(),
                asked: what.clone(),
                arguments: blake3::hash(arguments.as_bytes()).to_hex().to_string(),
            },
        };
        Some(Self { subject: subject.to_owned(), tool: tool.to_owned(), what })
    }
}

impl Access {
    /// In the files of the foot, and as a person reads it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
        }
    }
}

/// Stands for what a caller gives a command besides its words; `None`: nothing. Input comes last, and makes the number of
/// texts odd: it is never taken for a name or a value.
fn digest(env: &BTreeMap<String, String>, stdin: Option<&str>) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    let texts = env.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]).chain(stdin);
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    (!env.is_empty() || stdin.is_some()).then(|| hasher.finalize().to_hex().to_string())
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Answer {
    /// Whether it was yes.
    pub(crate) allow: bool,
    /// What it was about.
    pub(crate) about: Literal,
    /// When it was given, milliseconds since the start of 1970.
    pub(crate) given_ms: u64,
}

/// All answers of one foot.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// Where they are kept; `None` for as long as the process lives.
    path: Option<PathBuf>,
    /// Held while the file is read or written, so that of two changes none is lost.
    file: Mutex<()>,
    /// Held for a moment, and never while a disk is waited for: the session looks here.
    answers: Mutex<Vec<Answer>>,
}

impl Remembered {
    /// Those that lie in a file, which need not be there yet.
    ///
    /// # Errors
    /// [`RememberedError`]: the file is there and cannot be understood. A "no" among the answers must not get lost.
    pub(crate) fn open(path: PathBuf) -> Result<Self, RememberedError> {
        let answers = Mutex::new(read(&path)?);
        Ok(Self { path: Some(path), file: Mutex::default(), answers })
    }

    /// None, to be forgotten with the process.
    pub(crate) fn in_memory() -> Self {
        Self { path: None, file: Mutex::default(), answers: Mutex::default() }
    }

    /// Where they are kept, if they are.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> Vec<Answer> {
        self.answers().clone()
    }

    /// What was said of this action. A no goes before a yes.
    pub(crate) fn said_of(&self, about: &Literal) -> Option<Verdict> {
        let answers = self.answers();
        let mut said = answers.iter().filter(|answer| answer.about == *about).peekable();
        said.peek()?;
        Some(if said.all(|answer| answer.allow) { Verdict::Allow } else { Verdict::Deny })
    }

    /// Keeps an answer in place of earlier ones about the same.
    ///
    /// # Errors
    /// [`RememberedError`]; it then holds for this process at least, unless there is no room.
    pub(crate) fn keep(&self, answer: Answer) -> Result<(), RememberedError> {
        self.change(|answers| {
            answers.retain(|known| known.about != answer.about);
            if answers.len() >= MAX_ANSWERS {
                return Err(RememberedError::Full);
            }
            answers.push(answer);
            Ok(())
        })
    }

    /// Forgets the answer at a place in the list, counted from 1.
    ///
    /// # Errors
    /// [`RememberedError`].
    pub(crate) fn forget(&self, nth: usize) -> Result<Answer, RememberedError> {
        self.change(|answers| match nth.checked_sub(1).filter(|at| *at < answers.len()) {
            Some(at) => Ok(answers.remove(at)),
            None => Err(RememberedError::NoSuch(nth)),
        })
    }

    /// Takes up what another process changed: `foot permissions forget` does, while the foot runs.
    pub(crate) fn refresh(&self) -> Result<(), RememberedError> {
        let _file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = self.read()?;
        *self.answers() = fresh;
        Ok(())
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Answer>) -> Result<T, RememberedError>,
    ) -> Result<T, RememberedError> {
        let _file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answers = self.read()?;
        let done = change(&mut answers)?;
        self.answers().clone_from(&answers);
        if let Some(path) = &self.path {
            write(path, &answers).map_err(|cause| RememberedError::Io { path: path.clone(), cause })?;
        }
        Ok(done)
    }

    /// Those of the file, or of this process where there is none.
    fn read(&self) -> Result<Vec<Answer>, RememberedError> {
        self.path.as_deref().map_or_else(|| Ok(self.all()), read)
    }

    fn answers(&self) -> MutexGuard<'_, Vec<Answer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> Result<Vec<Answer>, RememberedError> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| RememberedError::Malformed { path: path.to_owned(), reason: error.to_string() }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(cause) => Err(RememberedError::Io { path: path.to_owned(), cause }),
    }
}

/// Whole or not at all, and for the owner's eyes alone.
fn write(path: &Path, answers: &[Answer]) -> std::io::Result<()> {
    let draft = path.with_extension(format!("{}.draft", crate::random::id()));
    let json = serde_json::to_vec_pretty(answers)?;
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = file.write_all(&json).and_then(|()| file.sync_all()).and_then(|()| std::fs::rename(&draft, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(subject: &str, path: &str) -> Literal {
        let action = Action::File { access: Access::Write, path: path.into() };
        Literal::of(subject, "file_write", &action).unwrap()
    }

    fn answer(allow: bool, about: Literal) -> Answer {
        Answer { allow, about, given_ms: 1 }
    }

    #[test]
    fn an_answer_is_about_one_action_to_the_letter() {
        let remembered = Remembered::in_memory();
        remembered.keep(answer(true, about("ada", "/w/app/[slug]/*.tsx"))).unwrap();
        assert_eq!(remembered.said_of(&about("ada", "/w/app/[slug]/*.tsx")), Some(Verdict::Allow));
        for other in
            [about("ada", "/w/app/s/x.tsx"), about("eve", "/w/app/[slug]/*.tsx"), about("ada", "/w/app/[slug]/x.tsx")]
        {
            assert_eq!(remembered.said_of(&other), None);
        }
        let read = Action::File { access: Access::Read, path: "/w/app/[slug]/*.tsx".into() };
        assert_eq!(remembered.said_of(&Literal::of("ada", "file_write", &read).unwrap()), None);
    }

    #[test]
    fn a_command_is_remembered_with_its_folder_and_what_it_is_given() {
        let command = |argv: &[&str], cwd: &str, env: &[(&str, &str)]| {
            Literal::of(
                "ada",
                "exec_run",
                &Action::Run(super::super::Command {
                    line: CommandLine::Argv(argv.iter().map(|word| (*word).to_owned()).collect()),
                    cwd: cwd.into(),
                    env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
                    stdin: None,
                    configured: false,
                }),
            )
            .unwrap()
        };
        let remembered = Remembered::in_memory();
        remembered.keep(answer(true, command(&["make", "*"], "/w", &[("A", "secret")]))).unwrap();
        assert!(!format!("{:?}", remembered.all()).contains("secret"));
        assert_eq!(remembered.said_of(&command(&["make", "*"], "/w", &[("A", "secret")])), Some(Verdict::Allow));
        for other in [
            command(&["make", "all"], "/w", &[("A", "secret")]),
            command(&["make", "*"], "/w/x", &[("A", "secret")]),
            command(&["make", "*"], "/w", &[]),
            command(&["make", "*"], "/w", &[("A", "other")]),
            command(&["make *"], "/w", &[("A", "secret")]),
        ] {
            assert_eq!(remembered.said_of(&other), None, "{other:?}");
        }
    }

    #[test]
    fn of_answers_that_are_given_at_once_none_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let remembered = Remembered::open(dir.path().join("laptop.answers.json")).unwrap();
        std::thread::scope(|scope| {
            for n in 0..16 {
                let remembered = &remembered;
                scope.spawn(move || remembered.keep(answer(true, about("ada", &format!("/w/{n}")))).unwrap());
            }
        });
        assert_eq!(remembered.all().len(), 16);
        remembered.refresh().unwrap();
        assert_eq!(remembered.all().len(), 16, "nor in the file");
    }

    #[test]
    fn answers_outlive_the_process_and_can_be_forgotten_from_another() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("laptop.answers.json");
        let remembered = Remembered::open(path.clone()).unwrap();
        remembered.keep(answer(true, about("ada", "/w/a"))).unwrap();
        remembered.keep(answer(false, about("ada", "/w/a"))).unwrap();
        remembered.keep(answer(true, about("ada", "/w/b"))).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        let other = Remembered::open(path.clone()).unwrap();
        assert_eq!(other.said_of(&about("ada", "/w/a")), Some(Verdict::Deny), "the later answer counts");
        assert!(matches!(other.forget(3), Err(RememberedError::NoSuch(3))) && other.forget(0).is_err());
        other.forget(1).unwrap();
        remembered.refresh().unwrap();
        assert_eq!(remembered.all(), other.all());
        std::fs::write(&path, "[{\"allow\": true").unwrap();
        assert!(matches!(Remembered::open(path), Err(RememberedError::Malformed { .. })));
    }
}
