//! What a command really runs: what its wrappers start, and what stands in its scripts.
//!
//! Nothing here decides. It errs to both sides at once: [`Reading::parts`] may name more than would run, so that a denied
//! command is found behind whatever stands in front of it, and where that is a guess [`Reading::unclear`] keeps rules that
//! allow from matching.

mod shell;
mod wrappers;

use wrappers::Inside;

/// How deep wrappers and scripts may be nested.
const MAX_DEPTH: usize = 16;
/// Commands that one call may consist of.
const MAX_PARTS: usize = 2_000;
/// Letters of short options that may stand before a value in one word.
const MAX_LETTERS: usize = 6;
/// What parts a path from what stands before or behind it in a word.
const PATH_MARKS: [char; 4] = ['=', ':', '@', ','];
/// Words of a guess; what stands behind them counts as anything.
const GUESS_WORDS: usize = 16;

/// One word of a command, as far as it is known before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// Its text.
    Text(String),
    /// Any number of words, none included: an expansion, or what comes from standard input.
    Any,
}

impl Word {
    /// Its text, if that is known.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Any => None,
        }
    }
}

/// One command among those that would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// The program and its arguments; there is at least one word.
    pub(crate) words: Vec<Word>,
    /// Names that are set in its environment.
    pub(crate) env: Vec<String>,
    /// Whether it stands in a script.
    pub(crate) scripted: bool,
    /// Whether it is there for sure, and not one of several ways to read the words.
    pub(crate) sure: bool,
}

/// All that a command would run.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The commands.
    pub(crate) parts: Vec<Part>,
    /// There may be more than that, or files are written to by redirection.
    pub(crate) unclear: bool,
    /// It is a script, or starts one.
    pub(crate) script: bool,
    /// It is too long or too deeply nested to be read to its end.
    pub(crate) too_much: bool,
    /// Paths that stand in it and are no words of a command.
    paths: Vec<String>,
}

/// Says what a program is called besides its own file name: what its links lead to.
pub(crate) type RealName<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Reading {
    /// Reads a program with its arguments. `env` are names that the caller sets; `stdin` is what it reads first of its input.
    pub(crate) fn of_argv(argv: &[String], env: Vec<String>, stdin: Option<&str>, real_name: RealName<'_>) -> Self {
        let words = argv.iter().cloned().map(Word::Text).collect();
        let mut reader = Reader { reading: Self::default(), real_name, stdin };
        reader.command(Part { words, env, scripted: false, sure: true }, 0);
        reader.reading
    }

    /// All that stands in it and may be a path, as it is written.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        let words = self.parts.iter().flat_map(|part| &part.words).filter_map(Word::text);
        let texts = words.chain(self.paths.iter().map(String::as_str));
        texts.flat_map(|text| {
            // `if=x`, `--file=x`, `HEAD:x`, `@x`, and `x:/mnt`, `a,x`: what stands behind each mark, and between two.
            let behind = text.match_indices(PATH_MARKS).filter_map(|(at, mark)| text.get(at + mark.len()..));
            let between = text.split(PATH_MARKS);
            std::iter::once(text).chain(behind).chain(between).chain(attached(text)).filter(|path| !path.is_empty())
        })
    }

    /// The same, with texts beside its words in which paths may stand.
    pub(crate) fn naming(mut self, texts: impl IntoIterator<Item = String>) -> Self {
        self.paths.extend(texts);
        self
    }

    /// Reads a script.
    pub(crate) fn of_script(script: &str, env: &[String], stdin: Option<&str>, real_name: RealName<'_>) -> Self {
        let mut reader = Reader { reading: Self::default(), real_name, stdin };
        reader.script(script, env, true, 0);
        reader.reading
    }
}

struct Reader<'a> {
    reading: Reading,
    real_name: RealName<'a>,
    /// What the command reads first of its input.
    stdin: Option<&'a str>,
}

