//! Words of a script: quotes, escapes, and what is only known when it runs.

use super::{NotUnderstood, Read, Reader, Word, read_at};

/// A word as it is being read.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) text: String,
    /// Some of it was quoted: then it is no reserved word.
    pub(super) quoted: bool,
    /// Some of it is only known at run time.
    pub(super) open: bool,
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
    pub(super) fn path(&self) -> Option<String> {
        let known = if self.open { self.text.get(..self.fixed)? } else { &self.text };
        // Whatever follows in an open word lies below.
        let below = self.open.then_some("-").filter(|_| known.ends_with('/')).unwrap_or_default();
        (!known.is_empty()).then(|| format!("{known}{below}"))
    }

    pub(super) fn word(self) -> Word {
        if self.open { Word::Any } else { Word::Text(self.text) }
    }

    /// The name, if this is `NAME=value`.
    pub(super) fn assigned(&self) -> Option<String> {
        let (name, _) = self.text.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        let first = name.chars().next()?;
        let fits = |c: char| c == '_' || c.is_ascii_alphanumeric();
        (!first.is_ascii_digit() && name.chars().all(fits)).then(|| name.to_owned())
    }
}

impl Reader {
    /// One word, up to what cannot be a part of it.
    pub(super) fn word(&mut self, depth: usize) -> Read<Draft> {
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
