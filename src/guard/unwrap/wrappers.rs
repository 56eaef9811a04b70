//! Programs that run the command behind their own options.

use super::Inner;
use crate::guard::call::Call;
use crate::guard::options::{Grammar, is_assignment};
use crate::guard::resolve::Value;

/// One row a wrapper. Values: options whose value is the next word, from the
/// manual pages of coreutils, util-linux, sudo, strace and others.
#[rustfmt::skip]
const WRAPPERS: &[Grammar] = &[
    Grammar { names: &["sudo"], valued: &["-C", "-D", "-g", "-h", "-p", "-R", "-r", "-t", "-T", "-U", "-u", "--user", "--group", "--host", "--prompt", "--chdir", "--chroot", "--role", "--type", "--close-from", "--command-timeout", "--other-user"], assignments: true, inert: &["-l", "-v", "-V", "-K", "--list", "--validate", "--version", "--help", "-e", "--edit"], ..Grammar::PLAIN },
    Grammar { names: &["doas"], valued: &["-C", "-u", "-a"], ..Grammar::PLAIN },
    Grammar { names: &["env", "genv"], valued: &["-u", "-C", "-S", "-iS", "-vS", "--unset", "--chdir", "--split-string"], assignments: true, ..Grammar::PLAIN },
    Grammar { names: &["nice", "gnice"], valued: &["-n", "--adjustment"], ..Grammar::PLAIN },
    Grammar { names: &["ionice"], valued: &["-c", "-n", "--class", "--classdata"], inert: &["-p", "-P", "-u"], ..Grammar::PLAIN },
    Grammar { names: &["nohup", "setsid", "builtin", "unbuffer", "fakeroot", "catchsegv", "dbus-run-session", "winpty", "rlwrap", "chronic", "systemd-inhibit", "torsocks", "torify", "proxychains", "proxychains4", "pkexec", "eatmydata", "nocache"], valued: &["--user"], ..Grammar::PLAIN },
    Grammar { names: &["timeout", "gtimeout"], valued: &["-k", "-s", "--kill-after", "--signal"], operands: 1, ..Grammar::PLAIN },
    Grammar { names: &["time", "gtime"], valued: &["-f", "-o", "--format", "--output"], ..Grammar::PLAIN },
    Grammar { names: &["command"], inert: &["-v", "-V"], ..Grammar::PLAIN },
    Grammar { names: &["exec"], valued: &["-a"], ..Grammar::PLAIN },
    Grammar { names: &["stdbuf", "gstdbuf"], valued: &["-i", "-o", "-e", "--input", "--output", "--error"], ..Grammar::PLAIN },
    Grammar { names: &["chrt"], valued: &["-T", "-P", "-D"], operands: 1, inert: &["-p", "-m"], ..Grammar::PLAIN },
    Grammar { names: &["taskset"], operands: 1, inert: &["-p"], ..Grammar::PLAIN },
    Grammar { names: &["caffeinate"], valued: &["-t", "-w"], ..Grammar::PLAIN },
    Grammar { names: &["strace", "ltrace"], valued: &["-o", "-e", "-s", "-u", "-a", "-E", "-I", "-O", "-P", "-S", "-X", "-b"], inert: &["-p"], ..Grammar::PLAIN },
    Grammar { names: &["valgrind"], ..Grammar::PLAIN },
    Grammar { names: &["flock"], valued: &["-w", "-E", "--timeout", "--conflict-exit-code"], operands: 1, ..Grammar::PLAIN },
    Grammar { names: &["chroot"], valued: &["--userspec", "--groups"], operands: 1, ..Grammar::PLAIN },
    Grammar { names: &["unshare", "nsenter"], valued: &["-t", "-S", "-G", "-w", "--target", "--wd"], ..Grammar::PLAIN },
    Grammar { names: &["setpriv", "runcon", "capsh", "numactl", "prlimit"], valued: &["-u", "-r", "-t", "-l", "--reuid", "--regid", "--groups", "--inh-caps", "--bounding-set", "--securebits", "--selinux-label", "--apparmor-profile", "--ruid", "--euid", "--rgid", "--egid"], ..Grammar::PLAIN },
    Grammar { names: &["setarch", "linux32", "linux64", "faketime", "gosu", "su-exec"], operands: 1, ..Grammar::PLAIN },
    Grammar { names: &["systemd-run"], valued: &["-p", "-u", "-M", "-H", "-E", "--unit", "--property", "--description", "--slice", "--uid", "--gid", "--setenv", "--on-active", "--on-calendar", "--working-directory"], ..Grammar::PLAIN },
    Grammar { names: &["runuser"], valued: &["-u", "-g", "-G", "-s"], ..Grammar::PLAIN },
    Grammar { names: &["firejail", "bwrap", "proot"], valued: &["-w", "-r", "-b"], ..Grammar::PLAIN },
    Grammar { names: &["xvfb-run"], valued: &["-n", "-s", "-e", "-f", "-p", "-w", "--server-args", "--server-num"], ..Grammar::PLAIN },
    Grammar { names: &["xargs", "gxargs"], valued: &["-I", "-n", "-P", "-d", "-L", "-s", "-a", "-E", "--max-args", "--max-procs", "--delimiter", "--arg-file", "--max-lines", "--max-chars", "--replace"], ..Grammar::PLAIN },
    Grammar { names: &["parallel"], valued: &["-j", "-I", "-a", "--jobs", "--colsep", "--arg-file"], ..Grammar::PLAIN },
    Grammar { names: &["busybox", "toybox"], ..Grammar::PLAIN },
    Grammar { names: &["entr", "watchexec"], valued: &["-w", "-e", "-i", "--watch", "--exts"], ..Grammar::PLAIN },
    Grammar { names: &["doppler", "aws-vault", "op", "dotenv", "chamber", "direnv"], ..Grammar::PLAIN },
];

