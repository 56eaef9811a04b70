//! Ending processes.

use super::{HIGH, MEDIUM, Rule};
use crate::guard::Span;
use crate::guard::call::Call;
use crate::guard::resolve::Substitution;

const FINDERS: &[&str] = &["pgrep", "pidof"];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "pkill-force",
        key: "force kill processes",
        description: "kills processes by name without giving them time to end",
        weight: HIGH,
        programs: &["pkill"],
        when: |call, _| forced(call),
        hits: &[
            "pkill -9 node",
            "pkill -KILL node",
            "pkill --signal 9 x",
            "pkill -SIGKILL x",
        ],
        misses: &["pkill node", "pkill -f nginx", "pkill -TERM x"],
    },
    Rule {
        id: "multiplexer-kill",
        key: "kill of every terminal session",
        description: "ends every session of the terminal multiplexer with what runs in it",
        weight: MEDIUM,
        programs: &["tmux", "screen", "zellij", "byobu"],
        when: |call, _| {
            let ends = |text: &str| {
                matches!(
                    text,
                    "kill-server" | "kill-all-sessions" | "delete-all-sessions" | "ka" | "da"
                )
            };
            call.args.iter().find(|arg| ends(&arg.text)).map(|arg| arg.span)
        },
        hits: &[
            "tmux kill-server",
            "tmux -L x kill-server",
            "zellij kill-all-sessions -y",
        ],
        misses: &["tmux kill-session -t old", "tmux ls", "zellij list-sessions"],
    },
    Rule {
        id: "killall-signal",
        key: "force kill processes (killall -s KILL)",
        description: "kills processes by name without giving them time to end",
        weight: HIGH,
        programs: &["killall"],
        when: |call, _| {
            call.option_texts(&["-s", "--signal"])
                .find(|(text, _)| is_kill(text))
                .map(|(_, arg)| arg.span)
        },
        hits: &["killall -s KILL firefox", "killall -s 9 node"],
        misses: &["killall -s TERM x", "killall -l"],
    },
    Rule {
        id: "killall-force",
        key: "force kill processes (killall -KILL)",
        description: "kills processes by name without giving them time to end",
        weight: HIGH,
        programs: &["killall"],
        when: |call, _| forced(call),
        hits: &["killall -9 firefox", "killall -SIGKILL x"],
        misses: &["killall -TERM x", "killall node", "killall -V"],
    },
    Rule {
        id: "killall-pattern",
        key: "kill processes by regex (killall -r)",
        description: "ends every process whose name matches a pattern",
        weight: HIGH,
        programs: &["killall"],
        when: |call, _| call.has(&["-r", "--regexp"]),
        hits: &["killall -r 'wor.*'"],
        misses: &["killall node"],
    },
    Rule {
        id: "kill-self",
        key: "kill hermes/gateway process (self-termination)",
        description: "ends the agent's own server",
        weight: HIGH,
        programs: &["pkill", "killall"],
        when: |call, _| {
            let names = ["hermes", "gateway", "cli.py"];
            call.args
                .iter()
                .find(|arg| names.iter().any(|name| arg.text.to_lowercase().contains(name)))
                .map(|arg| arg.span)
        },
        hits: &["pkill -f gateway", "killall hermes", "pkill -f 'cli.py'"],
        misses: &["pkill -f nginx", "pgrep hermes"],
    },
    Rule {
        id: "kill-expansion",
        key: "kill process via pgrep/pidof expansion (self-termination)",
        description: "ends processes that a search picks",
        weight: HIGH,
        programs: &["kill"],
        when: |call, _| searched(call, Substitution::Dollar),
        hits: &["kill $(pgrep -f server)", "kill -9 $(pidof x)"],
        misses: &["kill 12345", "kill %1", "kill $(cat pidfile)"],
    },
    Rule {
        id: "kill-expansion-backtick",
        key: "kill process via backtick pgrep/pidof expansion (self-termination)",
        description: "ends processes that a search picks",
        weight: HIGH,
        programs: &["kill"],
        when: |call, _| searched(call, Substitution::Backtick),
        hits: &["kill `pidof nginx`", "kill -9 `pgrep hermes`"],
        misses: &["kill `cat pidfile`"],
    },
    Rule {
        id: "kill-piped",
        key: "kill of processes piped from pgrep",
        description: "ends processes that a search picks",
        weight: MEDIUM,
        programs: &["kill"],
        when: |call, _| (call.wrapped_by(&["xargs"]) && forced(call).is_some()).then_some(call.span),
        hits: &["pgrep node | xargs kill -9"],
        misses: &["echo 1 | xargs echo kill -9"],
    },
];

fn is_kill(signal: &str) -> bool {
    matches!(signal.to_uppercase().as_str(), "9" | "KILL" | "SIGKILL")
}

fn forced(call: &Call) -> Option<Span> {
    let attached = call
        .options()
        .find(|arg| arg.text.strip_prefix('-').is_some_and(is_kill))
        .map(|arg| arg.span);
    attached.or_else(|| {
        call.option_texts(&["-s", "--signal"])
            .find(|(text, _)| is_kill(text))
            .map(|(_, arg)| arg.span)
    })
}

fn searched(call: &Call, how: Substitution) -> Option<Span> {
    let finds = |arg: &&crate::guard::resolve::Value| {
        arg.runs
            .iter()
            .any(|ran| ran.how == how && FINDERS.contains(&ran.program.as_str()))
    };
    call.args.iter().find(finds).map(|arg| arg.span)
}
