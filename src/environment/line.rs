//! A line between the server and a program of a session: the program writes
//! requests into one pipe and reads answers from another. The pipes are named
//! ones in a directory of the session, since a sandbox may forbid sockets; both
//! sides wake up by themselves. What comes in is bounded.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, mkdirat, mknodat, openat};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;

use super::files::{FileError, Parents};
use super::place::Place;
use super::remove;
use super::replace::{open_directory, own};
use super::workspace::Workspace;

/// The longest request: a file of several megabytes and what JSON makes of it.
const MAX_REQUEST: usize = 16 << 20;
const READ_BYTES: usize = 64 << 10;

pub const REQUESTS: &str = "requests";
pub const ANSWERS: &str = "answers";

/// The server's end. The directory goes with it.
#[derive(Debug)]
pub struct Line {
    directory: PathBuf,
    requests: pipe::Receiver,
    answers: pipe::Sender,
    came: Vec<u8>,
    /// A request that is too long is read to its end and forgotten.
    skipping: bool,
    unsent: Vec<u8>,
}

/// One request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Whole(Vec<u8>),
    TooLong,
}

impl Workspace {
    /// A new directory in the session's temporary files, with these files in it
    /// and the two pipes.
    pub async fn line(&self, name: &str, files: &[(&str, &str)]) -> Result<Line, FileError> {
        let directory = self.tmp().join(name);
        let made = directory.clone();
        let [requests, answers] = self.blocking(&made, make).await?;
        for (file, content) in files {
            let content = content.as_bytes().to_vec();
            self.write_atomic(&directory.join(file), content, Parents::Require)
                .await?;
        }
        let failed = |source| FileError::Io {
            path: directory.clone(),
            source,
        };
        Ok(Line {
            requests: pipe::Receiver::from_owned_fd(requests).map_err(failed)?,
            answers: pipe::Sender::from_owned_fd(answers).map_err(failed)?,
            directory,
            came: Vec::new(),
            skipping: false,
            unsent: Vec::new(),
        })
    }
}

fn make(place: &Place<'_>) -> Result<[OwnedFd; 2], FileError> {
    let (above, name) = place.split()?;
    let directory = open_directory(place, &above, Parents::Require)?;
    let make = || -> io::Result<[OwnedFd; 2]> {
        mkdirat(&directory, &name, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let inner = openat(&directory, &name, flags, Mode::empty())?;
        let pipes = [pipe(&inner, REQUESTS, place)?, pipe(&inner, ANSWERS, place)?];
        own(&directory, &name, place.root.owner)?;
        Ok(pipes)
    };
    make().map_err(|error| place.failed(error))
}

/// A named pipe, open for both so that neither side waits for the other to open
/// it, or ends with it.
fn pipe(directory: &OwnedFd, name: &str, place: &Place<'_>) -> io::Result<OwnedFd> {
    mknodat(directory, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(directory, name, flags, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&opened)?.st_mode) != FileType::Fifo {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    own(directory, Path::new(name), place.root.owner)?;
    Ok(opened)
}

impl Line {
    /// Where the program finds the pipes and the files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The next request. Dropping the future loses nothing.
    pub async fn next(&mut self) -> io::Result<Request> {
        loop {
            if let Some(end) = self.came.iter().position(|byte| *byte == b'\n') {
                let rest = self.came.split_off(end + 1);
                let mut request = std::mem::replace(&mut self.came, rest);
                request.pop();
                return Ok(match std::mem::take(&mut self.skipping) {
                    true => Request::TooLong,
                    false => Request::Whole(request),
                });
            }
            if MAX_REQUEST < self.came.len() || self.skipping {
                self.skipping = true;
                self.came.clear();
            }
            self.came.reserve(READ_BYTES);
            if self.requests.read_buf(&mut self.came).await? == 0 {
                // Both ends are held open, so there is no end to meet.
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Puts an answer behind those that are not sent yet.
    pub fn answer(&mut self, text: &str) {
        self.unsent.extend_from_slice(text.as_bytes());
        self.unsent.push(b'\n');
    }

    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends as much as the pipe takes, waiting for room. Dropping the future
    /// loses nothing.
    pub async fn send(&mut self) -> io::Result<()> {
        let sent = self.answers.write(&self.unsent).await?;
        drop(self.unsent.drain(..sent));
        Ok(())
    }

    /// Takes the directory away.
    pub async fn close(self) -> io::Result<()> {
        let directory = self.directory;
        let removed = tokio::task::spawn_blocking(move || remove::remove(&directory)).await;
        removed.map_err(io::Error::other)?
    }
}
