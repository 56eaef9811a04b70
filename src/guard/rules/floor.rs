//! The floor: what is denied in every mode, at command positions only.

use super::paths::{is_block_device, locate, may_match, without_glob};
use super::{Rule, Scene, Weight};
use crate::guard::Span;
use crate::guard::call::{Call, How};
use crate::guard::resolve::Value;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "floor-delete-root",
        key: "recursive delete of root filesystem",
        description: "deletes the root of the file system",
        weight: Weight::Floor,
        programs: REMOVERS,
        when: |call, scene| deleted(call, scene, |path| path == "/"),
        hits: &[
            "rm -rf /",
            "rm -rf /*",
            "rm -rf /./..",
            "sudo -u root rm -rf '/'",
            "rm -rf / --no-preserve-root",
            "rm${IFS}-rf${IFS}/",
            "{rm,-rf,/}",
            "bash -c 'rm -rf /'",
            "eval \"rm -rf /\"",
            "echo cm0gLXJmIC8= | base64 -d | sh",
            "npx rimraf /",
            "env -C / rm -rf .",
            "xargs -I{} rm -rf {} <<< /",
            "$(which rm) -rf /",
        ],
        misses: &[
            "rm -rf /tmp",
            "rm -rf /.ssh",
            "rm -rf /...",
            "git commit -m 'rm -rf /'",
            "echo rm -rf /",
            "cat <<EOF\nrm -rf /\nEOF",
        ],
    },
    Rule {
        id: "floor-delete-home",
        key: "recursive delete of home directory",
        description: "deletes the whole home directory",
        weight: Weight::Floor,
        programs: REMOVERS,
        when: |call, scene| deleted(call, scene, |path| path == "~"),
        hits: &[
            "rm -rf ~",
            "rm -rf \"$HOME\"/",
            "rm -rf ~/*",
            "rm -rf /home/alice",
            "rm -rf ~alice",
        ],
        misses: &["rm -rf ~/project", "rm -rf $HOME/.cache", "rm -rf ~bob"],
    },
    Rule {
        id: "floor-delete-system-directory",
        key: "recursive delete of system directory",
        description: "deletes a directory the system needs",
        weight: Weight::Floor,
        programs: REMOVERS,
        when: |call, scene| deleted(call, scene, is_protected),
        hits: &["rm -rf /etc", "rm -rf /usr/*", "rm -rf /opt", "(cd x; rm -r /home)"],
        misses: &["rm -rf /var/log/x", "rm -rf /usr/local/x"],
    },
    Rule {
        id: "floor-find-delete-root",
        key: "find delete of root or home directory",
        description: "deletes everything under the root or the home directory",
        weight: Weight::Floor,
        programs: &["find", "gfind"],
        when: find_deletes,
        hits: &["find / -delete", "find ~ -exec rm -rf {} +"],
        misses: &["find . -delete", "find / -name x", "find / -name '*.tmp' -delete"],
    },
    Rule {
        id: "floor-mirror-root",
        key: "mirror over root, home or system directory",
        description: "deletes what a copy does not have from the root, the home or a system directory",
        weight: Weight::Floor,
        programs: &["rsync"],
        when: |call, scene| {
            super::removal::mirrors(call, scene)?;
            let target = call.operands().last()?;
            let folded = locate(&target.text, scene.setting);
            (call.operands().count() > 1 && is_protected(without_glob(&folded))).then_some(target.span)
        },
        hits: &[
            "rsync -a --delete empty/ /",
            "rsync -av --delete-before /tmp/empty/ ~/",
            "rsync -r --delete x/ /etc",
        ],
        misses: &["rsync -a --delete a/ b/", "rsync -a x/ /", "rsync -an --delete x/ /"],
    },
    Rule {
        id: "floor-mkfs",
        key: "format filesystem (mkfs)",
        description: "formats a file system",
        weight: Weight::Floor,
        programs: &["mkfs", "mke2fs", "newfs"],
        when: |call, _| {
            (!call.args.is_empty() && call.has(&["--help", "-V", "--version"]).is_none()).then_some(call.span)
        },
        hits: &[
            "mkfs.ext4 /dev/sda1",
            "sudo mkfs -t xfs /dev/vdb",
            "mkfs${IFS}.ext4 /dev/sda",
        ],
        misses: &[
            "man mkfs",
            "echo mkfs",
            "apt install mkfsutils",
            "grep -n mkfs x",
            "mkfs.ext4 --help",
        ],
    },
    Rule {
        id: "floor-dd-device",
        key: "dd to raw block device",
        description: "overwrites a raw disk",
        weight: Weight::Floor,
        programs: &["dd"],
        when: |call, _| {
            call.args
                .iter()
                .find(|arg| arg.text.strip_prefix("of=").is_some_and(is_block_device))
                .map(|arg| arg.span)
        },
        hits: &["dd if=/dev/zero of=/dev/sda bs=1M", "sudo dd of=/dev/disk2 if=x"],
        misses: &["dd if=x of=./disk.img", "echo dd of=/dev/sda"],
    },
    Rule {
        id: "floor-redirect-device",
        key: "redirect to raw block device",
        description: "overwrites a raw disk",
        weight: Weight::Floor,
        programs: &[],
        when: |call, _| device(call, How::Redirect),
        hits: &["cat x > /dev/sdb", "echo 1 >/dev/nvme0n1p1"],
        misses: &[
            "echo x > /dev/null",
            "ls /dev/sda",
            "echo 'see > /dev/sda'",
            "echo hi > /dev/tty",
        ],
    },
    Rule {
        id: "floor-copy-to-device",
        key: "copy to raw block device",
        description: "overwrites a raw disk",
        weight: Weight::Floor,
        programs: &["cp", "mv", "install", "rsync", "truncate"],
        when: |call, _| device(call, How::Copy).or(device(call, How::Output)),
        hits: &["cp /dev/zero /dev/sda"],
        misses: &["cp /dev/sda backup.img", "cp a b"],
    },
    Rule {
        id: "floor-wipe-device",
        key: "wipe of raw block device",
        description: "wipes a disk or its partition table",
        weight: Weight::Floor,
        programs: &[
            "wipefs",
            "blkdiscard",
            "shred",
            "sgdisk",
            "hdparm",
            "nvme",
            "scrub",
            "wipe",
            "badblocks",
            "nwipe",
            "dcfldd",
            "ddrescue",
        ],
        when: wipes,
        hits: &["wipefs -a /dev/sda", "shred -n1 /dev/nvme0n1", "blkdiscard /dev/sdb"],
        misses: &["wipefs /dev/sda", "hdparm -I /dev/sda", "shred notes.txt"],
    },
    Rule {
        id: "floor-kill-all",
        key: "kill all processes",
        description: "sends a signal to every process",
        weight: Weight::Floor,
        programs: &["kill"],
        when: |call, _| call.args.last().filter(|arg| arg.text == "-1").map(|arg| arg.span),
        hits: &["kill -9 -1", "kill -1", "builtin kill -TERM -1"],
        misses: &["kill -9 1234", "kill -1 1234", "echo kill -1"],
    },
    Rule {
        id: "floor-kill-all-processes",
        key: "kill all processes (killall5)",
        description: "sends a signal to every process",
        weight: Weight::Floor,
        programs: &["killall5"],
        when: |call, _| Some(call.span),
        hits: &["killall5 -9"],
        misses: &["echo killall5"],
    },
    Rule {
        id: "floor-sysrq",
        key: "kernel command via sysrq-trigger",
        description: "reboots or halts the kernel at once",
        weight: Weight::Floor,
        programs: &[],
        when: |call, _| {
            let mut writes = call.writes.iter().filter(|write| write.how != How::Delete);
            writes
                .find(|write| write.path == "/proc/sysrq-trigger")
                .map(|write| write.span)
        },
        hits: &["echo b > /proc/sysrq-trigger", "echo o | sudo tee /proc/sysrq-trigger"],
        misses: &["cat /proc/sysrq-trigger"],
    },
    Rule {
        id: "floor-shutdown",
        key: "system shutdown/reboot",
        description: "stops or restarts the machine",
        weight: Weight::Floor,
        programs: &["shutdown", "reboot", "halt", "poweroff"],
        when: |call, _| {
            let inert = call.has(&["-c", "--help", "--version", "--show"]).is_some();
            (is_system_program(call) && !inert).then_some(call.span)
        },
        hits: &[
            "reboot",
            "sudo shutdown -h now",
            "nohup reboot",
            "ls; (halt)",
            "`poweroff`",
            "echo \"$(reboot)\"",
        ],
        misses: &[
            "echo reboot",
            "grep shutdown log",
            "last reboot",
            "./shutdown.sh",
            "./reboot",
            "ls # reboot",
            "shutdown -c",
        ],
    },
    Rule {
        id: "floor-init",
        key: "init 0/6 (shutdown/reboot)",
        description: "stops or restarts the machine",
        weight: Weight::Floor,
        programs: &["init"],
        when: runlevel,
        hits: &["init 0", "sudo init 6"],
        misses: &["git init", "init 3", "npm init"],
    },
    Rule {
        id: "floor-telinit",
        key: "telinit 0/6 (shutdown/reboot)",
        description: "stops or restarts the machine",
        weight: Weight::Floor,
        programs: &["telinit"],
        when: runlevel,
        hits: &["telinit 6"],
        misses: &["telinit 3"],
    },
    Rule {
        id: "floor-systemctl-power",
        key: "systemctl poweroff/reboot",
        description: "stops or restarts the machine",
        weight: Weight::Floor,
        programs: &["systemctl", "loginctl"],
        when: |call, _| {
            let verb = call.operands().next()?;
            let power = ["poweroff", "reboot", "halt", "kexec", "soft-reboot"];
            power.contains(&verb.text.as_str()).then_some(verb.span)
        },
        hits: &["systemctl reboot", "systemctl --user reboot", "systemctl kexec"],
        misses: &["systemctl status reboot", "systemctl start nginx"],
    },
    Rule {
        id: "sudo-password-guess",
        key: "sudo password guessing via stdin (sudo -S)",
        description: "feeds a guessed password to sudo: no password is configured",
        weight: Weight::Floor,
        programs: &["sudo"],
        when: guesses,
        hits: &[
            "sudo -S id",
            "echo hunter2 | sudo -S whoami",
            "ls; sudo -s",
            "sudo -S -u bob ls",
        ],
        misses: &[
            "sudo -n -S id",
            "sudo whoami",
            "some_tool -S thing",
            "echo 'sudo -S id'",
        ],
    },
];

