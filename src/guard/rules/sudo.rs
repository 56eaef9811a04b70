//! Rights of another user.

use super::{HIGH, MEDIUM, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::{Call, abbreviates, is_group};
use crate::guard::resolve::Value;
use crate::guard::unwrap::{is_shell, wrapper};

const SUDO: &[&str] = &["sudo"];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "sudo-privilege-flag",
        key: "sudo with privilege flag (stdin/askpass/shell/list)",
        description: "takes a password from elsewhere or opens a shell of another user",
        weight: HIGH,
        programs: SUDO,
        when: |call, _| {
            own_options(call)
                .find(|arg| is_privilege(&arg.text))
                .map(|arg| arg.span)
        },
        hits: &[
            "sudo -n -S id",
            "sudo -u root -S x",
            "sudo --askpass id",
            "sudo --stdi id",
            "sudo -A ls",
            "sudo -a ls",
        ],
        misses: &[
            "sudo apt install x",
            "sudo -u bob cmd",
            "sudo -l",
            "sudo grep -A3 x f",
            "sudo --shell id",
            "sudo -E ls",
            "sudo cmd -s",
        ],
    },
    Rule {
        id: "sudo-combined-flag",
        key: "sudo with combined-flag privilege escalation",
        description: "takes a password from elsewhere or opens a shell of another user",
        weight: HIGH,
        programs: SUDO,
        when: |call, _| {
            own_options(call)
                .find(|arg| is_group(&arg.text) && arg.text.len() > 2 && arg.text.contains(['s', 'S', 'a', 'A']))
                .map(|arg| arg.span)
        },
        hits: &["sudo -nS id", "sudo -ns", "sudo -kS ls"],
        misses: &["sudo -EH ls", "sudo -nu bob ls"],
    },
    Rule {
        id: "root-shell",
        key: "shell of another user",
        description: "opens a shell of root or another user",
        weight: MEDIUM,
        programs: &["sudo", "su", "doas", "bash", "sh", "zsh", "dash", "ksh", "fish"],
        when: opens_shell,
        hits: &[
            "sudo bash",
            "pkexec sh",
            "sudo -u root zsh -l",
            "sudo -i",
            "sudo --shell",
            "su",
            "su - root",
            "doas -s",
        ],
        misses: &["sudo bash x.sh", "bash", "sudo -i ls", "su -c 'ls' bob", "sudo ls"],
    },
];

/// Options before the command; the value of an option is none.
fn own_options(call: &Call) -> impl Iterator<Item = &Value> {
    let mut skip = false;
    call.args
        .iter()
        .take_while(move |arg| {
            let is_value = std::mem::replace(&mut skip, false);
            skip = !is_value && wrapper("sudo").is_some_and(|sudo| sudo.takes_next(&arg.text));
            is_value || (arg.text.starts_with('-') && arg.text != "--") || arg.text.contains('=')
        })
        .filter(|arg| arg.text.starts_with('-'))
}

fn is_privilege(text: &str) -> bool {
    matches!(text, "-S" | "-s" | "-A" | "-a") || abbreviates(text, "stdin", 2) || abbreviates(text, "askpass", 1)
}

fn opens_shell(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let command = wrapper(&call.name).and_then(|grammar| grammar.command_at(&call.args));
    let opens = match call.name.as_str() {
        "sudo" => {
            command.is_none()
                && (call.short('i').is_some() || call.long("shell", 2).is_some() || call.long("login", 2).is_some())
        }
        name if is_shell(name) => {
            let interactive = call
                .args
                .iter()
                .all(|arg| matches!(arg.text.as_str(), "-i" | "-l" | "--login"));
            interactive && call.wrapped_by(&["sudo", "doas", "pkexec"]) && call.feed.is_none() && call.input.is_none()
        }
        "doas" => command.is_none() && call.short('s').is_some(),
        _ => call.option_text(&["-c", "--command"]).is_none() && call.has(&["--help", "--version"]).is_none(),
    };
    opens.then_some(call.span)
}
