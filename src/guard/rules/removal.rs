//! Loss of files by other means than `rm`: delete tools, mirrors, moves into
//! nothing, endless writes, traces that are wiped.

use super::paths::{in_home, locate, without_glob};
use super::{HIGH, MEDIUM, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::{Call, How};
use crate::guard::resolve::Value;

const SEARCHES: &[&str] = &["find", "gfind", "fd", "fdfind", "xargs", "gxargs", "parallel"];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "delete-tool",
        key: "delete by a delete tool",
        description: "deletes files and directories with everything in them",
        weight: HIGH,
        programs: &[
            "rimraf",
            "del",
            "del-cli",
            "del-force",
            "trash",
            "trash-put",
            "trash-cli",
            "rmtrash",
            "trash-empty",
            "remove_directory",
            "wipe",
            "scrub",
            "sfill",
            "shred-dir",
            "nwipe",
            "bleachbit",
            "fdupes",
            "rmlint",
        ],
        when: |call, _| {
            let deletes = match call.name.as_str() {
                "fdupes" => call.short('d').is_some() || call.long("delete", 3).is_some(),
                "trash-empty" => true,
                _ => call.operands().next().is_some() || call.has(&["--clean"]).is_some(),
            };
            (deletes && call.has(&["--help", "--version", "--dry-run"]).is_none()).then_some(call.span)
        },
        hits: &[
            "npx rimraf dist",
            "pnpm dlx rimraf@5 src",
            "npm exec -- del-cli '**'",
            "trash-empty",
            "wipe -rf docs",
            "cmake -E remove_directory build",
        ],
        misses: &["npx rimraf --help", "npm install rimraf", "fdupes -r ."],
    },
    Rule {
        id: "desktop-trash",
        key: "home or system directory moved to the trash",
        description: "moves a home or system directory away",
        weight: HIGH,
        programs: &["gio", "kioclient", "gvfs-trash"],
        when: |call, scene| {
            let mut operands = call.operands();
            let trashes = operands
                .next()
                .is_some_and(|verb| matches!(verb.text.as_str(), "trash" | "remove" | "rename" | "move"));
            operands
                .find(|file| trashes && is_protected(file, scene))
                .map(|file| file.span)
        },
        hits: &["gio trash ~/"],
        misses: &["gio trash x", "gio open ~"],
    },
    Rule {
        id: "rmdir-system",
        key: "removal of home or system directory (rmdir)",
        description: "removes a directory the system or the user needs",
        weight: HIGH,
        programs: &["rmdir"],
        when: |call, scene| {
            let parents = call.short('p').or(call.long("parents", 2)).is_some();
            call.operands()
                .find(|file| {
                    is_protected(file, scene) || (parents && locate(&file.text, scene.setting).starts_with('/'))
                })
                .map(|file| file.span)
        },
        hits: &["rmdir /", "rmdir ~", "rmdir -p /srv/data/x", "busybox rmdir /home"],
        misses: &[
            "rmdir build",
            "rmdir -p a/b/c",
            "find . -type d -empty -exec rmdir {} +",
        ],
    },
    Rule {
        id: "mirror-delete",
        key: "mirror that deletes (rsync --delete)",
        description: "deletes files that the source of a copy does not have, or the source itself",
        weight: HIGH,
        programs: &["rsync", "rclone", "lftp", "robocopy", "unison"],
        when: mirrors,
        hits: &[
            "rsync -a --delete empty/ target/",
            "rsync -av --del a/ h:b/",
            "rsync -a --remove-source-files a/ b/",
            "rclone purge r:x",
            "rclone sync a r:x",
        ],
        misses: &[
            "rsync -a a/ b/",
            "rsync -an --delete a/ b/",
            "rclone copy a r:x",
            "rclone ls r:",
        ],
    },
    Rule {
        id: "move-to-null",
        key: "move into /dev/null",
        description: "moves files into nothing",
        weight: HIGH,
        programs: &["mv"],
        when: |call, _| {
            call.operands()
                .last()
                .filter(|last| last.text == "/dev/null")
                .map(|last| last.span)
        },
        hits: &["mv src /dev/null", "find . -name '*.rs' -exec mv {} /dev/null \\;"],
        misses: &["mv a b", "ls > /dev/null"],
    },
    Rule {
        id: "empty-each-file",
        key: "every file found is emptied",
        description: "empties or overwrites every file that a search finds",
        weight: HIGH,
        programs: &["truncate", "shred", "cp", "dd"],
        when: |call, _| {
            let empties = call.name != "cp" || call.operands().next().is_some_and(|file| file.text == "/dev/null");
            (empties && call.wrapped_by(SEARCHES)).then_some(call.span)
        },
        hits: &[
            "find . -type f -exec truncate -s 0 {} +",
            "find . -exec cp /dev/null {} \\;",
        ],
        misses: &["truncate -s 0 out.log", "find . -name a -exec cp {} /tmp/b \\;"],
    },
    Rule {
        id: "endless-write",
        key: "file written without end",
        description: "fills the disk: what is written never ends by itself",
        weight: HIGH,
        programs: &["yes", "cat"],
        when: |call, _| {
            let endless = |file: &Value| matches!(file.text.as_str(), "/dev/zero" | "/dev/urandom" | "/dev/random");
            let source = call.name == "yes" || call.operands().any(endless);
            let mut writes = call.writes.iter().filter(|write| write.how == How::Redirect);
            writes
                .find(|write| source && !write.path.starts_with("/dev/"))
                .map(|write| write.span)
        },
        hits: &["yes > f", "cat /dev/zero > ballast", "cat /dev/urandom >> x"],
        misses: &[
            "yes | head",
            "yes > /dev/null",
            "cat a > b",
            "cat /dev/urandom | head -c 9 > k",
        ],
    },
    Rule {
        id: "trace-wiping",
        key: "wiping of shell history or logs",
        description: "removes the traces of what was done on this machine",
        weight: MEDIUM,
        programs: &[],
        when: wipes_traces,
        hits: &[
            "history -c",
            "ln -sf /dev/null ~/.bash_history",
            "cat /dev/null > ~/.zsh_history",
            "rm ~/.bash_history",
            "unset HISTFILE",
            "export HISTFILE=/dev/null",
            "> /var/log/auth.log",
            "journalctl --vacuum-time=1s",
            "auditctl -D",
        ],
        misses: &[
            "history",
            "history | tail",
            "journalctl -u nginx",
            "cat ~/.bash_history",
            "export HISTSIZE=10000",
            "tail /var/log/auth.log",
        ],
    },
    Rule {
        id: "volume-destroy",
        key: "destroy of a volume, machine or snapshot",
        description: "destroys virtual machines, volumes or snapshots with their data",
        weight: HIGH,
        programs: &[
            "virsh",
            "qm",
            "pct",
            "multipass",
            "lxc",
            "incus",
            "limactl",
            "vboxmanage",
            "zfs",
            "btrfs",
            "mdadm",
            "dmsetup",
            "ceph",
            "rbd",
            "gluster",
            "vagrant",
            "govc",
            "prlctl",
            "colima",
            "vgremove",
            "pvremove",
            "lvreduce",
            "thin_delete",
            "etcdctl",
            "consul",
            "vault",
            "nomad",
        ],
        when: destroys_volume,
        hits: &[
            "virsh undefine vm --remove-all-storage",
            "zfs destroy -r tank/home",
            "zfs rollback -r tank/data@x",
            "btrfs subvolume delete x",
            "vagrant destroy -f",
            "lxc delete c --force",
            "mdadm --zero-superblock /dev/sdb1",
            "multipass delete --purge vm",
            "etcdctl del / --prefix",
            "vault kv destroy -versions=1 secret/x",
        ],
        misses: &[
            "virsh list --all",
            "zfs list",
            "vagrant up",
            "lxc list",
            "btrfs filesystem df /",
            "vault status",
            "etcdctl get x",
        ],
    },
];

