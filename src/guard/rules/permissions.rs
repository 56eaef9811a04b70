//! Modes, owners, and running what was just made executable.

use super::paths::{locate, without_glob};
use super::{HIGH, MEDIUM, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::Call;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "world-writable",
        key: "world/other-writable permissions",
        description: "lets every user of the machine change files",
        weight: HIGH,
        programs: &["chmod"],
        when: |call, _| {
            modes(call)
                .find(|(text, _)| opens_to_others(text))
                .map(|(_, span)| span)
        },
        hits: &[
            "chmod 777 x",
            "chmod 0777 x",
            "chmod -R 666 .",
            "chmod o+w f",
            "chmod u+x,a+rw f",
            "chmod --recursive 777 /var",
        ],
        misses: &[
            "chmod 755 x",
            "chmod +x x",
            "chmod u+x x",
            "chmod o-w x",
            "chmod --recursive 755 .",
        ],
    },
    Rule {
        id: "setuid",
        key: "setuid/setgid permissions",
        description: "lets a program run with the rights of its owner",
        weight: HIGH,
        programs: &["chmod"],
        when: |call, _| modes(call).find(|(text, _)| sets_id(text)).map(|(_, span)| span),
        hits: &["chmod u+s x", "chmod 4755 x"],
        misses: &["chmod 0755 x", "chmod u+x s"],
    },
    Rule {
        id: "recursive-chmod-system",
        key: "recursive permission change of home or system directory",
        description: "changes the permissions of a directory the system needs",
        weight: HIGH,
        programs: &["chmod", "chown", "chgrp"],
        when: recursive_on_system,
        hits: &["chmod -R 700 /etc", "chown -R bob /usr"],
        misses: &["chmod -R 700 build", "chown bob /usr"],
    },
    Rule {
        id: "recursive-lockout",
        key: "recursive removal of all permissions",
        description: "takes every right on a whole tree away, also from its owner",
        weight: HIGH,
        programs: &["chmod"],
        when: |call, _| {
            call.short('R').or(call.long("recursive", 2))?;
            let mode = call.operands().next()?;
            let locks = !mode.text.is_empty() && mode.text.bytes().all(|digit| digit == b'0')
                || matches!(
                    mode.text.as_str(),
                    "a-rwx" | "ugo-rwx" | "u-rwx" | "a=" | "ugo=" | "-rwx" | "a-rw" | "u="
                );
            locks.then_some(mode.span)
        },
        hits: &["chmod -R 000 .", "chmod -R a-rwx src", "chmod --recursive 0 x"],
        misses: &["chmod 000 x", "chmod -R 700 x", "chmod -R go-w ."],
    },
    Rule {
        id: "access-list",
        key: "access list or attributes of system files",
        description: "opens files to others or makes protected files changeable",
        weight: HIGH,
        programs: &["setfacl", "chattr", "chflags"],
        when: |call, scene| {
            let opens = match call.name.as_str() {
                "setfacl" => call.args.iter().any(|arg| {
                    arg.text.split(',').any(|entry| {
                        let others =
                            entry.starts_with("o:") || entry.starts_with("other:") || entry.starts_with("d:o:");
                        others && entry.rsplit(':').next().is_some_and(|rights| rights.contains('w'))
                    })
                }),
                "chattr" => call
                    .args
                    .iter()
                    .any(|arg| arg.text.starts_with("-i") || arg.text.starts_with("-a") || arg.text.starts_with("+i")),
                _ => call
                    .args
                    .iter()
                    .any(|arg| arg.text.contains("uchg") || arg.text.contains("schg")),
            };
            let system = call.operands().any(|file| {
                let folded = locate(&file.text, scene.setting);
                super::paths::in_any(&folded, &["/etc", "/usr", "/bin", "/boot", "/lib"])
                    || super::floor::is_protected(&folded)
            });
            let acl = call.name == "setfacl"
                && (opens || system && call.has(&["-m", "-R", "-Rm", "--modify", "-b"]).is_some());
            (acl || call.name != "setfacl" && opens && system).then_some(call.span)
        },
        hits: &[
            "setfacl -m o::rwx x",
            "setfacl -R -m u:bob:rwx /etc",
            "chattr -i /etc/passwd",
        ],
        misses: &[
            "setfacl -m u:bob:r x",
            "getfacl x",
            "chattr +i notes.txt",
            "lsattr /etc",
        ],
    },
    Rule {
        id: "setuid-install",
        key: "file installed with setuid or as a device",
        description: "makes a program that runs with the rights of its owner, or a device file",
        weight: HIGH,
        programs: &["install", "mknod"],
        when: |call, _| match call.name.as_str() {
            "mknod" => call
                .operands()
                .nth(1)
                .filter(|kind| matches!(kind.text.as_str(), "b" | "c" | "u"))
                .map(|kind| kind.span),
            _ => call
                .option_texts(&["-m", "--mode"])
                .find(|(mode, _)| sets_id(mode))
                .map(|(_, arg)| arg.span),
        },
        hits: &[
            "install -m 4755 sh /tmp/sh",
            "install --mode=u+s a b",
            "mknod /tmp/d b 8 0",
        ],
        misses: &["install -m 755 a b", "mknod pipe p"],
    },
    Rule {
        id: "recursive-chown-root",
        key: "recursive chown to root",
        description: "gives a whole tree to root",
        weight: HIGH,
        programs: &["chown"],
        when: |call, _| call.short('R').and_then(|_| to_root(call)),
        hits: &["chown -R root .", "chown -R root:root /srv/x"],
        misses: &["chown root file", "chown -R alice:alice ."],
    },
    Rule {
        id: "recursive-chown-root-long",
        key: "recursive chown to root (long flag)",
        description: "gives a whole tree to root",
        weight: HIGH,
        programs: &["chown"],
        when: |call, _| call.long("recursive", 2).and_then(|_| to_root(call)),
        hits: &["chown --recursive root ."],
        misses: &["chown --reference=x root"],
    },
    Rule {
        id: "set-capabilities",
        key: "file capabilities (setcap)",
        description: "gives a program rights of root",
        weight: HIGH,
        programs: &["setcap"],
        when: |call, _| (!call.args.is_empty()).then_some(call.span),
        hits: &["sudo setcap cap_net_raw+ep /usr/bin/x"],
        misses: &["getcap /usr/bin/x"],
    },
    Rule {
        id: "chmod-then-run",
        key: "chmod +x followed by immediate execution",
        description: "makes a file executable and runs it at once",
        weight: MEDIUM,
        programs: &[],
        when: |call, scene| {
            if scene.executable.is_empty() || !call.program.text.contains('/') {
                return None;
            }
            let base = call.program.base_name()?;
            scene.executable.iter().any(|file| file == base).then_some(call.span)
        },
        hits: &["chmod +x script.sh; ./script.sh", "chmod 755 /tmp/a.sh && /tmp/a.sh"],
        misses: &[
            "chmod +x script.sh",
            "chmod +x a.sh; ls ./a.sh",
            "chmod +x a.sh && git add a.sh",
        ],
    },
];

