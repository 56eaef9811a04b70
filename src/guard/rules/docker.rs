//! Containers: their life, and ways out of them.

use super::{HIGH, MEDIUM, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::Call;
use crate::guard::options::Grammar;
use crate::guard::resolve::Value;
use crate::guard::unwrap::{DOCKER, mounts_host};

const ENGINES: &[&str] = &["docker", "podman", "nerdctl", "docker-compose", "podman-compose"];
const COMPOSE: Grammar = Grammar {
    valued: &[
        "-f",
        "-p",
        "--file",
        "--project-name",
        "--profile",
        "--env-file",
        "--project-directory",
        "--ansi",
        "--parallel",
    ],
    ..Grammar::PLAIN
};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "docker-host-mount",
        key: "container with access to the host",
        description: "gives a container the host's files or rights",
        weight: HIGH,
        programs: ENGINES,
        when: |call, _| (mounts_host(call) || takes_host_rights(call)).then_some(call.span),
        hits: &[
            "docker run --rm -v /:/host alpine ls",
            "docker run --privileged x",
            "docker run --cap-add=SYS_ADMIN x",
            "docker run --device /dev/sda x",
            "docker run --security-opt apparmor=unconfined x",
        ],
        misses: &[
            "docker run --rm alpine true",
            "docker run -v /home/x:/x y",
            "docker run --cap-add NET_BIND_SERVICE x",
            "docker run --device /dev/dri x",
        ],
    },
    Rule {
        id: "compose-lifecycle",
        key: "docker compose restart/stop/kill/down (container lifecycle)",
        description: "stops or restarts the services of a project",
        weight: MEDIUM,
        programs: ENGINES,
        when: |call, _| {
            compose(call)
                .filter(|verb| is_one(verb, &["restart", "stop", "kill", "down"]))
                .map(|verb| verb.span)
        },
        hits: &[
            "docker compose down",
            "docker-compose stop app",
            "docker compose -f x restart",
            "docker compose --project-name demo  down",
        ],
        misses: &["docker compose up", "docker compose ps", "echo docker compose stop"],
    },
    Rule {
        id: "compose-remove",
        key: "docker compose rm (deletes containers)",
        description: "deletes the containers of a project, and what they keep",
        weight: MEDIUM,
        programs: ENGINES,
        when: |call, _| {
            let unasked = call.short('f').or(call.short('s')).or(call.short('v')).is_some()
                || call.has(&["--force", "--stop", "--volumes"]).is_some();
            compose(call)
                .filter(|verb| unasked && is_one(verb, &["rm", "remove"]))
                .map(|verb| verb.span)
        },
        hits: &[
            "docker compose rm -f",
            "docker-compose -f x.yml rm -sv web",
            "podman-compose rm --force",
            "nerdctl compose rm -sf",
        ],
        misses: &[
            "docker compose run --rm web npm test",
            "docker compose ps",
            "docker compose rm --help",
        ],
    },
    Rule {
        id: "container-lifecycle",
        key: "docker restart/stop/kill (container lifecycle)",
        description: "stops or restarts containers",
        weight: MEDIUM,
        programs: ENGINES,
        when: |call, _| {
            subcommand(call)
                .filter(|verb| is_one(verb, &["restart", "stop", "kill"]))
                .map(|verb| verb.span)
        },
        hits: &[
            "docker stop web",
            "podman stop web",
            "docker --context prod stop web",
            "docker container restart x",
            "docker ps -q | xargs docker stop",
            "echo 'docker restart app' | ssh prod",
        ],
        misses: &[
            "docker ps",
            "docker logs web",
            "docker --context=prod ps",
            "git commit -m 'docker restart'",
        ],
    },
    Rule {
        id: "container-prune",
        key: "docker prune (deletes unused data)",
        description: "deletes containers, images or volumes",
        weight: MEDIUM,
        programs: ENGINES,
        when: prunes,
        hits: &[
            "docker system prune -af",
            "docker volume rm data",
            "docker rm -f $(docker ps -aq)",
            "docker stack rm x",
            "docker swarm leave --force",
            "docker network rm x",
            "podman system reset -f",
            "podman --remote rm -fa",
        ],
        misses: &[
            "docker system df",
            "docker volume ls",
            "docker rm -f test-db",
            "docker image prune",
        ],
    },
];

