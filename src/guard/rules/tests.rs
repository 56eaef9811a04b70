//! Every row is run on its own examples.

use std::collections::HashSet;

use super::{Weight, all};
use crate::guard::tests::ALICE;
use crate::guard::{Verdict, check};

#[test]
fn every_rule_hits_its_hits_and_misses_its_misses() {
    let mut wrong = Vec::new();
    for rule in all() {
        for (command, expected) in rule
            .hits
            .iter()
            .map(|hit| (hit, true))
            .chain(rule.misses.iter().map(|miss| (miss, false)))
        {
            let judgement = check(command, &ALICE);
            let found = judgement.findings.iter().any(|finding| finding.rule == rule.id);
            let denied = judgement.verdict == Verdict::Deny;
            let floor = matches!(rule.weight, Weight::Floor);
            if found != expected || (expected && floor && !denied) {
                let rules: Vec<_> = judgement.findings.iter().map(|finding| finding.rule.clone()).collect();
                wrong.push(format!(
                    "{}: {command:?} should {} but got {:?} {rules:?}",
                    rule.id,
                    if expected { "hit" } else { "miss" },
                    judgement.verdict
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_two_rules_share_an_id_or_a_key() {
    let mut ids = HashSet::new();
    let mut keys = HashSet::new();
    for rule in all() {
        assert!(ids.insert(rule.id), "id `{}` stands twice", rule.id);
        assert!(keys.insert(rule.key), "key `{}` stands twice", rule.key);
        assert!(
            !rule.hits.is_empty() && !rule.misses.is_empty(),
            "`{}` has no examples",
            rule.id
        );
        assert!(
            rule.id
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
            "{}",
            rule.id
        );
    }
}
