//! How long messages travel: in parts, with credit, past nobody.
//!
//! The same rules hold in both directions. Nothing here knows of sockets or time.
//!
//! **Parts.** A message whose JSON is larger than [`MAX_FRAME_BYTES`](crate::limits::MAX_FRAME_BYTES) is cut into
//! [parts](crate::part), all but the last with the same amount of data, numbered from 0. Joined, they are the JSON text of
//! the whole message. Its id is that of its call; a message without a call, or whose call's id stands for no bytes, has
//! 16 random ones, and begins with its `type`: by that its receiver knows from the first part whether to keep it. A foot
//! sends so `result`, `failure` and `tools`, a hub `call`, `request` and `upcallResult`. As long as a session lasts, the
//! parts of one id say the same however often they are sent.
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
//! **Resumption.** Unfinished messages outlive a connection as their session does. A receiver asks for the rest with
//! `partsFrom` before it says anything else on the new connection; a sender sends no part before it has heard a frame of
//! another kind, and then starts at 0 unless it was asked. A part that was there already is ignored; at a gap, the receiver
//! asks once.

mod assembly;
mod bulk;
mod credit;

pub use assembly::{Assembly, Taken};
pub use bulk::{Bulk, Bulky, Flow, Next};
pub use credit::{Dues, Window};
