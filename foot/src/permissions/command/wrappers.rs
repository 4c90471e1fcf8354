//! Programs that start other programs, and where in their arguments those stand.

mod options;

use super::Word;
use options::WRAPPERS;

/// What a program starts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// Nothing, as far as its arguments say.
    Nothing,
    /// Commands, each with the names it sets in their environment.
    Commands(Vec<(Vec<Word>, Vec<String>)>),
    /// A script; `None` if it is known at run time alone.
    Script(Option<String>),
    /// A script that comes over its input.
    Input,
    /// Something that begins at one of its arguments.
    Unclear,
}

/// More of them, whose options are not read.
const OTHERS: [&str; 75] = [
    "su",
    "runuser",
    "pkexec",
    "run0",
    "systemd-run",
    "strace",
    "ltrace",
    "gdb",
    "valgrind",
    "perf",
    "script",
    "watch",
    "entr",
    "parallel",
    "flock",
    "chrt",
    "taskset",
    "prlimit",
    "choom",
    "setarch",
    "linux32",
    "linux64",
    "setpriv",
    "capsh",
    "unshare",
    "nsenter",
    "bwrap",
    "firejail",
    "proot",
    "fakeroot",
    "unbuffer",
    "expect",
    "caffeinate",
    "xvfb-run",
    "dbus-run-session",
    "dumb-init",
    "tini",
    "catchsegv",
    "ssh-agent",
    "start-stop-daemon",
    "daemonize",
    "i386",
    "x86_64",
    "uname26",
    "uclampset",
    "pipesz",
    "coresched",
    "enosys",
    "sg",
    "newgrp",
    "runcon",
    "aa-exec",
    "numactl",
    "cgexec",
    "chpst",
    "softlimit",
    "setlock",
    "systemd-inhibit",
    "systemd-cat",
    "chronic",
    "rlwrap",
    "eatmydata",
    "faketime",
    "torsocks",
    "proxychains",
    "proxychains4",
    "sshpass",
    "hyperfine",
    // What a shell does by itself, and later runs under another name or of its own accord.
    "alias",
    "hash",
    "bind",
    "compgen",
    "complete",
    "mapfile",
    "readarray",
];
/// How the names of the system's loaders of programs begin: each starts the program that its arguments name.
const LOADERS: [&str; 4] = ["ld-linux", "ld-musl", "ld.so", "ld64.so"];

/// Shells. Those that read scripts in another way are told apart below.
const SHELLS: [&str; 10] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "yash", "rbash", "posh"];
const OTHER_SHELLS: [&str; 8] = ["fish", "csh", "tcsh", "nu", "elvish", "xonsh", "pwsh", "rc"];

/// Whether a program is another one by each of its names.
pub(super) fn is_many_in_one(name: &str) -> bool {
    matches!(name, "busybox" | "toybox" | "coreutils")
}

/// What a program of this name starts; `None` if it is known for starting nothing.
pub(super) fn inside(name: &str, arguments: &[Word]) -> Option<Inside> {
    if name == "env" || name == "genv" {
        return Some(env(arguments));
    }
    if let Some(options) = WRAPPERS.iter().find(|options| options.names.contains(&name)) {
        return Some(options.apply(arguments).unwrap_or(Inside::Unclear));
    }
    match name {
        "find" | "gfind" => Some(find(arguments)),
        "eval" => Some(eval(behind_dashes(arguments))),
        "trap" => {
            let action = behind_dashes(arguments).first();
            action.map(|action| Inside::Script(action.text().map(str::to_owned)))
        }
        "split" | "gsplit" if arguments.iter().any(may_be_filter) => Some(Inside::Unclear),
        _ if LOADERS.iter().any(|loader| name.starts_with(loader)) => Some(Inside::Unclear),
        _ if SHELLS.contains(&name) => Some(shell(arguments)),
        _ if OTHER_SHELLS.contains(&name) || OTHERS.contains(&name) => Some(Inside::Unclear),
        _ => None,
    }
}

/// What stands behind the mark that ends options, if there is one.
fn behind_dashes(arguments: &[Word]) -> &[Word] {
    match arguments.split_first() {
        Some((first, rest)) if first.text() == Some("--") => rest,
        _ => arguments,
    }
}

/// `--filter`, which names a command for each part, in all its lengths.
fn may_be_filter(word: &Word) -> bool {
    word.text().is_none_or(|text| text.starts_with("--f"))
}

