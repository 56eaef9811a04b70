//! Code on the command line of shells and interpreters.

use super::{MEDIUM, Rule};
use crate::guard::Span;
use crate::guard::call::Call;
use crate::guard::resolve::Value;
use crate::guard::unwrap::{
    SHELLS, awk_program, inline_code, is_interpreter, module_text, reads_commands, reads_program, shell_code,
};

const LANGUAGES: &[&str] = &[
    "python",
    "pypy",
    "node",
    "nodejs",
    "bun",
    "deno",
    "perl",
    "ruby",
    "php",
    "lua",
    "luajit",
    "osascript",
    "rscript",
    "r",
    "littler",
    "julia",
    "tclsh",
    "groovy",
    "scala",
    "elixir",
    "tsx",
    "ts-node",
    "ipython",
    "bpython",
    "jython",
    "ghc",
    "guile",
    "erl",
    "jshell",
    "jjs",
    "irb",
    "clj",
    "clojure",
    "bb",
    "racket",
    "sbcl",
    "kotlin",
    "raku",
    "qjs",
    "janet",
    "pwsh",
    "powershell",
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "inline-code",
        key: "script execution via -e/-c flag",
        description: "runs a program that stands on the command line",
        weight: MEDIUM,
        programs: LANGUAGES,
        when: |call, _| inline(call),
        hits: &[
            "python3.11 -c 'print(1)'",
            "node -e 1",
            "perl -ne 'print' f",
            "python -W ignore -c x",
            "deno eval 1",
            "bun -e 1",
            "lua -e 1",
            "uv run python -c 1",
            "/usr/bin/env python3 -c 1",
            "pwsh -File x.ps1",
            "php -r 1",
            "php -B 1",
            "tsx -e 1",
            "ghc -e 1",
            "erl -noshell -eval 'halt().'",
            "guile -c 1",
            "node --import 'data:text/javascript,1' x.js",
            "python manage.py shell -c 1",
        ],
        misses: &[
            "python script.py -c x",
            "python -- -c x",
            "node script.js -e x",
            "perl -v",
            "php x.php -r",
            "bun run build",
            "deno run eval.ts",
            "echo \"python -c 'x'\"",
            "python -m http.server",
            "ghc -threaded -O2 Main.hs",
            "tsx watch src/server.ts",
            "python manage.py migrate",
        ],
    },
    Rule {
        id: "code-heredoc",
        key: "script execution via heredoc",
        description: "runs a program that stands in the command",
        weight: MEDIUM,
        programs: LANGUAGES,
        when: |call, _| {
            let family = is_interpreter(&call.name)?;
            call.input
                .as_ref()
                .filter(|_| reads_program(call, family))
                .map(|_| call.span)
        },
        hits: &[
            "python << 'P'\nprint(1)\nP",
            "perl <<E\nx\nE",
            "python3 - <<E\nx\nE",
            "deno run -A - <<< x",
            "jshell - <<< x",
        ],
        misses: &["python x.py <<E\ndata\nE", "cat <<E\nx\nE"],
    },
    Rule {
        id: "shell-code",
        key: "shell command via -c/-lc flag",
        description: "runs a shell command that is hidden in an argument",
        weight: MEDIUM,
        programs: SHELLS,
        when: |call, _| shell_code(call).map(|_| call.span),
        hits: &[
            "bash -c ls",
            "sh -c ls",
            "bash -lc 'x'",
            "bash --rcfile x -c ls",
            "zsh -ic ls",
            "dash -c ls",
            "bash -xc ls",
            "bash -euo pipefail -c ls",
            "bash -co pipefail ls",
            "bash -O extglob -eo pipefail -c ls",
            "sh -c -- ls",
        ],
        misses: &[
            "bash --norc",
            "bash -o pipefail script.sh",
            "bash -euo pipefail script.sh -c ls",
            "bash script.sh -c",
        ],
    },
    Rule {
        id: "shell-heredoc",
        key: "shell execution via heredoc",
        description: "runs shell commands that stand in the command",
        weight: MEDIUM,
        programs: SHELLS,
        when: |call, _| call.input.as_ref().filter(|_| reads_commands(call)).map(|_| call.span),
        hits: &[
            "bash <<EOF\necho hi\nEOF",
            "zsh<<E\nls\nE",
            "sh <<< ls",
            "bash -euo pipefail <<E\nls\nE",
        ],
        misses: &["cat <<EOF\nhi\nEOF", "bash x.sh <<E\ndata\nE"],
    },
    Rule {
        id: "awk-command",
        key: "shell command from awk",
        description: "runs shell commands out of an awk program",
        weight: MEDIUM,
        programs: &["awk", "gawk", "mawk", "nawk"],
        when: |call, _| {
            let from_input = call
                .option_texts(&["-f", "--file"])
                .any(|(file, _)| matches!(file, "-" | "/dev/stdin"));
            if let Some((text, span)) = call.input_text().filter(|_| from_input) {
                return (text.contains("system(") || text.contains("getline") || text.contains("| \"")).then_some(span);
            }
            let program = awk_program(call)?;
            let text = program.content.as_ref().unwrap_or(&program.text);
            let signs = ["system(", "|&", "/inet/", "@load", "| getline"];
            let runs = signs.iter().any(|sign| text.contains(sign)) || pipes_out(text);
            runs.then_some(program.span)
        },
        hits: &[
            "awk -f - <<< 'BEGIN{system(\"id\")}'",
            "gawk 'BEGIN{s=\"/inet/tcp/0/h/1\"}'",
            "awk 'BEGIN { system(\"id\") }'",
            "awk '{ print | \"sh\" }' f",
            "awk -v c='rm -rf x' 'BEGIN{system(c)}'",
            "awk -f <(echo 'BEGIN{system(\"id\")}') f",
        ],
        misses: &["awk '{ print $1 }' f", "awk -F: '$3 > 5' f"],
    },
    Rule {
        id: "sed-command",
        key: "shell command from sed",
        description: "runs shell commands out of a sed script",
        weight: MEDIUM,
        programs: &["sed", "gsed"],
        when: |call, _| {
            let first = call.operands().next();
            let given = call.option_texts(&["-e", "--expression"]);
            let mut scripts = first
                .map(|script| (script.text.as_str(), script))
                .into_iter()
                .chain(given);
            let script = scripts
                .find(|(text, _)| runs_command(text))
                .map(|(_, script)| script.span);
            script.or_else(|| {
                let mut files = call.option_texts(&["-f", "--file"]);
                let runs = |file: &Value| file.content.as_deref().is_some_and(runs_command);
                files.find(|(_, file)| runs(file)).map(|(_, file)| file.span)
            })
        },
        hits: &[
            "sed '1e id' f",
            "sed 's/x/id/e' f",
            "sed --expression='e id' f",
            "sed -n -e p -e '1e id' f",
            "sed -f <(echo 'e id') f",
        ],
        misses: &["sed 's/a/e/' f", "sed -n '1,3p' f", "sed 's/a/b/g' e"],
    },
    Rule {
        id: "editor-command",
        key: "shell command from an editor",
        description: "runs shell commands out of an editor",
        weight: MEDIUM,
        programs: &["vim", "vi", "nvim", "ex", "view", "emacs"],
        when: |call, _| {
            let commands = call
                .option_texts(&["-c", "--cmd", "--eval"])
                .map(|(text, arg)| (text.to_owned(), arg.span));
            let plus = call
                .args
                .iter()
                .filter(|arg| arg.text.starts_with('+'))
                .map(|arg| (arg.text.clone(), arg.span));
            commands
                .chain(plus)
                .find(|(text, _)| text.contains('!') || text.contains("system(") || text.contains("shell-command"))
                .map(|(_, span)| span)
        },
        hits: &["vim -c ':!id' x", "vim +!id", "emacs --eval '(shell-command \"id\")'"],
        misses: &["vim x", "vim +10 x", "vim -c 'set nu' x"],
    },
];