fn is_protected(file: &Value, scene: &Scene<'_>) -> bool {
    super::floor::is_protected(without_glob(&locate(&file.text, scene.setting)))
}

pub(super) fn mirrors(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let word = |words: &[&str]| {
        call.args
            .iter()
            .find(|arg| words.contains(&arg.text.as_str()))
            .map(|arg| arg.span)
    };
    let dry = call.has(&["--dry-run", "-n"]).is_some();
    let span = match call.name.as_str() {
        "rsync" => {
            let dry = dry || call.short('n').is_some();
            let deletes = |text: &str| {
                text.starts_with("--del") && !text.starts_with("--delay") || text == "--remove-source-files"
            };
            let found = call.options().find(|arg| deletes(&arg.text)).map(|arg| arg.span);
            return found.filter(|_| !dry);
        }
        "rclone" => {
            let verb = call.operands().next()?;
            [
                "sync",
                "purge",
                "delete",
                "deletefile",
                "cleanup",
                "move",
                "rmdirs",
                "bisync",
            ]
            .contains(&verb.text.as_str())
            .then_some(verb.span)
        }
        "robocopy" => word(&["/MIR", "/PURGE", "/mir", "/purge"]),
        "lftp" => call
            .args
            .iter()
            .find(|arg| arg.text.contains("mirror") && arg.text.contains("delete") || arg.text.contains("rm -r"))
            .map(|arg| arg.span),
        _ => None,
    };
    span.filter(|_| !dry)
}