/// Programs that delete what they are given with everything in it.
const REMOVERS: &[&str] = &[
    "rm",
    "rimraf",
    "srm",
    "wipe",
    "del-cli",
    "remove_directory",
    "trash",
    "trash-put",
    "grm",
];

/// A function that starts itself twice: found by the tracer, not by a name.
pub(crate) const FORK_BOMB: Rule = Rule {
    id: "floor-fork-bomb",
    key: "fork bomb",
    description: "starts itself without end until the machine stands still",
    weight: Weight::Floor,
    programs: &[],
    when: |_, _| None,
    hits: &[
        ":(){ :|:& };:",
        "bomb() { bomb | bomb & }; bomb",
        ": () { : | : & } ; :",
    ],
    misses: &["f() { g | h & }; f", "echo ':(){ :|:& };:'"],
};

const PROTECTED: &[&str] = &[
    "/home",
    "/root",
    "/etc",
    "/usr",
    "/var",
    "/bin",
    "/sbin",
    "/boot",
    "/lib",
    "/lib64",
    "/lib32",
    "/opt",
    "/srv",
    "/dev",
    "/proc",
    "/sys",
    "/Users",
    "/System",
    "/Library",
    "/Applications",
    "/private",
    "/private/etc",
    "/private/var",
];

/// The root, the home, or a directory the system needs.
pub(super) fn is_protected(path: &str) -> bool {
    matches!(path, "/" | "~") || PROTECTED.contains(&path)
}

