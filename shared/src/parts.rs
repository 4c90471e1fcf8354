//! How long messages travel: in parts, with credit, past nobody.
//!
//! The same rules hold in both directions. Nothing here knows of sockets or time.
//!
//! **Parts.** A message whose JSON is larger than [`MAX_FRAME_BYTES`](crate::limits::MAX_FRAME_BYTES) is cut into
//! [parts](crate::part), all but the last with the same amount of data, numbered from 0. Joined, they are the JSON text of
//! the whole message. Its id is that of its call; a message without a call, one that belongs to a call and is neither it nor
//! its end (`upcall`, `upcallResult`, `notify`), or one whose call's id stands for no bytes, has 16 random ones, and begins
//! with its `type`: by that its receiver knows from the first part whether to keep it. A foot sends so `result`, `failure`,
//! `response`, `tools`, `servers`, `upcall` and `notify`, a hub `call`, `request` and `upcallResult`. As long as a session
//! lasts, the parts of one id say the same however often they are sent.
//!
//! **Bulk** are part frames, and text frames of at least [`BULK_BYTES`](crate::limits::BULK_BYTES) that name a call. At
//! most [`BULK_WINDOW_BYTES`](crate::limits::BULK_WINDOW_BYTES) of it are out at a time: sent, and not returned by
//! `credit`. So whatever else there is to say never waits behind more than that. A receiver returns all bulk that it took
//! in, kept or not, but may owe less than [`CREDIT_GROUP_BYTES`](crate::limits::CREDIT_GROUP_BYTES) for as long as it
//! likes: the largest frame still fits what is left, so nobody waits for good. An `ack`, and a terminal message in a text
//! frame, return all that was owed for their call. Bulk of different calls takes turns, frame by frame.
//!
//! **Room.** A receiver bounds what it keeps of unfinished messages. When there is no room for a part it drops it, returns
//! its bytes with `hold`, and asks with `partsFrom` for that part when there is room. To hold back credit instead would
//! fill the one window with what may not go on, and keep what may from going on. The oldest unfinished message may always
//! go on, so one of them ends.
//!
//! **Resumption.** Unfinished calls and their ends outlive a connection as their session does; others are dropped with it
//! ([`outlives_connection`]). A receiver asks for the rest with
//! `partsFrom` before it says anything else on the new connection; a sender sends no part before it has heard a frame of
//! another kind, and then starts at 0 unless it was asked. A part that was there already is ignored; at a gap, the receiver
//! asks once.

mod assembly;
mod bulk;
mod credit;

pub use assembly::{Assembly, Taken};
pub use bulk::{Bulk, Bulky, Flow, Next};
pub use credit::{Dues, Window};

/// Whether a message whose JSON begins so goes on over the next connection of its session when this one breaks: calls and
/// their ends do. One that does not begin with its `type` is of a peer that sends no others.
pub fn outlives_connection(first_part: &[u8]) -> bool {
    let others = ["tools", "servers", "request", "response", "upcall", "upcallResult", "notify"];
    let begins = |kind: &str| {
        let rest = first_part.strip_prefix(br#"{"type":""#).and_then(|rest| rest.strip_prefix(kind.as_bytes()));
        rest.is_some_and(|rest| rest.starts_with(b"\""))
    };
    !others.into_iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_their_ends_outlive_a_connection_and_nothing_else_does() {
        let begin = |kind: &str| format!(r#"{{"type":"{kind}","call""#).into_bytes();
        for kind in ["call", "result", "failure"] {
            assert!(outlives_connection(&begin(kind)), "{kind}");
        }
        for kind in ["tools", "servers", "request", "response", "upcall", "upcallResult", "notify"] {
            assert!(!outlives_connection(&begin(kind)), "{kind}");
        }
        assert!(outlives_connection(br#"{"call":"c","type":"upcall"}"#) && outlives_connection(b""));
    }
}
