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
        when: |call, _| (mounts_host(call) || call.has(&["--privileged", "--pid=host"]).is_some()).then_some(call.span),
        hits: &["docker run --rm -v /:/host alpine ls", "docker run --privileged x"],
        misses: &["docker run --rm alpine true", "docker run -v /home/x:/x y"],
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
        hits: &["docker system prune -af", "docker volume rm data"],
        misses: &["docker system df", "docker volume ls"],
    },
];

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
        [object, verb, ..] if object.text == "volume" && matches!(verb.text.as_str(), "rm" | "remove") => {
            Some(verb.span)
        }
        _ => None,
    }
}
