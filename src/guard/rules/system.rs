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
        id: "install-service",
        key: "service or job that starts by itself",
        description: "makes a program start by itself from now on",
        weight: MEDIUM,
        programs: &[
            "systemctl",
            "launchctl",
            "loginctl",
            "update-rc.d",
            "chkconfig",
            "pm2",
            "schtasks",
            "reg",
            "supervisorctl",
            "rc-update",
        ],
        when: installs_service,
        hits: &[
            "systemctl enable /tmp/x.service",
            "systemctl --user link ~/x.service",
            "systemctl edit --full nginx",
            "launchctl load ~/Library/LaunchAgents/x.plist",
            "loginctl enable-linger alice",
            "update-rc.d x defaults",
            "pm2 startup",
            "schtasks /create /tn x /tr y",
        ],
        misses: &[
            "systemctl enable nginx",
            "systemctl start nginx",
            "launchctl list",
            "pm2 list",
            "loginctl list-sessions",
        ],
    },
    Rule {
        id: "sleep-or-power",
        key: "machine put to sleep or switched off by a bus call",
        description: "suspends the machine or switches it off",
        weight: HIGH,
        programs: &[
            "systemctl",
            "pm-suspend",
            "pm-hibernate",
            "rtcwake",
            "dbus-send",
            "busctl",
            "gdbus",
            "qdbus",
            "ipmitool",
            "wmic",
            "pmset",
            "loginctl",
            "xe",
        ],
        when: |call, _| {
            let words = [
                "suspend",
                "hibernate",
                "hybrid-sleep",
                "suspend-then-hibernate",
                "sleepnow",
            ];
            let bus = ["PowerOff", "Reboot", "Halt", "Suspend", "poweroff", "reboot"];
            let found = match call.name.as_str() {
                "systemctl" | "loginctl" | "pmset" => call
                    .operands()
                    .next()
                    .filter(|verb| words.contains(&verb.text.as_str())),
                "dbus-send" | "busctl" | "gdbus" | "qdbus" => call.args.iter().find(|arg| {
                    bus.iter()
                        .any(|method| arg.text.rsplit(['.', ' ']).next() == Some(method))
                }),
                "ipmitool" => call
                    .args
                    .iter()
                    .find(|arg| matches!(arg.text.as_str(), "off" | "reset" | "cycle" | "soft")),
                "wmic" => call
                    .args
                    .iter()
                    .find(|arg| matches!(arg.text.as_str(), "reboot" | "shutdown")),
                "xe" => call
                    .operands()
                    .next()
                    .filter(|verb| verb.text.starts_with("vm-destroy") || verb.text == "host-shutdown"),
                _ => Some(&call.program),
            };
            found.map(|arg| arg.span)
        },
        hits: &[
            "systemctl suspend",
            "busctl call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager Reboot b 1",
            "ipmitool chassis power off",
            "rtcwake -m mem -s 60",
        ],
        misses: &["systemctl status suspend.target", "busctl list", "ipmitool sensor"],
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

fn installs_service(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let verb = call.operands().next()?;
    let second = call.operands().nth(1);
    let installs = match (call.name.as_str(), verb.text.as_str()) {
        (
            "systemctl",
            "link" | "edit" | "preset-all" | "set-default" | "set-property" | "import-environment" | "set-environment",
        ) => true,
        ("systemctl", "enable" | "reenable") => second.is_some_and(|unit| unit.text.contains('/')),
        ("launchctl", "load" | "bootstrap" | "submit" | "enable" | "setenv") => true,
        ("loginctl", "enable-linger") => true,
        ("update-rc.d", _) => second.is_some_and(|action| matches!(action.text.as_str(), "defaults" | "enable")),
        ("chkconfig", _) => second.is_some(),
        ("rc-update", "add") => true,
        ("pm2", "startup" | "save") => true,
        ("supervisorctl", "shutdown" | "stop" | "restart") => true,
        ("schtasks", _) => call.args.iter().any(|arg| arg.text.eq_ignore_ascii_case("/create")),
        ("reg", "add") => true,
        _ => false,
    };
    installs.then_some(verb.span)
}

fn stops_service(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let verbs = [
        "stop",
        "restart",
        "disable",
        "mask",
        "try-restart",
        "kill",
        "force-reload",
        "try-reload-or-restart",
        "reload-or-restart",
        "revert",
        "rescue",
        "emergency",
        "default",
        "isolate",
    ];
    let is_verb = |text: &str| verbs.contains(&text);
    let verb = match call.name.as_str() {
        "service" | "rc-service" => call.operands().nth(1)?,
        _ => call.operands().next()?,
    };
    is_verb(&verb.text).then_some(verb.span)
}
