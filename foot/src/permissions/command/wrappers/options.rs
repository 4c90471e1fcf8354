//! Wrappers whose options are known, and what stands behind those.

use super::{Inside, Word};

/// The options of a wrapper, and what stands between them and the command.
pub(super) struct Options {
    pub(super) names: &'static [&'static str],
    /// Letters without a value.
    flags: &'static str,
    /// Letters with a value.
    values: &'static str,
    /// Long options, those with a value of their own word ending in `=`.
    long: &'static [&'static str],
    /// Words before the command.
    operands: usize,
    /// Whether `NAME=value` may stand before the command.
    assigns: bool,
    /// Whether more words are added when it runs.
    adds: bool,
}

const PLAIN: Options =
    Options { names: &[], flags: "", values: "", long: &[], operands: 0, assigns: false, adds: false };

pub(super) const WRAPPERS: &[Options] = &[
    Options {
        names: &["env", "genv"],
        flags: "i0v",
        values: "uCa",
        long: &["unset=", "chdir=", "argv0=", "ignore-environment", "null", "debug"],
        assigns: true,
        ..PLAIN
    },
    Options {
        names: &["sudo"],
        flags: "AbBEeHiKkNnPSsv",
        values: "aCcDghpRrTtuU",
        long: &[
            "user=",
            "group=",
            "host=",
            "prompt=",
            "chdir=",
            "chroot=",
            "close-from=",
            "role=",
            "type=",
            "command-timeout=",
            "other-user=",
            "login-class=",
            "askpass",
            "background",
            "preserve-env",
            "set-home",
            "login",
            "non-interactive",
            "preserve-groups",
            "stdin",
            "shell",
            "bell",
            "reset-timestamp",
            "no-update",
        ],
        assigns: true,
        ..PLAIN
    },
    Options { names: &["doas"], flags: "Lns", values: "aCu", ..PLAIN },
    Options { names: &["nice"], flags: "0123456789", values: "n", long: &["adjustment="], ..PLAIN },
    Options { names: &["nohup", "builtin"], ..PLAIN },
    Options { names: &["setsid"], flags: "cfw", long: &["ctty", "fork", "wait"], ..PLAIN },
    Options {
        names: &["timeout", "gtimeout"],
        flags: "vfp",
        values: "ks",
        long: &["kill-after=", "signal=", "foreground", "preserve-status", "verbose"],
        operands: 1,
        ..PLAIN
    },
    Options { names: &["stdbuf"], values: "ioe", long: &["input=", "output=", "error="], ..PLAIN },
    Options { names: &["ionice"], flags: "t", values: "cnpPu", long: &["class=", "classdata=", "ignore"], ..PLAIN },
    Options {
        names: &["xargs", "gxargs"],
        flags: "0oprtx",
        values: "adEILnPs",
        long: &[
            "arg-file=",
            "delimiter=",
            "max-lines=",
            "max-args=",
            "max-procs=",
            "max-chars=",
            "process-slot-var=",
            "null",
            "interactive",
            "no-run-if-empty",
            "open-tty",
            "verbose",
            "exit",
        ],
        adds: true,
        ..PLAIN
    },
    Options {
        names: &["time", "gtime"],
        flags: "pvaq",
        values: "fo",
        long: &["format=", "output=", "portability", "verbose", "append", "quiet"],
        ..PLAIN
    },
    Options { names: &["command"], flags: "pvV", ..PLAIN },
    Options { names: &["exec"], flags: "cl", values: "a", ..PLAIN },
    Options { names: &["chroot"], long: &["userspec=", "groups=", "skip-chdir"], operands: 1, ..PLAIN },
    Options { names: &["busybox", "toybox"], ..PLAIN },
];

/// `None` where an option or a word is not understood.
pub(super) type Understood<T> = Option<T>;

impl Options {
    /// What stands behind the options.
    pub(super) fn apply(&self, arguments: &[Word]) -> Understood<Inside> {
        let mut rest = arguments;
        while let Some((word, behind)) = rest.split_first() {
            let text = word.text()?;
            if text == "--" {
                rest = behind;
                break;
            }
            let Some(option) = text.strip_prefix('-').filter(|option| !option.is_empty()) else { break };
            let takes_next = match option.strip_prefix('-') {
                Some(long) => self.long_takes_next(long)?,
                None => self.short_takes_next(option)?,
            };
            rest = if takes_next { behind.get(1..)? } else { behind };
        }
        let mut env = Vec::new();
        while self.assigns
            && let Some((word, behind)) = rest.split_first()
            && let Some((name, _)) = word.text()?.split_once('=')
        {
            env.push(name.to_owned());
            rest = behind;
        }
        for _ in 0..self.operands {
            let Some((operand, behind)) = rest.split_first() else { return Some(Inside::Nothing) };
            operand.text()?;
            rest = behind;
        }
        if rest.is_empty() {
            return Some(Inside::Nothing);
        }
        // Whatever the option says that replaces words, it can be read off none of them.
        let mut words: Vec<Word> = rest.to_vec();
        if self.adds {
            let replaces = arguments.iter().any(|word| word.text().is_some_and(|text| text.starts_with("-I")));
            if replaces {
                words.iter_mut().skip(1).for_each(|word| *word = Word::Any);
            }
            words.push(Word::Any);
        }
        Some(Inside::Commands(vec![(words, env)]))
    }

    fn long_takes_next(&self, long: &str) -> Understood<bool> {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        if self.long.contains(&name) {
            return Some(false);
        }
        let with_value = self.long.iter().any(|known| known.strip_suffix('=') == Some(name));
        with_value.then_some(value.is_none())
    }

    fn short_takes_next(&self, letters: &str) -> Understood<bool> {
        let mut rest = letters.chars();
        while let Some(letter) = rest.next() {
            if self.values.contains(letter) {
                return Some(rest.as_str().is_empty());
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}
