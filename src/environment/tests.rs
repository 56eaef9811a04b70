//! Workspaces and their files, on a real file system.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{EntryKind, EnvironmentError, FileError, IsolationChoice, Limits, LocalSettings, Parents, Workspace};

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("hermes-files-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn settings(&self) -> LocalSettings {
        LocalSettings {
            exec_program: "/proc/self/exe".into(),
            data_dir: self.0.join("data"),
            isolation: IsolationChoice::Auto,
            network: false,
            writable: Vec::new(),
            readable: Vec::new(),
            passthrough: Vec::new(),
            limits: Limits::default(),
        }
    }

    async fn workspace(&self) -> Workspace {
        Workspace::open(&Arc::new(self.settings()), "ten_a", "ses_a")
            .await
            .unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Nested as deep as a command of some seconds can do it.
fn deepened(directory: &Path, depth: usize) {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut inner = open(directory, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        mkdirat(&inner, "d", Mode::RWXU).unwrap();
        inner = openat(&inner, "d", flags, Mode::empty()).unwrap();
    }
}

#[tokio::test]
async fn a_workspace_goes_however_its_commands_left_it() {
    let scratch = Scratch::new();
    let workspace = scratch.workspace().await;
    let outside = scratch.0.join("kept");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "kept").unwrap();
    let root = workspace.root().to_path_buf();
    deepened(&root, 2_000);
    symlink(&outside, root.join("link")).unwrap();
    for number in 0..1_500 {
        fs::write(root.join(format!("f{number}")), "").unwrap();
    }
    fs::create_dir_all(root.join("cache/module")).unwrap();
    fs::write(root.join("cache/module/file"), "").unwrap();
    for closed in ["cache/module", "cache"] {
        fs::set_permissions(root.join(closed), fs::Permissions::from_mode(0o000)).unwrap();
    }
    let local = super::Local::open(scratch.settings()).await;
    for _ in 0..2 {
        local.remove("ten_a", "ses_a").await.unwrap();
        assert!(!root.parent().unwrap().exists());
    }
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "kept");
    assert!(local.remove("ten_a", "..").await.is_err());
}

async fn write(workspace: &Workspace, path: impl AsRef<Path>, text: &str) -> Result<(), FileError> {
    workspace
        .write_atomic(path.as_ref(), text.into(), Parents::Create)
        .await
}

async fn read(workspace: &Workspace, path: impl AsRef<Path>) -> Result<String, FileError> {
    workspace
        .read(path.as_ref(), 1000)
        .await
        .map(|bytes| String::from_utf8(bytes).unwrap())
}

#[tokio::test]
async fn a_session_finds_its_workspace_again_and_no_other() {
    let scratch = Scratch::new();
    let settings = Arc::new(scratch.settings());
    let first = scratch.workspace().await;
    write(&first, "note", "kept").await.unwrap();
    let again = scratch.workspace().await;
    assert_eq!(read(&again, "note").await.unwrap(), "kept");
    assert_eq!(first.identity(), again.identity());
    let other = Workspace::open(&settings, "ten_b", "ses_a").await.unwrap();
    assert!(matches!(read(&other, "note").await, Err(FileError::Missing { .. })));
    assert!(matches!(
        read(&other, first.root().join("note")).await,
        Err(FileError::Outside { .. })
    ));
    for place in [first.root(), first.tmp()] {
        assert_eq!(fs::metadata(place).unwrap().mode() & 0o777, 0o700);
    }
    if rustix::process::geteuid().is_root() {
        assert_ne!(first.identity(), other.identity(), "two sessions share a user");
    }
}

#[tokio::test]
async fn names_that_would_leave_the_data_directory_are_refused() {
    let scratch = Scratch::new();
    let settings = Arc::new(scratch.settings());
    for name in ["", "..", "a/b", "/etc", "a.b", "a\0b", &"x".repeat(129)] {
        let opened = Workspace::open(&settings, "ten_a", name).await;
        assert!(
            matches!(opened, Err(EnvironmentError::Name { .. })),
            "`{name}` was taken"
        );
    }
}

