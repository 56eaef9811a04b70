//! Commands that run later or again and again, by other schedulers than cron and
//! `at`.

use super::{MEDIUM, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::Call;

/// Options of `systemd-run` with which the command waits for its time or its cause.
const TIMERS: &[&str] = &[
    "--on-active",
    "--on-boot",
    "--on-startup",
    "--on-unit-active",
    "--on-unit-inactive",
    "--on-calendar",
    "--on-clock-change",
    "--on-timezone-change",
    "--timer-property",
    "--path-property",
    "--socket-property",
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "timer-unit",
        key: "command scheduled for later (systemd-run)",
        description: "runs a command later or again and again, when nobody watches",
        weight: MEDIUM,
        programs: &["systemd-run"],
        when: |call, _| {
            let is_timer = |text: &str| TIMERS.contains(&text.split('=').next().unwrap_or_default());
            call.options().find(|arg| is_timer(&arg.text)).map(|arg| arg.span)
        },
        hits: &[
            "systemd-run --on-calendar=daily ./x.sh",
            "systemd-run --user --on-active=60 touch a",
            "sudo systemd-run --on-boot 1min true",
            "systemd-run --path-property=PathModified=/x true",
        ],
        misses: &[
            "systemd-run --user --scope make test",
            "systemd-run -p MemoryMax=1G make",
        ],
    },
    Rule {
        id: "other-scheduler",
        key: "command scheduled for later (other schedulers)",
        description: "installs a command that runs later or again and again",
        weight: MEDIUM,
        programs: &[
            "fcrontab",
            "incrontab",
            "anacron",
            "kubectl",
            "oc",
            "gcloud",
            "aws",
            "pm2",
        ],
        when: schedules,
        hits: &[
            "fcrontab mine",
            "incrontab mine.tab",
            "incrontab -e",
            "kubectl create cronjob x --image=y --schedule='* * * * *' -- sh -c z",
            "kubectl -n dev create cronjob x --image=y --schedule=@daily",
            "aws events put-rule --name x --schedule-expression 'rate(1 day)'",
            "aws scheduler create-schedule --name x",
            "gcloud scheduler jobs create http x --schedule='* * * * *'",
            "pm2 start x.js --cron-restart='0 * * * *'",
        ],
        misses: &[
            "fcrontab -l",
            "incrontab -l",
            "kubectl get cronjobs",
            "kubectl create deployment x --image=y",
            "aws events list-rules",
            "gcloud scheduler jobs list",
            "pm2 start x.js",
        ],
    },
];

fn schedules(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let word = |words: &[&str]| {
        call.args
            .iter()
            .find(|arg| words.contains(&arg.text.as_str()))
            .map(|arg| arg.span)
    };
    let lists = call.has(&["-l", "--list", "-h", "--help", "-V", "--version"]).is_some();
    match call.name.as_str() {
        "fcrontab" | "incrontab" | "anacron" => (!lists).then_some(call.span),
        "kubectl" | "oc" => word(&["cronjob", "cj"]).filter(|_| word(&["create"]).is_some()),
        "aws" => word(&["put-rule", "create-schedule"]),
        "gcloud" => word(&["create"]).filter(|_| word(&["scheduler"]).is_some()),
        "pm2" => call
            .options()
            .find(|arg| arg.text.starts_with("--cron"))
            .map(|arg| arg.span),
        _ => None,
    }
}
