//! Scans as they end.

use super::*;

fn judge(ended: &[Ended], fail_open: bool) -> Vec<Action> {
    let mut breaker = Breaker::default();
    ended
        .iter()
        .map(|ended| breaker.judge(*ended, "", fail_open).action)
        .collect()
}

#[test]
fn after_three_failures_the_scanner_is_left_alone_and_fails_as_before() {
    let ended = [Ended::Timeout, Ended::Signalled, Ended::Exited(3), Ended::Exited(1)];
    assert_eq!(judge(&ended, true), [Action::Allow; 4]);
    assert_eq!(judge(&ended, false), [Action::Block; 4]);
    let between = [
        Ended::Timeout,
        Ended::Spawn,
        Ended::Exited(0),
        Ended::Timeout,
        Ended::Exited(1),
    ];
    assert_eq!(judge(&between, true)[4], Action::Block);
    assert_eq!(judge(&[Ended::Missing; 5], false), [Action::Block; 5]);
}

#[test]
fn what_is_printed_explains_and_never_decides() {
    let printed = r#"{"findings": [{"rule_id": "a", "severity": "HIGH", "title": "t", "description": "d"}, 5]}"#;
    assert_eq!(Scan::read(Ended::Exited(0), printed).unwrap().finding("x"), None);
    let finding = Scan::read(Ended::Exited(2), printed).unwrap().finding("x").unwrap();
    assert_eq!(
        (finding.key.as_str(), finding.description.as_str()),
        ("tirith:a", "[HIGH] t: d")
    );
    for broken in ["not json", "[]", "{\"findings\": 5}", "null", ""] {
        let scan = Scan::read(Ended::Exited(1), broken).unwrap();
        assert_eq!(
            (scan.action, scan.finding("x").unwrap().key.as_str()),
            (Action::Block, "tirith:unknown")
        );
    }
}

#[test]
fn a_warning_about_apps_alone_is_none() {
    let app = r#"{"findings": [{"rule_id": "lookalike_tld", "value": "https://x.app/a"}]}"#;
    assert_eq!(Scan::read(Ended::Exited(2), app).unwrap(), Scan::default());
    assert_eq!(Scan::read(Ended::Exited(1), app).unwrap().action, Action::Block);
    for other in [
        app.replace("}]}", "}, 5]}"),
        app.replace("\"value\": \"https", "\"title\": \"https"),
    ] {
        assert_eq!(
            Scan::read(Ended::Exited(2), &other).unwrap().action,
            Action::Warn,
            "{other}"
        );
    }
    let named = app.replace("value", "tld");
    assert_eq!(Scan::read(Ended::Exited(2), &named).unwrap(), Scan::default());
    let zip = app.replace("x.app", "x.zip");
    assert_eq!(Scan::read(Ended::Exited(2), &zip).unwrap().action, Action::Warn);
}
