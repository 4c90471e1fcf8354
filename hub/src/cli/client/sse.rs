//! Server-sent events: bytes as they come → events.

/// Largest event, in bytes: a result of the largest size, escaped as JSON.
const MAX_EVENT_BYTES: usize = 2 * footbridge_shared::limits::MAX_RESULT_BYTES + 1024 * 1024;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// Its name; `message` where the stream gives none.
    pub(super) name: String,
    /// Its data; several lines are joined by line ends.
    pub(super) data: String,
    /// The last id that the stream gave, with this event or before it.
    pub(super) id: Option<String>,
}

/// Why a stream of events cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SseError {
    #[error("an event is larger than {MAX_EVENT_BYTES} bytes")]
    TooLarge,
    #[error("an event is not UTF-8")]
    NotUtf8,
}

/// Takes bytes in pieces of any size and gives whole events.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// What has come and is not taken apart yet.
    buffer: Vec<u8>,
    /// Up to here there is no line end in it.
    scanned: usize,
    name: String,
    data: Option<String>,
    id: Option<String>,
    /// Whether the first line was read: only before it may a byte order mark stand.
    started: bool,
}

impl Decoder {
    /// Adds what came.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole event, if it has come.
    pub(super) fn next(&mut self) -> Result<Option<Event>, SseError> {
        while let Some(line) = self.line()? {
            if line.is_empty() {
                let name = std::mem::take(&mut self.name);
                let Some(data) = self.data.take() else { continue };
                let name = if name.is_empty() { "message".to_owned() } else { name };
                return Ok(Some(Event { name, data, id: self.id.clone() }));
            }
            self.field(&line);
            if self.data.as_ref().is_some_and(|data| data.len() > MAX_EVENT_BYTES) {
                return Err(SseError::TooLarge);
            }
        }
        if self.buffer.len() > MAX_EVENT_BYTES { Err(SseError::TooLarge) } else { Ok(None) }
    }

    fn field(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match (field, &mut self.data) {
            ("event", _) => value.clone_into(&mut self.name),
            ("data", Some(data)) => {
                data.push('\n');
                data.push_str(value);
            }
            ("data", data) => *data = Some(value.to_owned()),
            ("id", _) if !value.contains('\0') => self.id = Some(value.to_owned()),
            // Remarks (an empty field) and retry times mean nothing to us.
            _ => {}
        }
    }

    /// Takes a line from the buffer, without its end: LF, CR LF or CR.
    fn line(&mut self) -> Result<Option<String>, SseError> {
        let found = self.buffer.iter().skip(self.scanned).position(|byte| matches!(byte, b'\n' | b'\r'));
        let Some(end) = found.map(|offset| self.scanned + offset) else {
            self.scanned = self.buffer.len();
            return Ok(None);
        };
        let next = match (self.buffer.get(end), self.buffer.get(end + 1)) {
            (Some(b'\r'), Some(b'\n')) => end + 2,
            (Some(b'\r'), None) => {
                // Its LF may still be under way.
                self.scanned = end;
                return Ok(None);
            }
            _ => end + 1,
        };
        let rest = self.buffer.split_off(next);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        line.truncate(end);
        self.scanned = 0;
        let mut line = String::from_utf8(line).map_err(|_| SseError::NotUtf8)?;
        if !std::mem::replace(&mut self.started, true) && line.starts_with('\u{feff}') {
            line.remove(0);
        }
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(event) = decoder.next().unwrap() {
                events.push((event.name, event.data));
            }
        }
        events
    }

    const STREAM: &str = "\u{feff}: remark\r\nevent: progress\r\ndata: {\"n\":1}\r\n\r\nid: 7\ndata:a\ndata: é 漢\ndata\n\n\
                          event: nothing\n\nevent: result\rdata:  x\r\r\n: end\n\n";

    fn expected() -> Vec<(String, String)> {
        [("progress", "{\"n\":1}"), ("message", "a\né 漢\n"), ("result", " x")]
            .map(|(name, data)| (name.to_owned(), data.to_owned()))
            .to_vec()
    }

    #[test]
    fn lines_of_all_ends_remarks_and_empty_events_are_read_as_the_standard_says() {
        assert_eq!(decode(&[STREAM.as_bytes()]), expected());
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_does_not_matter(cuts in proptest::collection::vec(0..STREAM.len(), 0..12)) {
            let mut cuts = cuts;
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &STREAM.as_bytes()[cut[0]..cut[1]]).collect();
            prop_assert_eq!(decode(&pieces), expected());
        }
    }

    #[test]
    fn an_id_holds_until_the_next_one() {
        let mut decoder = Decoder::default();
        decoder.push(b"data: a\n\nid: 7\ndata: b\n\ndata: c\n\nid: 8\n\ndata: d\n\n");
        let ids: Vec<_> = std::iter::from_fn(|| decoder.next().unwrap()).map(|event| event.id).collect();
        assert_eq!(ids, [None, Some("7".to_owned()), Some("7".to_owned()), Some("8".to_owned())]);
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut decoder = Decoder::default();
        decoder.push(b"data: ");
        decoder.push(&vec![b'x'; MAX_EVENT_BYTES]);
        assert_eq!(decoder.next(), Err(SseError::TooLarge));
        let mut decoder = Decoder::default();
        decoder.push(b"data: \xff\n");
        assert_eq!(decoder.next(), Err(SseError::NotUtf8));
    }
}
