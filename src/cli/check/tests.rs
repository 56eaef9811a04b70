//! The command's judgement and how it is shown.

use super::*;
use crate::config::Sources;

fn config(variables: &[(&str, &str)]) -> Config {
    let environment = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::load(&Sources {
        environment: environment.collect(),
        ..Sources::default()
    })
    .unwrap()
}

fn judgement(command: &str, variables: &[(&str, &str)]) -> Judgement {
    let config = config(variables);
    let judge = Judge::new(&config, "/home/ada").unwrap();
    judge.judge(command, Backend::Local, None)
}

fn verdict(command: &str, variables: &[(&str, &str)]) -> Verdict {
    judgement(command, variables).verdict
}

#[test]
fn lists_and_modes_of_the_configuration_count_but_never_lift_the_floor() {
    let (ask, floor) = ("rm -rf build", "rm -rf /");
    assert_eq!((verdict(ask, &[]), verdict(floor, &[])), (Verdict::Ask, Verdict::Deny));
    for setting in [
        ("HERMES__APPROVALS__MODE", "off"),
        ("HERMES__COMMAND_ALLOWLIST", "[rm -rf build, rm -rf /]"),
        ("HERMES__APPROVALS__POLICY__ALLOW", "[rm -rf build, rm -rf /]"),
        ("HERMES__APPROVALS__POLICY__FAMILIES_OFF", "[delete]"),
    ] {
        assert_eq!(verdict(ask, &[setting]), Verdict::Allow, "{setting:?}");
        assert_eq!(verdict(floor, &[setting]), Verdict::Deny, "{setting:?}");
    }
    for setting in [
        ("HERMES__APPROVALS__DENY", "['git st*']"),
        ("HERMES__APPROVALS__POLICY__DENY", "[git]"),
    ] {
        assert_eq!(verdict("git status", &[setting]), Verdict::Deny, "{setting:?}");
    }
}

#[test]
fn a_finding_names_its_rule_and_marks_what_it_is_about() {
    let command = "cd x\nls && sudo rm -rf 'a b'";
    let text = described(&judgement(command, &[]), command);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "ask");
    let at = lines
        .iter()
        .position(|line| line.contains("(high)") || line.contains("(medium)"))
        .unwrap();
    assert!(lines[at].starts_with("  "), "{text}");
    assert_eq!(lines[at + 1], "    ls && sudo rm -rf 'a b'", "{text}");
    assert!(lines[at + 2].trim_start().starts_with('^'), "{text}");
    assert!(text.contains("    runs: rm -rf 'a b'\n"), "{text}");
}

#[test]
fn an_unknown_backend_names_the_known_ones() {
    let said = backend("podman").unwrap_err().to_string();
    assert!(said.contains("`podman`") && said.contains("docker, ssh"), "{said}");
}
