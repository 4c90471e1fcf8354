//! Binary part frames: how a message travels that does not fit a text frame.
//!
//! The header is 21 bytes: the id of the call or message (16), the sequence number (4, big-endian), flags (1).
//! Bit 0 of the flags marks the last part; readers ignore the other bits, writers leave them 0. The rest is data; only a
//! last part may have none. How parts travel and are put together: [`crate::parts`].

use crate::limits::MAX_FRAME_BYTES;

/// Bytes before the data of a part.
pub const HEADER_BYTES: usize = ID_BYTES + SEQ_BYTES + 1;
/// Most data that a reader takes in one part, in bytes: a part frame is no larger than a text frame.
pub const MAX_DATA_BYTES: usize = MAX_FRAME_BYTES - HEADER_BYTES;

const ID_BYTES: usize = crate::id::CALL_ID_BYTES;
const SEQ_BYTES: usize = 4;
const FLAG_LAST: u8 = 1;

/// Why a binary frame is no part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// It ends within the header.
    #[error("part of {0} bytes, the header alone has {HEADER_BYTES}")]
    TooShort(usize),
    /// It is larger than [`MAX_FRAME_BYTES`].
    #[error("part of {0} bytes, the limit is {MAX_FRAME_BYTES}")]
    TooLarge(usize),
    /// It has no data and is not the last: such parts would come for ever and count for nothing.
    #[error("part without data")]
    Empty,
}

/// The id that the parts of a message share: the bytes of its call's id, or random ones.
pub type PartsId = [u8; ID_BYTES];

/// One part of a message. Parts of one id are joined by sequence number, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// The call or message that it belongs to: the bytes behind its base64url text.
    pub id: PartsId,
    /// Its place.
    pub seq: u32,
    /// Whether it is the last one.
    pub last: bool,
    /// Its share of the message.
    pub data: &'a [u8],
}

impl<'a> Part<'a> {
    /// Reads one binary frame; the data stays where it is.
    ///
    /// # Errors
    /// [`PartError`] for a frame without a whole header, one that is too large, or one that says nothing.
    pub fn decode(frame: &'a [u8]) -> Result<Self, PartError> {
        if frame.len() > MAX_FRAME_BYTES {
            return Err(PartError::TooLarge(frame.len()));
        }
        let short = PartError::TooShort(frame.len());
        let (id, rest) = frame.split_first_chunk().ok_or(short)?;
        let (seq, rest) = rest.split_first_chunk().ok_or(short)?;
        let (flags, data) = rest.split_first().ok_or(short)?;
        let last = flags & FLAG_LAST != 0;
        if data.is_empty() && !last {
            return Err(PartError::Empty);
        }
        Ok(Self { id: *id, seq: u32::from_be_bytes(*seq), last, data })
    }

    /// Writes one binary frame.
    ///
    /// # Errors
    /// [`PartError::TooLarge`] for more than [`MAX_DATA_BYTES`] of data.
    pub fn encode(&self) -> Result<Vec<u8>, PartError> {
        let bytes = HEADER_BYTES + self.data.len();
        if bytes > MAX_FRAME_BYTES {
            return Err(PartError::TooLarge(bytes));
        }
        let mut frame = Vec::with_capacity(bytes);
        frame.extend_from_slice(&self.id);
        frame.extend_from_slice(&self.seq.to_be_bytes());
        frame.push(if self.last { FLAG_LAST } else { 0 });
        frame.extend_from_slice(self.data);
        Ok(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_where_the_protocol_puts_them() {
        let part = Part { id: *b"0123456789abcdef", seq: 0x0102_0304, last: true, data: b"xy" };
        let frame = b"0123456789abcdef\x01\x02\x03\x04\x01xy";
        assert_eq!(part.encode().as_deref(), Ok(frame.as_slice()));
        assert_eq!(Part::decode(frame), Ok(part));
    }

    #[test]
    fn flags_of_the_future_are_ignored() {
        let mut frame = [0; HEADER_BYTES + 1];
        frame[HEADER_BYTES - 1] = 0b1111_1110;
        assert_eq!(Part::decode(&frame).map(|part| part.last), Ok(false));
    }

    #[test]
    fn a_part_is_never_larger_than_a_frame() {
        let whole = vec![0; MAX_DATA_BYTES + 1];
        let part = |data| Part { id: [0; 16], seq: 0, last: false, data };
        assert_eq!(part(&whole).encode(), Err(PartError::TooLarge(MAX_FRAME_BYTES + 1)));
        assert_eq!(part(&whole[1..]).encode().map(|frame| frame.len()), Ok(MAX_FRAME_BYTES));
        assert_eq!(Part::decode(&vec![0; MAX_FRAME_BYTES + 1]), Err(PartError::TooLarge(MAX_FRAME_BYTES + 1)));
    }

    #[test]
    fn a_part_says_something() {
        let mut frame = [0; HEADER_BYTES];
        assert_eq!(Part::decode(&frame), Err(PartError::Empty));
        frame[HEADER_BYTES - 1] = FLAG_LAST;
        assert_eq!(Part::decode(&frame).map(|part| (part.last, part.data.len())), Ok((true, 0)));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(id: [u8; 16], seq: u32, last: bool, data in prop::collection::vec(any::<u8>(), 1..300)) {
            let part = Part { id, seq, last, data: &data };
            let frame = part.encode();
            prop_assert_eq!(frame.as_deref().map(Part::decode), Ok(Ok(part)));
        }

        #[test]
        fn no_bytes_break_the_reader(frame in prop::collection::vec(any::<u8>(), 0..64)) {
            let read = Part::decode(&frame);
            let says_something = frame.len() > HEADER_BYTES
                || frame.get(HEADER_BYTES - 1).is_some_and(|flags| flags & FLAG_LAST != 0);
            prop_assert_eq!(read.is_ok(), says_something);
        }
    }
}