const HISTORIES: &[&str] = &[
    ".bash_history",
    ".zsh_history",
    ".histfile",
    ".local/share/fish/fish_history",
    ".python_history",
];

fn wipes_traces(call: &Call, scene: &Scene<'_>) -> Option<Span> {
    let is_trace = |path: &str| {
        let folded = locate(path, scene.setting);
        let log = [
            "auth.log",
            "secure",
            "wtmp",
            "btmp",
            "lastlog",
            "syslog",
            "messages",
            "audit/audit.log",
        ]
        .iter()
        .any(|name| folded.strip_prefix("/var/log/") == Some(name));
        log || in_home(&folded).is_some_and(|inside| HISTORIES.contains(&inside))
    };
    if let Some(write) = call.writes.iter().find(|write| is_trace(&write.path)) {
        return Some(write.span);
    }
    let silenced = |name: &str, value: &str| {
        (name == "HISTFILE" && matches!(value, "" | "/dev/null")) || (name == "HISTSIZE" && value == "0")
    };
    if let Some((_, value)) = call.assigned.iter().find(|(name, value)| silenced(name, &value.text)) {
        return Some(value.span);
    }
    let operand = |text: &str| call.operands().find(|arg| arg.text == text).map(|arg| arg.span);
    match call.name.as_str() {
        "history" => call.has(&["-c", "-cw", "-d"]),
        "unset" => operand("HISTFILE"),
        "export" => {
            let is_silenced = |text: &str| text.split_once('=').is_some_and(|(name, value)| silenced(name, value));
            call.args.iter().find(|arg| is_silenced(&arg.text)).map(|arg| arg.span)
        }
        "set" => call.has(&["+o"]).and_then(|_| operand("history")),
        "journalctl" => {
            let mut options = call.options();
            options.find(|arg| arg.text.starts_with("--vacuum")).map(|arg| arg.span)
        }
        "auditctl" => {
            let off = call.option_text(&["-e"]).filter(|(text, _)| *text == "0");
            call.has(&["-D"]).or(off.map(|(_, arg)| arg.span))
        }
        "wevtutil" => operand("cl").or_else(|| operand("clear-log")),
        _ => None,
    }
}

fn destroys_volume(call: &Call, _: &Scene<'_>) -> Option<Span> {
    const VERBS: &[&str] = &[
        "destroy",
        "undefine",
        "delete",
        "del",
        "rm",
        "purge",
        "unregistervm",
        "vol-delete",
        "snapshot-delete",
        "pool-delete",
        "pool-destroy",
        "remove",
        "wipe_table",
        "--zero-superblock",
        "--stop",
        "--remove",
        "remove-all",
        "rollback",
        "system",
        "vm.destroy",
        "datastore.rm",
        "stop",
    ];
    if call.is(&["vgremove", "pvremove", "lvreduce", "thin_delete"]) {
        return call.operands().next().map(|name| name.span);
    }
    let stops = call.name == "nomad" || call.name == "mdadm";
    call.args
        .iter()
        .take(5)
        .find(|arg| {
            let verb = arg.text.as_str();
            VERBS.contains(&verb) && (verb != "stop" || stops) && verb != "system"
        })
        .map(|arg| arg.span)
}
