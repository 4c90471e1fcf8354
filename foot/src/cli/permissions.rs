//! `foot permissions`

use std::fmt::Write as _;
use std::path::Path;

use clap::{Args, Subcommand};

use super::own::OwnArgs;
use super::{USAGE, complain, say};
use crate::config::Environment;
use crate::failure::escaped;
use crate::offer::ANSWERS;
use crate::permissions::{Answer, Remembered, What, quoted};

/// Options of `foot permissions`.
#[derive(Debug, Args)]
pub(super) struct PermissionsArgs {
    #[command(subcommand)]
    command: PermissionsCommand,
}

#[derive(Debug, Subcommand)]
enum PermissionsCommand {
    /// List the answers that were given once and for all.
    List {
        #[command(flatten)]
        own: OwnArgs,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Forget one of them: the next call of its kind asks again.
    Forget {
        /// Its number in the list.
        number: usize,
        #[command(flatten)]
        own: OwnArgs,
    },
}

/// Shows or forgets remembered answers; returns the exit code.
pub(super) fn permissions(args: &PermissionsArgs, environment: &Environment, here: &Path) -> u8 {
    let own = match &args.command {
        PermissionsCommand::List { own, .. } | PermissionsCommand::Forget { own, .. } => own,
    };
    let remembered = match own.file(ANSWERS, environment, here) {
        Ok(path) => Remembered::open(path),
        Err(error) => {
            complain(&error);
            return error.code();
        }
    };
    let done = remembered.and_then(|remembered| match args.command {
        PermissionsCommand::List { json, .. } => Ok(list(&remembered.all(), json)),
        PermissionsCommand::Forget { number, .. } => Ok(format!("forgotten: {}\n", told(&remembered.forget(number)?))),
    });
    match done {
        Ok(text) => say(&text),
        Err(error) => {
            complain(&error);
            USAGE
        }
    }
}

fn list(answers: &[Answer], json: bool) -> String {
    if json {
        return serde_json::to_string_pretty(answers).map(|json| json + "\n").unwrap_or_default();
    }
    if answers.is_empty() {
        return "nothing is remembered\n".to_owned();
    }
    let mut text = String::new();
    for (at, answer) in answers.iter().enumerate() {
        let _ = writeln!(text, "{:>3}  {}", at + 1, told(answer));
    }
    text
}

fn told(answer: &Answer) -> String {
    let words = |argv: &[String]| argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let with = |env: &Option<String>| if env.is_some() { ", with certain variables" } else { "" };
    let what = match &answer.about.what {
        What::Tool => String::new(),
        What::File { access, path } => format!("{} {}", escaped(access), quoted(path)),
        What::Argv { argv, cwd, env } => format!("run {} in {}{}", words(argv), quoted(cwd), with(env)),
        What::Shell { script, cwd, env } => format!("run sh -c {} in {}{}", quoted(script), quoted(cwd), with(env)),
        What::Server { server, asked, .. } => {
            format!("ask the server {} for {}, with certain arguments", quoted(server), quoted(asked))
        }
    };
    let always = if answer.allow { "always" } else { "never" };
    format!("{always}  {}  {}  {what}", escaped(&answer.about.subject), escaped(&answer.about.tool))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permissions::Literal;

    #[test]
    fn answers_are_told_one_a_line_with_the_number_to_forget_them_by() {
        let answer = |allow, what| Answer {
            allow,
            about: Literal { subject: "ada".to_owned(), tool: "t".to_owned(), what },
            given_ms: 1,
        };
        let file = What::File { access: "write".to_owned(), path: "/w/[a]\n".to_owned() };
        let argv = What::Argv {
            argv: vec!["make".to_owned(), "a b".to_owned()],
            cwd: "/w".to_owned(),
            env: Some("x".to_owned()),
        };
        let told = list(&[answer(true, file), answer(false, argv)], false);
        let expected = "  1  always  ada  t  write \"/w/[a]\\n\"\n  2  never  ada  t  run \"make\" \"a b\" in \"/w\", with certain variables\n";
        assert_eq!(told, expected);
        assert_eq!(list(&[], false), "nothing is remembered\n");
    }
}