#[tokio::test]
async fn paths_may_be_relative_or_absolute_but_stay_inside() {
    let scratch = Scratch::new();
    let workspace = scratch.workspace().await;
    write(&workspace, "a/b/note", "one").await.unwrap();
    assert_eq!(read(&workspace, "a/b/note").await.unwrap(), "one");
    assert_eq!(read(&workspace, "a/../a/b/note").await.unwrap(), "one");
    assert_eq!(
        read(&workspace, workspace.root().join("a/b/note")).await.unwrap(),
        "one"
    );
    write(&workspace, workspace.tmp().join("t"), "two").await.unwrap();
    assert_eq!(fs::read_to_string(workspace.tmp().join("t")).unwrap(), "two");
    fs::write(scratch.0.join("data/api-key"), "secret").unwrap();
    for outside in [
        scratch.0.join("data/api-key"),
        "/etc/passwd".into(),
        "../../../../api-key".into(),
        "a/../../../../../api-key".into(),
        workspace.root().join("../../../../api-key"),
    ] {
        assert!(
            matches!(read(&workspace, &outside).await, Err(FileError::Outside { .. })),
            "{outside:?}"
        );
        let written = write(&workspace, &outside, "x").await;
        assert!(matches!(written, Err(FileError::Outside { .. })), "{outside:?}");
        assert!(
            matches!(workspace.exists(&outside).await, Err(FileError::Outside { .. })),
            "{outside:?}"
        );
    }
    assert_eq!(fs::read_to_string(scratch.0.join("data/api-key")).unwrap(), "secret");
}

#[tokio::test]
async fn links_are_followed_inside_and_refused_outside() {
    let scratch = Scratch::new();
    let workspace = scratch.workspace().await;
    let root = workspace.root();
    write(&workspace, "real/note", "one").await.unwrap();
    symlink("real/note", root.join("link")).unwrap();
    symlink("real", root.join("directory")).unwrap();
    symlink("/etc", root.join("out")).unwrap();
    symlink("/etc/passwd", root.join("out-file")).unwrap();
    symlink("../../../..", root.join("up")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("/proc/self/root/etc/passwd", root.join("magic")).unwrap();
    assert_eq!(read(&workspace, "link").await.unwrap(), "one");
    assert_eq!(read(&workspace, "directory/note").await.unwrap(), "one");
    for outside in ["out/passwd", "out-file", "up/api-key", "loop", "magic"] {
        assert!(
            matches!(read(&workspace, outside).await, Err(FileError::Outside { .. })),
            "read {outside}"
        );
        let written = write(&workspace, outside, "x").await;
        assert!(
            matches!(written, Err(FileError::Outside { .. })),
            "wrote {outside}: {written:?}"
        );
    }
    // The kernel refuses all absolute links; the last one is judged by its path.
    symlink(root.join("real/note"), root.join("absolute")).unwrap();
    symlink("absolute", root.join("twice")).unwrap();
    for inside in ["absolute", "twice"] {
        write(&workspace, inside, inside).await.unwrap();
        assert_eq!(read(&workspace, inside).await.unwrap(), inside);
    }
    // Writing through a link changes what it points to and keeps the link.
    write(&workspace, "link", "two").await.unwrap();
    assert_eq!(fs::read_to_string(root.join("real/note")).unwrap(), "two");
    assert!(fs::symlink_metadata(root.join("link")).unwrap().is_symlink());
}

#[tokio::test]
async fn writing_replaces_in_one_step_and_keeps_the_mode() {
    let scratch = Scratch::new();
    let workspace = scratch.workspace().await;
    let path = workspace.root().join("run.sh");
    write(&workspace, "run.sh", "one").await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o644);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    let mut before = workspace.open_read(Path::new("run.sh")).await.unwrap();
    write(&workspace, "run.sh", "two").await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o750);
    // Who had it open still reads the old content: nothing was written over.
    let mut text = String::new();
    before.read_to_string(&mut text).unwrap();
    assert_eq!(
        (text.as_str(), fs::read_to_string(&path).unwrap().as_str()),
        ("one", "two")
    );
    let owner = fs::metadata(workspace.root()).unwrap().uid();
    write(&workspace, "new/deep/file", "x").await.unwrap();
    for made in ["run.sh", "new", "new/deep", "new/deep/file"] {
        assert_eq!(
            fs::metadata(workspace.root().join(made)).unwrap().uid(),
            owner,
            "owner of {made}"
        );
    }
    assert_eq!(
        fs::read_dir(workspace.root()).unwrap().count(),
        2,
        "a temporary file is left"
    );
}

