//! The outputs of a further command: pipes handed over a socket, with one byte that
//! carries them. The order follows.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// Standard output and error.
const COUNT: usize = 2;

/// Hands them over; never in part.
pub(in crate::environment) fn hand_over(socket: impl AsFd, outputs: &[BorrowedFd<'_>; COUNT]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(COUNT))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    if !message.push(SendAncillaryMessage::ScmRights(outputs)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    match sendmsg(socket, &[IoSlice::new(&[0])], &mut message, SendFlags::NOSIGNAL)? {
        1 => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Takes them over; an error also where the socket ended, or something else came.
pub(super) fn take_over(socket: impl AsFd) -> io::Result<[OwnedFd; COUNT]> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(COUNT))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut into = [IoSliceMut::new(&mut byte)];
    recvmsg(socket, &mut into, &mut message, RecvFlags::CMSG_CLOEXEC)?;
    let mut outputs = Vec::new();
    for part in message.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = part {
            outputs.extend(files);
        }
    }
    outputs.try_into().map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn outputs_arrive_before_what_follows_them_and_nothing_is_taken_for_them() {
        let (mut server, mut process) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        hand_over(&server, &[writer.as_fd(), writer.as_fd()]).unwrap();
        drop(writer);
        server.write_all(b"order").unwrap();
        let [output, error] = take_over(&process).unwrap();
        let mut order = [0; 5];
        process.read_exact(&mut order).unwrap();
        assert_eq!(&order, b"order");
        for file in [output, error] {
            std::fs::File::from(file).write_all(b"said.").unwrap();
        }
        let mut said = String::new();
        // To its end: nobody else holds the pipe.
        reader.read_to_string(&mut said).unwrap();
        assert_eq!(said, "said.said.");
        server.write_all(b"more").unwrap();
        assert!(take_over(&process).is_err(), "no outputs came with it");
        drop(server);
        assert!(take_over(&process).is_err());
    }
}
