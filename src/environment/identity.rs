//! The user a workspace's commands run as, when the server runs as root.
//!
//! Every workspace has a user of its own, so that two sessions share nothing
//! even where the sandbox has a gap: its rules cover what is opened, not who may
//! change a mode, an owner or a time. The owner of the directory is the record
//! of that user; nothing else is written down.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Gid, Uid, chown};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The range that Linux distributions leave to nobody, between containers and
/// the values some systems take for negative; 28 bits wide.
const FIRST_USER: u32 = 0x7000_0000;
const USER_BITS: u32 = 0x0fff_ffff;

/// Entered by everybody, listed by nobody but the server.
const PASSAGE: u32 = 0o711;

/// Whom a command becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) user: u32,
    pub(super) group: u32,
    /// A directory above the workspace is closed to everyone but the server, so
    /// the command needs the power to pass through.
    pub(super) passes_closed: bool,
}

/// Gives new places of a session to its user and says who owns them now. `None`
/// for a server that is not root: it has no choice.
pub(super) fn settle(session: &Path, places: &[&Path]) -> io::Result<Option<Identity>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    for passage in session.ancestors().take(3) {
        fs::set_permissions(passage, fs::Permissions::from_mode(PASSAGE))?;
    }
    let passes_closed = session.ancestors().any(is_closed);
    let mut identity = Identity {
        user: 0,
        group: 0,
        passes_closed,
    };
    for place in places {
        if fs::metadata(place)?.uid() == 0 && may_lend(passes_closed)? {
            give(place, user_of(session))?;
        }
        let metadata = fs::metadata(place)?;
        (identity.user, identity.group) = (metadata.uid(), metadata.gid());
    }
    Ok(Some(identity))
}

fn is_closed(directory: &Path) -> bool {
    fs::metadata(directory).map_or(true, |metadata| metadata.mode() & 0o001 == 0)
}

/// Root in a container often lacks some of root's powers. Without these commands
/// stay root too, with no power at all.
fn may_lend(passes_closed: bool) -> io::Result<bool> {
    let mut needed = CapabilitySet::CHOWN | CapabilitySet::SETUID | CapabilitySet::SETGID;
    if passes_closed {
        needed |= CapabilitySet::DAC_READ_SEARCH;
    }
    Ok(capabilities(None)?.permitted.contains(needed))
}

fn give(place: &Path, user: u32) -> io::Result<()> {
    match chown(place, Some(Uid::from_raw(user)), Some(Gid::from_raw(user))) {
        // The container's user space does not reach that far.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A number that follows from the place, the same after every start.
fn user_of(session: &Path) -> u32 {
    let digest = Sha256::digest(session.as_os_str().as_encoded_bytes());
    let number = digest
        .iter()
        .take(4)
        .fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
    FIRST_USER | (number & USER_BITS)
}