fn deleted(call: &Call, scene: &Scene<'_>, which: fn(&str) -> bool) -> Option<Span> {
    let names = |file: &Value| {
        let folded = locate(&file.text, scene.setting);
        let path = without_glob(&folded);
        let pattern = path.contains(['*', '?', '[']);
        which(path)
            || which(&path.to_ascii_lowercase())
            || (pattern && PROTECTED.iter().any(|folder| which(folder) && may_match(path, folder)))
    };
    call.operands().find(|file| names(file)).map(|file| file.span)
}

/// The guess is `sudo -S` at once; behind other options it is asked.
fn guesses(call: &Call, scene: &Scene<'_>) -> Option<Span> {
    let first = call
        .args
        .first()
        .filter(|arg| matches!(arg.text.as_str(), "-S" | "-s"))?;
    (!scene.setting.sudo_password).then_some(first.span)
}

/// Deletes without a filter: a search that names what it deletes is asked.
fn find_deletes(call: &Call, scene: &Scene<'_>) -> Option<Span> {
    let deletes = call.has(&["-delete"]).or_else(|| {
        let at = call
            .args
            .iter()
            .position(|arg| matches!(arg.text.as_str(), "-exec" | "-execdir"))?;
        call.args
            .get(at + 1)
            .filter(|program| program.base_name() == Some("rm"))
            .map(|program| program.span)
    })?;
    let filters = call.args.iter().any(|arg| {
        [
            "-name", "-iname", "-path", "-regex", "-mtime", "-newer", "-size", "-user", "-empty", "-ipath", "-mmin",
            "-atime",
        ]
        .contains(&arg.text.as_str())
    });
    let mut starts = call
        .args
        .iter()
        .take_while(|arg| !arg.text.starts_with(['-', '(', '!']));
    let everything = starts.any(|path| matches!(without_glob(&locate(&path.text, scene.setting)), "/" | "~"));
    (everything && !filters).then_some(deletes)
}

