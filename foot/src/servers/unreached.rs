//! Why a local server cannot be reached, and what its owner can do about it.

use footbridge_launcher::NotStarted;
use footbridge_mcp::ConnectError;

use super::settings::Target;

/// What is said besides of a program that the kernel keeps to what is granted: what it complains of may be that.
const CONFINED: &str = " (it is confined; `sandboxWrite` and `sandboxRead` widen what it may reach)";

/// Why a server cannot be reached, for the owner: a text that may say what stood on its standard error.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum Unreached {
    /// Its program was not started.
    #[error("its program was not started: {0}")]
    NotStarted(String),
    /// It is there, and there is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The same of a program, with what it complained of.
    #[error("{0}; it wrote: {1}")]
    Program(ConnectError, String),
}

impl From<NotStarted> for Unreached {
    fn from(why: NotStarted) -> Self {
        Self::NotStarted(match why {
            NotStarted::Unconfined(cause) => format!("it could not be confined: {cause}"),
            NotStarted::NoProgram => {
                "`command` names no program, or one whose interpreter is not there".to_owned()
            }
            NotStarted::Denied => {
                "the system does not let it be executed, or not from there; `sandboxRead` can let it, or `confine: false`"
                    .to_owned()
            }
            NotStarted::TooLong => "its arguments and its environment are more than the system takes".to_owned(),
            NotStarted::Broken(cause) => cause,
        })
    }
}

impl Unreached {
    /// The same with what can be done about it.
    pub(super) fn with_advice(&self, target: &Target) -> String {
        let advice = self.advice(target).map(|advice| format!("; {advice}")).unwrap_or_default();
        let confined = if matches!(target, Target::Program { confine: true, .. }) { CONFINED } else { "" };
        format!("{self}{advice}{confined}")
    }

    fn advice(&self, target: &Target) -> Option<&'static str> {
        let error = match self {
            Self::NotStarted(_) => return None,
            Self::Connect(error) | Self::Program(error, _) => error,
        };
        Some(match (error, target) {
            (ConnectError::Timeout(_), Target::Program { .. }) => {
                "`initTimeoutSeconds` gives it more time, which one needs that is fetched first"
            }
            (ConnectError::Timeout(_), Target::Http { .. }) => "`initTimeoutSeconds` gives it more time",
            (ConnectError::Unauthorized(_), _) => "`headers` can hold what it wants, as `Authorization: Bearer …`",
            (ConnectError::Transport(_) | ConnectError::EndedAtDiscovery, Target::Program { .. }) => match self {
                Self::Program(..) => "what it misses in its environment is set by `env`",
                _ => "its command, run at a terminal, may say more",
            },
            (ConnectError::Transport(_) | ConnectError::Status(_), Target::Http { .. }) => {
                "see that it runs, and that `url` is the whole address, such as http://127.0.0.1:8000/mcp"
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_owner_is_told_what_to_do() {
        let [program, confined] = [false, true].map(|confine| Target::Program {
            command: "uvx".to_owned(),
            args: Vec::new(),
            env: std::collections::BTreeMap::new(),
            cwd: None,
            confine,
        });
        let url = reqwest::Url::parse("http://localhost:1/mcp").unwrap();
        let http = Target::Http { url, headers: http::HeaderMap::new(), sse: false };
        let ended = ConnectError::Transport("the server ended".to_owned());
        for (unreached, target, part) in [
            (ConnectError::Timeout(Duration::from_secs(30)).into(), &program, "`initTimeoutSeconds`"),
            (ConnectError::Unauthorized(401).into(), &http, "`headers`"),
            (ConnectError::Status(404).into(), &http, "`url`"),
            (ended.clone().into(), &http, "`url`"),
            (ended.clone().into(), &program, "terminal"),
            (Unreached::Program(ended.clone(), "EACCES".to_owned()), &confined, "`sandboxWrite`"),
            (Unreached::NotStarted("x".to_owned()), &confined, "`sandboxRead`"),
            (Unreached::Program(ended, "no key".to_owned()), &program, "no key; what it misses"),
        ] {
            let text = unreached.with_advice(target);
            assert!(text.contains(part), "{text}");
        }
    }
}
