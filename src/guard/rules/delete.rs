//! Deleting and moving away.

use super::paths::{Class, classify, fold, locate, without_glob};
use super::{HIGH, MEDIUM, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::Call;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "delete-agent-config",
        key: "delete of Hermes config/env",
        description: "deletes the agent's own configuration or secrets",
        weight: HIGH,
        programs: &["rm", "unlink", "shred"],
        when: agent_config,
        hits: &["rm ~/.hermes/config.yaml", "rm -f $HERMES_HOME/.env"],
        misses: &["rm ~/.hermes/cache.db", "cat ~/.hermes/config.yaml"],
    },
    Rule {
        id: "delete-in-root-path",
        key: "delete in root path",
        description: "deletes files by an absolute path outside the home directory",
        weight: HIGH,
        programs: &["rm", "unlink"],
        when: in_root_path,
        hits: &[
            "rm -rf /tmp/test",
            "rm /var/tmp/cache.bin",
            "sudo r\\m -rf /opt/x",
            "cd /x && rm /y",
        ],
        misses: &[
            "rm file.txt",
            "rm ./x",
            "echo rm /tmp/x",
            "rm -f /tmp/hermes-verify-1.py",
            "docker run --rm -v /a:/b x",
        ],
    },
    Rule {
        id: "recursive-delete",
        key: "recursive delete",
        description: "deletes a directory with everything in it",
        weight: HIGH,
        programs: &["rm"],
        when: recursive,
        hits: &[
            "rm -rf build",
            "rm --recursive x",
            "rm a -rf",
            "X=rm; $X -r y",
            "find . -exec rm -r {} +",
        ],
        misses: &[
            "rm -f x",
            "rm readme.txt",
            "rm -- -r",
            "npm rm left-pad",
            "git rm -r cached",
        ],
    },
    Rule {
        id: "xargs-rm",
        key: "xargs with rm",
        description: "deletes whatever names arrive on the input",
        weight: HIGH,
        programs: &["rm", "unlink", "srm"],
        when: |call, _| call.wrapped_by(&["xargs", "gxargs", "parallel"]).then_some(call.span),
        hits: &["find . -type f | xargs rm", "ls | xargs -0 rm -f"],
        misses: &["ls | xargs -n1 echo rm", "find . | xargs ls"],
    },
    Rule {
        id: "find-exec-rm",
        key: "find -exec/-execdir rm",
        description: "deletes every file the search finds",
        weight: HIGH,
        programs: &["rm", "unlink", "srm"],
        when: |call, _| call.wrapped_by(&["find", "gfind", "fd", "fdfind"]).then_some(call.span),
        hits: &["find . -exec rm {} \\;", "find . -execdir /bin/rm {} +"],
        misses: &["find . -exec grep rm {} +", "find . -name rm"],
    },
    Rule {
        id: "find-delete",
        key: "find -delete",
        description: "deletes every file the search finds",
        weight: HIGH,
        programs: &["find", "gfind"],
        when: |call, _| call.has(&["-delete"]),
        hits: &["find . -name '*.tmp' -delete"],
        misses: &["find . -name delete.txt", "find . -name '*-delete'"],
    },
    Rule {
        id: "shred-file",
        key: "irreversible overwrite of a file (shred)",
        description: "overwrites files so that they cannot be restored",
        weight: MEDIUM,
        programs: &["shred", "srm"],
        when: |call, _| call.operands().next().map(|file| file.span),
        hits: &["shred -u notes.txt"],
        misses: &["shred --help", "grep shred x"],
    },
    Rule {
        id: "move-system-directory",
        key: "move of home or system directory",
        description: "moves a home or system directory away",
        weight: HIGH,
        programs: &["mv"],
        when: moves_directory,
        hits: &["mv ~ /tmp/gone", "mv /etc /old", "mv -f $HOME/ x", "mv /usr/bin /tmp"],
        misses: &["mv a b", "mv ~/x ~/y", "mv x ~"],
    },
];

fn agent_config(call: &Call, scene: &Scene<'_>) -> Option<Span> {
    call.operands()
        .find(|file| classify(&file.text, scene.setting) == Some(Class::Agent))
        .map(|file| file.span)
}

fn in_root_path(call: &Call, scene: &Scene<'_>) -> Option<Span> {
    let operands: Vec<_> = call.operands().collect();
    if let [only] = operands.as_slice()
        && is_verification_file(&only.text)
        && call.args.iter().all(|arg| std::ptr::eq(arg, *only) || arg.text == "-f")
    {
        return None;
    }
    operands
        .into_iter()
        .find(|file| fold(&file.text, scene.setting).starts_with('/'))
        .map(|file| file.span)
}

/// Scratch files that the agent writes to check its own work.
fn is_verification_file(text: &str) -> bool {
    let name = text.strip_prefix("/tmp/").unwrap_or_default();
    (name.starts_with("hermes-verify-") || name.starts_with("hermes-ad-hoc-")) && !name.contains(['/', '*', '?', '['])
}

fn recursive(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let flag = call.short('r').or(call.short('R')).or(call.long("recursive", 1));
    flag.filter(|_| call.operands().next().is_some() || !call.args.is_empty())
        .map(|_| call.span)
}

fn moves_directory(call: &Call, scene: &Scene<'_>) -> Option<Span> {
    let operands: Vec<_> = call.operands().collect();
    let (_, sources) = operands.split_last()?;
    sources
        .iter()
        .find(|source| {
            let folded = locate(&source.text, scene.setting);
            let path = without_glob(&folded);
            super::floor::is_protected(path) || is_system_part(path)
        })
        .map(|source| source.span)
}

/// `/usr/bin` and `/var/lib`, but not what lies deeper.
fn is_system_part(path: &str) -> bool {
    let mut parts = path.trim_start_matches('/').split('/');
    let top = parts.next().unwrap_or_default();
    path.starts_with('/')
        && matches!(top, "usr" | "var" | "etc" | "lib" | "boot")
        && parts.count() == 1
        && !matches!(path, "/var/tmp" | "/var/www" | "/usr/local")
}