#[tokio::test]
async fn what_is_no_ordinary_file_is_told_apart() {
    let scratch = Scratch::new();
    let workspace = scratch.workspace().await;
    fs::create_dir(workspace.root().join("sub")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        workspace.root().join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(matches!(
        read(&workspace, "sub").await,
        Err(FileError::IsDirectory { .. })
    ));
    assert!(matches!(read(&workspace, "pipe").await, Err(FileError::NotFile { .. })));
    assert!(matches!(
        write(&workspace, "sub", "x").await,
        Err(FileError::IsDirectory { .. })
    ));
    assert!(matches!(
        write(&workspace, ".", "x").await,
        Err(FileError::IsDirectory { .. })
    ));
    assert!(matches!(
        write(&workspace, "pipe", "x").await,
        Err(FileError::NotFile { .. })
    ));
    assert!(matches!(read(&workspace, "gone").await, Err(FileError::Missing { .. })));
    let required = workspace
        .write_atomic(Path::new("gone/x"), b"x".into(), Parents::Require)
        .await;
    assert!(matches!(required, Err(FileError::Missing { .. })));
    write(&workspace, "file", "12345").await.unwrap();
    assert!(matches!(
        write(&workspace, "file/x", "x").await,
        Err(FileError::NotDirectory { .. })
    ));
    let long = workspace.read(Path::new("file"), 4).await;
    assert!(matches!(long, Err(FileError::TooLong { max_bytes: 4, .. })));
    assert_eq!(workspace.read(Path::new("file"), 5).await.unwrap(), b"12345");
    assert!(!workspace.exists(Path::new("file/x")).await.unwrap());
    assert!(workspace.exists(Path::new("sub")).await.unwrap());
    let metadata = workspace.metadata(Path::new("file")).await.unwrap();
    assert_eq!(
        (metadata.kind, metadata.bytes, metadata.mode),
        (EntryKind::File, 5, 0o644)
    );
}

#[tokio::test]
async fn a_listing_is_sorted_and_names_the_kinds() {
    let scratch = Scratch::new();
    let workspace = scratch.workspace().await;
    write(&workspace, "b", "x").await.unwrap();
    write(&workspace, "a/x", "x").await.unwrap();
    symlink("b", workspace.root().join("c")).unwrap();
    let entries = workspace.list_dir(Path::new(".")).await.unwrap();
    let entries: Vec<_> = entries.iter().map(|entry| (entry.name.as_str(), entry.kind)).collect();
    assert_eq!(
        entries,
        [
            ("a", EntryKind::Directory),
            ("b", EntryKind::File),
            ("c", EntryKind::Link)
        ]
    );
    assert!(matches!(
        workspace.list_dir(Path::new("b")).await,
        Err(FileError::NotDirectory { .. })
    ));
}

#[tokio::test]
async fn granted_directories_are_open_as_far_as_granted() {
    let scratch = Scratch::new();
    let (shared, library) = (scratch.0.join("shared"), scratch.0.join("library"));
    for path in [&shared, &library] {
        fs::create_dir(path).unwrap();
        fs::write(path.join("note"), "one").unwrap();
    }
    let settings = LocalSettings {
        writable: vec![shared.clone()],
        readable: vec![library.clone()],
        ..scratch.settings()
    };
    let workspace = Workspace::open(&Arc::new(settings), "ten_a", "ses_a").await.unwrap();
    assert_eq!(read(&workspace, library.join("note")).await.unwrap(), "one");
    assert!(matches!(
        write(&workspace, library.join("note"), "x").await,
        Err(FileError::ReadOnly { .. })
    ));
    write(&workspace, shared.join("note"), "two").await.unwrap();
    assert_eq!(fs::read_to_string(shared.join("note")).unwrap(), "two");
    // A link from one root into another is followed by the other's rules.
    symlink(library.join("note"), workspace.root().join("link")).unwrap();
    assert!(matches!(
        write(&workspace, "link", "x").await,
        Err(FileError::ReadOnly { .. })
    ));
    assert_eq!(fs::read_to_string(library.join("note")).unwrap(), "one");
}

#[tokio::test]
async fn a_directory_swapped_for_a_link_during_the_call_leads_nowhere() {
    let scratch = Scratch::new();
    let workspace = scratch.workspace().await;
    let outside = scratch.0.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "secret").unwrap();
    let (place, link, real) = (
        workspace.root().join("place"),
        workspace.root().join("link"),
        workspace.root().join("real"),
    );
    fs::create_dir(&real).unwrap();
    symlink(&outside, &link).unwrap();
    let swapper = tokio::task::spawn_blocking(move || {
        for _ in 0..2000 {
            for (from, to) in [(&real, &place), (&place, &real), (&link, &place), (&place, &link)] {
                fs::rename(from, to).unwrap();
            }
        }
    });
    let (mut reached, mut refused) = (0, 0);
    while !swapper.is_finished() {
        let written = workspace
            .write_atomic(Path::new("place/file"), b"mine".into(), Parents::Require)
            .await;
        match written {
            Ok(()) => reached += 1,
            Err(_) => refused += 1,
        }
        if let Ok(text) = read(&workspace, "place/file").await {
            assert_eq!(text, "mine");
        }
    }
    swapper.await.unwrap();
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "secret");
    assert_eq!(
        fs::read_dir(&outside).unwrap().count(),
        1,
        "something was written outside"
    );
    assert!(reached + refused > 0);
}

