//! What a command says: results to standard output, remarks to standard error.

use std::io::{self, IsTerminal as _, Write};

use comfy_table::Table;
use serde::Serialize;

/// For whom results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Tables and texts.
    #[default]
    Text,
    /// JSON.
    Json,
}

/// Writes results. A reader that went away (`| head`) is no error: what is left is dropped.
pub struct Out {
    format: Format,
    writer: Box<dyn Write + Send>,
    terminal: bool,
}

impl std::fmt::Debug for Out {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Out").field("format", &self.format).finish_non_exhaustive()
    }
}

impl Out {
    /// Standard output.
    pub fn stdout(format: Format) -> Self {
        Self { format, writer: Box::new(io::stdout()), terminal: io::stdout().is_terminal() }
    }

    /// For whom results are written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Turns to programs.
    pub fn set_json(&mut self) {
        self.format = Format::Json;
    }

    /// Whether a person looks at it.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// A text that came from elsewhere, and a line end if it has none. A terminal gets it without control characters;
    /// a file or pipe gets it as it is.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        if self.terminal {
            let (text, _) = footbridge_shared::text::clean(text);
            self.write(&[text.as_bytes(), end.as_bytes()])
        } else {
            self.write(&[text.as_bytes(), end.as_bytes()])
        }
    }

    /// A text as it is, to the byte.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn exactly(&mut self, text: &str) -> io::Result<()> {
        if self.terminal { self.text(text) } else { self.write(&[text.as_bytes()]) }
    }

    /// A value as JSON. For a terminal, what would steer it or cannot be seen is escaped: the value stays the same.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> io::Result<()> {
        let json = serde_json::to_string_pretty(value)?;
        let json = if self.terminal { escaped(&json) } else { json };
        self.write(&[json.as_bytes(), b"\n"])
    }

    /// A value for programs, or what `text` makes of it for people.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn show<T: Serialize + ?Sized>(&mut self, value: &T, text: impl FnOnce(&T) -> String) -> io::Result<()> {
        match self.format {
            Format::Json => self.json(value),
            Format::Text => self.text(&text(value)),
        }
    }

    /// A value for programs, or a table of it for people; `empty` stands where the table would have no rows.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn show_table<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
        empty: &str,
        table: impl FnOnce(&T) -> Table,
    ) -> io::Result<()> {
        if self.format == Format::Json {
            return self.json(value);
        }
        let table = table(value);
        if table.row_count() == 0 {
            remark(empty);
            return Ok(());
        }
        self.text(&super::table::rendered(table, self.terminal))
    }

    fn write(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let written = parts.iter().try_for_each(|part| self.writer.write_all(part)).and_then(|()| self.writer.flush());
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }
}

/// JSON with its hidden characters escaped. They stand in texts alone, where an escape means the same.
fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if footbridge_shared::text::is_hidden(c) {
            escaped.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// A remark for people, on standard error.
pub fn remark(text: &str) {
    let (text, _) = footbridge_shared::text::clean(text);
    // Nobody is left to tell when this fails.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    /// Keeps what is written.
    #[derive(Clone, Default)]
    pub(in crate::cli) struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Kept {
        pub(in crate::cli) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap()
        }

        pub(in crate::cli) fn out(&self, format: Format, terminal: bool) -> Out {
            Out { format, writer: Box::new(self.clone()), terminal }
        }
    }

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A pipe whose reader went away.
    struct Gone;

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_terminal_gets_no_control_characters_and_a_pipe_gets_every_byte() {
        let text = "a\u{1b}[2Jb";
        let (terminal, pipe) = (Kept::default(), Kept::default());
        terminal.out(Format::Text, true).text(text).unwrap();
        pipe.out(Format::Text, false).text(text).unwrap();
        pipe.out(Format::Text, false).exactly("no line end").unwrap();
        assert_eq!(terminal.text(), "a[2Jb\n");
        assert_eq!(pipe.text(), "a\u{1b}[2Jb\nno line end");
    }

    #[test]
    fn json_on_a_terminal_is_the_same_value_and_steers_nothing() {
        let text = "a\u{9b}2Jb\u{202e}c\u{e0041}d\u{7f} é 漢\n";
        let (terminal, pipe) = (Kept::default(), Kept::default());
        terminal.out(Format::Json, true).json(&[text]).unwrap();
        pipe.out(Format::Json, false).json(&[text]).unwrap();
        assert_eq!(terminal.text(), "[\n  \"a\\u009b2Jb\\u202ec\\udb40\\udc41d\\u007f é 漢\\n\"\n]\n");
        assert_eq!(serde_json::from_str::<Vec<String>>(&terminal.text()).unwrap(), [text]);
        assert!(pipe.text().contains('\u{9b}'), "a program gets what there is");
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        let mut out = Out { format: Format::Json, writer: Box::new(Gone), terminal: false };
        out.json(&1).unwrap();
    }
}
