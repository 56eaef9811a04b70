//! Commands that run elsewhere: over ssh, in containers, in pods.

use super::{Inner, joined};
use crate::guard::call::Call;
use crate::guard::options::Grammar;

const SSH: Grammar = Grammar {
    valued: &[
        "-B", "-b", "-c", "-D", "-E", "-e", "-F", "-I", "-i", "-J", "-L", "-l", "-m", "-O", "-o", "-p", "-Q", "-R",
        "-S", "-W", "-w",
    ],
    operands: 1,
    ..Grammar::PLAIN
};

/// Options before the subcommand of `docker` and `podman`.
pub(crate) const DOCKER: Grammar = Grammar {
    valued: &[
        "-H",
        "-c",
        "-l",
        "--host",
        "--context",
        "--config",
        "--log-level",
        "--tlscacert",
        "--tlscert",
        "--tlskey",
        "--connection",
        "--url",
    ],
    ..Grammar::PLAIN
};

const DOCKER_RUN: Grammar = Grammar {
    valued: &[
        "-a",
        "-c",
        "-e",
        "-h",
        "-l",
        "-m",
        "-p",
        "-u",
        "-v",
        "-w",
        "--add-host",
        "--cap-add",
        "--cap-drop",
        "--cpus",
        "--device",
        "--dns",
        "--entrypoint",
        "--env",
        "--env-file",
        "--expose",
        "--gpus",
        "--hostname",
        "--ip",
        "--label",
        "--link",
        "--log-driver",
        "--log-opt",
        "--memory",
        "--mount",
        "--name",
        "--network",
        "--net",
        "--network-alias",
        "--pid",
        "--platform",
        "--publish",
        "--restart",
        "--runtime",
        "--security-opt",
        "--shm-size",
        "--stop-signal",
        "--tmpfs",
        "--ulimit",
        "--user",
        "--userns",
        "--volume",
        "--volumes-from",
        "--workdir",
        "--pull",
        "--cidfile",
        "--ipc",
        "--detach-keys",
        "--cpuset-cpus",
    ],
    operands: 1,
    ..Grammar::PLAIN
};

const KUBECTL: Grammar = Grammar {
    valued: &[
        "-n",
        "-c",
        "-f",
        "--namespace",
        "--container",
        "--context",
        "--kubeconfig",
        "--cluster",
        "--user",
    ],
    ..Grammar::PLAIN
};

pub(super) fn unwrap(call: &Call, found: &mut Vec<Inner>) {
    match call.name.as_str() {
        "ssh" => ssh(call, found),
        "docker" | "podman" | "nerdctl" => container(call, found),
        "docker-compose" | "podman-compose" => compose(call, 0, found),
        "kubectl" | "oc" => pod(call, found),
        _ => {}
    }
}

/// Where the remote command of `ssh` begins.
pub(crate) fn ssh_command_at(call: &Call) -> Option<usize> {
    SSH.command_at(&call.args)
}

fn ssh(call: &Call, found: &mut Vec<Inner>) {
    if let Some((text, value)) = call.option_texts(&["-o"]).find(|(text, _)| {
        let lower = text.to_lowercase();
        ["proxycommand", "localcommand", "knownhostscommand"]
            .iter()
            .any(|option| lower.starts_with(option))
    }) {
        let code = text.split_once(['=', ' ']).map_or("", |(_, code)| code);
        found.push(Inner::part(code, value.span));
    }
    match SSH.command_at(&call.args) {
        Some(at) => found.push(Inner::shell(&joined(call.args.get(at..).unwrap_or_default()))),
        // Without a command the remote shell reads its input.
        None => found.extend(Inner::input(call)),
    }
}

fn container(call: &Call, found: &mut Vec<Inner>) {
    let Some(mut at) = DOCKER.command_at(&call.args) else {
        return;
    };
    let word = |at: usize| call.args.get(at).map(|arg| arg.text.as_str());
    if word(at) == Some("compose") {
        compose(call, at + 1, found);
        return;
    }
    if word(at) == Some("container") {
        at += 1;
    }
    if !matches!(word(at), Some("exec" | "run" | "create")) {
        return;
    }
    inside(call, at + 1, found);
}

fn compose(call: &Call, from: usize, found: &mut Vec<Inner>) {
    let grammar = Grammar {
        valued: &[
            "-f",
            "-p",
            "--file",
            "--project-name",
            "--profile",
            "--env-file",
            "--project-directory",
        ],
        ..Grammar::PLAIN
    };
    let tail = call.args.get(from..).unwrap_or_default();
    if let Some(at) = grammar.command_at(tail)
        && matches!(tail.get(at).map(|arg| arg.text.as_str()), Some("exec" | "run"))
    {
        inside(call, from + at + 1, found);
    }
}

fn inside(call: &Call, from: usize, found: &mut Vec<Inner>) {
    let tail = call.args.get(from..).unwrap_or_default();
    if let Some(at) = DOCKER_RUN.command_at(tail) {
        let words = tail.get(at..).unwrap_or_default().to_vec();
        let contained = !mounts_host(call);
        found.push(Inner::Argv {
            wrapper: call.name.clone(),
            words,
            contained,
            guessed: false,
            assigned: Vec::new(),
            cwd: None,
        });
    }
}

/// Folders of the host that give a container power over it.
const HOST_FOLDERS: &[&str] = &[
    "/",
    "/etc",
    "/root",
    "/home",
    "/usr",
    "/boot",
    "/dev",
    "/proc",
    "/sys",
    "/var/run/docker.sock",
    "/run/docker.sock",
];

pub(crate) fn mounts_host(call: &Call) -> bool {
    let volumes = call
        .option_texts(&["-v", "--volume"])
        .filter_map(|(text, _)| text.split(':').next());
    let mounts = call.option_texts(&["--mount"]).flat_map(|(text, _)| text.split(','));
    let sources = mounts.filter_map(|part| part.strip_prefix("source=").or_else(|| part.strip_prefix("src=")));
    volumes.chain(sources).any(|folder| HOST_FOLDERS.contains(&folder))
}

fn pod(call: &Call, found: &mut Vec<Inner>) {
    let Some(at) = KUBECTL.command_at(&call.args) else {
        return;
    };
    if call
        .args
        .get(at)
        .is_none_or(|arg| !matches!(arg.text.as_str(), "exec" | "run" | "debug"))
    {
        return;
    }
    let dashes = call
        .args
        .iter()
        .position(|arg| arg.text == "--")
        .map(|dashes| dashes + 1);
    let old = || {
        // `kubectl exec POD CMD`, as it was written before.
        let tail = call.args.get(at + 1..)?;
        let exec = call.args.get(at).is_some_and(|verb| verb.text == "exec");
        let grammar = Grammar { operands: 1, ..KUBECTL };
        grammar.command_at(tail).map(|from| at + 1 + from).filter(|_| exec)
    };
    if let Some(from) = dashes.or_else(old) {
        let words = call.args.get(from..).unwrap_or_default().to_vec();
        found.push(Inner::Argv {
            wrapper: call.name.clone(),
            words,
            contained: true,
            guessed: false,
            assigned: Vec::new(),
            cwd: None,
        });
    }
}
