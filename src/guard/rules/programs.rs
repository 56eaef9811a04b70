//! Everyday tools that are made to run a program by an option.

use super::{HIGH, MEDIUM, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::{Call, abbreviates};
use crate::guard::unwrap::PROGRAM_OPTIONS;

const fn row(
    id: &'static str,
    key: &'static str,
    programs: &'static [&'static str],
    when: fn(&Call, &Scene<'_>) -> Option<Span>,
    hits: &'static [&'static str],
    misses: &'static [&'static str],
) -> Rule {
    Rule {
        id,
        key,
        description: "makes an everyday tool run another program",
        weight: MEDIUM,
        programs,
        when,
        hits,
        misses,
    }
}

pub(super) const RULES: &[Rule] = &[
    row(
        "sort-compress-program",
        "arbitrary program execution via sort --compress-program",
        &["sort"],
        |call, _| option(call, "--compress-program"),
        &[
            "sort --compress-program=sh f",
            "sort --compress-program gzip f",
            "sort --compress-p=sh f",
        ],
        &["sort -k2 f"],
    ),
    row(
        "rg-pre",
        "arbitrary program execution via rg --pre",
        &["rg"],
        |call, _| option(call, "--pre"),
        &["rg --pre cat foo", "rg --pre=./x y"],
        &["rg foo --pretty", "rg -e --pre f"],
    ),
    row(
        "rg-hostname-bin",
        "arbitrary program execution via rg --hostname-bin",
        &["rg"],
        |call, _| option(call, "--hostname-bin"),
        &["rg --hostname-bin ./x foo"],
        &["rg hostname"],
    ),
    row(
        "ag-pager",
        "arbitrary program execution via ag --pager",
        &["ag"],
        |call, _| option(call, "--pager"),
        &["ag --pager less foo"],
        &["ag foo"],
    ),
    row(
        "man-pager",
        "arbitrary program execution via man --pager",
        &["man"],
        |call, _| option(call, "--pager"),
        &["man --pager=cat ls"],
        &["man ls"],
    ),
    row(
        "man-html",
        "arbitrary program execution via man --html",
        &["man"],
        |call, _| option(call, "--html"),
        &["man --html=firefox ls"],
        &["man sudo"],
    ),
    row(
        "man-p",
        "arbitrary program execution via man -P",
        &["man"],
        |call, _| option(call, "-P"),
        &["man -P cat ls"],
        &["man -k x"],
    ),
    row(
        "man-h",
        "arbitrary program execution via man -H",
        &["man"],
        |call, _| option(call, "-H"),
        &["man -Hfirefox ls"],
        &["man 3 printf"],
    ),
    Rule {
        id: "tar-program",
        key: "arbitrary program execution via tar option",
        description: "makes tar run another program",
        weight: HIGH,
        programs: &["tar", "gtar", "bsdtar"],
        when: tar_program,
        hits: &[
            "tar -cf /dev/null README --checkpoint=1 --checkpoint-action=exec=sh",
            "tar xf a --to-command=./x",
        ],
        misses: &[
            "tar xzf a.tgz",
            "tar -I zstd -xf a",
            "tar --checkpoint=1 --checkpoint-action=dot -cf a b",
        ],
    },
    Rule {
        id: "remote-shell-program",
        key: "arbitrary program execution via remote shell option",
        description: "makes a copy tool run another program",
        weight: MEDIUM,
        programs: &["rsync", "scp", "sftp"],
        when: |call, _| {
            let names: &[&str] = if call.name == "rsync" {
                &["-e", "--rsh"]
            } else {
                &["-S"]
            };
            call.option_texts(names)
                .find(|(text, _)| text.split_whitespace().next() != Some("ssh"))
                .map(|(_, arg)| arg.span)
        },
        hits: &["rsync -e 'sh -c id' a h:b", "scp -S ./x a h:"],
        misses: &["rsync -a a/ b/", "rsync -e ssh a h:b", "rsync -e 'ssh -p 22' a h:b"],
    },
    Rule {
        id: "ssh-proxy-command",
        key: "arbitrary program execution via ssh option",
        description: "makes ssh run a local program",
        weight: MEDIUM,
        programs: &["ssh", "scp", "sftp"],
        when: |call, _| {
            let runs = |text: &str| {
                let lower = text.to_lowercase();
                (lower.starts_with("proxycommand") && !lower.contains("=ssh ") && !lower.ends_with("=none"))
                    || lower.starts_with("localcommand")
            };
            call.option_texts(&["-o"])
                .find(|(text, _)| runs(text))
                .map(|(_, arg)| arg.span)
        },
        hits: &["ssh -o ProxyCommand='sh -c id' h", "ssh -oProxyCommand=./x h"],
        misses: &["ssh host uptime", "ssh -o StrictHostKeyChecking=no h"],
    },
    Rule {
        id: "tool-program-option",
        key: "arbitrary program execution via tool option",
        description: "makes an everyday tool run another program or load its code",
        weight: MEDIUM,
        programs: HOOKED,
        when: |call, _| {
            let (_, options) = HOOKS.iter().find(|(names, _)| names.contains(&call.name.as_str()))?;
            let mut named = call.option_texts(options);
            named
                .find(|(text, arg)| is_program(call, text, &arg.text))
                .map(|(_, arg)| arg.span)
        },
        hits: &[
            "curl -K evil.conf http://x",
            "tcpdump -z ./x -w f -G 1",
            "nmap --script=/tmp/x.nse h",
            "tshark -X lua_script:/tmp/x.lua",
            "wget --use-askpass=/tmp/x http://h",
            "aria2c --on-download-complete=./x http://h",
            "yt-dlp --exec 'id' u",
            "ssh -F /tmp/x.conf h",
            "sftp -D /tmp/x h",
            "just --shell /tmp/x build",
        ],
        misses: &[
            "curl http://x",
            "tcpdump -i eth0",
            "nmap --script=default h",
            "ssh -F ~/.ssh/config h",
            "wget http://h",
            "just build",
        ],
    },
    Rule {
        id: "builtin-replaced",
        key: "shell command replaced by another program",
        description: "makes a command of this shell mean another program",
        weight: HIGH,
        programs: &["hash", "enable"],
        when: |call, _| match call.name.as_str() {
            "hash" => call.short('p'),
            _ => call.short('f').filter(|_| call.operands().count() > 1),
        },
        hits: &["hash -p /tmp/evil ls", "enable -f ./x.so x"],
        misses: &["hash -r", "hash ls", "enable -n echo"],
    },
    Rule {
        id: "make-shell",
        key: "arbitrary program execution via make SHELL",
        description: "makes the build run another program as its shell",
        weight: MEDIUM,
        programs: &["make", "gmake"],
        when: |call, _| {
            call.args
                .iter()
                .find(|arg| {
                    arg.text.starts_with("SHELL=") && arg.text.contains('/') && !arg.text.starts_with("SHELL=/bin/")
                })
                .map(|arg| arg.span)
        },
        hits: &["make SHELL=/tmp/x"],
        misses: &["make SHELL=/bin/bash all"],
    },
    Rule {
        id: "make-from-input",
        key: "build rules from input (make -f -)",
        description: "runs build rules that stand in the command",
        weight: MEDIUM,
        programs: &["make", "gmake"],
        when: |call, _| {
            call.option_texts(&["-f", "--file", "--makefile"])
                .find(|(text, _)| matches!(*text, "-" | "/dev/stdin"))
                .map(|(_, arg)| arg.span)
        },
        hits: &["make -f - <<E\nall:\n\tid\nE"],
        misses: &["make -j4", "make -f x.mk"],
    },
];

