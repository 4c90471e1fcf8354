//! Lines of bounded length from a stream of bytes.

use tokio::io::{AsyncRead, AsyncReadExt as _};

mod outline;

use outline::Outline;

use crate::turns;

/// How much is read at once at least, in bytes.
const READ_BYTES: usize = 16 * 1024;
/// A buffer that has grown beyond this is given back when it is empty, in bytes.
const KEPT_BYTES: usize = 256 * 1024;

/// One line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// It, without its end. Never empty.
    Text(&'a [u8]),
    /// It had more than the bytes allowed, spaces counted, and is passed over. What there is of it is the outermost level
    /// of its JSON, for [`Outlined::of`](crate::Outlined::of).
    TooLong(&'a [u8]),
}

/// Reads lines. What follows the last line end is a line too.
pub struct Lines<R> {
    reader: R,
    max_bytes: usize,
    buffer: Vec<u8>,
    /// The line that was handed out last: it is dropped when the next one is wanted.
    taken: usize,
    /// How long that line was.
    handed: usize,
    /// So much of the buffer has no line end.
    searched: usize,
    /// What comes belongs to a line that is too long.
    skipping: bool,
    /// That of the last such line.
    outline: Outline,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most so many bytes.
    pub fn new(reader: R, max_bytes: usize) -> Self {
        Self {
            reader,
            max_bytes,
            buffer: Vec::new(),
            taken: 0,
            handed: 0,
            searched: 0,
            skipping: false,
            outline: Outline::default(),
            ended: false,
        }
    }

    /// The next line that is not empty. `None`: there are no more. Lets others run in between, however fast lines come.
    pub async fn next(&mut self) -> Option<Line<'_>> {
        turns::after(std::mem::take(&mut self.handed)).await;
        loop {
            let start = self.taken;
            match memchr::memchr(b'\n', &self.buffer[start + self.searched..]) {
                Some(end) => {
                    let end = start + self.searched + end;
                    self.taken = end + 1;
                    self.handed += end - start;
                    self.searched = 0;
                    let line = trimmed(start, end, &self.buffer);
                    if self.skipping || end - start > self.max_bytes {
                        self.skip(start, end);
                        self.skipping = false;
                        return Some(Line::TooLong(self.outline.text()));
                    }
                    if !line.is_empty() {
                        return Some(Line::Text(&self.buffer[line]));
                    }
                }
                None => {
                    self.searched = self.buffer.len() - start;
                    turns::after(0).await;
                    if self.skipping || self.searched > self.max_bytes {
                        self.skip(start, self.buffer.len());
                        self.buffer.clear();
                        (self.taken, self.searched) = (0, 0);
                    }
                    if self.ended {
                        return self.last();
                    }
                    self.make_room();
                    // A reader that fails will not say more than one that ended.
                    self.ended = !matches!(self.reader.read_buf(&mut self.buffer).await, Ok(read) if read > 0);
                }
            }
        }
    }

    fn last(&mut self) -> Option<Line<'_>> {
        let line = trimmed(self.taken, self.buffer.len(), &self.buffer);
        self.taken = self.buffer.len();
        self.searched = 0;
        if std::mem::take(&mut self.skipping) {
            return Some(Line::TooLong(self.outline.text()));
        }
        (!line.is_empty()).then(|| Line::Text(&self.buffer[line]))
    }

    /// Passes over a part of the buffer, of a line that is too long.
    fn skip(&mut self, start: usize, end: usize) {
        if !std::mem::replace(&mut self.skipping, true) {
            self.outline = Outline::default();
        }
        self.outline.feed(&self.buffer[start..end]);
    }

    /// Drops what was handed out, and makes room for more.
    fn make_room(&mut self) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_BYTES {
            self.buffer = Vec::new();
        }
        self.buffer.reserve(READ_BYTES);
    }
}

/// A line without a carriage return and spaces around it.
fn trimmed(start: usize, end: usize, buffer: &[u8]) -> std::ops::Range<usize> {
    let line = &buffer[start..end];
    let front = line.len() - line.trim_ascii_start().len();
    start + front..start + front + line.trim_ascii().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokio_util::io::StreamReader;

    /// The lines of pieces, each at most 8 bytes; a line that is too long is `None`.
    async fn lines(pieces: Vec<Vec<u8>>) -> Vec<Option<Vec<u8>>> {
        let pieces =
            futures::stream::iter(pieces.into_iter().map(|piece| Ok::<_, std::io::Error>(bytes::Bytes::from(piece))));
        let mut lines = Lines::new(StreamReader::new(pieces), 8);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await {
            all.push(match line {
                Line::Text(text) => Some(text.to_vec()),
                Line::TooLong(_) => None,
            });
        }
        all
    }

    #[tokio::test]
    async fn a_line_beyond_the_limit_is_passed_over_to_its_end() {
        let text = b"one\r\n\n  \n12345678\n123456789\ntwo\n0123456789012345678901234567890123456789\nthree";
        let expected: Vec<Option<Vec<u8>>> = [Some("one"), Some("12345678"), None, Some("two"), None, Some("three")]
            .map(|line| line.map(|line| line.as_bytes().to_vec()))
            .into();
        for size in [1, 3, 100] {
            assert_eq!(lines(text.chunks(size).map(<[u8]>::to_vec).collect()).await, expected, "{size}");
        }
        assert_eq!(lines(vec![b"never ended, and long".to_vec()]).await, [None]);
    }

    #[tokio::test]
    async fn of_a_line_beyond_the_limit_its_outline_is_left() {
        let text = b"{\"a\":[1,2,3]}\n[1]\n{\"b\":{\"c\":7}}";
        for size in [1, 3, 100] {
            let pieces = text.chunks(size).map(|piece| Ok::<_, std::io::Error>(bytes::Bytes::from(piece.to_vec())));
            let mut lines = Lines::new(StreamReader::new(futures::stream::iter(pieces)), 8);
            assert_eq!(lines.next().await, Some(Line::TooLong(b"{\"a\":[]}")), "{size}");
            assert_eq!(lines.next().await, Some(Line::Text(b"[1]")));
            assert_eq!(lines.next().await, Some(Line::TooLong(b"{\"b\":{}}")));
            assert_eq!(lines.next().await, None);
        }
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_are_cut(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b' '), any::<u8>()], 0..60), size in 1usize..9) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let cut = runtime.block_on(lines(bytes.chunks(size).map(<[u8]>::to_vec).collect()));
            prop_assert_eq!(cut, runtime.block_on(lines(vec![bytes])));
        }
    }
}
