//! Commands that would hurt the agent's own server.

use super::{HIGH, MEDIUM, Rule};
use crate::guard::Span;
use crate::guard::call::Call;
use crate::guard::options::Grammar;

const SELF: &[&str] = &["hermes", "hermes-server", "hermes_cli.main", "python", "hermes-agent"];
const GLOBAL: Grammar = Grammar {
    valued: &["-p", "--profile", "--config", "-c", "--home"],
    ..Grammar::PLAIN
};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "gateway-stop",
        key: "stop/restart hermes gateway (kills running agents)",
        description: "stops the server that runs this agent",
        weight: HIGH,
        programs: SELF,
        when: |call, _| gateway(call, &["stop", "restart"]),
        hits: &[
            "hermes gateway stop",
            "hermes --profile ade gateway restart",
            "python -m hermes_cli.main gateway stop",
        ],
        misses: &[
            "hermes gateway status",
            "hermes -p ade gateway status",
            "hermes gateway start",
            "python x.py gateway stop",
        ],
    },
    Rule {
        id: "gateway-detached",
        key: "start gateway outside systemd (use 'systemctl --user restart hermes-gateway')",
        description: "starts a second server that nobody supervises",
        weight: MEDIUM,
        programs: SELF,
        when: |call, _| {
            let detached = call.background || call.wrapped_by(&["nohup", "setsid"]);
            gateway(call, &["run"]).filter(|_| detached)
        },
        hits: &[
            "nohup hermes gateway run",
            "setsid hermes gateway run",
            "python -m hermes_cli.main gateway run --replace &disown",
            "hermes_cli.main gateway run &",
        ],
        misses: &["hermes gateway run"],
    },
    Rule {
        id: "self-update",
        key: "hermes update (restarts gateway, kills running agents)",
        description: "replaces and restarts the server that runs this agent",
        weight: HIGH,
        programs: SELF,
        when: |call, _| {
            let words = words(call)?;
            let (verb, rest) = words.split_first()?;
            let checks = rest.iter().any(|arg| arg.text == "--check");
            (verb.text == "update" && !checks).then_some(verb.span)
        },
        hits: &["hermes update"],
        misses: &["hermes update --check", "hermes version", "echo hermes update"],
    },
    Rule {
        id: "nested-agent",
        key: "nested agent without approvals",
        description: "starts another agent that asks nobody",
        weight: HIGH,
        programs: &[
            "hermes",
            "claude",
            "codex",
            "gemini",
            "aider",
            "opencode",
            "cursor-agent",
            "qwen",
            "amp",
        ],
        when: |call, _| {
            call.has(&[
                "--yolo",
                "--dangerously-skip-permissions",
                "--dangerously-bypass-approvals-and-sandbox",
                "--full-auto",
                "--yes-always",
                "--dangerously-allow-all",
                "--allow-dangerously-skip-permissions",
            ])
        },
        hits: &["hermes chat --yolo -q x", "claude --dangerously-skip-permissions -p x"],
        misses: &["hermes chat -q x", "claude -p x"],
    },
    Rule {
        id: "launchd-stop",
        key: "stop/restart hermes launchd service (kills running agents)",
        description: "stops the service that runs this agent",
        weight: HIGH,
        programs: &["launchctl"],
        when: |call, _| {
            let verb = call.operands().next()?;
            let stops =
                ["stop", "kickstart", "bootout", "unload", "kill", "disable", "remove"].contains(&verb.text.as_str());
            let own = call.args.iter().any(|arg| arg.text.to_lowercase().contains("hermes"));
            (stops && own).then_some(call.span)
        },
        hits: &[
            "launchctl stop ai.hermes.gateway",
            "launchctl bootout gui/501/com.hermes.agent",
        ],
        misses: &["launchctl list", "launchctl stop com.apple.foo", "launchctl print x"],
    },
];

/// The words behind the program and its global options.
fn words(call: &Call) -> Option<&[crate::guard::resolve::Value]> {
    let args = if call.name.starts_with("python") {
        let at = call.args.iter().position(|arg| arg.text == "-m")?;
        let module = call.args.get(at + 1)?;
        if !module.text.starts_with("hermes") {
            return None;
        }
        call.args.get(at + 2..)?
    } else {
        call.args.as_slice()
    };
    args.get(GLOBAL.command_at(args)?..)
}

fn gateway(call: &Call, verbs: &[&str]) -> Option<Span> {
    let (first, rest) = words(call)?.split_first()?;
    let verb = rest.get(GLOBAL.command_at(rest)?)?;
    (first.text == "gateway" && verbs.contains(&verb.text.as_str())).then_some(verb.span)
}
