//! What stands in a journal file, and how a file that broke off is read.
//!
//! A file is a magic line, 16 random bytes that are its own (the salt), and frames: length (u32, little endian), check
//! (8 bytes), JSON. The check covers the salt and the place in the file as well: a frame that was moved, doubled, or left
//! behind by another file is none. Files are allocated ahead, so a length of zero means that nothing follows.

use footbridge_shared::Outcome;
use footbridge_shared::id::CallId;
use serde::{Deserialize, Serialize};

use super::entry::Until;

/// First line of every file.
const MAGIC: &[u8] = b"footbridge-foot-journal-v1\n";
/// How the first line of any version begins.
const FAMILY: &[u8] = b"footbridge-foot-journal-v";
/// Random bytes behind the magic line.
pub(super) const SALT_BYTES: usize = 16;
/// Where the first frame begins.
pub(super) const HEAD_BYTES: u64 = (MAGIC.len() + SALT_BYTES) as u64;
/// Bytes of the length.
const LENGTH_BYTES: usize = 4;
/// Bytes of the check: enough for accidents, and whoever can write here needs none.
const CHECK_BYTES: usize = 8;
/// Bytes of a frame beside its JSON.
pub(super) const FRAME_BYTES: usize = LENGTH_BYTES + CHECK_BYTES;
/// Longest JSON of a frame, in bytes. The hub chooses ids, digests and origins: all are short.
pub(super) const MAX_RECORD_BYTES: usize = 4 * 1024;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(super) enum Record {
    /// The file was begun.
    Opened {
        /// In which run of the machine: that of the boot times in this file.
        run: String,
    },
    /// Work of a call begins.
    Started {
        /// The call.
        call: CallId,
        /// Whether it has an idempotency key.
        keyed: bool,
        /// Digest of tool and arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        /// As it came with the call.
        origin: String,
        /// How long this matters.
        until: Until,
    },
    /// It ended.
    Ended {
        /// The call.
        call: CallId,
        /// How. `not_run` takes the start back.
        outcome: Outcome,
        /// How long this matters.
        until: Until,
    },
    /// The hub has what there is to know.
    Acked {
        /// The call.
        call: CallId,
    },
    /// Something that a later build writes and this one can do without.
    #[serde(other)]
    Other,
}

/// A record that is longer than any may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id, digest and origin of the call have more than {MAX_RECORD_BYTES} bytes together")]
pub(super) struct TooLong;

/// A file of another version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is a journal of another version")]
pub(super) struct OtherVersion;

/// Makes frames of one file.
#[derive(Debug, Clone)]
pub(super) struct Framer {
    salt: [u8; SALT_BYTES],
}

impl Framer {
    pub(super) const fn new(salt: [u8; SALT_BYTES]) -> Self {
        Self { salt }
    }

    /// What a file begins with.
    pub(super) fn head(&self) -> Vec<u8> {
        [MAGIC, &self.salt].concat()
    }

    /// Adds the frame of a record to `bytes`, which will stand at `base` of the file.
    ///
    /// # Errors
    /// [`TooLong`]; nothing is added.
    pub(super) fn add(&self, record: &Record, base: u64, bytes: &mut Vec<u8>) -> Result<(), TooLong> {
        // Ids, texts and numbers: there is nothing in it that JSON cannot hold.
        let json = serde_json::to_vec(record).unwrap_or_default();
        let length = u32::try_from(json.len()).ok().filter(|_| (1..=MAX_RECORD_BYTES).contains(&json.len()));
        let length = length.ok_or(TooLong)?;
        let place = base + bytes.len() as u64;
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&self.check(place, &json));
        bytes.extend_from_slice(&json);
        Ok(())
    }

    fn check(&self, place: u64, json: &[u8]) -> [u8; CHECK_BYTES] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.salt).update(&place.to_le_bytes()).update(json);
        let mut check = [0; CHECK_BYTES];
        hasher.finalize_xof().fill(&mut check);
        check
    }
}

