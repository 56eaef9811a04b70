//! Services and schedulers.

use super::{HIGH, MEDIUM, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::Call;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "stop-service",
        key: "stop/restart system service",
        description: "stops, restarts or disables a service",
        weight: HIGH,
        programs: &["systemctl", "service", "rc-service", "initctl", "sv"],
        when: stops_service,
        hits: &[
            "systemctl stop nginx",
            "systemctl --now disable nginx",
            "systemctl mask cups",
            "service nginx restart",
            "systemctl --user restart x",
        ],
        misses: &[
            "systemctl status nginx",
            "systemctl start nginx",
            "systemctl is-active nginx",
            "service nginx status",
        ],
    },
    Rule {
        id: "crontab-change",
        key: "change of scheduled jobs (crontab)",
        description: "replaces or removes the jobs that run by the clock",
        weight: HIGH,
        programs: &["crontab"],
        when: |call, _| {
            let removes = call.has(&["-r", "-ri", "-ir"]);
            let lists = call.has(&["-l", "-e"]).is_some();
            removes.or_else(|| call.operands().last().filter(|_| !lists).map(|file| file.span))
        },
        hits: &["crontab -r", "crontab jobs.txt", "echo '* * * * * x' | crontab -"],
        misses: &["crontab -l", "crontab -l -u bob | grep x"],
    },
    Rule {
        id: "at-job",
        key: "command scheduled for later (at)",
        description: "runs commands later, when nobody watches",
        weight: MEDIUM,
        programs: &["at", "batch"],
        when: |call, _| call.has(&["-l", "-d", "-r", "-c", "-V"]).is_none().then_some(call.span),
        hits: &["at now <<< 'rm -rf ~'", "echo x | at noon"],
        misses: &["at -l", "cat at"],
    },
];

fn stops_service(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let verbs = [
        "stop",
        "restart",
        "disable",
        "mask",
        "try-restart",
        "kill",
        "force-reload",
        "isolate",
    ];
    let is_verb = |text: &str| verbs.contains(&text);
    let verb = match call.name.as_str() {
        "service" | "rc-service" => call.operands().nth(1)?,
        _ => call.operands().next()?,
    };
    is_verb(&verb.text).then_some(verb.span)
}
