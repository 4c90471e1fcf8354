//! An action as a person reads it: each word within its own quotes, nothing hidden, nothing that steers a terminal.

use footbridge_shared::text::is_hidden;

use super::{Action, CommandLine, ServerAction};

/// Longest text that is shown of one word, in characters.
const MAX_WORD_CHARS: usize = 2_000;
/// Words that are shown of one command.
const MAX_WORDS: usize = 200;

/// A text within quotes, so that it is plain where it begins and ends and what stands in it.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    let mut chars = text.chars();
    for c in chars.by_ref().take(MAX_WORD_CHARS) {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            ' ' => out.push(' '),
            // A space of another kind looks like one and is none.
            c if is_hidden(c) || c.is_whitespace() || c.is_control() => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out.push('"');
    let more = chars.count();
    if more > 0 { format!("{out}… and {more} more characters") } else { out }
}

/// What an action would do, a line for each part of it.
pub(crate) fn lines(action: &Action) -> Vec<String> {
    match action {
        Action::Nothing => Vec::new(),
        Action::File { access, path } => vec![format!("{} {}", access.as_str(), quoted(&path.to_string_lossy()))],
        Action::Run(command) => {
            let mut lines = vec![match &command.line {
                CommandLine::Argv(argv) => format!("run {}", words(argv)),
                CommandLine::Shell(script) => format!("run sh -c {}", quoted(script)),
            }];
            lines.push(format!("in {}", quoted(&command.cwd.to_string_lossy())));
            if !command.env.is_empty() {
                let env: Vec<String> =
                    command.env.iter().map(|(name, value)| format!("{}={}", quoted(name), quoted(value))).collect();
                lines.push(format!("with {}", env.join(" ")));
            }
            lines.extend(command.stdin.as_ref().map(|text| format!("reads {}", quoted(text))));
            lines
        }
        Action::Server(ServerAction { server, what, arguments, .. }) => vec![
            format!("ask the server {} for {}", quoted(server), quoted(what)),
            format!("with {}", quoted(arguments)),
        ],
    }
}

fn words(argv: &[String]) -> String {
    let mut shown: Vec<String> = argv.iter().take(MAX_WORDS).map(|word| quoted(word)).collect();
    if argv.len() > MAX_WORDS {
        shown.push(format!("… and {} more words", argv.len() - MAX_WORDS));
    }
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permissions::Command;

    #[test]
    fn words_cannot_pass_for_others() {
        assert_eq!(words(&["a b".to_owned(), "c".to_owned()]), r#""a b" "c""#);
        assert_eq!(words(&[r#"a" "b"#.to_owned()]), r#""a\" \"b""#);
        assert_ne!(words(&["a".to_owned(), "b".to_owned()]), words(&["a\" \"b".to_owned()]));
        assert_eq!(quoted(""), "\"\"");
    }

    #[test]
    fn nothing_hides_and_nothing_steers_the_terminal() {
        let shown = quoted("rm\u{1b}[2K\r\u{202e}fdp\u{200b}\u{a0}x\u{7f}\u{9b}1m\u{e0041}\n");
        assert!(shown.chars().all(|c| c == ' ' || (!c.is_control() && !c.is_whitespace() && !is_hidden(c))), "{shown}");
        assert!(shown.contains("\\u{202e}") && shown.contains("\\u{1b}") && shown.ends_with("\\n\""), "{shown}");
        let long = quoted(&"x".repeat(5_000));
        assert!(long.ends_with("and 3000 more characters") && long.len() < 2_100, "what is cut is said to be");
    }

    #[test]
    fn a_command_is_shown_with_its_folder_and_what_it_is_given() {
        let action = Action::Run(Command {
            line: CommandLine::Shell("git status; rm -rf x".to_owned()),
            cwd: "/w".into(),
            env: [("A".to_owned(), "1 2".to_owned())].into(),
            stdin: None,
            configured: false,
        });
        assert_eq!(lines(&action), [r#"run sh -c "git status; rm -rf x""#, r#"in "/w""#, r#"with "A"="1 2""#]);
    }
}