/// What a file holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// Its intact records, in order.
    pub(super) records: Vec<Record>,
    /// Whether something follows them that is no record: a write that broke off, or damage.
    pub(super) torn: bool,
}

/// Reads a file up to the first thing that is not as it was written.
///
/// # Errors
/// [`OtherVersion`]: it may be whole, but not for this build.
pub(super) fn read(bytes: &[u8]) -> Result<Contents, OtherVersion> {
    let Some((salt, mut rest)) = bytes.strip_prefix(MAGIC).and_then(|behind| behind.split_first_chunk::<SALT_BYTES>())
    else {
        let other = bytes.starts_with(FAMILY) && bytes.len() >= MAGIC.len() && !bytes.starts_with(MAGIC);
        return if other { Err(OtherVersion) } else { Ok(Contents { records: Vec::new(), torn: !bytes.is_empty() }) };
    };
    let framer = Framer::new(*salt);
    let mut contents = Contents::default();
    let mut place = HEAD_BYTES;
    while let Some((json, behind)) = next(&framer, place, rest) {
        // A frame whose check holds was written; one that cannot be read was written by a later build.
        contents.records.push(serde_json::from_slice(json).unwrap_or(Record::Other));
        place += (rest.len() - behind.len()) as u64;
        rest = behind;
    }
    contents.torn = rest.iter().any(|byte| *byte != 0);
    Ok(contents)
}

