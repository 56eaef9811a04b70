//! A terminal of ours: the command has the one side of it, the server reads and
//! types on the other. It lasts as long as the command.

use std::io;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
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

/// The server's side.
pub(super) struct Terminal {
    file: AsyncFd<OwnedFd>,
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
    #[allow(
        deprecated,
        reason = "what is registered owns its descriptor; the new form would be unsafe code here"
    )]
    let file = AsyncFd::new(ours)?;
    Ok((Terminal { file }, theirs))
}

/// The next output; nothing at the end, and where there is no terminal.
pub(super) async fn next(terminal: &Option<Terminal>) -> Option<Bytes> {
    let file = &terminal.as_ref()?.file;
    let mut buffer = vec![0; READ_BYTES];
    let read = file
        .async_io(Interest::READABLE, |file| Ok(rustix::io::read(file, &mut buffer)?))
        .await;
    match read {
        Ok(bytes) if 0 < bytes => {
            buffer.truncate(bytes);
            Some(Bytes::from(buffer))
        }
        // The other side is closed, which this kernel tells by an error.
        _ => None,
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
    let written = terminal
        .file
        .async_io(Interest::WRITABLE, |file| match rustix::io::write(file, bytes) {
            Err(Errno::AGAIN) => Err(io::ErrorKind::WouldBlock.into()),
            other => Ok(other?),
        })
        .await;
    written.unwrap_or(bytes.len())
}
