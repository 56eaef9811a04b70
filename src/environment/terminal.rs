//! A terminal of ours: the command has the one side of it, the server reads and
//! types on the other. It lasts as long as the command.

use std::io;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::mpsc;

/// The original's figures.
const SIZE: Winsize = Winsize {
    ws_row: 30,
    ws_col: 120,
    ws_xpixel: 0,
    ws_ypixel: 0,
};
/// As much as the kernel holds of a terminal's output.
const READ_BYTES: usize = 4096;

/// The server's side. To the runtime it is a pipe in each direction: it waits for
/// readiness, reads and writes, which is all that is done here.
#[derive(Debug)]
pub(super) struct Terminal {
    output: Receiver,
    input: Sender,
}

/// Both sides of a new terminal.
pub(super) fn pair() -> io::Result<(Terminal, OwnedFd)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let theirs = open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    tcsetwinsize(&ours, SIZE)?;
    fcntl_setfl(&ours, OFlags::RDWR | OFlags::NONBLOCK)?;
    let input = Sender::from_owned_fd_unchecked(ours.try_clone()?)?;
    let output = Receiver::from_owned_fd_unchecked(ours)?;
    Ok((Terminal { output, input }, theirs))
}

/// The next output; nothing at the end, and where there is no terminal.
pub(super) async fn next(terminal: &Option<Terminal>) -> Option<Bytes> {
    let output = &terminal.as_ref()?.output;
    let mut buffer = vec![0; READ_BYTES];
    loop {
        output.readable().await.ok()?;
        match output.try_read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(bytes) if 0 < bytes => {
                buffer.truncate(bytes);
                return Some(Bytes::from(buffer));
            }
            // The other side is closed, which this kernel tells by an error.
            _ => return None,
        }
    }
}

/// What somebody types next.
pub(super) async fn typed(from: &mut Option<mpsc::Receiver<Bytes>>) -> Option<Bytes> {
    let bytes = from.as_mut()?.recv().await;
    if bytes.is_none() {
        *from = None;
    }
    bytes
}

/// How much of it was taken; all where nobody will read it.
pub(super) async fn send(terminal: &Option<Terminal>, bytes: &Bytes) -> usize {
    let Some(terminal) = terminal else { return bytes.len() };
    loop {
        if terminal.input.writable().await.is_err() {
            return bytes.len();
        }
        match terminal.input.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            written => return written.unwrap_or(bytes.len()),
        }
    }
}
