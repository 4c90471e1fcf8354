//! Scripts of a shell, read as far as it takes to see which commands stand in them.
//!
//! What is not understood is said to be so, and never guessed at here. Shells differ: what two of them would read in two
//! ways is not understood either.

mod words;

use super::Word;
use words::Draft;

/// Longest script that is read, in bytes.
const MAX_SCRIPT_BYTES: usize = 64 * 1024;
/// How deep substitutions and subshells may be nested.
const MAX_DEPTH: usize = 16;

/// Words behind which a command stands.
const BEFORE_COMMANDS: [&str; 9] = ["if", "then", "elif", "else", "while", "until", "do", "{", "!"];
/// Words that end a compound command.
const ENDS: [&str; 3] = ["fi", "done", "}"];
/// Words that begin what is not read.
const NOT_READ: [&str; 7] = ["for", "case", "select", "function", "coproc", "[[", "in"];

/// The script is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotUnderstood;

type Read<T> = Result<T, NotUnderstood>;

/// What stands in a script.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// Its commands, those in substitutions and subshells among them.
    pub(super) commands: Vec<Command>,
    /// Files are read or written by redirection, or a command is set or named at run time.
    pub(super) unclear: bool,
    /// Paths that stand in it beside the words that are known: of redirections, and what words that are not begin with.
    pub(super) paths: Vec<String>,
}

/// One command of a script.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    /// Names that are set for it alone.
    pub(super) env: Vec<String>,
}

/// Reads a script.
pub(super) fn read(script: &str) -> Read<Script> {
    read_at(script, 0)
}

fn read_at(script: &str, depth: usize) -> Read<Script> {
    if script.len() > MAX_SCRIPT_BYTES || depth > MAX_DEPTH || script.contains('\0') {
        return Err(NotUnderstood);
    }
    let mut reader = Reader { rest: script.chars().collect::<Vec<_>>().into_iter().peekable(), out: Script::default() };
    reader.list(None, depth)?;
    Ok(reader.out)
}

struct Reader {
    rest: std::iter::Peekable<std::vec::IntoIter<char>>,
    out: Script,
}

impl Reader {
    /// Commands up to `end`, which is taken, too.
    fn list(&mut self, end: Option<char>, depth: usize) -> Read<()> {
        if depth > MAX_DEPTH {
            return Err(NotUnderstood);
        }
        let mut command = Command::default();
        loop {
            self.skip_blanks();
            let Some(&c) = self.rest.peek() else {
                self.finish(command)?;
                return if end.is_none() { Ok(()) } else { Err(NotUnderstood) };
            };
            match c {
                '#' => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '\n' | ';' | '&' | '|' => {
                    self.rest.next();
                    self.separated(c)?;
                    self.finish(std::mem::take(&mut command))?;
                }
                ')' => {
                    self.rest.next();
                    self.finish(command)?;
                    return if end == Some(')') { Ok(()) } else { Err(NotUnderstood) };
                }
                '(' if command == Command::default() => {
                    self.rest.next();
                    if self.rest.peek() == Some(&'(') {
                        return Err(NotUnderstood);
                    }
                    self.list(Some(')'), depth + 1)?;
                }
                '(' => return Err(NotUnderstood),
                '<' | '>' => self.redirection(depth)?,
                _ => {
                    let draft = self.word(depth)?;
                    let is_descriptor = !draft.quoted && !draft.open && draft.text.bytes().all(|b| b.is_ascii_digit());
                    if is_descriptor && matches!(self.rest.peek(), Some('<' | '>')) {
                        continue;
                    }
                    self.take(draft, &mut command)?;
                }
            }
        }
    }

    /// `&&`, `||`, `|&`; `;;` belongs to `case`, and `&>` means two things.
    fn separated(&mut self, c: char) -> Read<()> {
        match (c, self.rest.peek()) {
            (';', Some(';' | '&')) | ('&', Some('>')) => Err(NotUnderstood),
            ('&', Some('&')) | ('|', Some('|' | '&')) => {
                self.rest.next();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Puts a word where it belongs.
    fn take(&mut self, draft: Draft, command: &mut Command) -> Read<()> {
        if draft.open {
            self.out.paths.extend(draft.path());
        }
        if draft.text.is_empty() && !draft.quoted && !draft.open {
            // A line that goes on, and nothing else.
            return Ok(());
        }
        if !command.words.is_empty() {
            // In some shells `time` is a word before commands, in others a program.
            let timed = command.words.iter().all(|word| matches!(word.text(), Some("time" | "-p")));
            if timed && !draft.quoted && BEFORE_COMMANDS.contains(&draft.text.as_str()) {
                return Err(NotUnderstood);
            }
            command.words.push(draft.word());
            return Ok(());
        }
        if let Some(name) = draft.assigned() {
            command.env.push(name);
            self.out.paths.extend(draft.path());
            return Ok(());
        }
        // Several words in one.
        if !draft.quoted && draft.text.starts_with('{') && draft.text != "{" {
            return Err(NotUnderstood);
        }
        if !draft.quoted && !draft.open && command.env.is_empty() {
            let text = draft.text.as_str();
            if BEFORE_COMMANDS.contains(&text) || ENDS.contains(&text) {
                return Ok(());
            }
            if NOT_READ.contains(&text) {
                return Err(NotUnderstood);
            }
        }
        // `~/x`, `*x` and `$x` name a program that is known at run time alone.
        self.out.unclear |= draft.open;
        command.words.push(draft.word());
        Ok(())
    }

    fn finish(&mut self, command: Command) -> Read<()> {
        if command.words.is_empty() {
            // What is set here holds for all that follows.
            self.out.unclear |= !command.env.is_empty();
        } else {
            self.out.commands.push(command);
        }
        Ok(())
    }

    fn skip_blanks(&mut self) {
        while self.rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    }

    fn redirection(&mut self, depth: usize) -> Read<()> {
        let first = self.rest.next();
        match (first, self.rest.peek()) {
            // Here-documents, and commands in the place of files.
            (Some('<'), Some('<')) | (_, Some('(')) => return Err(NotUnderstood),
            (_, Some('&')) => {
                self.rest.next();
                let target = self.word(depth)?;
                let is_descriptor =
                    !target.text.is_empty() && target.text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
                self.out.paths.extend(target.path());
                self.out.unclear |= target.open || !is_descriptor;
                return Ok(());
            }
            (_, Some('>' | '|')) => _ = self.rest.next(),
            _ => {}
        }
        self.skip_blanks();
        let target = self.word(depth)?;
        if target.text.is_empty() && !target.quoted && !target.open {
            return Err(NotUnderstood);
        }
        self.out.paths.extend(target.path());
        self.out.unclear |= target.open || target.text != "/dev/null";
        Ok(())
    }
}
