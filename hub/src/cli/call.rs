//! `footbridge call`

use std::time::Duration;

use clap::Args;
use footbridge_shared::ErrorCode;
use footbridge_shared::message::Raw;
use futures::FutureExt as _;
use futures::future::Fuse;
use tokio::time::Instant;

use super::arguments::{self, ArgumentError, Word};
use super::client::{Client, Invocation, Update};
use super::error::CliError;
use super::exit::Exit;
use super::input;
use super::interrupt::Interrupts;
use super::out::{Format, Out, remark};
use super::session::{ScopeArgs, Session};
use super::tools::{Filter, detail, list};
use crate::api::calls::{InvokeReply, InvokeRequest, SkippedEvent};
use crate::api::problem::Problem;
use crate::domain::key::{IdempotencyKey, KeyError};
use crate::yaml::did_you_mean;

mod content;
mod progress;

use progress::Live;

/// How long a cancelled call may take to say how it ended.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);

/// What `--help` says.
pub(super) const LONG: &str = "\
Call a tool.

Arguments are words `key=value`. A value is read as the tool's schema wants it: where a text is wanted it stays a text, \
else it is JSON (10, true, {\"a\": 1}); for a list, each `key=value` adds one item. What the schema does not name is JSON \
if it can be, and a text if not. `key:=json` is JSON in any case. `--json` gives all arguments at once.

The tool's text goes to standard output; progress, partial output and failures go to standard error. `--output json` \
writes the whole reply instead. Ctrl-C cancels the call and waits for its end; a second one does not wait.

With `--key` the call happens at most once in 24 hours, however often the command is repeated: a repetition joins the call \
or gets its result. Such a call goes on without this command, which takes it up again when the hub comes back.";

/// What stands below it.
pub(super) const EXAMPLES: &str = "\
Examples:
  footbridge call file_read path=README.md
  footbridge call file_grep pattern=TODO pathGlob='*.rs'
  footbridge call create_issue title='It leaks' labels=bug labels=urgent
  footbridge call report --json '{\"from\": \"2026-01-01\"}'
  footbridge call report --json @arguments.json -o json | jq .structured
  footbridge call create_issue title='It leaks' --key issue-2026-11-30";

#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// The tool
    name: String,
    /// Its arguments, as `key=value` or `key:=json`
    #[arg(value_name = "KEY=VALUE", conflicts_with = "json")]
    words: Vec<Word>,
    /// All arguments as a JSON object; `@FILE` reads a file, `-` standard input. For JSON results use `--output json`
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    json: Option<String>,
    /// Give up after so long without a sign of life; only shortens the tool's own limit
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout_ms: Option<u64>,
    /// Let this call happen at most once: the same for each try of it, another one for each call that you mean
    #[arg(long, value_name = "KEY", value_parser = key)]
    key: Option<String>,
    #[command(flatten)]
    scope: ScopeArgs,
}

fn key(text: &str) -> Result<String, KeyError> {
    IdempotencyKey::parse(text).map(|_| text.to_owned())
}

pub(super) async fn run(args: CallArgs, session: &mut Session) -> Result<Exit, CliError> {
    session.heed_scope(args.scope);
    let client = session.client()?;
    let arguments = match &args.json {
        Some(json) => arguments::whole(&input::value(json)?).map_err(refused)?,
        None => typed(&client, &args.name, &args.words).await?,
    };
    let request = InvokeRequest {
        arguments: Some(arguments),
        timeout_ms: args.timeout_ms.and_then(std::num::NonZeroU64::new),
        max_timeout_ms: None,
    };
    let mut interrupts = Interrupts::listen()?;
    let invocation = tokio::select! {
        invocation = client.invoke(&args.name, &request, args.key.as_deref()) => invocation,
        () = interrupts.next() => return Err(CliError::Interrupted),
    };
    let invocation = match invocation {
        Err(CliError::Problem(problem)) if problem.code == ErrorCode::UnknownTool => {
            return Err(CliError::Problem(guessed(&client, &args.name, problem).await));
        }
        invocation => invocation?,
    };
    let live = Live::new(&args.name, session.out.format());
    let Followed { reply, cancelled } = follow(&client, invocation, interrupts, live).await?;
    let exit = ended(&args.name, &reply, &mut session.out)?;
    Ok(if cancelled && reply.code == Some(ErrorCode::Cancelled) { Exit::Interrupted } else { exit })
}