/// Options of everyday tools whose value is a program, or code.
const HOOKS: &[(&[&str], &[&str])] = &[
    (&["curl"], &["-K", "--config"]),
    (&["tcpdump"], &["-z", "--postrotate-command"]),
    (&["nmap"], &["--script", "--datadir"]),
    (&["tshark", "wireshark"], &["-X"]),
    (&["openssl"], &["-pre", "-engine", "-provider-path"]),
    (&["wget"], &["--use-askpass", "--config"]),
    (
        &["aria2c"],
        &[
            "--on-download-complete",
            "--on-download-start",
            "--on-download-error",
            "--on-bt-download-complete",
        ],
    ),
    (&["yt-dlp", "youtube-dl"], &["--exec", "--exec-before-download"]),
    (&["ssh", "scp", "sftp"], &["-F", "-D"]),
    (&["just"], &["--shell"]),
    (&["sqlite3"], &["-init"]),
    (&["gdb", "lldb"], &["-x", "--command", "-s"]),
    (&["vim", "nvim", "vi"], &["-S", "-u"]),
    (&["mutt", "neomutt"], &["-F"]),
    (&["dpkg"], &["--path-exclude-script"]),
    (&["less"], &["-k", "--lesskey-src"]),
    (&["xterm"], &["-display"]),
    (&["rsyslogd", "dnsmasq"], &["--dhcp-script"]),
    (&["fzf"], &["--preview-window-program"]),
    (&["pip", "pip3"], &["--global-option", "--build-option"]),
    (&["cargo"], &["-Zscript"]),
    (&["git-lfs"], &["--transfer-program"]),
];
const HOOKED: &[&str] = &[
    "curl",
    "tcpdump",
    "nmap",
    "tshark",
    "wireshark",
    "openssl",
    "wget",
    "aria2c",
    "yt-dlp",
    "youtube-dl",
    "ssh",
    "scp",
    "sftp",
    "just",
    "sqlite3",
    "gdb",
    "lldb",
    "vim",
    "nvim",
    "vi",
    "mutt",
    "neomutt",
    "xterm",
    "dnsmasq",
];

