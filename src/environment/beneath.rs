//! A text of the operator's, read from a directory that the server knows by a
//! name that somebody else gave. No link is followed and nothing outside is
//! opened, whatever the name says; what is no ordinary file is not read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2};

/// The text of the file `name` beneath `root`, of at most `most` bytes.
pub fn read_text(root: &Path, name: &str, most: u64) -> io::Result<String> {
    let root = open(
        root,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(&root, name, flags, Mode::empty(), resolve)?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no ordinary file"));
    }
    let mut text = String::new();
    File::from(file)
        .take(most.saturating_add(1))
        .read_to_string(&mut text)?;
    if most < text.len() as u64 {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is longer than {most} bytes"),
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_out_or_is_no_file_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("scripts");
        std::fs::create_dir_all(root.join("daily")).unwrap();
        std::fs::write(root.join("daily/a.sh"), "echo a\n").unwrap();
        std::fs::write(home.path().join("secret"), "key").unwrap();
        std::os::unix::fs::symlink(home.path().join("secret"), root.join("link")).unwrap();
        assert_eq!(read_text(&root, "daily/a.sh", 100).unwrap(), "echo a\n");
        for name in [
            "../secret",
            "/etc/passwd",
            "link",
            "daily",
            "absent",
            "daily/../../secret",
        ] {
            assert!(read_text(&root, name, 100).is_err(), "{name}");
        }
        assert!(read_text(&root, "daily/a.sh", 3).is_err());
    }
}
