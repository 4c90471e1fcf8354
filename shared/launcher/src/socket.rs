//! The socket between a program and its launcher: what goes through it, and the streams that go with it.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

use crate::order::{Order, Report, Standard, message};

/// Largest order, in bytes. The arguments of a call, and an environment, are far below.
const MAX_ORDER_BYTES: u32 = 64 * 1024 * 1024;
/// Standard input, output and error.
const STREAMS: usize = 3;

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
pub(crate) fn receive(mut socket: &UnixStream) -> io::Result<(Order, Standard)> {
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

/// Says something to whoever ordered it.
pub(crate) fn report(mut socket: &UnixStream, report: &Report) -> io::Result<()> {
    socket.write_all(&message(report)?)
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
