//! What a foot and a launcher say to each other: one order, with the standard streams of the command; then reports.
//!
//! Each message is JSON behind its length, four bytes with the highest first. The end of the foot's side of the socket
//! means: stop.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use crate::sandbox::{Bytes, Grant};

/// Largest order, in bytes. The arguments of a call, and an environment, are far below.
const MAX_ORDER_BYTES: u32 = 64 * 1024 * 1024;
/// Largest report, in bytes.
pub(crate) const MAX_REPORT_BYTES: u32 = 64 * 1024;
/// Standard input, output and error.
const STREAMS: usize = 3;

/// What to run. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The file that is executed.
    pub(crate) program: Bytes,
    /// Its arguments, its name first.
    pub(crate) argv: Vec<Bytes>,
    /// Its whole environment.
    pub(crate) environment: Vec<(Bytes, Bytes)>,
    /// Where it starts.
    pub(crate) cwd: Bytes,
    /// A folder that is made for it alone and removed at its end.
    pub(crate) temporary: Bytes,
    /// What it may reach; `None` if the owner wants it unconfined.
    pub(crate) grants: Option<Vec<Grant>>,
}

/// The command's ends of its three pipes.
#[derive(Debug)]
pub(crate) struct Standard {
    /// What it reads.
    pub(crate) input: OwnedFd,
    /// What it writes.
    pub(crate) output: OwnedFd,
    /// What it complains to.
    pub(crate) error: OwnedFd,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ending {
    /// By itself, with this code.
    Code(i32),
    /// By a signal of this number.
    Signal(i32),
}

/// Why a command was not started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NotStarted {
    /// It could not be confined.
    Unconfined(String),
    /// There is no such program, or what it is to be interpreted by is missing.
    NoProgram,
    /// The system does not let it be executed.
    Denied,
    /// Its arguments and its environment are more than the system takes.
    TooLong,
    /// Something else.
    Broken(String),
}

/// What a launcher says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The command runs.
    Started,
    /// It does not, and never will.
    NotStarted(NotStarted),
    /// It ran and ended, and nothing is left of it.
    Ended(Ending),
}

/// Puts the streams into a socket, for whoever takes the other end. Does not wait.
pub(crate) fn hand_over(socket: &UnixStream, standard: &Standard) -> io::Result<()> {
    let streams = [standard.input.as_fd(), standard.output.as_fd(), standard.error.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut buffer = SendAncillaryBuffer::new(&mut space);
    if !buffer.push(SendAncillaryMessage::ScmRights(&streams)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    sendmsg(socket, &[IoSlice::new(&[0])], &mut buffer, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Takes the streams and the order out of it.
pub(super) fn receive(mut socket: &UnixStream) -> io::Result<(Order, Standard)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut buffer = RecvAncillaryBuffer::new(&mut space);
    recvmsg(socket, &mut [IoSliceMut::new(&mut [0])], &mut buffer, RecvFlags::CMSG_CLOEXEC)?;
    let streams = buffer.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(streams) => streams.collect(),
        _ => Vec::new(),
    });
    let [input, output, error] = <[OwnedFd; STREAMS]>::try_from(streams.collect::<Vec<_>>())
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > MAX_ORDER_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut json = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    socket.read_exact(&mut json)?;
    Ok((serde_json::from_slice(&json)?, Standard { input, output, error }))
}

/// Says something to the foot.
pub(super) fn report(mut socket: &UnixStream, report: &Report) -> io::Result<()> {
    socket.write_all(&message(report)?)
}

/// A message as it stands on the socket.
pub(crate) fn message<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(message)?;
    let length = u32::try_from(json.len()).map_err(io::Error::other)?;
    Ok([&length.to_be_bytes()[..], &json].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_arrives_with_its_streams_and_paths_that_are_no_text() {
        use std::os::unix::ffi::OsStringExt as _;
        let (ours, theirs) = UnixStream::pair().unwrap();
        let odd = std::ffi::OsString::from_vec(vec![b'/', 0xff, b'x']);
        let order = Order {
            program: "/bin/true".into(),
            argv: vec!["true".into()],
            environment: vec![("A".into(), odd.clone().into())],
            cwd: odd.into(),
            temporary: "/tmp/x".into(),
            grants: None,
        };
        let (reader, writer) = std::io::pipe().unwrap();
        let standard = Standard {
            input: reader.try_clone().unwrap().into(),
            output: writer.try_clone().unwrap().into(),
            error: writer.into(),
        };
        hand_over(&ours, &standard).unwrap();
        drop(standard);
        (&ours).write_all(&message(&order).unwrap()).unwrap();
        let (received, streams) = receive(&theirs).unwrap();
        assert_eq!(received, order);
        std::fs::File::from(streams.error).write_all(b"through").unwrap();
        drop(streams.output);
        let mut text = String::new();
        { reader }.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
    }

    #[test]
    fn what_is_no_order_is_refused() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (&ours).write_all(b"hello").unwrap();
        assert!(receive(&theirs).is_err(), "there are no streams");
        drop(ours);
        assert!(receive(&theirs).is_err(), "and nobody is there");
    }
}
