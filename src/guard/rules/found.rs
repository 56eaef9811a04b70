//! Runs of what a search finds or a list holds, whatever that is.

use super::{MEDIUM, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::Call;
use crate::guard::options::Grammar;
use crate::guard::resolve::Value;
use crate::guard::shell::Operator;
use crate::guard::unwrap::is_shell;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "run-what-is-found",
        key: "run of every file that a search finds",
        description: "runs files that a search finds, whichever they are",
        weight: MEDIUM,
        programs: &["find", "gfind"],
        when: runs_found,
        hits: &[
            "find . -exec {} \\;",
            "find . -name x -exec sh {} \\;",
            "find . -execdir bash {} +",
        ],
        misses: &[
            "find . -name '*.sh' -exec bash -n {} \\;",
            "find . -exec grep -l x {} +",
            "find . -name x -exec sh -c 'echo \"$1\"' _ {} \\;",
        ],
    },
    Rule {
        id: "run-of-lines",
        key: "run of every line of a list",
        description: "runs the lines of its input, each as a command",
        weight: MEDIUM,
        programs: &["parallel", "rush"],
        when: |call, _| {
            let listed = call.has(&["-a", "--arg-file"]).is_some()
                || call.feed.is_some()
                || call.input.is_some()
                || call
                    .redirects
                    .iter()
                    .any(|redirect| redirect.operator == Operator::Read);
            let command = PARALLEL.command_at(&call.args).and_then(|at| call.args.get(at));
            let runs = match command {
                None => listed,
                Some(command) => is_shell(&command.text) && call.has(&["--pipe"]).is_some(),
            };
            (runs && call.name == "parallel").then_some(call.span)
        },
        hits: &[
            "parallel -a cmds.txt",
            "parallel < cmds.txt",
            "cat cmds.txt | parallel -j4",
            "parallel --pipe sh < x",
        ],
        misses: &[
            "parallel gzip ::: *.log",
            "parallel --version",
            "cat names | parallel echo {}",
        ],
    },
];

const PARALLEL: Grammar = Grammar {
    valued: &[
        "-j",
        "-a",
        "-S",
        "-N",
        "-n",
        "-I",
        "-d",
        "-C",
        "--jobs",
        "--arg-file",
        "--joblog",
        "--results",
        "--delay",
        "--timeout",
        "--retries",
        "--colsep",
        "--block",
        "--tmpdir",
    ],
    ..Grammar::PLAIN
};

/// `-exec {} ;`, and a shell whose script is what was found.
fn runs_found(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let starts = |arg: &Value| matches!(arg.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    call.args.iter().enumerate().find_map(|(at, arg)| {
        let tail = call.args.get(at + 1..).filter(|_| starts(arg))?;
        let (program, rest) = tail.split_first()?;
        let script = rest.iter().find(|word| !word.text.starts_with('-'));
        let only_reads = rest.iter().take_while(|word| word.text.starts_with('-')).any(|word| {
            // `-n` reads, `-c` has code of its own.
            word.text.contains(['n', 'c'])
        });
        let shell = is_shell(program.text.rsplit('/').next().unwrap_or_default());
        let runs = program.text == "{}" || (shell && !only_reads && script.is_some_and(|word| word.text == "{}"));
        runs.then_some(program.span)
    })
}