/// Subcommands of project tools behind which a command stands.
const RUNNERS: &[(&str, &[&str])] = &[
    ("uv", &["run"]),
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("pdm", &["run"]),
    ("hatch", &["run"]),
    ("rye", &["run"]),
    ("bundle", &["exec"]),
    ("conda", &["run"]),
    ("mamba", &["run"]),
    ("pixi", &["run"]),
    ("mise", &["exec", "x"]),
    ("asdf", &["exec"]),
    ("rbenv", &["exec"]),
    ("pyenv", &["exec"]),
    ("nix", &["run"]),
    ("npm", &["exec", "x"]),
    ("pnpm", &["exec"]),
    ("yarn", &["exec"]),
];

const RUNNER: Grammar = Grammar {
    valued: &[
        "-p",
        "-n",
        "--python",
        "--with",
        "--name",
        "--extra",
        "--group",
        "--project",
        "--directory",
        "--env-file",
        "--from",
    ],
    ..Grammar::PLAIN
};

const SESSION: Grammar = Grammar {
    valued: &["-s", "-n", "-t", "-c", "-F", "-x", "-y", "-S", "-e", "-h", "-p", "-dmS"],
    ..Grammar::PLAIN
};

pub(crate) fn wrapper(name: &str) -> Option<&'static Grammar> {
    WRAPPERS.iter().find(|grammar| grammar.names.contains(&name))
}

pub(super) fn unwrap(call: &Call, found: &mut Vec<Inner>) {
    if let Some(grammar) = wrapper(&call.name) {
        wrapped(call, grammar, found);
    } else if let Some((_, subcommands)) = RUNNERS.iter().find(|(name, _)| *name == call.name) {
        let first = call
            .args
            .iter()
            .position(|arg| subcommands.contains(&arg.text.as_str()));
        let tail = first.and_then(|at| call.args.get(at + 1..)).unwrap_or_default();
        if let Some(at) = RUNNER.command_at(tail) {
            found.push(Inner::argv(call, tail.get(at..).unwrap_or_default()));
        }
    } else if call.name == "su" {
        if let Some((_, value)) = call.option_text(&["-c", "--command"]) {
            found.push(Inner::shell(value));
        }
    } else if matches!(call.name.as_str(), "watch" | "script") {
        joined_command(call, found);
    } else if matches!(call.name.as_str(), "tmux" | "screen" | "npx") {
        session(call, found);
    }
}

