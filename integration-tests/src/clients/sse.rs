//! Server-sent events, as far as MCP uses them.

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// Its id.
    pub(super) id: Option<String>,
    /// Its data.
    pub(super) data: String,
}

/// Takes bytes, gives events.
#[derive(Debug, Default)]
pub(super) struct Events {
    rest: Vec<u8>,
    event: Event,
    ready: std::collections::VecDeque<Event>,
}

impl Events {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            self.line(line.trim_end_matches(['\n', '\r']));
        }
    }

    fn line(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" if line.is_empty() => {
                let event = std::mem::take(&mut self.event);
                if event != Event::default() {
                    self.ready.push_back(event);
                }
            }
            "id" => self.event.id = Some(value.to_owned()),
            "data" if self.event.data.is_empty() => self.event.data = value.to_owned(),
            "data" => self.event.data = format!("{}\n{value}", self.event.data),
            _ => {}
        }
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_whole_whatever_pieces_they_arrive_in() {
        let text = ": ping\n\nid: 7\r\ndata: {\"a\":\r\ndata: \"é\"}\r\n\r\nid: 8\ndata:\n\ndata: x\n\n";
        for size in [1, 2, 5, text.len()] {
            let mut events = Events::default();
            text.as_bytes().chunks(size).for_each(|piece| events.push(piece));
            let all: Vec<Event> = std::iter::from_fn(|| events.pop()).collect();
            let event = |id: Option<&str>, data: &str| Event { id: id.map(str::to_owned), data: data.to_owned() };
            assert_eq!(all, [event(Some("7"), "{\"a\":\n\"é\"}"), event(Some("8"), ""), event(None, "x")]);
        }
    }
}
