//! Snapshots and the way back, on a real file system.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::put_back::plan;
use super::{Bounds, LeftOut, PutBack, Taken, Tree, Vault, What};
use crate::environment::{IsolationChoice, Limits, LocalSettings, Workspace};

struct Bench {
    directory: tempfile::TempDir,
    workspace: Workspace,
}

impl Bench {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = LocalSettings {
            exec_program: "/proc/self/exe".into(),
            data_dir: directory.path().join("data"),
            isolation: IsolationChoice::Auto,
            network: false,
            writable: Vec::new(),
            readable: Vec::new(),
            passthrough: Vec::new(),
            limits: Limits::default(),
        };
        let workspace = Workspace::open(&Arc::new(settings), "ten_a", "ses_a").await.unwrap();
        Self { directory, workspace }
    }

    fn root(&self) -> &Path {
        self.workspace.root()
    }

    fn vault(&self) -> Vault {
        Vault::open(&self.directory.path().join("vault")).unwrap()
    }

    async fn taken(&self, before: Option<Tree>, bounds: Bounds) -> Taken {
        let taken = self.workspace.snapshot(self.vault(), before, Arc::new(bounds));
        taken.await.unwrap()
    }

    async fn tree(&self) -> Tree {
        self.tree_after(None).await
    }

    async fn tree_after(&self, before: Option<Tree>) -> Tree {
        match self.taken(before, bounds()).await {
            Taken::Tree { tree, .. } => tree,
            Taken::TooMany => panic!("there are few files"),
        }
    }

    async fn back_to(&self, then: &Tree) -> PutBack {
        let now = self.tree().await;
        let back = self.workspace.put_back(self.vault(), now, then.clone());
        back.await.unwrap()
    }
}

fn bounds() -> Bounds {
    Bounds {
        files: 1_000,
        file_bytes: 1 << 20,
        bytes: 4 << 20,
        without: vec!["node_modules".into()],
    }
}

/// Everything by name: mode and content of files, targets of links.
fn shape(root: &Path) -> Vec<(PathBuf, String)> {
    let mut shape = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let kind = metadata.file_type();
            let told = match () {
                () if kind.is_symlink() => format!("-> {}", fs::read_link(&path).unwrap().display()),
                () if kind.is_dir() => {
                    open.push(path.clone());
                    format!("{:o}/", metadata.mode() & 0o7777)
                }
                () if kind.is_fifo() => "pipe".to_owned(),
                () => format!("{:o} {:?}", metadata.mode() & 0o7777, fs::read(&path).unwrap()),
            };
            shape.push((path.strip_prefix(root).unwrap().to_owned(), told));
        }
    }
    shape.sort();
    shape
}