fn wrapped(call: &Call, grammar: &Grammar, found: &mut Vec<Inner>) {
    if call.name == "env" {
        split_string(call, found);
    }
    if call.name == "flock"
        && let Some((_, value)) = call.option_text(&["-c", "--command"])
    {
        found.push(Inner::shell(value));
        return;
    }
    let Some(at) = grammar.command_at(&call.args) else {
        return;
    };
    let (before, words) = call.args.split_at(at);
    let mut words = words.to_vec();
    if is_feeding(&call.name) {
        feed_words(call, &mut words);
    }
    let assigned = before
        .iter()
        .filter(|word| grammar.assignments && is_assignment(&word.text));
    let assigned = assigned.filter_map(|word| word.text.split_once('=').map(|(name, text)| (name, text, word)));
    let assigned = assigned
        .map(|(name, text, word)| {
            (
                name.to_owned(),
                Value {
                    text: text.to_owned(),
                    verbatim: None,
                    ..word.clone()
                },
            )
        })
        .collect();
    found.push(Inner::Argv {
        wrapper: call.name.clone(),
        words,
        contained: false,
        assigned,
    });
}

fn is_feeding(name: &str) -> bool {
    matches!(name, "xargs" | "gxargs" | "parallel")
}

/// Words that come from the input: at the end, or where the placeholder stands.
fn feed_words(call: &Call, words: &mut Vec<Value>) {
    let placeholder = call.option_text(&["-I", "--replace"]).map(|(text, _)| text);
    let short = call.has(&["-i"]).map(|_| "{}");
    let placeholder = placeholder.or(short).or((call.name == "parallel").then_some("{}"));
    if let Some(placeholder) = placeholder.filter(|placeholder| !placeholder.is_empty()) {
        for word in words.iter_mut().filter(|word| word.text.contains(placeholder)) {
            *word = Value::unknown(&word.text, word.span);
        }
        return;
    }
    match call.input_text() {
        Some((text, span)) => {
            let fed = text
                .split([' ', '\t', '\n', '\0'])
                .filter(|word| !word.is_empty())
                .take(256);
            words.extend(fed.map(|word| Value::literal(word.trim_matches(['"', '\'']), span)));
        }
        None => words.push(Value::unknown("…", call.span)),
    }
}

/// `env -S 'cmd arg'`.
fn split_string(call: &Call, found: &mut Vec<Inner>) {
    if let Some((text, value)) = call.option_text(&["-S", "--split-string", "-vS", "-iS"]) {
        let rest = call.args.iter().skip_while(|arg| arg.span != value.span).skip(1);
        let tail: String = rest.flat_map(|arg| [" ", arg.text.as_str()]).collect();
        found.push(Inner::part(&format!("{text}{tail}"), value.span));
    }
}

/// Terminal sessions that are started with a command; `npx -c CODE`.
fn session(call: &Call, found: &mut Vec<Inner>) {
    if call.name == "npx" {
        found.extend(
            call.option_text(&["-c", "--call"])
                .map(|(text, value)| Inner::part(text, value.span)),
        );
        return;
    }
    let starts = [
        "new",
        "new-session",
        "new-window",
        "neww",
        "split-window",
        "splitw",
        "send-keys",
        "respawn-pane",
    ];
    let from = match call.name.as_str() {
        "screen" => 0,
        _ => match call.args.iter().position(|arg| starts.contains(&arg.text.as_str())) {
            Some(at) => at + 1,
            None => return,
        },
    };
    let tail = call.args.get(from..).unwrap_or_default();
    if let Some(at) = SESSION.command_at(tail) {
        found.push(Inner::shell(&super::joined(tail.get(at..).unwrap_or_default())));
    }
}

/// `watch cmd …` hands its words to a shell; `script -c CODE` too.
fn joined_command(call: &Call, found: &mut Vec<Inner>) {
    if call.name == "script" {
        if let Some((text, value)) = call.option_text(&["-c", "--command", "-qc", "-qec"]) {
            found.push(Inner::part(text, value.span));
        }
        return;
    }
    let grammar = Grammar {
        valued: &["-n", "--interval"],
        ..Grammar::PLAIN
    };
    if let Some(at) = grammar.command_at(&call.args) {
        found.push(Inner::shell(&super::joined(call.args.get(at..).unwrap_or_default())));
    }
}