/// `print | "cmd"`, where the command is more than a filter.
fn pipes_out(program: &str) -> bool {
    const FILTERS: &[&str] = &[
        "sort", "uniq", "column", "head", "tail", "wc", "cat", "tac", "less", "bc", "cut", "fold", "fmt",
    ];
    program.split('|').skip(1).any(|rest| {
        let Some(command) = rest.trim_start().strip_prefix('"') else {
            return false;
        };
        let line = command.split('"').next().unwrap_or_default();
        let filter = line
            .split_whitespace()
            .next()
            .is_some_and(|name| FILTERS.contains(&name));
        !filter || line.contains([';', '&', '>', '`', '$', '|'])
    })
}

fn inline(call: &Call) -> Option<Span> {
    let family = is_interpreter(&call.name)?;
    let option = inline_code(call, family).map(|(option, _)| option.span);
    option.or_else(|| module_text(call).map(|text| text.span)).or_else(|| {
        let in_project = call
            .operands()
            .next()
            .is_some_and(|file| file.text.ends_with("manage.py"));
        let shell = call.operands().nth(1).is_some_and(|verb| verb.text == "shell");
        call.option_text(&["-c", "--command"])
            .filter(|_| in_project && shell)
            .map(|(_, code)| code.span)
    })
}

/// GNU sed: the command `e`, and the flag `e` of `s`.
fn runs_command(script: &str) -> bool {
    script.split([';', '\n']).any(|line| {
        let line = line.trim();
        let command = line
            .trim_start_matches(|character: char| character.is_ascii_digit() || matches!(character, ',' | '$' | ' '));
        if command == "e" || command.starts_with("e ") {
            return true;
        }
        let Some(separator) = command.strip_prefix('s').and_then(|rest| rest.chars().next()) else {
            return false;
        };
        if separator.is_alphanumeric() || separator == ' ' {
            return false;
        }
        let flags = command.rsplit(separator).next().unwrap_or_default();
        command.matches(separator).count() >= 3
            && flags.contains('e')
            && flags.bytes().all(|flag| b"gpeiImM0123456789".contains(&flag))
    })
}