impl Reader<'_> {
    fn command(&mut self, part: Part, depth: usize) {
        if depth > MAX_DEPTH || self.reading.parts.len() >= MAX_PARTS {
            self.reading.too_much = true;
            self.reading.unclear = true;
            return;
        }
        let Some(program) = part.words.first() else { return };
        let inside = match program.text() {
            // Which program that is will be known when it runs.
            None => Inside::Unclear,
            Some(program) => self.inside(program, part.words.get(1..).unwrap_or_default()),
        };
        let Part { words, env, scripted, sure } = part.clone();
        self.reading.parts.push(part);
        match inside {
            Inside::Nothing => {}
            Inside::Commands(inner) => {
                for (words, more_env) in inner {
                    let env = env.iter().cloned().chain(more_env).collect();
                    self.command(Part { words, env, scripted, sure }, depth + 1);
                }
            }
            Inside::Script(Some(script)) => self.script(&script, &env, sure, depth + 1),
            Inside::Script(None) => {
                self.reading.script = true;
                self.reading.unclear = true;
            }
            Inside::Input => {
                // More may come later.
                self.reading.script = true;
                self.reading.unclear = true;
                if let Some(script) = self.stdin {
                    self.script(script, &env, sure, depth + 1);
                }
            }
            Inside::Unclear => self.guess(words.get(1..).unwrap_or_default(), &env, scripted, depth),
        }
    }

    /// A link to a wrapper is one. Programs that are many in one go by their own name alone.
    fn inside(&self, program: &str, arguments: &[Word]) -> Inside {
        let own = file_name(program);
        match wrappers::inside(own, arguments) {
            Some(inside) => inside,
            None => {
                let real = (self.real_name)(program).filter(|real| !wrappers::is_many_in_one(real));
                real.and_then(|real| wrappers::inside(&real, arguments)).unwrap_or(Inside::Nothing)
            }
        }
    }

    fn script(&mut self, script: &str, env: &[String], sure: bool, depth: usize) {
        self.reading.script = true;
        let Ok(read) = shell::read(script) else {
            self.reading.unclear = true;
            self.guess_script(script, env);
            return;
        };
        self.reading.unclear |= read.unclear;
        self.reading.paths.extend(read.paths);
        for command in read.commands {
            let env = env.iter().cloned().chain(command.env).collect();
            self.command(Part { words: command.words, env, scripted: true, sure }, depth + 1);
        }
    }

    /// A wrapper whose options are not understood: what it starts begins at one of its words.
    fn guess(&mut self, words: &[Word], env: &[String], scripted: bool, depth: usize) {
        self.reading.unclear = true;
        for at in 0..words.len() {
            match words.get(at) {
                Some(Word::Text(text)) if is_script(text) => {
                    self.guess_script(text, env);
                    attached(text).for_each(|script| self.guess_script(script, env));
                }
                // `--option=command`
                Some(Word::Text(text)) => {
                    if let Some((_, value)) = text.split_once('=').filter(|(_, value)| !value.is_empty()) {
                        let rest = words.get(at + 1..).unwrap_or_default().iter().cloned();
                        let words = std::iter::once(Word::Text(value.to_owned())).chain(rest).collect();
                        self.guessed(words, env, scripted);
                    }
                    for value in attached(text) {
                        let rest = words.get(at + 1..).unwrap_or_default().iter().cloned();
                        let words = std::iter::once(Word::Text(value.to_owned())).chain(rest).collect();
                        self.guessed(words, env, scripted);
                    }
                }
                _ => {}
            }
            let rest = words.get(at..).unwrap_or_default();
            // A wrapper may stand among them: it is looked into as far as it is understood.
            let wrapper = rest.first().and_then(Word::text).map(file_name);
            if wrapper.is_some_and(|name| wrappers::inside(name, &[]).is_some()) {
                let part = Part { words: rest.to_vec(), env: env.to_owned(), scripted, sure: false };
                self.command(part, depth + 1);
            } else {
                self.guessed(rest.to_vec(), env, scripted);
            }
        }
    }

    /// A script that is not understood: each of its words may be a command.
    fn guess_script(&mut self, script: &str, env: &[String]) {
        self.reading.script = true;
        let plain: String = script.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        for chunk in plain.split([';', '&', '|', '\n', '\r', '(', ')', '`']) {
            let is_break = |c: char| c.is_whitespace() || matches!(c, '=' | '{' | '}' | ',' | '$' | '<' | '>');
            let words: Vec<&str> = chunk.split(is_break).filter(|word| !word.is_empty()).collect();
            for at in 0..words.len() {
                let rest = words.get(at..).unwrap_or_default();
                let known = rest.iter().take(GUESS_WORDS).map(|word| Word::Text((*word).to_owned()));
                self.guessed(known.chain([Word::Any]).collect(), env, true);
            }
        }
    }

    fn guessed(&mut self, mut words: Vec<Word>, env: &[String], scripted: bool) {
        if self.reading.parts.len() >= MAX_PARTS {
            self.reading.too_much = true;
            return;
        }
        if words.len() > GUESS_WORDS {
            words.truncate(GUESS_WORDS);
            words.push(Word::Any);
        }
        self.reading.parts.push(Part { words, env: env.to_owned(), scripted, sure: false });
    }
}

/// Whether a word holds more than one word of a script.
fn is_script(text: &str) -> bool {
    text.contains(|c: char| c.is_whitespace() || ";|&`$(".contains(c))
}

/// What may be the value of a short option, in the option's own word: `x` and `cx` of `-qcx`.
fn attached(text: &str) -> impl Iterator<Item = &str> {
    let letters = text.strip_prefix('-').unwrap_or_default();
    let options = letters.bytes().take_while(u8::is_ascii_alphanumeric).take(MAX_LETTERS).count();
    (1..=options).filter_map(move |at| letters.get(at..)).filter(|value| !value.is_empty())
}

/// The last part of how a program is named.
pub(crate) fn file_name(program: &str) -> &str {
    program.rsplit('/').find(|part| !part.is_empty()).unwrap_or(program)
}

#[cfg(test)]
mod tests;
