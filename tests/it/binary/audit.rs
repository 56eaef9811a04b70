//! `audit`: an export out of a database, proved by the binary alone.

use std::process::Output;

use reqwest::Method;

use super::program::{Program, err, out, run, store_flags};
use crate::harness::{Place, on_both};

async fn audit(place: &Place, args: &[&str], with_store: bool) -> Output {
    let flags = if with_store { store_flags(place) } else { Vec::new() };
    let args: Vec<&str> = ["audit"]
        .into_iter()
        .chain(args.iter().copied())
        .chain(flags.iter().map(String::as_str))
        .collect();
    run(place, &args).await
}

async fn verify(place: &Place, text: &str) -> Output {
    std::fs::write(place.directory.join("given.jsonl"), text).unwrap();
    audit(place, &["verify", "given.jsonl"], false).await
}

#[test]
fn an_export_is_proved_offline_and_a_spoiled_one_is_not() {
    on_both(|place| async move {
        let program = Program::start(&place).await;
        for _ in 0..3 {
            program.session().await;
        }
        let answer = program.request(Method::GET, "/v1/audit/export").send().await.unwrap();
        let live = verify(&place, &answer.text().await.unwrap()).await;
        assert!(live.status.success(), "{}", err(&live));
        program.stop().await;

        // What the server had not chained yet it chained at its end.
        let written = audit(&place, &["export", "--output", "whole.jsonl"], true).await;
        assert!(written.status.success(), "{}", err(&written));
        let whole = std::fs::read_to_string(place.directory.join("whole.jsonl")).unwrap();
        let good = verify(&place, &whole).await;
        assert!(out(&good).starts_with("holds: 4 entries of ten_"), "{}", out(&good));
        assert!(!out(&good).contains("not chained yet"));
        let hash = out(&good)
            .lines()
            .next()
            .unwrap()
            .rsplit(' ')
            .next()
            .unwrap()
            .to_owned();

        let lines: Vec<&str> = whole.lines().collect();
        let joined = |lines: &[&str]| lines.join("\n") + "\n";
        let flipped = whole.replacen("session.created", "session.deleted", 1);
        let dropped = joined(&[&lines[..2], &lines[3..]].concat());
        let mut moved = lines.clone();
        moved.swap(2, 3);
        for (what, spoiled, line) in [
            ("flipped", flipped, 3),
            ("dropped", dropped, 3),
            ("moved", joined(&moved), 3),
            ("cut", joined(&lines[..4]), 5),
            ("cut in a line", whole.trim_end().to_owned(), 6),
            ("empty", String::new(), 1),
        ] {
            let said = verify(&place, &spoiled).await;
            assert_eq!(said.status.code(), Some(1), "{what}");
            assert!(err(&said).contains(&format!("line {line}: ")), "{what}: {}", err(&said));
        }

        // A key made by hand is in the trail, and nobody has chained it.
        let flags = store_flags(&place);
        let mut key = vec!["key", "create", "--name", "x"];
        key.extend(flags.iter().map(String::as_str));
        assert!(run(&place, &key).await.status.success());
        audit(&place, &["export", "--output", "later.jsonl"], true).await;
        let later = audit(&place, &["verify", "later.jsonl", "--passes", &hash], false).await;
        assert!(out(&later).contains("not chained yet") && out(&later).contains("entry `aud_"));
        let other = "0".repeat(64);
        let other = audit(&place, &["verify", "later.jsonl", "--passes", &other], false).await;
        assert_eq!(other.status.code(), Some(1));
        let nobody = audit(&place, &["export", "--tenant", "nobody"], true).await;
        assert!(err(&nobody).contains("there is no tenant `nobody`"));
    });
}

#[tokio::test]
async fn the_help_of_audit_shows_examples() {
    let place = Place::sqlite();
    let help = audit(&place, &["--help"], false).await;
    assert!(help.status.success());
    for line in ["audit export --tenant acme", "audit verify audit.jsonl", "--passes"] {
        assert!(out(&help).contains(line), "{}", out(&help));
    }
}
