//! Scripts of a shell, read as far as it takes to see which commands stand in them.
//!
//! What is not understood is said to be so, and never guessed at here. Shells differ: what two of them would read in two
//! ways is not understood either.

use super::Word;

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

/// A word as it is being read.
#[derive(Default)]
struct Draft {
    text: String,
    /// Some of it was quoted: then it is no reserved word.
    quoted: bool,
    /// Some of it is only known at run time.
    open: bool,
    /// How much of the text stands before that.
    fixed: usize,
}

impl Draft {
    fn set_open(&mut self) {
        if !std::mem::replace(&mut self.open, true) {
            self.fixed = self.text.len();
        }
    }

    /// What is known of the path that it may be.
    fn path(&self) -> Option<String> {
        let known = if self.open { self.text.get(..self.fixed)? } else { &self.text };
        // Whatever follows in an open word lies below.
        let below = self.open.then_some("-").filter(|_| known.ends_with('/')).unwrap_or_default();
        (!known.is_empty()).then(|| format!("{known}{below}"))
    }

    fn word(self) -> Word {
        if self.open { Word::Any } else { Word::Text(self.text) }
    }

    /// The name, if this is `NAME=value`.
    fn assigned(&self) -> Option<String> {
        let (name, _) = self.text.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        let first = name.chars().next()?;
        let fits = |c: char| c == '_' || c.is_ascii_alphanumeric();
        (!first.is_ascii_digit() && name.chars().all(fits)).then(|| name.to_owned())
    }
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

    /// One word, up to what cannot be a part of it.
    fn word(&mut self, depth: usize) -> Read<Draft> {
        let mut draft = Draft::default();
        while let Some(&c) = self.rest.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\\' => {
                    self.rest.next();
                    match self.rest.next() {
                        None => return Err(NotUnderstood),
                        // The line goes on.
                        Some('\n') => {}
                        Some(c) => {
                            draft.quoted = true;
                            draft.text.push(c);
                        }
                    }
                }
                '\'' => {
                    self.rest.next();
                    draft.quoted = true;
                    self.single_quoted(&mut draft)?;
                }
                '"' => {
                    self.rest.next();
                    draft.quoted = true;
                    self.double_quoted(&mut draft, depth)?;
                }
                '$' | '`' => self.expansion(&mut draft, depth, false)?,
                // Names of files, of a home, or several words.
                '*' | '?' | '[' => self.open(&mut draft, c),
                '~' if draft.text.is_empty() && !draft.quoted => self.open(&mut draft, c),
                ',' | '.' if draft.text.contains('{') => self.open(&mut draft, c),
                '\r' | '\u{b}' | '\u{c}' => return Err(NotUnderstood),
                c => {
                    self.rest.next();
                    draft.text.push(c);
                }
            }
        }
        Ok(draft)
    }

    fn open(&mut self, draft: &mut Draft, c: char) {
        self.rest.next();
        draft.set_open();
        draft.text.push(c);
    }

    fn single_quoted(&mut self, draft: &mut Draft) -> Read<()> {
        loop {
            match self.rest.next() {
                None => return Err(NotUnderstood),
                Some('\'') => return Ok(()),
                Some(c) => draft.text.push(c),
            }
        }
    }

    fn double_quoted(&mut self, draft: &mut Draft, depth: usize) -> Read<()> {
        loop {
            match self.rest.peek().copied() {
                None => return Err(NotUnderstood),
                Some('$' | '`') => {
                    self.expansion(draft, depth, true)?;
                    continue;
                }
                _ => {}
            }
            match self.rest.next() {
                None => return Err(NotUnderstood),
                Some('"') => return Ok(()),
                Some('\\') => match self.rest.next() {
                    None => return Err(NotUnderstood),
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => draft.text.push(c),
                    Some(c) => draft.text.extend(['\\', c]),
                },
                Some(c) => draft.text.push(c),
            }
        }
    }

    /// What starts with `$` or a backtick.
    fn expansion(&mut self, draft: &mut Draft, depth: usize, quoted: bool) -> Read<()> {
        if self.rest.next() == Some('`') {
            draft.set_open();
            return self.backticks(depth);
        }
        match self.rest.peek().copied() {
            Some('(') => {
                self.rest.next();
                if self.rest.peek() == Some(&'(') {
                    return Err(NotUnderstood);
                }
                draft.set_open();
                self.list(Some(')'), depth + 1)
            }
            Some('{') => {
                draft.set_open();
                loop {
                    match self.rest.next() {
                        Some('}') => return Ok(()),
                        Some(c) if !matches!(c, '$' | '`' | '\'' | '"' | '\\' | '(' | '\n') => {}
                        _ => return Err(NotUnderstood),
                    }
                }
            }
            // Quotes of their own kind in some shells.
            Some('\'' | '"') if !quoted => Err(NotUnderstood),
            Some('[') => Err(NotUnderstood),
            Some(c) if c == '_' || c.is_ascii_alphanumeric() || "@*#?-$!".contains(c) => {
                draft.set_open();
                self.rest.next();
                Ok(())
            }
            _ => {
                draft.text.push('$');
                Ok(())
            }
        }
    }

    fn backticks(&mut self, depth: usize) -> Read<()> {
        let mut script = String::new();
        loop {
            match self.rest.next() {
                None => return Err(NotUnderstood),
                Some('`') => break,
                Some('\\') => match self.rest.next() {
                    None => return Err(NotUnderstood),
                    Some(c @ ('$' | '`' | '\\')) => script.push(c),
                    Some(c) => script.extend(['\\', c]),
                },
                Some(c) => script.push(c),
            }
        }
        let inner = read_at(&script, depth + 1)?;
        self.out.commands.extend(inner.commands);
        self.out.paths.extend(inner.paths);
        self.out.unclear |= inner.unclear;
        Ok(())
    }
}
