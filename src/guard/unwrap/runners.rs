//! Tools with a subcommand, an option or operands that run a command: package
//! runners, terminals, task watchers, remote consoles.
//!
//! The tables say where the command stands; what it does is judged as always.

use super::wrapper_table::{RUNNERS, Runner};
use super::{Inner, joined};
use crate::guard::call::Call;
use crate::guard::options::Grammar;
use crate::guard::resolve::Value;

/// Options whose value is a line of shell.
const LINES: &[(&[&str], &[&str])] = &[
    (&["nix-shell"], &["--run", "--command"]),
    (&["su", "runuser", "sg", "flock"], &["-c", "--command"]),
    (&["npx", "npm", "pnpm", "yarn"], &["-c", "--call", "--shell-mode"]),
    (&["doppler", "nx", "gcloud", "infisical"], &["--command"]),
    (
        &["hyperfine"],
        &[
            "-p",
            "-s",
            "-c",
            "-C",
            "--prepare",
            "--setup",
            "--cleanup",
            "--conclude",
            "--reference",
        ],
    ),
    (&["nodemon"], &["-x", "--exec"]),
    (&["chokidar", "onchange"], &["-c", "--command"]),
    (&["cargo"], &["-s", "--shell"]),
    (&["entr"], &["-s"]),
    (&["vagrant", "colima"], &["-c", "--command"]),
    (&["fly", "flyctl"], &["-C", "--command"]),
    (&["yt-dlp", "youtube-dl"], &["--exec", "--exec-before-download"]),
    (
        &["aria2c"],
        &[
            "--on-download-complete",
            "--on-download-start",
            "--on-download-error",
            "--on-download-stop",
        ],
    ),
    (&["tcpdump"], &["-z"]),
    (&["az"], &["--scripts"]),
    (
        &[
            "xterm",
            "gnome-terminal",
            "xfce4-terminal",
            "lxterminal",
            "urxvt",
            "terminator",
        ],
        &["-e", "-x", "--command"],
    ),
    (&["ansible"], &["-a", "--args"]),
    (&["wget"], &["--use-askpass"]),
    (&["fzf", "sk"], &["--preview"]),
    (&["inotifywait", "incron"], &["--exec"]),
    (&["tmux"], &["-c"]),
    (&["just"], &["--shell"]),
    (&["mail", "mailx"], &["-S"]),
    (&["apt", "apt-get", "aptitude"], &["-o", "--option"]),
];

/// Options behind which every further word belongs to the command.
const RESTS: &[(&[&str], &[&str])] = &[
    (&["nix"], &["-c", "--command"]),
    (
        &[
            "xterm",
            "alacritty",
            "konsole",
            "urxvt",
            "st",
            "lxterminal",
            "xfce4-terminal",
            "rxvt",
        ],
        &["-e", "-x"],
    ),
    (&["gnome-terminal", "ptyxis", "wezterm"], &["--"]),
    (&["just"], &["-c", "--command"]),
    (&["gdb", "lldb", "cgdb"], &["--args", "--"]),
    (&["wsl"], &["-e", "--exec", "--"]),
    (&["dotenv", "lerna", "mise", "guix", "fab", "cargo-with"], &["--"]),
];

/// Programs whose operands are shell lines, each or all together.
struct Lines {
    names: &'static [&'static str],
    valued: &'static [&'static str],
    /// Operands before the first line.
    operands: usize,
    /// All words make one line.
    together: bool,
}

const fn lines(
    names: &'static [&'static str],
    valued: &'static [&'static str],
    operands: usize,
    together: bool,
) -> Lines {
    Lines {
        names,
        valued,
        operands,
        together,
    }
}

#[rustfmt::skip]
const OPERAND_LINES: &[Lines] = &[
    lines(&["hyperfine"], &["-w", "-r", "-m", "-M", "-n", "-p", "-s", "-c", "-C", "-S", "-u", "-N", "-i", "-P", "-L", "-D", "--warmup", "--runs", "--min-runs", "--max-runs", "--command-name", "--prepare", "--setup", "--cleanup", "--export-json", "--export-markdown", "--export-csv", "--shell", "--style", "--output", "--input"], 0, false),
    lines(&["concurrently", "run-p", "run-s"], &["-n", "-c", "-l", "-m", "--names", "--prefix", "--prefix-colors", "--max-processes"], 0, false),
    lines(&["watch"], &["-n", "--interval", "-q", "--equexit"], 0, true),
    lines(&["watchexec"], &["-w", "-e", "-i", "-f", "-d", "-s", "-o", "--watch", "--exts", "--ignore", "--filter", "--debounce", "--signal", "--on-busy-update"], 0, true),
    lines(&["wsl"], &["-d", "-u", "--distribution", "--user", "--cd"], 0, true),
    lines(&["adb"], &["-s", "-t", "-H", "-P"], 1, true),
    lines(&["pdsh", "clush", "dsh"], &["-w", "-x", "-g", "-l", "-R", "-f", "-t", "-u", "-m"], 0, true),
    lines(&["pssh", "parallel-ssh"], &["-h", "-H", "-l", "-p", "-o", "-e", "-t", "-O", "-x", "-X"], 0, true),
    lines(&["autossh", "mosh", "et", "dbclient"], &["-M", "-p", "-i", "-o", "-L", "-R", "-D", "-F", "-l", "-J", "-b", "-c", "-e", "-m", "-S", "-W", "-w", "-E", "-B", "-I", "-O", "-Q"], 1, true),
];

