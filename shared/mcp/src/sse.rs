//! Server-sent events: writing them, and reading them as they come.

use std::time::Duration;

/// The name of an event that has none of its own.
pub const DEFAULT_NAME: &str = "message";

/// One event. One without `data` only moves the stream on: it carries an id, or says when to come back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// What kind of event it is; none is [`DEFAULT_NAME`].
    pub name: Option<String>,
    /// After what to go on when the stream breaks.
    pub id: Option<String>,
    /// What it says.
    pub data: Option<String>,
    /// How long to wait before coming back when the stream ends.
    pub retry: Option<Duration>,
}

impl Event {
    /// An event that says something.
    pub fn data(data: impl Into<String>) -> Self {
        Self { data: Some(data.into()), ..Self::default() }
    }

    /// Gives it an id.
    #[must_use]
    pub fn with_id(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    /// Whether it is of the default kind, which messages are.
    pub fn is_message(&self) -> bool {
        self.name.as_deref().is_none_or(|name| name.is_empty() || name == DEFAULT_NAME)
    }

    /// Appends it as it goes over the wire. Line ends in names and ids, which cannot be there, become spaces.
    pub fn write_to(&self, text: &mut String) {
        let mut field = |name: &str, value: &str| {
            text.push_str(name);
            text.push_str(": ");
            if value.contains(['\n', '\r', '\0']) {
                text.extend(value.chars().map(|c| if matches!(c, '\n' | '\r' | '\0') { ' ' } else { c }));
            } else {
                text.push_str(value);
            }
            text.push('\n');
        };
        if let Some(name) = &self.name {
            field("event", name);
        }
        if let Some(id) = &self.id {
            field("id", id);
        }
        if let Some(retry) = self.retry {
            field("retry", &retry.as_millis().to_string());
        }
        if let Some(data) = &self.data {
            let data = data.replace("\r\n", "\n");
            for line in data.split(['\n', '\r']) {
                field("data", line);
            }
        }
        text.push('\n');
    }

    /// It as it goes over the wire.
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.data.as_ref().map_or(0, String::len) + 64);
        self.write_to(&mut text);
        text
    }
}

/// A message as an event goes over the wire, without taking it. `data` has no line ends, as messages have none that are
/// written here; neither has `id`.
pub fn message_text(id: Option<std::fmt::Arguments<'_>>, data: &[u8]) -> Vec<u8> {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    [id.as_bytes(), b"data: ", data, b"\n\n"].concat()
}

/// A line that is no event, and keeps a stream that is silent from being cut.
pub const KEEP_ALIVE: &str = ":\n\n";

/// An event is larger than the reader's limit, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream has more than {0} bytes")]
pub struct TooLarge(pub usize);

/// Reads events from pieces of a stream, however it is cut.
#[derive(Debug)]
pub struct Decoder {
    max_bytes: usize,
    /// What came after the last line end.
    line: Vec<u8>,
    /// The last piece ended with a carriage return; a line feed that follows belongs to it.
    after_return: bool,
    at_start: bool,
    event: Event,
    data: Vec<u8>,
}

