//! Tools that people talk to, and the word with which each of them runs a
//! shell command.

use super::{MEDIUM, Rule};
use crate::guard::Span;
use crate::guard::call::Call;

/// Program, how its lines begin when they run a command, and what anywhere in
/// them does.
const ESCAPES: &[(&[&str], &[&str], &[&str])] = &[
    (
        &["sqlite3", "sqlite", "duckdb"],
        &[
            ".shell",
            ".system",
            ".sh ",
            ".excel",
            ".import |",
            ".output |",
            ".once |",
        ],
        &["load_extension(", "writefile(", "edit("],
    ),
    (
        &["psql", "pgcli", "usql"],
        &["\\!"],
        &["\\! ", "to program", "from program"],
    ),
    (
        &["mysql", "mariadb", "mycli"],
        &["\\!", "system "],
        &["\\! ", "sys_exec("],
    ),
    (&["ed", "red", "ex"], &["!", "r !", "w !", "e !"], &[]),
    (
        &["sftp", "ftp", "lftp", "ncftp", "tnftp", "smbclient"],
        &["!", "shell "],
        &[],
    ),
    (
        &["gdb", "lldb", "cgdb"],
        &["shell", "!", "python ", "py ", "source ", "platform shell", "make "],
        &["system(", "execve("],
    ),
    (&["less", "more", "most", "view"], &["+!", "!"], &[]),
    (&["dc", "bc"], &["!"], &[]),
    (&["m4"], &["syscmd", "esyscmd"], &["syscmd("]),
    (&["gnuplot"], &["!", "system"], &["system("]),
    (
        &["vim", "vi", "nvim", "vimdiff", "gvim", "rvim", "view"],
        &["!", ":!"],
        &[
            "os.execute",
            "io.popen",
            "system(",
            "jobstart(",
            "terminal ",
            "py3 ",
            "python3 ",
            "pythonx ",
        ],
    ),
    (
        &["emacs", "emacsclient"],
        &[],
        &[
            "shell-command",
            "call-process",
            "start-process",
            "make-process",
            "delete-directory",
            "delete-file",
            "async-shell",
        ],
    ),
    (
        &["octave", "matlab", "r", "sage", "gp", "maxima"],
        &["!"],
        &["system(", "unix(", "shell_escape"],
    ),
    (&["tclsh", "wish", "expect"], &["exec ", "spawn "], &["exec ", "spawn "]),
    (&["nslookup", "telnet", "irssi", "mutt", "tig"], &["!"], &[]),
    (
        &["xelatex", "pdflatex", "lualatex", "latex", "pdftex", "tex"],
        &["--shell-escape", "-shell-escape", "--enable-write18"],
        &["\\write18"],
    ),
    (
        &["redis-cli", "valkey-cli"],
        &[],
        &["config set dir", "config set dbfilename", "module load", "slaveof"],
    ),
    (&["mongo", "mongosh"], &[], &["child_process", "runProgram("]),
    (&["java"], &["-javaagent", "-agentpath", "-agentlib"], &[]),
    (&["dotnet"], &[], &["fsi --exec"]),
    (&["crash", "screen", "weechat"], &["!"], &[]),
];

pub(super) const RULES: &[Rule] = &[Rule {
    id: "tool-escape",
    key: "shell command from an interactive tool",
    description: "makes a tool that people talk to run a shell command",
    weight: MEDIUM,
    programs: &[
        "sqlite3",
        "sqlite",
        "duckdb",
        "psql",
        "pgcli",
        "usql",
        "mysql",
        "mariadb",
        "mycli",
        "ed",
        "red",
        "ex",
        "sftp",
        "ftp",
        "lftp",
        "ncftp",
        "tnftp",
        "smbclient",
        "gdb",
        "lldb",
        "cgdb",
        "less",
        "more",
        "most",
        "view",
        "dc",
        "bc",
        "m4",
        "gnuplot",
        "vim",
        "vi",
        "nvim",
        "vimdiff",
        "gvim",
        "rvim",
        "emacs",
        "emacsclient",
        "octave",
        "matlab",
        "r",
        "sage",
        "gp",
        "maxima",
        "tclsh",
        "wish",
        "expect",
        "nslookup",
        "telnet",
        "irssi",
        "mutt",
        "tig",
        "xelatex",
        "pdflatex",
        "lualatex",
        "latex",
        "pdftex",
        "tex",
        "redis-cli",
        "valkey-cli",
        "mongo",
        "mongosh",
        "java",
        "dotnet",
        "crash",
        "weechat",
    ],
    when: |call, _| escapes(call),
    hits: &[
        "sqlite3 x.db '.shell id'",
        "psql -c '\\! id'",
        "psql <<E\n\\! id\nE",
        "mysql -e 'select 1; \\! id'",
        "mysql -e 'system id'",
        "ed -s <<< '!id'",
        "gdb -batch -ex 'shell id'",
        "less '+!id' x",
        "sftp -b - h <<E\n!id\nE",
        "m4 <<< 'syscmd(id)'",
        "nvim --headless -c 'lua os.execute(\"id\")' -c q",
        "emacs --batch --eval '(shell-command \"id\")'",
        "psql -c \"COPY t FROM PROGRAM 'id'\"",
        "redis-cli config set dir /root/.ssh",
        "pdflatex --shell-escape x.tex",
    ],
    misses: &[
        "sqlite3 x.db '.tables'",
        "psql -c 'select 1'",
        "psql -c '\\dt'",
        "mysql -e 'show tables'",
        "gdb -batch -ex bt ./a core",
        "less +F log",
        "vim -c 'set nu' x",
        "bc <<< '1+1'",
        "ed x <<< ',p'",
        "java -jar a.jar",
    ],
}];

fn escapes(call: &Call) -> Option<Span> {
    let input = call.input_text();
    ESCAPES
        .iter()
        .filter(|(names, ..)| names.contains(&call.name.as_str()))
        .find_map(|(_, begins, holds)| {
            let hit = |text: &str| {
                let lower = text.to_lowercase();
                holds.iter().any(|part| lower.contains(part))
                    || lower.split(['\n', ';']).any(|line| {
                        let line = line.trim_start();
                        begins.iter().any(|start| line.starts_with(start))
                    })
            };
            let words = || {
                call.args
                    .iter()
                    .map(|arg| arg.text.as_str())
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let argument = call
                .args
                .iter()
                .find(|arg| hit(attached(&arg.text)))
                .map(|arg| arg.span);
            argument
                .or_else(|| {
                    call.is(&["redis-cli", "valkey-cli"])
                        .then(words)
                        .filter(|line| hit(line))
                        .map(|_| call.span)
                })
                .or_else(|| input.filter(|(text, _)| hit(text)).map(|(_, span)| span))
        })
}

/// The value in `--eval-command=VALUE` and `-e"VALUE"`.
fn attached(text: &str) -> &str {
    match text.strip_prefix("--").and_then(|rest| rest.split_once('=')) {
        Some((_, value)) => value,
        None => text,
    }
}