pub(super) fn unwrap(call: &Call, found: &mut Vec<Inner>) {
    let name = call.name.as_str();
    for (_, options) in LINES.iter().filter(|(names, _)| names.contains(&name)) {
        for (text, value) in call.option_texts(options).filter(|_| holds_lines(call)) {
            found.push(Inner::part(as_line(name, text), value.span));
        }
    }
    for (_, options) in RESTS.iter().filter(|(names, _)| names.contains(&name)) {
        if let Some(at) = call.args.iter().position(|arg| options.contains(&arg.text.as_str())) {
            rest(call, at + 1, found);
        }
    }
    for row in RUNNERS.iter().filter(|row| row.names.contains(&name)) {
        run(call, row, found);
    }
    if let Some(row) = OPERAND_LINES.iter().find(|row| row.names.contains(&name)) {
        operands(call, row, found);
    }
    named(call, found);
}

/// Options whose letter means something else in most subcommands.
fn holds_lines(call: &Call) -> bool {
    let verb = || call.operands().next().map_or("", |verb| verb.text.as_str());
    match call.name.as_str() {
        "cargo" => verb() == "watch",
        "npm" | "pnpm" | "yarn" => matches!(verb(), "exec" | "x"),
        "gcloud" => verb() == "compute",
        "fly" | "flyctl" | "vagrant" | "colima" => verb() == "ssh",
        "tmux" => call.args.first().is_some_and(|first| first.text == "-c"),
        _ => true,
    }
}

/// `-o APT::Update::Pre-Invoke::=CODE` and `-a 'cmd=CODE'` name what they set.
fn as_line<'t>(name: &str, text: &'t str) -> &'t str {
    match name {
        "apt" | "apt-get" | "aptitude" => text
            .split_once('=')
            .filter(|(key, _)| key.to_lowercase().contains("invoke") || key.to_lowercase().contains("pkgs"))
            .map_or("", |(_, code)| code),
        "ansible" => text.strip_prefix("cmd=").unwrap_or(text),
        "mail" | "mailx" => text.split_once("=!").map_or("", |(_, code)| code),
        _ => text,
    }
}

/// Every word from `at` on; one word with blanks is a line.
fn rest(call: &Call, at: usize, found: &mut Vec<Inner>) {
    match call.args.get(at..).unwrap_or_default() {
        [] => {}
        [line] if line.text.contains(' ') => found.push(Inner::shell(line)),
        words => found.push(Inner::argv(call, words)),
    }
}

fn run(call: &Call, row: &Runner, found: &mut Vec<Inner>) {
    let Some(verb) = call.args.iter().position(|arg| row.verbs.contains(&arg.text.as_str())) else {
        return;
    };
    let tail = call.args.get(verb + 1..).unwrap_or_default();
    let at = match tail.iter().position(|arg| arg.text == "--") {
        Some(dashes) => Some(dashes + 1),
        None => {
            let grammar = Grammar {
                valued: row.valued,
                operands: row.operands,
                ..Grammar::PLAIN
            };
            grammar.command_at(tail)
        }
    };
    let words = at.and_then(|at| tail.get(at..)).unwrap_or_default();
    if words.is_empty() {
        return;
    }
    found.push(Inner::Argv {
        wrapper: call.name.clone(),
        words: words.iter().map(without_version).collect(),
        contained: row.elsewhere,
        guessed: false,
        assigned: Vec::new(),
        cwd: None,
    });
}

/// `rimraf@5` is `rimraf`.
pub(super) fn without_version(word: &Value) -> Value {
    let cut = word
        .text
        .rfind('@')
        .filter(|at| *at > 0 && !word.text.contains([' ', ':']));
    match cut.and_then(|at| word.text.get(..at)) {
        Some(bare) => Value {
            text: bare.to_owned(),
            verbatim: None,
            ..word.clone()
        },
        None => word.clone(),
    }
}