impl Decoder {
    /// A reader of events of at most so many bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            line: Vec::new(),
            after_return: false,
            at_start: true,
            event: Event::default(),
            data: Vec::new(),
        }
    }

    /// Reads a piece and hands on the events that end in it. What follows the last of them waits for the next piece; at
    /// the end of a stream it is no event.
    ///
    /// # Errors
    /// [`TooLarge`]: the stream cannot be read on.
    pub fn feed(&mut self, mut piece: &[u8], mut hand: impl FnMut(Event)) -> Result<(), TooLarge> {
        if std::mem::take(&mut self.after_return) && piece.first() == Some(&b'\n') {
            piece = &piece[1..];
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', piece) {
            self.check(end)?;
            let ended_by_return = piece[end] == b'\r';
            if self.line.is_empty() {
                self.take_line(&piece[..end], &mut hand);
            } else {
                self.line.extend_from_slice(&piece[..end]);
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, &mut hand);
            }
            piece = &piece[end + 1..];
            if ended_by_return {
                match piece.first() {
                    Some(b'\n') => piece = &piece[1..],
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
        }
        self.check(piece.len())?;
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn check(&self, more: usize) -> Result<(), TooLarge> {
        if self.data.len() + self.line.len() + more > self.max_bytes { Err(TooLarge(self.max_bytes)) } else { Ok(()) }
    }

    fn take_line(&mut self, mut line: &[u8], hand: &mut impl FnMut(Event)) {
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            let mut event = std::mem::take(&mut self.event);
            if event.data.is_some() {
                let data = std::mem::take(&mut self.data);
                event.data = Some(text(data));
            }
            if event != Event::default() {
                hand(event);
            }
            return;
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            // A comment.
            Some(0) => return,
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match name {
            b"data" => {
                if self.event.data.replace(String::new()).is_some() {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.event.name = Some(text(value.to_vec())),
            b"id" if !value.contains(&0) => self.event.id = Some(text(value.to_vec())),
            b"retry" => {
                let millis = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
                self.event.retry = millis.map(Duration::from_millis).or(self.event.retry);
            }
            _ => {}
        }
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]]) -> Vec<Event> {
        let mut decoder = Decoder::new(1024);
        let mut events = Vec::new();
        for piece in pieces {
            decoder.feed(piece, |event| events.push(event)).unwrap();
        }
        events
    }

    #[test]
    fn odd_framing_is_read_as_the_standard_says() {
        let stream = "\u{feff}data: a\r\ndata:b\rdata\n\n: comment\nid: 7\nretry: 20\n\nevent: endpoint\ndata:  /x\n\n\
                      unknown: 1\n\nid: a\0b\ndata: c\n\nretry: soon\ndata: d\n\ndata: never ended\n";
        let expected = vec![
            Event::data("a\nb\n"),
            Event { id: Some("7".to_owned()), retry: Some(Duration::from_millis(20)), ..Event::default() },
            Event { name: Some("endpoint".to_owned()), ..Event::data(" /x") },
            Event::data("c"),
            Event::data("d"),
        ];
        assert_eq!(read(&[stream.as_bytes()]), expected);
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(read(&bytes), expected);
        assert!(expected[0].is_message() && !expected[2].is_message());
    }

    #[test]
    fn a_message_is_written_as_an_event_is() {
        assert_eq!(message_text(None, b"{}"), Event::data("{}").to_text().as_bytes());
        let event = Event::data("{}").with_id("1-2");
        assert_eq!(message_text(Some(format_args!("{}-{}", 1, 2)), b"{}"), event.to_text().as_bytes());
    }

    #[test]
    fn an_event_beyond_the_limit_ends_the_reading() {
        for line in ["data: 0123456789\n", "data: 01234567890123456789"] {
            let mut decoder = Decoder::new(16);
            let ended = decoder.feed(line.as_bytes(), |_| ()).and_then(|()| decoder.feed(line.as_bytes(), |_| ()));
            assert_eq!(ended, Err(TooLarge(16)), "{line}");
        }
        let mut decoder = Decoder::new(16);
        for _ in 0..100 {
            decoder.feed(b": 0123456789\n", |_| ()).unwrap();
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_however_it_is_cut(
            name in proptest::option::of("[a-z/]{1,9}"),
            id in proptest::option::of("[^\\x00\r\n ][^\\x00\r\n]{0,9}"),
            data in proptest::option::of("[^\r\\x00]{0,40}"),
            retry in proptest::option::of(0u64..100_000),
            cut in 1usize..20,
        ) {
            let event = Event { name, id, data, retry: retry.map(Duration::from_millis) };
            let text = event.to_text();
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
            let expected = if event == Event::default() { vec![] } else { vec![event] };
            prop_assert_eq!(read(&pieces), expected);
        }

        #[test]
        fn nothing_breaks_the_reader(bytes: Vec<u8>, cut in 1usize..20) {
            let mut decoder = Decoder::new(32);
            for piece in bytes.chunks(cut) {
                if decoder.feed(piece, |_| ()).is_err() {
                    break;
                }
            }
        }
    }
}