fn takes_host_rights(call: &Call) -> bool {
    const RIGHTS: &[&str] = &[
        "ALL",
        "SYS_ADMIN",
        "SYS_PTRACE",
        "SYS_MODULE",
        "DAC_READ_SEARCH",
        "DAC_OVERRIDE",
        "SYS_RAWIO",
        "BPF",
        "NET_ADMIN",
    ];
    let named = |options: &'static [&'static str], holds: fn(&str) -> bool| {
        call.option_texts(options).any(|(text, _)| holds(text))
    };
    call.has(&[
        "--privileged",
        "--pid=host",
        "--ipc=host",
        "--userns=host",
        "--uts=host",
        "--privileged=true",
    ])
    .is_some()
        || named(&["--cap-add"], |text| {
            let upper = text.to_uppercase();
            RIGHTS.contains(&upper.strip_prefix("CAP_").unwrap_or(&upper))
        })
        || named(&["--device"], |text| {
            super::paths::is_block_device(text.split(':').next().unwrap_or_default()) || text.starts_with("/dev/mem")
        })
        || named(&["--security-opt"], |text| {
            text.contains("unconfined") || text.contains("disable")
        })
        || named(&["--pid", "--ipc", "--userns", "--uts", "--cgroupns"], |text| {
            text == "host"
        })
}

fn is_one(verb: &Value, verbs: &[&str]) -> bool {
    verbs.contains(&verb.text.as_str())
}

fn words(call: &Call) -> &[Value] {
    let at = DOCKER.command_at(&call.args).unwrap_or(call.args.len());
    call.args.get(at..).unwrap_or_default()
}

/// The verb of `docker compose`.
fn compose(call: &Call) -> Option<&Value> {
    let words = if call.name.ends_with("-compose") {
        call.args.as_slice()
    } else {
        words(call)
            .split_first()
            .filter(|(first, _)| first.text == "compose")?
            .1
    };
    words.get(COMPOSE.command_at(words)?)
}

fn subcommand(call: &Call) -> Option<&Value> {
    if call.name.ends_with("-compose") {
        return None;
    }
    match words(call) {
        [first, second, ..] if first.text == "container" => Some(second),
        [first, ..] => Some(first),
        [] => None,
    }
}

fn prunes(call: &Call, _: &Scene<'_>) -> Option<Span> {
    match words(call) {
        [object, verb, ..] if verb.text == "prune" => {
            let forced = object.text == "volume"
                || call.short('f').or(call.short('a')).is_some()
                || call.has(&["--all", "--force", "--volumes"]).is_some();
            forced.then_some(verb.span)
        }
        [object, verb, ..]
            if matches!(
                (object.text.as_str(), verb.text.as_str()),
                ("stack" | "service" | "secret" | "config" | "network", "rm")
                    | ("swarm", "leave")
                    | ("system", "reset")
            ) =>
        {
            Some(verb.span)
        }
        [verb, rest @ ..] if matches!(verb.text.as_str(), "rm" | "rmi") => {
            // Running containers and every one that a search lists.
            let forced = rest.iter().any(|arg| {
                crate::guard::call::is_group(&arg.text) && arg.text.contains(['f', 'v']) || arg.text == "--force"
            });
            let listed = rest.iter().any(|arg| {
                !arg.runs.is_empty()
                    || crate::guard::call::is_group(&arg.text) && arg.text.contains('a')
                    || matches!(arg.text.as_str(), "--all" | "--prune")
            });
            (listed && (forced || verb.text == "rmi")).then_some(verb.span)
        }
        [object, verb, ..] if object.text == "volume" && matches!(verb.text.as_str(), "rm" | "remove") => {
            Some(verb.span)
        }
        _ => None,
    }
}
