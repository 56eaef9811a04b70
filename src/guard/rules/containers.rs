//! Containers and machines behind other front ends than docker's: their end, and
//! ways out of them.

use super::{HIGH, MEDIUM, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::Call;
use crate::guard::options::Grammar;
use crate::guard::resolve::Value;

/// Options before the verb that take a value.
const GLOBAL: Grammar = Grammar {
    valued: &[
        "-n",
        "-a",
        "-r",
        "-i",
        "-t",
        "-M",
        "-H",
        "-D",
        "-c",
        "-p",
        "--namespace",
        "--address",
        "--runtime-endpoint",
        "--image-endpoint",
        "--timeout",
        "--connect-timeout",
        "--config",
        "--machine",
        "--host",
        "--root",
        "--project",
    ],
    ..Grammar::PLAIN
};

/// Front end, object (empty: the verb stands alone), verbs that end it.
const ENDS: &[(&[&str], &[&str], &[&str])] = &[
    (
        &["ctr"],
        &[
            "c",
            "container",
            "containers",
            "i",
            "image",
            "images",
            "t",
            "task",
            "tasks",
            "snapshot",
            "snapshots",
            "content",
            "leases",
            "namespaces",
            "namespace",
            "ns",
            "sandboxes",
            "pods",
        ],
        &["rm", "remove", "delete", "del", "kill", "prune", "d"],
    ),
    (
        &["crictl"],
        &[""],
        &["rm", "rmp", "rmi", "stop", "stopp", "delete", "remove"],
    ),
    (
        &["machinectl"],
        &[""],
        &["terminate", "kill", "remove", "poweroff", "reboot", "stop", "clean"],
    ),
    (&["orb", "orbctl"], &[""], &["delete", "reset"]),
    (&["lxc", "incus"], &[""], &["stop", "restart"]),
    (
        &["podman"],
        &["machine", "pod", "kube"],
        &["rm", "reset", "stop", "kill", "down"],
    ),
    (&["skopeo"], &[""], &["delete"]),
    (&["crane", "regctl"], &["", "image", "tag"], &["delete", "rm"]),
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "container-front-end",
        key: "stop or delete of containers or machines",
        description: "stops or deletes containers, machines or images",
        weight: MEDIUM,
        programs: &[
            "ctr",
            "crictl",
            "machinectl",
            "orb",
            "orbctl",
            "lxc",
            "incus",
            "podman",
            "skopeo",
            "crane",
            "regctl",
            "lxc-destroy",
            "lxc-stop",
            "buildah",
            "wsl",
        ],
        when: ends,
        hits: &[
            "ctr -n k8s.io images rm img",
            "sudo ctr task kill -s SIGKILL web",
            "crictl rmp -fa",
            "machinectl terminate web",
            "lxc stop --all",
            "lxc-destroy -n web -f",
            "podman machine rm -f",
            "podman pod rm -fa",
            "buildah rm --all",
            "skopeo delete docker://registry/image",
            "wsl --unregister Ubuntu",
            "orb delete vm",
        ],
        misses: &[
            "ctr images list",
            "crictl ps",
            "crictl logs abc",
            "machinectl status web",
            "lxc list",
            "podman machine list",
            "buildah rm working-container",
            "skopeo inspect docker://alpine",
            "wsl --list",
        ],
    },
    Rule {
        id: "container-front-end-host",
        key: "container with access to the host (other front ends)",
        description: "gives a container the host's files or rights",
        weight: HIGH,
        programs: &[
            "ctr",
            "lxc",
            "incus",
            "systemd-nspawn",
            "apptainer",
            "singularity",
            "lxc-start",
            "lxc-execute",
            "runc",
            "crun",
            "flatpak",
        ],
        when: reaches_host,
        hits: &[
            "ctr run --privileged img c sh",
            "ctr run --mount type=bind,src=/,dst=/h,options=rbind:rw img c sh",
            "lxc config set c security.privileged true",
            "lxc config device add c d disk source=/ path=/h",
            "incus launch images:alpine c -c security.privileged=true",
            "systemd-nspawn -D / sh",
            "apptainer exec --bind /:/h img.sif sh",
            "singularity exec -B /etc:/etc img sh",
            "flatpak override --filesystem=host org.x",
        ],
        misses: &[
            "ctr run --rm img c sh",
            "lxc launch images:alpine c",
            "lxc config show c",
            "systemd-nspawn -D ./root ls",
            "apptainer exec --bind ./data:/data img.sif ls",
            "flatpak override --show org.x",
        ],
    },
    Rule {
        id: "fleet-change",
        key: "change of many machines at once",
        description: "stops, deletes or runs something on every machine that it reaches",
        weight: HIGH,
        programs: &["salt", "salt-call", "salt-ssh", "puppet", "knife"],
        when: manages,
        hits: &[
            "salt 'web*' system.reboot",
            "salt '*' file.remove /srv",
            "salt '*' pkg.purge nginx",
            "puppet apply -e 'exec { \"/bin/rm -rf /srv\": }'",
            "puppet resource service nginx ensure=stopped",
            "knife node delete web",
        ],
        misses: &[
            "salt '*' test.ping",
            "salt 'web*' grains.items",
            "puppet apply --noop site.pp",
            "puppet parser validate site.pp",
            "knife node list",
        ],
    },
];

