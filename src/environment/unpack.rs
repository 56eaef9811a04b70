//! One program out of an archive that came from elsewhere. The archive says
//! nothing about where anything goes: names that lead out of it, links and
//! devices refuse it as a whole, and nothing but the program is written.

use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

/// Bytes of everything in the archive: a program of this kind has ten million.
const MOST_BYTES: u64 = 256 << 20;
/// Entries of an archive of one program and its papers.
const MOST_ENTRIES: usize = 256;

#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("the archive cannot be read")]
    Unreadable(#[source] io::Error),
    #[error("the archive holds `{0}`, which leads out of it")]
    Outside(PathBuf),
    #[error("the archive holds `{0}`, which is neither file nor directory")]
    NoFile(PathBuf),
    #[error("the archive holds more than {MOST_ENTRIES} entries")]
    TooMany,
    #[error("there is no `{0}` in the archive")]
    Missing(String),
    #[error("`{path}` cannot be written")]
    Write { path: PathBuf, source: io::Error },
}

/// Takes the program of this name out of a `.tar.gz` and puts it into
/// `directory`, whole or not at all.
pub fn program(archive: &[u8], name: &str, directory: &Path) -> Result<PathBuf, UnpackError> {
    let content = found(archive, name)?;
    let path = directory.join(name);
    write(&content, directory, &path).map_err(|source| UnpackError::Write {
        path: path.clone(),
        source,
    })?;
    Ok(path)
}

/// Every entry is looked at before anything is kept.
fn found(archive: &[u8], name: &str) -> Result<Vec<u8>, UnpackError> {
    let mut archive = Archive::new(GzDecoder::new(archive).take(MOST_BYTES));
    let mut content = None;
    for (number, entry) in archive.entries().map_err(UnpackError::Unreadable)?.enumerate() {
        if MOST_ENTRIES <= number {
            return Err(UnpackError::TooMany);
        }
        let mut entry = entry.map_err(UnpackError::Unreadable)?;
        let path = entry.path().map_err(UnpackError::Unreadable)?.into_owned();
        if !path
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        {
            return Err(UnpackError::Outside(path));
        }
        match entry.header().entry_type() {
            EntryType::Regular => {}
            EntryType::Directory | EntryType::XGlobalHeader => continue,
            _ => return Err(UnpackError::NoFile(path)),
        }
        if content.is_none() && path.file_name().is_some_and(|own| own == name) {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(UnpackError::Unreadable)?;
            content = Some(bytes);
        }
    }
    content.ok_or_else(|| UnpackError::Missing(name.to_owned()))
}

/// Beside its place first, so that nobody ever runs half of it.
fn write(content: &[u8], directory: &Path, path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
    file.write_all(content)?;
    file.as_file().set_permissions(Permissions::from_mode(0o755))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, Header};

    /// An archive of entries: path, kind, content.
    fn packed(entries: &[(&str, EntryType, &str)]) -> Vec<u8> {
        let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (path, kind, content) in entries {
            let mut header = Header::new_old();
            // The builder would refuse the very names that are tried here.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(0o644);
            if *kind == EntryType::Symlink || *kind == EntryType::Link {
                header.set_link_name("/etc/passwd").unwrap();
                header.set_size(0);
                header.set_cksum();
                builder.append(&header, io::empty()).unwrap();
                continue;
            }
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, content.as_bytes()).unwrap();
        }
        builder.into_inner().unwrap().finish().unwrap()
    }

    const FILE: EntryType = EntryType::Regular;

    #[test]
    fn the_program_alone_is_written_and_can_be_run() {
        let directory = tempfile::tempdir().unwrap();
        let bin = directory.path().join("bin");
        let archive = packed(&[
            ("tirith-1/", EntryType::Directory, ""),
            ("tirith-1/README", FILE, "read me"),
            ("tirith-1/tirith", FILE, "#!/bin/sh\nexit 0\n"),
        ]);
        let path = program(&archive, "tirith", &bin).unwrap();
        assert_eq!(std::fs::read_dir(&bin).unwrap().count(), 1);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        assert!(std::process::Command::new(&path).status().unwrap().success());
        // Another takes its place.
        program(&packed(&[("tirith", FILE, "new")]), "tirith", &bin).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn an_archive_that_reaches_out_is_refused_whole() {
        let good = ("tirith", FILE, "x");
        for bad in [
            ("../evil", FILE, "x"),
            ("a/../../evil", FILE, "x"),
            ("/tmp/evil", FILE, "x"),
            ("evil", EntryType::Symlink, ""),
            ("evil", EntryType::Link, ""),
            ("evil", EntryType::Char, ""),
            ("evil", EntryType::Fifo, ""),
        ] {
            for entries in [[good, bad], [bad, good]] {
                let directory = tempfile::tempdir().unwrap();
                let bin = directory.path().join("bin");
                let refused = program(&packed(&entries), "tirith", &bin);
                assert!(
                    matches!(refused, Err(UnpackError::Outside(_) | UnpackError::NoFile(_))),
                    "{bad:?}: {refused:?}"
                );
                assert!(!bin.exists());
            }
        }
    }

    #[test]
    fn what_is_no_archive_or_holds_no_program_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let refused = |archive: &[u8]| program(archive, "tirith", directory.path());
        assert!(matches!(refused(b"not gzip"), Err(UnpackError::Unreadable(_))));
        assert!(matches!(
            refused(&packed(&[("other", FILE, "x")])),
            Err(UnpackError::Missing(_))
        ));
        let names: Vec<String> = (0..=MOST_ENTRIES).map(|number| format!("f{number}")).collect();
        let many: Vec<(&str, EntryType, &str)> = names.iter().map(|name| (name.as_str(), FILE, "")).collect();
        assert!(matches!(refused(&packed(&many)), Err(UnpackError::TooMany)));
        let whole = packed(&[("tirith", FILE, &"x".repeat(100_000))]);
        assert!(matches!(
            refused(&whole[..whole.len() / 2]),
            Err(UnpackError::Unreadable(_))
        ));
    }
}
