//! What the server and its `exec` process say to each other.
//!
//! The server writes one frame into the socket that is the process's standard
//! input: a length, a JSON [`Description`], then the bytes of the command's own
//! input. Anything after that, and the end of the socket above all, means stop, until
//! the end was told; then it may be another command, with outputs of its own.
//! The process answers with JSON lines, one [`Report`] each. Nothing is passed
//! in arguments or in the environment, where other processes could read it.

use std::io::{self, Read};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::environment::command::Mechanism;
use crate::environment::identity::Identity;
use crate::environment::local::Limits;

/// Far above any script a model writes; a larger frame is not ours.
const MAX_DESCRIPTION_BYTES: u32 = 64 << 20;

/// One command and everything needed to run it.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::environment) struct Description {
    pub(in crate::environment) script: String,
    /// How many bytes of input follow the description.
    pub(in crate::environment) stdin_bytes: Option<usize>,
    pub(in crate::environment) cwd: PathBuf,
    pub(in crate::environment) timeout_ms: u64,
    /// Time between the request to end and the order.
    pub(in crate::environment) grace_ms: u64,
    /// The process's standard output is a terminal, which the command gets.
    pub(in crate::environment) terminal: bool,
    /// It is over when its last process is, and not when the shell is.
    pub(in crate::environment) lasts: bool,
    /// The whole environment of the command.
    pub(in crate::environment) environment: Vec<(String, String)>,
    pub(in crate::environment) confinement: Confinement,
    /// The script is not known yet: the shell is started and waits for [`Go`].
    pub(in crate::environment) held: bool,
}

/// The longest script that a waiting shell is handed, in bytes: it reads a pipe byte
/// by byte, and so much is written whole or not at all (`PIPE_BUF`).
pub(in crate::environment) const LONGEST_GO: usize = 4096;

/// What a shell that was started ahead waits for.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::environment) struct Go {
    pub(in crate::environment) script: String,
    pub(in crate::environment) timeout_ms: u64,
}

/// The walls around a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::environment) struct Confinement {
    pub(in crate::environment) mechanism: Mechanism,
    pub(in crate::environment) network: bool,
    /// Read, written and executed.
    pub(in crate::environment) writable: Vec<PathBuf>,
    /// Read and executed, beside the system's own directories.
    pub(in crate::environment) readable: Vec<PathBuf>,
    /// Whom to become; `None` stays the server's user.
    pub(in crate::environment) identity: Option<Identity>,
    pub(in crate::environment) limits: Limits,
}

/// What the process tells the server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::environment) enum Report {
    /// The shell runs, in a process group that the server knows under this
    /// number; unless it lives in a process space of its own.
    Started { group: Option<i32>, isolation: String },
    /// The command and its whole tree are gone (or resisted: `survived`).
    Ended {
        exit_code: i32,
        timed_out: bool,
        interrupted: bool,
        /// The shell ended by itself, and what it had left running was ended after it.
        left_over: bool,
        survived: bool,
        cwd: Option<PathBuf>,
    },
    /// Nothing ran.
    Failed { reason: String },
    /// Nothing ran: what the shell was started in ahead is not there any more, or
    /// is something else; or no order came in time.
    Spoiled,
}

impl Report {
    /// The shell ended by itself, and nothing is left.
    pub(super) fn is_of_a_plain_end(&self) -> bool {
        matches!(
            self,
            Self::Ended {
                timed_out: false,
                interrupted: false,
                survived: false,
                ..
            }
        )
    }
}

/// The frame of one order, as the server sends it.
pub(in crate::environment) fn frame(order: &impl Serialize, stdin: Option<&[u8]>) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(order)?;
    let length = u32::try_from(json.len()).map_err(io::Error::other)?;
    let mut frame = Vec::with_capacity(4 + json.len() + stdin.map_or(0, <[u8]>::len));
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&json);
    frame.extend_from_slice(stdin.unwrap_or_default());
    Ok(frame)
}

/// Reads one order without input.
pub(super) fn order<T: DeserializeOwned>(source: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    source.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > MAX_DESCRIPTION_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the description is too long",
        ));
    }
    let mut json = Vec::new();
    source.take(u64::from(length)).read_to_end(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}

/// A command and its input.
pub(super) type Order = (Description, Option<Vec<u8>>);

/// Reads the frame of a command, as the process receives it.
pub(super) fn receive(source: &mut impl Read) -> io::Result<Order> {
    let description: Description = order(source)?;
    let Some(bytes) = description.stdin_bytes else {
        return Ok((description, None));
    };
    let mut stdin = Vec::new();
    source
        .take(u64::try_from(bytes).unwrap_or(u64::MAX))
        .read_to_end(&mut stdin)?;
    if stdin.len() < bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((description, Some(stdin)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn sample() -> Description {
        Description {
            script: "cat".into(),
            stdin_bytes: Some(5),
            cwd: "/tmp".into(),
            timeout_ms: 1000,
            grace_ms: 1000,
            terminal: false,
            lasts: false,
            environment: vec![("A".into(), "b".into())],
            confinement: Confinement {
                mechanism: Mechanism::Landlock,
                network: false,
                writable: vec!["/tmp".into()],
                readable: Vec::new(),
                identity: None,
                limits: Limits::default(),
            },
            held: false,
        }
    }

    #[test]
    fn a_frame_carries_the_description_and_the_input_and_leaves_what_follows() {
        let mut bytes = frame(&sample(), Some(b"input")).unwrap();
        bytes.extend_from_slice(b"stop");
        let mut source = bytes.as_slice();
        let (description, stdin) = receive(&mut source).unwrap();
        assert_eq!(description.script, "cat");
        assert_eq!(description.cwd, Path::new("/tmp"));
        assert_eq!(stdin.as_deref(), Some(b"input".as_slice()));
        assert_eq!(source, b"stop");
    }

    #[test]
    fn a_frame_cut_anywhere_is_an_error() {
        let bytes = frame(&sample(), Some(b"input")).unwrap();
        for end in 0..bytes.len() {
            let mut source = bytes.get(..end).unwrap();
            assert!(receive(&mut source).is_err(), "cut at {end}");
        }
    }
}
