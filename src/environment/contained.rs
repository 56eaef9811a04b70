//! Whether a path leads out of a directory, links followed, told by names alone.
//! For messages and listings: whoever opens a file goes through the workspace,
//! where the kernel resolves and opens in one step.

use std::io;
use std::path::{Component, Path, PathBuf};

/// Links that are followed, as the kernel does (`path_resolution(7)`).
const MOST_LINKS: u32 = 40;

/// A part of the path is `..`, whichever way the separators lean.
pub fn has_parent_component(path: &str) -> bool {
    path.split(['/', '\\']).any(|part| part == "..")
}

/// Both are resolved first. A path that cannot be resolved, such as a loop of
/// links, is not inside.
pub fn is_within(root: &Path, path: &Path) -> bool {
    match (resolved(root), resolved(path)) {
        (Ok(root), Ok(path)) => path.starts_with(root),
        _ => false,
    }
}

/// The path without links, `.` and `..`; what does not exist is taken as written.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let mut links = 0;
    let mut done = PathBuf::from("/");
    let mut left: Vec<PathBuf> = parts(&std::path::absolute(path)?);
    while let Some(part) = left.pop() {
        match part.to_str() {
            Some("..") => {
                done.pop();
                continue;
            }
            Some("/") => {
                done = PathBuf::from("/");
                continue;
            }
            _ => {}
        }
        let next = done.join(&part);
        match std::fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if MOST_LINKS < links {
                    return Err(io::Error::from_raw_os_error(libc::ELOOP));
                }
                left.extend(parts(&target));
            }
            // No link, or nothing at all.
            Err(_) => done = next,
        }
    }
    Ok(done)
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let mut parts: Vec<PathBuf> = parts.map(|part| PathBuf::from(part.as_os_str())).collect();
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn loops_and_long_chains_are_not_inside() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink(".", root.join("0")).unwrap();
        for number in 1..=40 {
            symlink((number - 1).to_string(), root.join(number.to_string())).unwrap();
        }
        assert!(!is_within(&root, &root.join("loop/x")));
        assert!(is_within(&root, &root.join("39/x")));
        assert!(!is_within(&root, &root.join("40/x")));
        assert!(is_within(&root, &root.join("nowhere/../x")));
        assert!(!is_within(&root, &root.join("0/../x")));
    }
}
