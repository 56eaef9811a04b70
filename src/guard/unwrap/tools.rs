//! Everyday tools with an option that runs a program.

use super::Inner;
use crate::guard::Span;
use crate::guard::call::Call;
use crate::guard::options::Grammar;
use crate::guard::resolve::Value;

/// Program, options whose value is run.
pub(crate) const PROGRAM_OPTIONS: &[(&str, &[&str])] = &[
    ("sort", &["--compress-program"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("ag", &["--pager"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    (
        "tar",
        &[
            "--to-command",
            "-I",
            "--use-compress-program",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
            "-F",
            "--rmt-command",
        ],
    ),
    ("bsdtar", &["--use-compress-program"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("cpio", &["--rsh-command"]),
    ("scp", &["-S"]),
    ("sftp", &["-S", "-D"]),
    ("zip", &["-TT", "--unzip-command"]),
    (
        "git",
        &[
            "--upload-pack",
            "--receive-pack",
            "--open-files-in-pager",
            "--exec",
            "-O",
            "-x",
        ],
    ),
    ("pdftex", &["--shell-escape"]),
    ("nc", &["-e", "-c"]),
    ("ncat", &["-e", "-c", "--exec", "--sh-exec"]),
];

pub(super) fn unwrap(call: &Call, found: &mut Vec<Inner>) {
    match call.name.as_str() {
        "find" | "gfind" | "fd" | "fdfind" => find(call, found),
        "awk" | "gawk" | "mawk" | "nawk" => awk(call, found),
        "git" => git(call, found),
        "vim" | "vi" | "nvim" | "ex" | "view" => editor(call, found),
        "tar" | "gtar" => checkpoint(call, found),
        "make" | "gmake" => make(call, found),
        _ => {}
    }
    // Several shell options of one word are judged word by word below.
    // `-O`, `-x` and `--exec` of git are programs in some subcommands only.
    if let Some((_, options)) = PROGRAM_OPTIONS
        .iter()
        .find(|(name, _)| *name == call.name && *name != "git")
    {
        for (text, value) in call.option_texts(options) {
            found.push(part_or_whole(text, value));
        }
    }
}

fn part_or_whole(text: &str, value: &Value) -> Inner {
    if text.len() == value.text.len() {
        Inner::shell(value)
    } else {
        Inner::part(text, value.span)
    }
}

/// `-exec cmd … ;` and its three like; `fd -x`.
fn find(call: &Call, found: &mut Vec<Inner>) {
    let fd = call.name.starts_with("fd");
    let mut at = 0;
    while let Some(arg) = call.args.get(at) {
        at += 1;
        let starts = match arg.text.as_str() {
            "-exec" | "-execdir" | "-ok" | "-okdir" => !fd,
            "-x" | "-X" | "--exec" | "--exec-batch" => fd,
            _ => false,
        };
        if starts {
            let tail = call.args.get(at..).unwrap_or_default();
            let length = tail
                .iter()
                .position(|word| matches!(word.text.as_str(), ";" | "+"))
                .unwrap_or(tail.len());
            found.push(Inner::argv(call, tail.get(..length).unwrap_or_default()));
            at += length;
        }
    }
}

fn awk(call: &Call, found: &mut Vec<Inner>) {
    let from_input = call
        .option_texts(&["-f", "--file"])
        .any(|(file, _)| matches!(file, "-" | "/dev/stdin"));
    if let Some((text, span)) = call.input_text().filter(|_| from_input) {
        found.push(Inner::Foreign {
            text: text.to_owned(),
            span,
        });
    } else if let Some(program) = awk_program(call) {
        found.push(Inner::Foreign {
            text: program.content.as_ref().unwrap_or(&program.text).clone(),
            span: program.span,
        });
    }
}

const AWK: Grammar = Grammar {
    valued: &[
        "-v",
        "-F",
        "-f",
        "-i",
        "-l",
        "-E",
        "--assign",
        "--field-separator",
        "--file",
        "--include",
        "--load",
    ],
    ..Grammar::PLAIN
};

/// The program of awk: the first operand, `--source`, or a file whose text is known.
pub(crate) fn awk_program(call: &Call) -> Option<&Value> {
    let from_file = call.option_texts(&["-f", "--file"]).next();
    if let Some((_, file)) = from_file {
        return Some(file).filter(|file| file.content.is_some());
    }
    let source = call.option_text(&["-e", "--source"]).map(|(_, text)| text);
    source.or_else(|| call.args.get(AWK.command_at(&call.args)?))
}

/// `git -c alias.x='!cmd' x`, `git -c core.pager=cmd`, and options that run.
fn git(call: &Call, found: &mut Vec<Inner>) {
    for (text, value) in call.option_texts(&["-c", "--config"]) {
        let Some((name, code)) = text.split_once('=') else {
            continue;
        };
        let lower = name.to_lowercase();
        if lower.starts_with("alias.") {
            if let Some(code) = code.strip_prefix('!') {
                found.push(Inner::part(code, value.span));
            }
        } else if runs_program(&lower) {
            found.push(Inner::part(code, value.span));
        }
    }
    let subcommand = call.operands().next().map(|arg| arg.text.as_str());
    let options: &[&str] = match subcommand {
        Some("rebase") => &["-x", "--exec"],
        Some("grep") => &["--open-files-in-pager", "-O"],
        Some("difftool" | "mergetool") => &["-x", "--extcmd"],
        Some("clone") => &["-u", "--upload-pack"],
        Some("archive") => &["--exec"],
        Some("filter-branch") => &[
            "--tree-filter",
            "--index-filter",
            "--msg-filter",
            "--env-filter",
            "--parent-filter",
            "--commit-filter",
            "--tag-name-filter",
            "--setup",
        ],
        Some("send-email") => &["--sendmail-cmd", "--to-cmd", "--cc-cmd", "--header-cmd"],
        Some("am" | "log" | "show" | "diff" | "blame" | "commit" | "status" | "branch") => &[],
        _ => &["--upload-pack", "--receive-pack"],
    };
    for (text, value) in call.option_texts(options) {
        found.push(part_or_whole(text, value));
    }
    if let (Some("bisect"), Some(run)) = (subcommand, call.args.iter().position(|arg| arg.text == "run")) {
        found.push(Inner::argv(call, call.args.get(run + 1..).unwrap_or_default()));
    }
    if let (Some("submodule"), Some(each)) = (subcommand, call.args.iter().position(|arg| arg.text == "foreach")) {
        found.push(Inner::shell(&super::joined(
            call.args.get(each + 1..).unwrap_or_default(),
        )));
    }
}

/// Settings of git whose value is a command.
pub(crate) fn runs_program(setting: &str) -> bool {
    matches!(
        setting,
        "core.pager"
            | "core.editor"
            | "core.sshcommand"
            | "core.fsmonitor"
            | "core.hookspath"
            | "diff.external"
            | "sequence.editor"
            | "gpg.program"
            | "credential.helper"
            | "core.gitproxy"
            | "core.askpass"
            | "core.alternaterefscommand"
            | "uploadpack.packobjectshook"
            | "interactive.difffilter"
            | "gpg.ssh.defaultkeycommand"
            | "sendemail.smtpserver"
            | "init.templatedir"
            | "include.path"
    ) || setting.starts_with("pager.")
        || setting.starts_with("includeif.")
        || (setting.starts_with("gpg.") && setting.ends_with(".program"))
        || (setting.starts_with("credential.") && setting.ends_with(".helper"))
        || [
            "filter.",
            "diff.",
            "difftool.",
            "mergetool.",
            "merge.",
            "man.",
            "browser.",
            "guitool.",
            "sendemail.",
            "trailer.",
            "tar.",
            "remote.",
            "submodule.",
        ]
        .iter()
        .any(|section| setting.starts_with(section))
            && [
                ".cmd",
                ".clean",
                ".smudge",
                ".process",
                ".command",
                ".textconv",
                ".driver",
                ".uploadpack",
                ".receivepack",
                ".tocmd",
                ".cccmd",
                ".vcs",
            ]
            .iter()
            .any(|name| setting.ends_with(name))
}

/// `vim -c '!cmd'` and `+!cmd`.
fn editor(call: &Call, found: &mut Vec<Inner>) {
    let commands = call.option_texts(&["-c", "--cmd"]);
    let plus = call
        .args
        .iter()
        .filter_map(|arg| arg.text.strip_prefix('+').map(|text| (text, arg)));
    for (text, value) in commands.chain(plus) {
        let text = text.trim_start_matches([':', ' ']);
        if let Some(code) = text
            .strip_prefix('!')
            .or_else(|| text.split_once('!').map(|(_, code)| code))
        {
            found.push(Inner::part(code, value.span));
        }
    }
}

fn checkpoint(call: &Call, found: &mut Vec<Inner>) {
    for (text, value) in call.option_texts(&["--checkpoint-action"]) {
        if let Some(code) = text.strip_prefix("exec=") {
            found.push(Inner::part(code, value.span));
        }
    }
}

/// `make -f -` reads rules from its input: the indented lines are commands.
fn make(call: &Call, found: &mut Vec<Inner>) {
    let from_input = call
        .option_texts(&["-f", "--file", "--makefile"])
        .any(|(text, _)| matches!(text, "-" | "/dev/stdin"));
    let mut rules: Vec<(&str, Span)> = call.input_text().filter(|_| from_input).into_iter().collect();
    let files = call.option_texts(&["-f", "--file", "--makefile"]);
    rules.extend(files.filter_map(|(_, file)| Some((file.content.as_deref()?, file.span))));
    for (text, span) in rules {
        let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix('\t')).collect();
        found.push(Inner::part(&lines.join("\n"), span));
    }
}