/// Whether the value is a program or code; some options take names too.
fn is_program(call: &Call, value: &str, word: &str) -> bool {
    match call.name.as_str() {
        "nmap" => value.contains('/') || value.ends_with(".nse"),
        "tshark" | "wireshark" => value.starts_with("lua_script"),
        "openssl" => value.contains('/'),
        "ssh" | "scp" => (word == "-F" || word == value) && value.contains("/tmp"),
        "sftp" => true,
        "gdb" | "lldb" => value.starts_with("/tmp") || value == "-",
        "vim" | "nvim" | "vi" => value.starts_with("/tmp") || value == "/dev/stdin",
        "wget" => !word.starts_with("--config"),
        "curl" => value != "/dev/null",
        _ => true,
    }
}

/// The option as a word of its own or with `=`; an operand of `-e` is none.
fn option(call: &Call, name: &str) -> Option<Span> {
    debug_assert!(PROGRAM_OPTIONS.iter().any(|(_, options)| options.contains(&name)));
    let mut skip = false;
    for arg in call.options() {
        let is_value = std::mem::replace(
            &mut skip,
            matches!(arg.text.as_str(), "-e" | "-f" | "-g" | "--regexp" | "--file"),
        );
        if is_value {
            continue;
        }
        let attached = if name.starts_with("--") {
            // GNU programs take abbreviations of long options.
            let abbreviated = call.is(&["sort", "man"]) && abbreviates(&arg.text, name.trim_start_matches('-'), 3);
            abbreviated
                || arg
                    .text
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        } else {
            arg.text.starts_with(name)
        };
        if attached {
            return Some(arg.span);
        }
    }
    None
}

fn tar_program(call: &Call, _: &Scene<'_>) -> Option<Span> {
    const COMPRESSORS: &[&str] = &[
        "gzip", "pigz", "bzip2", "pbzip2", "lbzip2", "xz", "pixz", "zstd", "zstdmt", "lz4", "lzma", "lzip", "brotli",
    ];
    let compressor = |text: &str| COMPRESSORS.contains(&text.split_whitespace().next().unwrap_or_default());
    let action = call
        .option_texts(&["--checkpoint-action"])
        .find(|(text, _)| text.starts_with("exec"));
    let command = call
        .option_texts(&[
            "--to-command",
            "--rsh-command",
            "--rmt-command",
            "--info-script",
            "--new-volume-script",
            "-F",
        ])
        .next();
    let filter = call
        .option_texts(&["-I", "--use-compress-program"])
        .find(|(text, _)| !compressor(text));
    action.or(command).or(filter).map(|(_, arg)| arg.span)
}