/// Reads the words as the tool's schema wants them. Asks for the schema only if a word needs it.
async fn typed(client: &Client, tool: &str, words: &[Word]) -> Result<Raw, CliError> {
    let schema = if words.iter().all(Word::is_json) {
        None
    } else {
        match detail(client, tool).await {
            Ok(detail) => Some(detail.input_schema),
            // Not there, or not for this token to read: the call itself gives the better answer.
            Err(CliError::Problem(_)) => None,
            Err(error) => return Err(error),
        }
    };
    arguments::object(words, schema.as_ref()).map_err(|error| match error {
        ArgumentError::WrongType { .. } => {
            CliError::usage_hint(error.to_string(), format!("`footbridge tools show {tool}` prints the schema"))
        }
        error => refused(error),
    })
}

/// The problem of a name that is no tool, with the tool that was probably meant.
async fn guessed(client: &Client, name: &str, mut problem: Box<Problem>) -> Box<Problem> {
    // Without a listing (the token may not read it) the hub's own hint is good enough.
    if let Ok(page) = list(client, &Filter::default()).await
        && let Some(meant) = did_you_mean(name, page.tools.iter().map(|tool| tool.name.as_str()))
    {
        problem.hint = Some(format!("did you mean `{meant}`?"));
    }
    problem
}

fn refused(error: ArgumentError) -> CliError {
    CliError::usage(error.to_string())
}

/// How a call that was followed ended.
struct Followed {
    reply: InvokeReply<'static>,
    /// Whether Ctrl-C asked for the end.
    cancelled: bool,
}

/// Shows what the call says until it ends. The first Ctrl-C cancels the call, the second one leaves it.
async fn follow(
    client: &Client,
    mut invocation: Invocation,
    mut interrupts: Interrupts,
    mut live: Live,
) -> Result<Followed, CliError> {
    let id = invocation.id.clone();
    let mut patience: Option<Instant> = None;
    // Beside the stream: the hub answers only when the call has stopped, or will not.
    let mut cancel = std::pin::pin!(Fuse::terminated());
    loop {
        let out_of_patience = async {
            match patience {
                Some(end) => tokio::time::sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            update = invocation.next() => match update {
                Ok(Update::Progress(progress)) => live.progress(&progress),
                Ok(Update::Output(output)) => live.output(&output),
                Ok(Update::Skipped(SkippedEvent { events })) => live.say(&format!("[… {events} events are left out …]")),
                Ok(Update::Broken) => live.say("the connection broke; the call goes on, and is looked for"),
                Ok(Update::Ended(reply)) => return Ok(Followed { reply: *reply, cancelled: patience.is_some() }),
                Err(CliError::Problem(problem)) if patience.is_some() && problem.code == ErrorCode::Cancelled => {
                    return Err(CliError::Interrupted);
                }
                Err(error) => return Err(error),
            },
            () = interrupts.next() => {
                let (None, Some(id)) = (patience, &id) else { return Err(CliError::Interrupted) };
                live.say("cancelling; Ctrl-C again leaves at once");
                patience = Some(Instant::now() + CANCEL_PATIENCE);
                cancel.set(client.cancel(id).fuse());
            },
            cancelled = &mut cancel => match cancelled {
                // How it ended comes over the stream, also when it had ended before it heard of this.
                Ok(_) | Err(CliError::Problem(_)) => {}
                Err(error) => return Err(error),
            },
            () = out_of_patience => {
                live.say("the call did not say how it ended");
                return Err(CliError::Interrupted);
            }
        }
    }
}

/// Writes what a call came to, and says how the command ends.
pub(super) fn ended(tool: &str, reply: &InvokeReply<'_>, out: &mut Out) -> Result<Exit, CliError> {
    match out.format() {
        Format::Json => out.json(reply)?,
        Format::Text => {
            let texts = content::texts(reply);
            if reply.is_error {
                // Nothing of a failure stands where a result is looked for.
                texts.iter().for_each(|text| remark(text));
                remark(&failure(tool, reply));
            } else {
                for text in texts {
                    out.text(&text)?;
                }
            }
        }
    }
    Ok(if reply.is_error { Exit::ToolFailed } else { Exit::Done })
}

fn failure(tool: &str, reply: &InvokeReply<'_>) -> String {
    let mut told = format!("error: {tool} failed");
    if let Some(code) = reply.code {
        told.push_str(&format!(" [{code}]"));
    }
    if reply.outcome == Some(footbridge_shared::Outcome::Unknown) {
        told.push_str("; whether it ran to its end is unknown");
    }
    if let Some(hint) = &reply.hint {
        told.push_str(&format!("\nhint: {hint}"));
    }
    told
}

#[cfg(test)]
mod tests;