/// The JSON of the frame at the front, and what is behind it.
fn next<'a>(framer: &Framer, place: u64, bytes: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (length, behind) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    let (check, behind) = behind.split_first_chunk::<CHECK_BYTES>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    if !(1..=MAX_RECORD_BYTES).contains(&length) {
        return None;
    }
    let (json, behind) = behind.split_at_checked(length)?;
    (framer.check(place, json) == *check).then_some((json, behind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(n: usize) -> Record {
        let (call, until) = (CallId::parse(&format!("c-{n}")).unwrap(), Until { wall_ms: 7, boot_ms: 8 });
        match n % 3 {
            0 => Record::Started {
                call,
                keyed: n.is_multiple_of(2),
                digest: Some("d".into()),
                origin: "h".into(),
                until,
            },
            1 => Record::Ended { call, outcome: Outcome::Completed, until },
            _ => Record::Acked { call },
        }
    }

    /// A file of so many records, and where each of them ends.
    fn file(count: usize) -> (Vec<u8>, Vec<Record>, Vec<usize>) {
        let framer = Framer::new([7; SALT_BYTES]);
        let (mut bytes, mut ends) = (framer.head(), Vec::new());
        let records: Vec<Record> = (0..count).map(record).collect();
        for record in &records {
            framer.add(record, 0, &mut bytes).unwrap();
            ends.push(bytes.len());
        }
        (bytes, records, ends)
    }

    fn intact_before(ends: &[usize], place: usize) -> usize {
        ends.iter().filter(|end| **end <= place).count()
    }

    #[test]
    fn a_file_is_read_as_it_was_written_and_the_room_behind_it_is_empty() {
        let (mut bytes, records, _) = file(7);
        assert_eq!(read(&bytes).unwrap(), Contents { records: records.clone(), torn: false });
        bytes.resize(bytes.len() + 10_000, 0);
        assert_eq!(read(&bytes).unwrap(), Contents { records, torn: false });
        assert_eq!(read(b"").unwrap(), Contents::default());
    }

    #[test]
    fn a_file_cut_anywhere_gives_what_was_whole() {
        let (bytes, records, ends) = file(7);
        for cut in 0..bytes.len() {
            let contents = read(&bytes[..cut]).unwrap();
            assert_eq!(contents.records, records[..intact_before(&ends, cut)], "cut at {cut}");
            let at_an_end = cut == 0 || cut == HEAD_BYTES as usize || ends.contains(&cut);
            assert!(contents.torn != at_an_end || bytes[..cut].ends_with(&[0]), "cut at {cut}");
        }
    }

    #[test]
    fn any_flipped_bit_costs_what_is_behind_it_and_nothing_before() {
        let (bytes, records, ends) = file(5);
        for place in HEAD_BYTES as usize..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[place] ^= 1 << bit;
                let contents = read(&damaged).unwrap();
                assert_eq!(contents.records, records[..intact_before(&ends, place)], "bit {bit} of {place}");
                assert!(contents.torn);
            }
        }
        for place in 0..HEAD_BYTES as usize {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1;
            assert!(read(&damaged).is_err() || read(&damaged).unwrap().records.is_empty(), "byte {place} of the head");
        }
    }

    #[test]
    fn frames_count_only_where_they_were_written() {
        let (bytes, records, ends) = file(4);
        // The last frame once more; the first two exchanged; the frames of a file behind the head of another.
        let doubled = [&bytes[..], &bytes[ends[2]..]].concat();
        assert_eq!(read(&doubled).unwrap(), Contents { records: records.clone(), torn: true });
        let head = HEAD_BYTES as usize;
        let exchanged = [&bytes[..head], &bytes[ends[0]..ends[1]], &bytes[head..ends[0]]].concat();
        assert_eq!(read(&exchanged).unwrap().records, []);
        let foreign = [&Framer::new([8; SALT_BYTES]).head(), &bytes[head..]].concat();
        assert_eq!(read(&foreign).unwrap(), Contents { records: Vec::new(), torn: true });
    }

    #[test]
    fn another_version_is_told_from_damage() {
        assert_eq!(read(b"footbridge-foot-journal-v2\nand whatever that looks like").unwrap_err(), OtherVersion);
        assert_eq!(read(b"footbridge-foot-journal-v10\n").unwrap_err(), OtherVersion);
        assert!(read(b"footbridge-foot").unwrap().torn, "the head itself broke off");
        assert!(read(b"something else").unwrap().torn);
    }

    #[test]
    fn a_later_build_may_write_records_that_this_one_does_not_know() {
        let framer = Framer::new([7; SALT_BYTES]);
        let mut bytes = framer.head();
        for json in [r#"{"is":"moved","to":[1]}"#, r#"{"is":"acked","call":"c-2"}"#, r#"[1]"#] {
            let place = bytes.len() as u64;
            bytes.extend_from_slice(&u32::try_from(json.len()).unwrap().to_le_bytes());
            bytes.extend_from_slice(&framer.check(place, json.as_bytes()));
            bytes.extend_from_slice(json.as_bytes());
        }
        let contents = read(&bytes).unwrap();
        assert_eq!(contents.records, [Record::Other, record(2), Record::Other]);
        assert!(!contents.torn);
    }

    #[test]
    fn a_record_beyond_the_limit_is_refused_where_it_is_written() {
        let framer = Framer::new([7; SALT_BYTES]);
        let long = Record::Opened { run: "x".repeat(MAX_RECORD_BYTES) };
        let mut bytes = Vec::new();
        assert_eq!((framer.add(&long, 0, &mut bytes), bytes.len()), (Err(TooLong), 0));
    }

    proptest! {
        #[test]
        fn whatever_follows_a_file_adds_no_record(garbage in proptest::collection::vec(any::<u8>(), 0..600)) {
            let (bytes, records, _) = file(4);
            let contents = read(&[&bytes[..], &garbage].concat()).unwrap();
            prop_assert_eq!(contents.records, records);
            prop_assert_eq!(contents.torn, garbage.iter().any(|byte| *byte != 0));
        }

        #[test]
        fn no_bytes_at_all_are_an_error_or_a_record(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let behind_a_head = [&Framer::new([7; SALT_BYTES]).head()[..], &bytes].concat();
            prop_assert_eq!(read(&bytes).unwrap().records, []);
            prop_assert_eq!(read(&behind_a_head).unwrap().records, []);
        }
    }
}
