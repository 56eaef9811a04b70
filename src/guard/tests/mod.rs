//! The guard as its callers see it.

mod hostile;
mod properties;
mod reboots;

use super::{Backend, Judgement, Setting, Verdict, check};

pub(super) const ALICE: Setting<'_> = Setting {
    backend: Backend::Local,
    home: "/home/alice",
    agent_home: "/home/alice/.hermes",
    cwd: None,
    sudo_password: false,
};

fn judged(command: &str) -> Judgement {
    check(command, &ALICE)
}

fn verdict(command: &str) -> Verdict {
    judged(command).verdict
}