#[tokio::test]
async fn an_open_directory_leads_nowhere_else_whatever_takes_its_names() {
    let scratch = Scratch::new();
    let workspace = scratch.workspace().await;
    let root = workspace.root().to_owned();
    let outside = scratch.0.join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("a.txt"), "secret").unwrap();
    fs::create_dir_all(root.join("tree/inner")).unwrap();
    fs::write(root.join("tree/inner/a.txt"), "own").unwrap();
    let tree = workspace.open_directory(Path::new("tree")).await.unwrap();
    let inner = tree.directory(Path::new("inner")).unwrap();
    let listed: Vec<_> = inner.entries().unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(listed, ["a.txt"]);

    // Between the listing and the reading a directory becomes a link.
    fs::rename(root.join("tree/inner"), root.join("moved")).unwrap();
    symlink(&outside, root.join("tree/inner")).unwrap();
    assert!(tree.directory(Path::new("inner")).is_err());
    assert!(tree.file(Path::new("inner/a.txt")).is_err());
    let (mut file, length) = inner.file_named("a.txt".as_ref()).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), length), ("own", 3));

    // And a file becomes a link, a pipe, a directory.
    fs::remove_file(root.join("moved/a.txt")).unwrap();
    symlink(outside.join("a.txt"), root.join("moved/a.txt")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("moved/pipe"), 0o600.into()).unwrap();
    fs::create_dir(root.join("moved/d")).unwrap();
    for name in ["a.txt", "pipe", "d", "..", ".", "../ok", "/etc/passwd", ""] {
        assert!(inner.file_named(name.as_ref()).is_err(), "{name}");
    }
}