/// `./reboot` is somebody's script, `/sbin/reboot` is not.
fn is_system_program(call: &Call) -> bool {
    let path = call.program.text.as_str();
    !path.contains('/') || path.contains("bin/")
}

fn device(call: &Call, how: How) -> Option<Span> {
    call.writes
        .iter()
        .find(|write| write.how == how && is_block_device(&write.path))
        .map(|write| write.span)
}

fn wipes(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let target = call
        .operands()
        .find(|file| is_block_device(file.text.strip_prefix("of=").unwrap_or(&file.text)))?;
    let destroys = match call.name.as_str() {
        "wipefs" => call.short('a').or(call.long("all", 1)).is_some(),
        "sgdisk" => call
            .short('Z')
            .or(call.short('z'))
            .or(call.long("zap-all", 3))
            .is_some(),
        "badblocks" => call.short('w').is_some(),
        "ddrescue" => call.operands().nth(1).is_some_and(|to| is_block_device(&to.text)),
        "hdparm" => call.args.iter().any(|arg| arg.text.starts_with("--security-erase")),
        "nvme" => call
            .args
            .first()
            .is_some_and(|verb| matches!(verb.text.as_str(), "format" | "sanitize")),
        _ => true,
    };
    destroys.then_some(target.span)
}

fn runlevel(call: &Call, _: &Scene<'_>) -> Option<Span> {
    call.operands()
        .next()
        .filter(|level| matches!(level.text.as_str(), "0" | "6"))
        .map(|level| level.span)
}
