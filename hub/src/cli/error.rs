//! Why a command failed, how it is told, and how the process ends then.

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::json;

use super::exit::Exit;
use super::out::Format;
use crate::api::problem::Problem;
use crate::config::ConfigError;

/// Why a command failed. Holds no secrets.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line asks for something that cannot be.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The hub said no.
    #[error("{}", .0.detail)]
    Problem(Box<Problem>),
    /// Nobody answered.
    #[error("{url} does not answer: {reason}")]
    Unreachable {
        /// The hub's address.
        url: String,
        /// Why.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
        /// Whether the request may have reached it all the same.
        maybe_sent: bool,
    },
    /// Something answered that is no hub.
    #[error("what answers at {url} is no Footbridge hub (status {status})")]
    NoHub {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The hub said something that this version does not understand.
    #[error("the hub's answer is not understood: {0}")]
    Answer(String),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A hub in this process failed.
    #[error("{message}")]
    Hub {
        /// What happened.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The terminal or pipe went wrong.
    #[error("the output cannot be written: {0}")]
    Output(#[from] std::io::Error),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl CliError {
    /// A usage error without a hint.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: None }
    }

    /// A usage error with a hint.
    pub fn usage_hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    /// How the process ends.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage { .. } | Self::Config(_) => Exit::Usage,
            Self::Problem(problem) => Exit::of(problem.code),
            Self::Unreachable { .. } | Self::NoHub { .. } => Exit::Unreachable,
            Self::Interrupted => Exit::Interrupted,
            Self::Answer(_) | Self::File { .. } | Self::Hub { .. } | Self::Output(_) => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<&str> {
        match self {
            Self::Usage { hint, .. } | Self::Unreachable { hint, .. } | Self::Hub { hint, .. } => hint.as_deref(),
            Self::Problem(problem) => problem.hint.as_deref(),
            Self::NoHub { .. } => Some("check --url or FOOTBRIDGE_URL"),
            _ => None,
        }
    }

    /// A word for programs, where the hub gave none.
    fn code(&self) -> &'static str {
        match self {
            Self::Usage { .. } | Self::Config(_) => "usage",
            Self::Problem(problem) => problem.code.as_str(),
            Self::Unreachable { .. } | Self::NoHub { .. } => "unreachable",
            Self::Interrupted => "interrupted",
            Self::Answer(_) | Self::File { .. } | Self::Hub { .. } | Self::Output(_) => "failed",
        }
    }

    /// The lines that tell it to people, or the JSON for programs.
    pub fn told(&self, format: Format) -> String {
        match (format, self) {
            (Format::Json, Self::Problem(problem)) => json_line(&serde_json::json!(problem)),
            (Format::Json, _) => {
                json_line(&json!({ "code": self.code(), "detail": self.to_string(), "hint": self.hint() }))
            }
            (Format::Text, _) => self.for_people(),
        }
    }

    fn for_people(&self) -> String {
        let mut told = String::from("error: ");
        match self {
            Self::Problem(problem) => told.push_str(&of_hub(problem)),
            other => told.push_str(&other.to_string()),
        }
        if let Some(hint) = self.hint().filter(|hint| !told.contains(hint)) {
            told.push_str(&format!("\nhint: {hint}"));
        }
        let (told, _) = footbridge_shared::text::clean(&told);
        format!("{told}\n")
    }

    /// Tells it on the standard error stream.
    pub fn report(&self, format: Format) {
        // Nobody is left to tell when this fails.
        let _ = std::io::stderr().lock().write_all(self.told(format).as_bytes());
    }
}

fn json_line(value: &serde_json::Value) -> String {
    format!("{value}\n")
}

/// A problem: what happened, or, where it names places, what its code says and a line for each place.
fn of_hub(problem: &Problem) -> String {
    let places = places(problem);
    if places.is_empty() {
        return format!("{} [{}]", problem.detail, problem.code);
    }
    format!("{} [{}]\n  {}", problem.title.trim_end_matches('.'), problem.code, places.join("\n  "))
}

/// The places that a problem names: of a document by line, column and key, of arguments by path.
fn places(problem: &Problem) -> Vec<String> {
    let Some(serde_json::Value::Array(places)) = &problem.errors else { return Vec::new() };
    let text = |place: &serde_json::Value, key: &str| place.get(key).and_then(|v| v.as_str()).map(str::to_owned);
    let number = |place: &serde_json::Value, key: &str| place.get(key).and_then(serde_json::Value::as_u64);
    places
        .iter()
        .map(|place| {
            let mut parts = Vec::new();
            if let (Some(line), Some(column)) = (number(place, "line"), number(place, "column")) {
                parts.push(format!("line {line}, column {column}"));
            }
            parts.extend(
                text(place, "key")
                    .or_else(|| text(place, "path"))
                    .filter(|key| !key.is_empty())
                    .map(|key| format!("`{key}`")),
            );
            parts.push(text(place, "message").unwrap_or_else(|| place.to_string()));
            let hint = text(place, "hint").map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{}{hint}", parts.join(": "))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use footbridge_shared::ErrorCode;

    use super::*;

    fn invalid_document() -> CliError {
        let code = ErrorCode::InvalidDocument;
        CliError::Problem(Box::new(Problem {
            r#type: Problem::type_of(code),
            title: code.meaning().to_owned(),
            status: 422,
            code,
            detail: "the document `server-tools/x.yaml` has 2 problems".to_owned(),
            hint: Some("write it in quotes".to_owned()),
            outcome: None,
            retry_after_ms: None,
            errors: Some(json!([
                { "document": "x", "line": 3, "column": 5, "key": "parameters.path", "message": "it must be a text", "hint": "write it in quotes" },
                { "path": "/limit", "message": "\u{1b}[2Jis too large" },
            ])),
        }))
    }

    #[test]
    fn people_get_code_and_places_nothing_twice_and_no_escape_sequences() {
        insta::assert_snapshot!(invalid_document().told(Format::Text), @r#"
        error: A document does not follow its schema [invalid_document]
          line 3, column 5: `parameters.path`: it must be a text (write it in quotes)
          `/limit`: [2Jis too large
        "#);
    }

    #[test]
    fn programs_get_one_line_of_json() {
        let told = invalid_document().told(Format::Json);
        assert_eq!(told.lines().count(), 1);
        let value: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!(value["code"], "invalid_document");
        assert_eq!(value["errors"][0]["line"], 3);
        let usage: serde_json::Value =
            serde_json::from_str(&CliError::usage_hint("no", "do").told(Format::Json)).unwrap();
        assert_eq!(usage, json!({ "code": "usage", "detail": "no", "hint": "do" }));
    }
}