fn fill(root: &Path) {
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/b/one.txt"), "one").unwrap();
    fs::write(root.join("a/two.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(root.join("a/two.sh"), Permissions::from_mode(0o750)).unwrap();
    fs::write(root.join("100% ö"), "odd").unwrap();
    fs::write(root.join(OsStr::from_bytes(b"no \xff text\n")), "odder").unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    symlink("a/b/one.txt", root.join("inside")).unwrap();
    symlink("/etc/passwd", root.join("outside")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
}

#[tokio::test]
async fn whatever_was_removed_changed_or_added_is_as_before() {
    let bench = Bench::new().await;
    let root = bench.root();
    fill(root);
    let (before, then) = (shape(root), bench.tree().await);
    fs::remove_dir_all(root.join("a/b")).unwrap();
    // Where a directory was there is a file, and the other way round.
    fs::write(root.join("a/b"), "no directory").unwrap();
    fs::remove_file(root.join("a/two.sh")).unwrap();
    fs::create_dir_all(root.join("a/two.sh/deep/deeper")).unwrap();
    fs::write(root.join("a/two.sh/deep/deeper/x"), "x").unwrap();
    fs::remove_file(root.join("inside")).unwrap();
    fs::write(root.join("inside"), "no link").unwrap();
    fs::remove_file(root.join("outside")).unwrap();
    symlink("/etc/shadow", root.join("outside")).unwrap();
    fs::write(root.join("100% ö"), "changed").unwrap();
    fs::set_permissions(
        root.join(OsStr::from_bytes(b"no \xff text\n")),
        Permissions::from_mode(0o600),
    )
    .unwrap();
    fs::set_permissions(root.join("empty"), Permissions::from_mode(0o700)).unwrap();
    fs::write(root.join("new"), "new").unwrap();
    let after = bench.tree().await;
    let changed = shape(root);
    let back = bench.back_to(&then).await;
    assert_eq!((shape(root), &back.left), (before.clone(), &Vec::new()));
    // And back again, and forth.
    assert!(bench.back_to(&after).await.left.is_empty());
    assert_eq!(shape(root), changed);
    bench.back_to(&then).await;
    assert_eq!(shape(root), before);
    let idle = bench.back_to(&then).await;
    assert_eq!((idle.written, idle.removed), (0, 0));
}

#[tokio::test]
async fn what_a_snapshot_could_not_hold_is_never_touched() {
    let bench = Bench::new().await;
    let root = bench.root();
    fs::write(root.join("small"), "small").unwrap();
    fs::create_dir(root.join("node_modules")).unwrap();
    fs::write(root.join("node_modules/x.js"), "x").unwrap();
    fs::write(root.join("large"), vec![7; 2 << 20]).unwrap();
    mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let then = bench.tree().await;
    let why = |name: &str| match then.names.get(Path::new(name)) {
        Some(What::LeftOut { why }) => Some(*why),
        _ => None,
    };
    assert_eq!(
        [why("node_modules"), why("large"), why("pipe"), why("small")],
        [Some(LeftOut::Named), Some(LeftOut::Long), Some(LeftOut::Special), None]
    );
    fs::write(root.join("node_modules/y.js"), "y").unwrap();
    fs::write(root.join("small"), vec![8; 2 << 20]).unwrap();
    fs::write(root.join("new-large"), vec![9; 2 << 20]).unwrap();
    fs::remove_file(root.join("large")).unwrap();
    fs::remove_file(root.join("pipe")).unwrap();
    let back = bench.back_to(&then).await;
    let left: Vec<&str> = back.left.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    assert_eq!(left, ["large", "new-large", "pipe", "small"]);
    assert_eq!((back.written, back.removed), (0, 0));
    assert!(root.join("node_modules/y.js").exists() && root.join("new-large").exists());
}

#[tokio::test]
async fn bounds_leave_out_what_is_too_much() {
    let bench = Bench::new().await;
    for name in ["a", "b", "c"] {
        fs::write(bench.root().join(name), vec![1; 1_000]).unwrap();
    }
    let tight = Bounds {
        bytes: 2_500,
        ..bounds()
    };
    let Taken::Tree { tree, files, bytes } = bench.taken(None, tight).await else {
        panic!("three names are few")
    };
    assert_eq!((files, bytes), (2, 2_000));
    let why = LeftOut::NoRoom;
    assert_eq!(tree.names[Path::new("c")], What::LeftOut { why });
    let few = Bounds { files: 2, ..bounds() };
    assert!(matches!(bench.taken(None, few).await, Taken::TooMany));
}

#[tokio::test]
async fn what_did_not_change_is_not_read_again_and_what_did_is_however_it_hides() {
    let bench = Bench::new().await;
    let root = bench.root();
    fs::write(root.join("file"), "one").unwrap();
    let first = bench.tree().await;
    // The time of the file system has steps; behind one the first is trusted.
    let began = bench.vault().now().unwrap();
    while bench.vault().now().unwrap() == began {
        std::thread::yield_now();
    }
    let first = Tree {
        began: bench.vault().now().unwrap(),
        ..first
    };
    let mut told = first.clone();
    let What::File { sha256, .. } = told.names.get_mut(Path::new("file")).unwrap() else {
        panic!("a file")
    };
    // Were it read, the true hash would come back.
    let (known, false_hash) = (sha256.clone(), "00".repeat(32));
    *sha256 = false_hash.clone();
    let held = bench.directory.path().join("vault/held/00");
    fs::create_dir_all(&held).unwrap();
    fs::write(held.join("00".repeat(31)), "one").unwrap();
    let hash = |tree: &Tree| match &tree.names[Path::new("file")] {
        What::File { sha256, .. } => sha256.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(hash(&bench.tree_after(Some(told.clone())).await), false_hash);
    // The same length and time of modification.
    let time = fs::metadata(root.join("file")).unwrap().modified().unwrap();
    fs::write(root.join("file"), "two").unwrap();
    fs::File::options()
        .write(true)
        .open(root.join("file"))
        .unwrap()
        .set_modified(time)
        .unwrap();
    let second = hash(&bench.tree_after(Some(told.clone())).await);
    assert!(second != false_hash && second != known);
    // What changed since the snapshot began is read in any case.
    let racy = Tree { began: 0, ..told };
    assert_ne!(hash(&bench.tree_after(Some(racy)).await), false_hash);
}

#[tokio::test]
async fn content_that_was_damaged_is_told_and_does_not_take_the_place_of_a_file() {
    let bench = Bench::new().await;
    let root = bench.root();
    fs::write(root.join("a"), "one").unwrap();
    fs::write(root.join("b"), "two").unwrap();
    let then = bench.tree().await;
    let What::File { sha256, .. } = &then.names[Path::new("a")] else {
        panic!("a file")
    };
    let held = bench.directory.path().join("vault/held");
    fs::write(held.join(&sha256[..2]).join(&sha256[2..]), "bad").unwrap();
    fs::write(root.join("a"), "newer").unwrap();
    fs::write(root.join("b"), "newer").unwrap();
    let back = bench.back_to(&then).await;
    assert_eq!(back.left.len(), 1, "{:?}", back.left);
    assert_eq!(fs::read(root.join("a")).unwrap(), b"newer");
    assert_eq!(fs::read(root.join("b")).unwrap(), b"two");
    assert_eq!(shape(root).len(), 2, "nothing is left lying about");
}

/// Somebody swaps a directory for a link that leads out, between the snapshot and
/// the way back.
#[tokio::test]
async fn a_directory_that_became_a_link_leads_nowhere() {
    let bench = Bench::new().await;
    let root = bench.root();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("kept"), "kept").unwrap();
    fs::create_dir(root.join("d")).unwrap();
    fs::write(root.join("d/file"), "mine").unwrap();
    let then = bench.tree().await;
    fs::remove_file(root.join("d/file")).unwrap();
    fs::write(root.join("d/kept"), "new").unwrap();
    let now = bench.tree().await;
    fs::remove_dir_all(root.join("d")).unwrap();
    symlink(outside.path(), root.join("d")).unwrap();
    let back = bench.workspace.put_back(bench.vault(), now, then).await.unwrap();
    assert_eq!(back.left.len(), 2, "{:?}", back.left);
    assert_eq!(fs::read(outside.path().join("kept")).unwrap(), b"kept");
    assert!(!outside.path().join("file").exists());
}

#[tokio::test]
async fn closed_directories_are_opened_for_it_and_closed_again() {
    let bench = Bench::new().await;
    let root = bench.root();
    fs::create_dir_all(root.join("closed/inner")).unwrap();
    fs::write(root.join("closed/inner/file"), "one").unwrap();
    let mode = |mode: u32| Permissions::from_mode(mode);
    fs::set_permissions(root.join("closed/inner"), mode(0o500)).unwrap();
    fs::set_permissions(root.join("closed"), mode(0o500)).unwrap();
    let (before, then) = (shape(root), bench.tree().await);
    fs::set_permissions(root.join("closed"), mode(0o700)).unwrap();
    fs::set_permissions(root.join("closed/inner"), mode(0o700)).unwrap();
    fs::remove_dir_all(root.join("closed/inner")).unwrap();
    fs::set_permissions(root.join("closed"), mode(0o500)).unwrap();
    let back = bench.back_to(&then).await;
    assert_eq!((shape(root), back.left), (before, Vec::new()));
    fs::set_permissions(root.join("closed"), mode(0o700)).unwrap();
    fs::set_permissions(root.join("closed/inner"), mode(0o700)).unwrap();
}

#[tokio::test]
async fn names_are_written_and_read_again() {
    let bench = Bench::new().await;
    fill(bench.root());
    let tree = bench.tree().await;
    let mut text = Vec::new();
    tree.write(&mut text).unwrap();
    assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), tree.names.len() + 1);
    assert_eq!(Tree::read(text.as_slice()).unwrap(), tree);
    assert!(Tree::read(b"{}".as_slice()).is_err());
}

#[tokio::test]
async fn content_that_nobody_names_goes() {
    let bench = Bench::new().await;
    fill(bench.root());
    let tree = bench.tree().await;
    let vault = bench.vault();
    let hashes = || {
        tree.names.values().filter_map(|what| match what {
            What::File { sha256, .. } => Some(sha256.clone()),
            _ => None,
        })
    };
    let kept = hashes().next().unwrap();
    vault.sweep(&[kept.clone()].into()).unwrap();
    assert_eq!(hashes().filter(|hash| vault.has(hash)).collect::<Vec<_>>(), [kept]);
}

#[test]
fn a_plan_takes_inner_names_away_first_and_makes_outer_ones_first() {
    let directory = || What::Directory { mode: 0o755 };
    let tree = |names: &[&str]| Tree {
        began: 0,
        names: names.iter().map(|name| (PathBuf::from(name), directory())).collect(),
    };
    let (now, then) = (tree(&["a", "a/b", "a/b/c"]), tree(&["x", "x/y", "x/y/z"]));
    let plan = plan(&now, &then);
    let removed: Vec<_> = plan.remove.iter().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(removed, ["a/b/c", "a/b", "a"]);
    let put: Vec<_> = plan.put.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    assert_eq!(put, ["x", "x/y", "x/y/z"]);
}