fn operands(call: &Call, row: &Lines, found: &mut Vec<Inner>) {
    let grammar = Grammar {
        valued: row.valued,
        operands: row.operands,
        ..Grammar::PLAIN
    };
    let Some(at) = grammar.command_at(&call.args) else {
        return;
    };
    let words = call.args.get(at..).unwrap_or_default();
    if call.name == "adb" && call.operands().next().is_none_or(|verb| verb.text != "shell") {
        return;
    }
    if row.together {
        found.push(Inner::shell(&joined(words)));
        return;
    }
    let mut skip = false;
    for word in words {
        let is_value = std::mem::replace(&mut skip, grammar.takes_next(&word.text));
        if !is_value && !word.text.starts_with('-') && word.text.contains(' ') {
            found.push(Inner::shell(word));
        }
    }
}

/// Programs whose way is theirs alone.
fn named(call: &Call, found: &mut Vec<Inner>) {
    let after = |word: &str| {
        let at = call.args.iter().position(|arg| arg.text == word)?;
        call.args.get(at + 1..)
    };
    match call.name.as_str() {
        "salt" | "salt-call" => found.extend(after("cmd.run").map(|words| Inner::shell(&joined(words)))),
        // `flatpak run --command=sh app -c CODE`
        "flatpak" => {
            let command = call.option_text(&["--command"]);
            if let (Some((text, arg)), Some(rest)) = (command, after("run")) {
                let app = rest.iter().position(|word| !word.text.starts_with('-'));
                let program = Value::literal(text, arg.span);
                let words = app
                    .and_then(|at| rest.get(at + 1..))
                    .unwrap_or_default()
                    .iter()
                    .cloned();
                let words: Vec<Value> = std::iter::once(program).chain(words).collect();
                found.push(Inner::argv(call, &words));
            }
        }
        "heroku" => found.extend(after("run").map(|words| Inner::shell(&joined(words)))),
        "capsh" => {
            if let Some([flag, code, ..]) = after("--").filter(|words| words.len() > 1)
                && flag.text == "-c"
            {
                found.push(Inner::shell(code));
            }
        }
        "cmake" => {
            if let Some(words) = after("-E") {
                found.push(Inner::argv(call, words));
            }
        }
        "make" | "gmake" => make_text(call, found),
        "start-stop-daemon" => {
            if let Some((_, program)) = call.option_text(&["-x", "-a", "--exec", "--startas"]) {
                let words: Vec<Value> = std::iter::once(program)
                    .chain(after("--").unwrap_or_default())
                    .cloned()
                    .collect();
                found.push(Inner::argv(call, &words));
            }
        }
        "aws" => {
            let sends = call.args.iter().any(|arg| arg.text == "send-command");
            for (text, value) in call.option_texts(&["--parameters"]).filter(|_| sends) {
                let code = text.split_once('[').map_or(text, |(_, code)| code);
                found.push(Inner::part(code.trim_matches(['"', ']', '\'']), value.span));
            }
        }
        "expect" => {
            for (text, value) in call.option_texts(&["-c"]) {
                for line in text.split(['\n', ';']) {
                    let line = line.trim_start();
                    let code = ["spawn ", "exec ", "system "]
                        .iter()
                        .find_map(|verb| line.strip_prefix(verb));
                    found.extend(code.map(|code| Inner::part(code, value.span)));
                }
            }
        }
        "rpm" => {
            for (text, value) in call.option_texts(&["-E", "--eval"]) {
                let code = text.strip_prefix("%(").map(|code| code.trim_end_matches(')'));
                found.extend(code.map(|code| Inner::part(code, value.span)));
            }
        }
        _ => {}
    }
}

/// Rules given as an option, and `$(shell …)` in a variable.
fn make_text(call: &Call, found: &mut Vec<Inner>) {
    for (text, value) in call.option_texts(&["-E", "--eval"]) {
        let recipe: Vec<&str> = text.split(['\n', ';']).map(str::trim_start).collect();
        found.push(Inner::part(
            recipe.get(1..).unwrap_or_default().join("\n").as_str(),
            value.span,
        ));
    }
    for arg in &call.args {
        // Every recipe line is handed to it.
        if let Some(code) = arg.text.strip_prefix("SHELL=").filter(|code| code.contains(' ')) {
            found.push(Inner::part(code, arg.span));
        }
        if let Some((_, code)) = arg.text.split_once("$(shell ") {
            found.push(Inner::part(code.trim_end_matches(')'), arg.span));
        }
    }
}