/// Functions of configuration managers that stop or delete on many machines.
fn manages(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let word = |ends: fn(&str) -> bool| call.args.iter().find(|arg| ends(&arg.text)).map(|arg| arg.span);
    match call.name.as_str() {
        "puppet" => word(|text| matches!(text, "ensure=absent" | "ensure=stopped" | "ensure=purged")).or_else(|| {
            call.operands()
                .next()
                .filter(|verb| verb.text == "apply" && call.has(&["--noop"]).is_none())
                .map(|verb| verb.span)
        }),
        "knife" => word(|text| matches!(text, "delete" | "bulk" | "purge")).or_else(|| {
            let verb = call.operands().next().filter(|verb| verb.text == "ssh")?;
            Some(verb.span)
        }),
        _ => word(|text| {
            let Some((module, function)) = text.split_once('.') else {
                return false;
            };
            matches!(
                (module, function),
                ("system", "reboot" | "shutdown" | "halt" | "poweroff" | "init")
                    | ("file", "remove" | "rmdir" | "truncate" | "write")
                    | ("service", "stop" | "restart" | "disable")
                    | ("cmd", "script" | "exec_code" | "shell" | "powershell")
                    | (
                        "user" | "group" | "pkg" | "cron" | "disk" | "lvm" | "zfs" | "zpool",
                        "delete" | "remove" | "purge" | "rm" | "format" | "wipe" | "lvremove" | "vgremove" | "destroy"
                    )
            )
        }),
    }
}

fn words(call: &Call) -> &[Value] {
    let at = GLOBAL.command_at(&call.args).unwrap_or(call.args.len());
    call.args.get(at..).unwrap_or_default()
}

fn ends(call: &Call, _: &Scene<'_>) -> Option<Span> {
    match call.name.as_str() {
        "lxc-destroy" | "lxc-stop" => return call.has(&["--help", "--version"]).is_none().then_some(call.span),
        "wsl" => return call.has(&["--unregister", "--shutdown", "--terminate", "-t"]),
        "buildah" => {
            let verb = words(call)
                .first()
                .filter(|verb| matches!(verb.text.as_str(), "rm" | "rmi" | "prune"))?;
            let all = call.has(&["-a", "--all", "-f", "--force"]).is_some() || call.short('a').is_some();
            return all.then_some(verb.span);
        }
        _ => {}
    }
    let (_, objects, verbs) = ENDS.iter().find(|(names, ..)| names.contains(&call.name.as_str()))?;
    let mut words = words(call).iter();
    let first = words.next()?;
    let alone = objects.contains(&"") && verbs.contains(&first.text.as_str());
    if alone {
        return Some(first.span);
    }
    let verb = words.next().filter(|_| objects.contains(&first.text.as_str()))?;
    verbs.contains(&verb.text.as_str()).then_some(verb.span)
}

fn reaches_host(call: &Call, scene: &Scene<'_>) -> Option<Span> {
    let of_host = |path: &str| super::floor::is_protected(&super::paths::locate(path, scene.setting));
    let source = |text: &str| {
        let named = text.split([',', ' ']).find_map(|part| {
            let (name, path) = part.split_once('=')?;
            matches!(name, "src" | "source").then_some(path)
        });
        named.is_some_and(of_host)
    };
    let bound = |options: &'static [&'static str]| {
        let mut binds = call.option_texts(options);
        binds.find(|(text, _)| {
            text.split([',', ' '])
                .any(|bind| of_host(bind.split(':').next().unwrap_or_default()))
        })
    };
    let says = |words: &[&str]| {
        call.args
            .iter()
            .find(|arg| words.contains(&arg.text.as_str()))
            .map(|arg| arg.span)
    };
    match call.name.as_str() {
        "ctr" | "runc" | "crun" => says(&["--privileged", "--with-ns", "--net-host"]).or_else(|| {
            call.option_texts(&["--mount"])
                .find(|(text, _)| source(text))
                .map(|(_, arg)| arg.span)
        }),
        "lxc" | "incus" => {
            let privileged = |text: &str| {
                text.starts_with("security.privileged")
                    || text.starts_with("raw.lxc")
                    || text.starts_with("security.nesting")
            };
            let sets = call.args.iter().find(|arg| privileged(&arg.text)).map(|arg| arg.span);
            sets.filter(|_| call.operands().next().is_none_or(|verb| verb.text != "list"))
                .or_else(|| call.args.iter().find(|arg| source(&arg.text)).map(|arg| arg.span))
        }
        "systemd-nspawn" => bound(&["-D", "--directory", "--bind"]).map(|(_, arg)| arg.span),
        "flatpak" => call
            .args
            .iter()
            .find(|arg| {
                matches!(
                    arg.text.as_str(),
                    "--filesystem=host" | "--filesystem=home" | "--filesystem=/"
                )
            })
            .map(|arg| arg.span),
        "lxc-start" | "lxc-execute" => None,
        _ => bound(&["-B", "--bind", "--mount"]).map(|(_, arg)| arg.span),
    }
}
