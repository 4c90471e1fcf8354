//! What a command wrote: its beginning, its end, and a count of what lies between.

use std::collections::VecDeque;

/// Bytes that are kept of the beginning of a stream.
const HEAD_BYTES: usize = 4 * 1024;
/// Bytes that are kept of its end.
const TAIL_BYTES: usize = 64 * 1024;
/// Bytes of the end that a result shows; the rest is there for whoever asks.
const SHOWN_TAIL_BYTES: usize = 8 * 1024;
/// Lines of the end are looked for in so many bytes.
const TAIL_LINES_BYTES: usize = 32 * 1024;

/// One stream, of any length, in bounded memory.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

/// A part of a stream, fit to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// As text; what is none is replaced.
    pub(crate) text: String,
    /// Bytes that it does not show.
    pub(crate) omitted: u64,
}

impl Captured {
    /// Takes in what came.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES - self.head.len()));
        self.head.extend_from_slice(first);
        // Of a long piece only the end can stay.
        let rest = rest.get(rest.len().saturating_sub(TAIL_BYTES)..).unwrap_or_default();
        let over = (self.tail.len() + rest.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// All bytes that came.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Beginning and end, with a note of what is left out between them.
    pub(crate) fn excerpt(&self) -> Excerpt {
        let kept = self.end(SHOWN_TAIL_BYTES);
        let omitted = self.total - (self.head.len() + kept.len()) as u64;
        if omitted == 0 {
            let text = String::from_utf8_lossy(&[&self.head[..], &kept].concat()).into_owned();
            return Excerpt { text, omitted };
        }
        let (head, tail) = (without_torn_end(&self.head), without_torn_start(&kept));
        let omitted = self.total - (head.len() + tail.len()) as u64;
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        Excerpt { text: format!("{head}\n[… {omitted} bytes left out …]\n{tail}"), omitted }
    }

    /// The last lines.
    pub(crate) fn last_lines(&self, count: usize) -> Excerpt {
        let kept = self.end(TAIL_LINES_BYTES);
        // A stream that is short stands in the head alone.
        let near = if self.total <= (HEAD_BYTES + TAIL_LINES_BYTES) as u64 {
            [&self.head[..], &kept].concat()
        } else {
            without_torn_start(&kept).to_vec()
        };
        let body = near.strip_suffix(b"\n").unwrap_or(&near);
        let breaks = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
        let from = count.checked_sub(1).and_then(|count| breaks.into_iter().nth(count)).map_or(0, |at| at + 1);
        let lines = near.get(from..).unwrap_or_default();
        Excerpt { text: String::from_utf8_lossy(lines).into_owned(), omitted: self.total - lines.len() as u64 }
    }

    /// Up to so many bytes from the end, of what does not stand in the head.
    fn end(&self, bytes: usize) -> Vec<u8> {
        self.tail.range(self.tail.len().saturating_sub(bytes)..).copied().collect()
    }
}

/// Without the first bytes of a character whose rest was cut off.
fn without_torn_end(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.get(..error.valid_up_to()).unwrap_or(bytes),
        _ => bytes,
    }
}

/// Without the last bytes of a character whose beginning was cut off.
fn without_torn_start(bytes: &[u8]) -> &[u8] {
    let is_rest = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let torn = bytes.iter().take(3).take_while(|byte| is_rest(byte)).count();
    bytes.get(torn..).unwrap_or(bytes)
}

/// Turns a stream of bytes into text as it comes: a character that is cut in two waits for its rest.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    torn: Vec<u8>,
}

impl Decoder {
    /// The text of what came, but for a last character that is not whole.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let all = [&std::mem::take(&mut self.torn)[..], bytes].concat();
        let whole = whole_part(&all);
        self.torn = all.get(whole..).unwrap_or_default().to_vec();
        String::from_utf8_lossy(all.get(..whole).unwrap_or_default()).into_owned()
    }
}

/// How many bytes there are before a last character that is not whole.
fn whole_part(bytes: &[u8]) -> usize {
    // A character has four bytes at most.
    let near_end = bytes.len().saturating_sub(3);
    let starts = (near_end..bytes.len()).rev();
    for at in starts {
        match bytes.get(at..) {
            Some(end) if std::str::from_utf8(end).is_err_and(|error| error.error_len().is_none()) => return at,
            _ => {}
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn captured(pieces: &[&[u8]]) -> Captured {
        let mut captured = Captured::default();
        pieces.iter().for_each(|piece| captured.push(piece));
        captured
    }

    #[test]
    fn short_output_is_shown_whole() {
        let output = captured(&[b"one\n", "zwei \u{e4}\n".as_bytes(), b"\xff\0three"]);
        assert_eq!(output.excerpt(), Excerpt { text: "one\nzwei ä\n\u{fffd}\0three".to_owned(), omitted: 0 });
        assert_eq!(output.last_lines(2).text, "zwei ä\n\u{fffd}\0three");
        assert_eq!(captured(&[]).last_lines(5), Excerpt { text: String::new(), omitted: 0 });
        assert_eq!(captured(&[b"a\nb\n"]).last_lines(1), Excerpt { text: "b\n".to_owned(), omitted: 2 });
        assert_eq!(captured(&[b"a\nb\n"]).last_lines(0).text, "a\nb\n", "no count at all cuts nothing");
    }

    #[test]
    fn long_output_keeps_its_beginning_and_its_end_and_no_half_characters() {
        let mut output = Captured::default();
        // Three bytes a character: neither cut falls between two of them.
        for _ in 0..100_000 {
            output.push("€".as_bytes());
        }
        let Excerpt { text, omitted } = output.excerpt();
        assert!(!text.contains('\u{fffd}'), "a character was torn");
        let shown = text.matches('€').count() as u64 * 3;
        assert_eq!(shown + omitted, output.total());
        assert!(text.contains(&format!("[… {omitted} bytes left out …]")));
        assert!(text.len() < HEAD_BYTES + SHOWN_TAIL_BYTES + 100, "{}", text.len());
    }

    #[test]
    fn a_flood_without_newlines_takes_bounded_memory() {
        let mut output = Captured::default();
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..100 {
            output.push(&piece);
        }
        assert_eq!(output.total(), 100 << 20);
        assert!(output.head.len() + output.tail.capacity() < 4 * TAIL_BYTES);
        assert!(output.last_lines(500).text.len() <= TAIL_LINES_BYTES);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_made_up(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20), times in 1_usize..40) {
            let pieces = vec![pieces; times].concat();
            let all = pieces.concat();
            let mut output = Captured::default();
            pieces.iter().for_each(|piece| output.push(piece));
            prop_assert_eq!(output.total(), all.len() as u64);
            prop_assert!(all.starts_with(&output.head));
            prop_assert!(all.ends_with(&output.end(usize::MAX)));
            if output.excerpt().omitted == 0 {
                prop_assert_eq!(output.excerpt().text, String::from_utf8_lossy(&all).into_owned());
            }
        }

        #[test]
        fn text_comes_through_in_whatever_pieces(text in "\\PC{0,200}", cuts in prop::collection::vec(0_usize..600, 0..10)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let mut decoder = Decoder::default();
            let out: String = cuts.windows(2).map(|cut| decoder.push(&bytes[cut[0]..cut[1]])).collect();
            prop_assert_eq!(out, text);
        }
    }
}
