//! Files of which one process at a time may be the owner, and how files and
//! directories of the store are made: readable by their owner only.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::StoreError;

/// The file whose lock a database's owner holds.
pub(super) fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    beside.into()
}

/// Opens a private file, made if absent, and locks it until it is dropped. The
/// kernel lets the lock go when the process ends, however it ends.
pub(super) fn take(path: &Path) -> Result<File, StoreError> {
    let failed = |error| StoreError::file(path, error);
    let mut file = private_file(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // Who holds it is a courtesy; an unreadable file names nobody.
            let holder = file
                .read_to_string(&mut text)
                .ok()
                .and_then(|_| text.trim().parse().ok());
            Err(StoreError::Locked {
                path: path.to_owned(),
                holder,
            })
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// As [`take`], and writes this process's number into the file.
pub(super) fn take_signed(path: &Path) -> Result<File, StoreError> {
    let mut file = take(path)?;
    let sign = |file: &mut File| {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        writeln!(file, "{}", std::process::id())
    };
    sign(&mut file).map_err(|error| StoreError::file(path, error))?;
    Ok(file)
}

/// Opens for reading and writing with mode 0600, whatever the umask or an
/// earlier mode was.
pub(super) fn private_file(path: &Path) -> Result<File, StoreError> {
    let open = || {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(file)
    };
    open().map_err(|error| StoreError::file(path, error))
}

/// Makes a directory and its parents with mode 0700; one that exists keeps its
/// mode, which is its owner's choice.
pub(super) fn private_dir(path: &Path) -> Result<(), StoreError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| StoreError::file(path, error))
}
