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
        id: "self-approval",
        key: "call of the agent's own server",
        description: "talks to the server that runs this agent: to its approvals, keys or policies",
        weight: HIGH,
        programs: &[
            "curl", "wget", "http", "https", "xh", "nc", "websocat", "httpie", "ncat",
        ],
        when: |call, _| {
            let own = |text: &str| {
                let inner = [
                    "/v1/approvals",
                    "/v1/sessions",
                    "/v1/grants",
                    "/v1/policies",
                    "/v1/keys",
                    "/v1/audit",
                ];
                let local = ["localhost", "127.0.0.1", "0.0.0.0", "[::1]"];
                (text.contains(":8642") || text.contains("/v1/approvals/"))
                    || (local.iter().any(|host| text.contains(host)) && inner.iter().any(|path| text.contains(path)))
            };
            let port = call.is(&["nc", "ncat"]) && call.args.iter().any(|arg| arg.text == "8642");
            let found = call.args.iter().find(|arg| own(&arg.text)).map(|arg| arg.span);
            found.or(port.then_some(call.span))
        },
        hits: &[
            "curl -X POST http://localhost:8642/v1/approvals/apr_1/decision -d '{}'",
            "curl -X PUT http://127.0.0.1:9000/v1/policies/default -d @p.json",
            "nc localhost 8642",
        ],
        misses: &[
            "curl http://localhost:8080/health",
            "curl https://api.example.com/v1/sessions",
            "echo localhost:8642",
        ],
    },
    Rule {
        id: "server-administration",
        key: "administration of the agent's own server",
        description: "makes keys or tokens of the server that runs this agent, or changes it",
        weight: HIGH,
        programs: &["hermes-server"],
        when: |call, _| {
            let verb = call.operands().next()?;
            let second = call.operands().nth(1).map(|arg| arg.text.as_str());
            (matches!(verb.text.as_str(), "key" | "token" | "migrate") && !matches!(second, Some("list")))
                .then_some(verb.span)
        },
        hits: &[
            "hermes-server key create --scopes admin",
            "hermes-server token --tenant x",
        ],
        misses: &[
            "hermes-server doctor",
            "hermes-server --version",
            "hermes-server check ls",
        ],
    },
    Rule {
        id: "server-data",
        key: "change of the agent's own data",
        description: "changes or deletes the data of the server that runs this agent",
        weight: HIGH,
        programs: &[],
        when: |call, scene| {
            let own = |path: &str| {
                let folded = super::paths::locate(path, scene.setting);
                let inside = folded.strip_prefix("~/.hermes").unwrap_or("x");
                matches!(
                    inside,
                    "" | "/*" | "/state.db" | "/sessions" | "/auth.json" | "/hermes.db" | "/hermes.yaml"
                ) || folded.ends_with("/hermes.yaml") && folded.contains("hermes-server")
            };
            call.writes
                .iter()
                .find(|write| own(&write.path))
                .map(|write| write.span)
        },
        hits: &[
            "rm -rf ~/.hermes",
            "echo x > ~/.hermes/state.db",
            "cp x ~/.hermes/auth.json",
        ],
        misses: &["rm ~/.hermes/cache.db", "ls ~/.hermes", "cat ~/.hermes/state.db"],
    },
    Rule {
        id: "kill-port-owner",
        key: "kill of the process that serves this agent",
        description: "ends the process that listens where the agent's server does, or the parent of this shell",
        weight: HIGH,
        programs: &["kill", "fuser"],
        when: |call, _| {
            let own = |text: &str| text.contains("8642") || matches!(text, "$PPID" | "${PPID}");
            let first = |text: &str| call.name == "kill" && text == "1";
            let ends = call.name == "kill" || call.short('k').is_some();
            let mut operands = call.operands();
            operands
                .find(|arg| own(&arg.text) || first(&arg.text))
                .map(|arg| arg.span)
                .filter(|_| ends)
        },
        hits: &["kill -9 $PPID", "fuser -k 8642/tcp", "kill $(lsof -ti:8642)", "kill 1"],
        misses: &["kill 4711", "fuser 8642/tcp", "fuser -k 3000/tcp", "kill -1 1234"],
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