/// `env` knows two things more: `-` alone, and `-S`, which splits a text into words.
fn env(arguments: &[Word]) -> Inside {
    let mut words = Vec::new();
    let mut rest = arguments.iter();
    let mut in_options = true;
    while let Some(word) = rest.next() {
        let Some(text) = word.text() else {
            words.push(word.clone());
            continue;
        };
        if !in_options {
            words.push(word.clone());
            continue;
        }
        let split = match text {
            "-" => continue,
            "-S" | "--split-string" => match rest.next() {
                None => return Inside::Nothing,
                Some(Word::Any) => return Inside::Unclear,
                Some(Word::Text(text)) => Some(text.as_str()),
            },
            "--" => {
                in_options = false;
                None
            }
            _ if text.starts_with("--") => text.strip_prefix("--split-string="),
            // `-iS'rm x'`
            _ if text.starts_with('-') && text.contains('S') => return Inside::Unclear,
            _ => {
                in_options = text.starts_with('-') || words.last().is_some_and(takes_next);
                None
            }
        };
        match split {
            None => words.push(word.clone()),
            Some(text) if text.contains(['\'', '"', '\\', '$']) => return Inside::Unclear,
            Some(text) => {
                words.extend(text.split_whitespace().map(|word| Word::Text(word.to_owned())));
                in_options = text.trim_start().starts_with('-');
            }
        }
    }
    let options = WRAPPERS.iter().find(|options| options.names.contains(&"env"));
    options.and_then(|options| options.apply(&words)).unwrap_or(Inside::Unclear)
}

/// Options of `env` whose value is the next word.
fn takes_next(word: &Word) -> bool {
    matches!(word.text(), Some("-u" | "--unset" | "-C" | "--chdir" | "-a" | "--argv0"))
}

fn shell(arguments: &[Word]) -> Inside {
    let (mut has_script, mut reads_input) = (false, false);
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let Some(text) = word.text() else { return Inside::Unclear };
        match text {
            "--" | "-" => {
                return match rest.next() {
                    Some(word) if has_script => Inside::Script(word.text().map(str::to_owned)),
                    Some(_) if !reads_input => Inside::Nothing,
                    _ => Inside::Input,
                };
            }
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => _ = rest.next(),
            "--posix" | "--login" | "--norc" | "--noprofile" | "--restricted" | "--verbose" => {}
            _ if text.starts_with("--") => return Inside::Unclear,
            _ if text.len() > 1 && text.starts_with(['-', '+']) => {
                has_script |= text.starts_with('-') && text.contains('c');
                reads_input |= text.starts_with('-') && text.contains('s');
                // `-eo pipefail`, `-ec`
                if text.ends_with('o') || text.ends_with('O') {
                    rest.next();
                } else if text.contains('o') {
                    return Inside::Unclear;
                }
            }
            _ if has_script => return Inside::Script(Some(text.to_owned())),
            _ if reads_input => return Inside::Input,
            // A file with a script.
            _ => return Inside::Nothing,
        }
    }
    Inside::Input
}

fn eval(arguments: &[Word]) -> Inside {
    let words: Option<Vec<&str>> = arguments.iter().map(Word::text).collect();
    Inside::Script(words.map(|words| words.join(" ")))
}

/// `-exec` and its kind start commands; `-delete` does what `rm` does.
fn find(arguments: &[Word]) -> Inside {
    let mut commands = Vec::new();
    let mut rest = arguments;
    while let Some((word, behind)) = rest.split_first() {
        rest = behind;
        match word.text() {
            None => return Inside::Unclear,
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                // A `+` ends a command behind `{}` alone.
                let ends = |at: &usize| match rest.get(*at).and_then(Word::text) {
                    Some(";") => true,
                    Some("+") => at.checked_sub(1).and_then(|at| rest.get(at)?.text()) == Some("{}"),
                    _ => false,
                };
                let end = (0..rest.len()).find(ends).unwrap_or(rest.len());
                let command = rest.get(..end).unwrap_or_default();
                // A name of a file within a script may be anything that a script can say.
                if command.iter().any(|word| word.text().is_some_and(|text| text != "{}" && text.contains("{}"))) {
                    return Inside::Unclear;
                }
                let open = |word: &Word| if word.text() == Some("{}") { Word::Any } else { word.clone() };
                let words = command.iter().map(open);
                let words: Vec<Word> = words.collect();
                commands.push((words, Vec::new()));
                rest = rest.get(end..).unwrap_or_default();
            }
            Some("-delete") => commands.push((vec![Word::Text("rm".to_owned()), Word::Any], Vec::new())),
            Some(_) => {}
        }
    }
    commands.retain(|(words, _)| !words.is_empty());
    if commands.is_empty() { Inside::Nothing } else { Inside::Commands(commands) }
}