fn modes(call: &Call) -> impl Iterator<Item = (&str, Span)> {
    call.args
        .iter()
        .filter(|arg| !arg.text.starts_with("--"))
        .take(4)
        .flat_map(|arg| arg.text.split(',').map(|part| (part, arg.span)))
        .filter(|(text, _)| is_mode(text))
}

fn is_mode(text: &str) -> bool {
    let octal = (3..=5).contains(&text.len()) && text.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    octal || (text.contains(['+', '=']) && text.bytes().all(|byte| b"ugoarwxXst+=-".contains(&byte)))
}

fn opens_to_others(mode: &str) -> bool {
    if let Some(last) = mode.bytes().last().filter(u8::is_ascii_digit) {
        return (last - b'0') & 2 != 0;
    }
    let Some((who, what)) = mode.split_once(['+', '=']) else {
        return false;
    };
    what.contains('w') && (who.contains('o') || who.contains('a'))
}

fn sets_id(mode: &str) -> bool {
    if mode.bytes().all(|byte| byte.is_ascii_digit()) {
        let trimmed = mode.trim_start_matches('0');
        return trimmed.len() == 4 && trimmed.bytes().next().is_some_and(|digit| (digit - b'0') & 6 != 0);
    }
    mode.split_once(['+', '=']).is_some_and(|(_, what)| what.contains('s'))
}

fn to_root(call: &Call) -> Option<Span> {
    let owner = call.operands().next()?;
    let user = owner.text.split([':', '.']).next().unwrap_or_default();
    matches!(user, "root" | "0").then_some(owner.span)
}

fn recursive_on_system(call: &Call, scene: &Scene<'_>) -> Option<Span> {
    call.short('R').or(call.long("recursive", 2))?;
    let mut operands = call.operands().skip(1);
    operands
        .find(|file| super::floor::is_protected(without_glob(&locate(&file.text, scene.setting))))
        .map(|file| file.span)
}
