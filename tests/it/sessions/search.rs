//! Words found in titles and messages.

use hermes_server::model::principal::Scope;
use serde_json::{Value, json};

use super::{list, say, session, text};
use crate::harness::client::{Client, NewKey};
use crate::harness::{Place, on_both};

/// Where the words were found, best first: `title`, `user` or `assistant`, and
/// the excerpt with what was found in brackets.
async fn found(client: &Client, query: &str) -> Vec<(String, String)> {
    let path = format!("/v1/search?{query}");
    let hits = list(client, &path).await;
    hits.iter().map(shown).collect()
}

fn shown(hit: &Value) -> (String, String) {
    let place = hit["role"].as_str().or(hit["kind"].as_str()).unwrap().to_owned();
    let parts = hit["excerpt"].as_array().unwrap().iter();
    let parts = parts.map(|part| match part["found"].as_bool().unwrap() {
        true => format!("[{}]", text(&part["text"])),
        false => text(&part["text"]),
    });
    (place, parts.collect())
}

fn q(words: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("q", words).finish()
}

#[test]
fn words_of_every_script_and_length_are_found() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({"title": "Großer Plan 東京"})).await;
        say(&owner, &path, "/say 서울의 봄은 짧다").await;
        say(&owner, &path, "/say 我喜欢北京烤鸭").await;
        say(&owner, &path, "/say 東京タワー and the Eiffel-Tower (x+y)^2").await;
        say(&owner, &path, "/say 100% of_it \"quoted\"").await;
        let answers = async |words: &str| {
            let hits = found(&owner, &q(words)).await;
            let said = hits.into_iter().filter(|(place, _)| place != "user");
            said.map(|(place, excerpt)| format!("{place}: {excerpt}"))
                .collect::<Vec<_>>()
        };
        for (words, expected) in [
            ("봄", vec!["assistant: 서울의 [봄]은 짧다"]),
            ("서울", vec!["assistant: [서울]의 봄은 짧다"]),
            ("서울의 짧다", vec!["assistant: [서울의] 봄은 [짧다]"]),
            // The same letters, taken apart as some file systems do.
            (
                "\u{1109}\u{1165}\u{110b}\u{116e}\u{11af}",
                vec!["assistant: [서울]의 봄은 짧다"],
            ),
            ("北京", vec!["assistant: 我喜欢[北京]烤鸭"]),
            ("鸭", vec!["assistant: 我喜欢北京烤[鸭]"]),
            ("北京烤鸭", vec!["assistant: 我喜欢[北京烤鸭]"]),
            (
                "東京",
                vec![
                    "title: Großer Plan [東京]",
                    "assistant: [東京]タワー and the Eiffel-Tower (x+y)^2",
                ],
            ),
            ("タワ", vec!["assistant: 東京[タワ]ー and the Eiffel-Tower (x+y)^2"]),
            ("EIFFEL", vec!["assistant: 東京タワー and the [Eiffel]-Tower (x+y)^2"]),
            (
                "ＥＩＦＦＥＬ",
                vec!["assistant: 東京タワー and the [Eiffel]-Tower (x+y)^2"],
            ),
            (
                "iffel tow",
                vec!["assistant: 東京タワー and the E[iffel]-[Tow]er (x+y)^2"],
            ),
            (
                "\"the eiffel\"",
                vec!["assistant: 東京タワー and [the Eiffel]-Tower (x+y)^2"],
            ),
            ("\"tower the\"", vec![]),
            ("(x+y)^2", vec!["assistant: 東京タワー and the Eiffel-Tower [(x+y)^2]"]),
            ("%", vec!["assistant: 100[%] of_it \"quoted\""]),
            ("f_i", vec!["assistant: 100% o[f_i]t \"quoted\""]),
            ("o_i", vec![]),
            ("gro", vec!["title: [Gro]ßer Plan 東京"]),
            ("eiffel 北京", vec![]),
            ("AND OR NOT", vec![]),
        ] {
            assert_eq!(answers(words).await, expected, "{words}");
        }
        web.stop().await;
    });
}

#[test]
fn the_best_come_first_and_pages_follow_one_another() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let one = session(&owner, &json!({})).await;
        let far = format!("/say {} needle", "hay ".repeat(400));
        for input in [far.as_str(), "/say a needle", "/say needle needle needle", "/say none"] {
            say(&owner, &one, input).await;
        }
        session(&owner, &json!({"title": "needlework"})).await;
        let hits = list(&owner, "/v1/search?q=needle").await;
        let answers: Vec<String> = hits
            .iter()
            .map(shown)
            .filter(|(place, _)| place != "user")
            .map(|(_, excerpt)| excerpt)
            .collect();
        assert_eq!(answers.len(), 4, "{answers:?}");
        assert_eq!(
            answers[..3],
            ["[needle]work", "[needle] [needle] [needle]", "a [needle]"]
        );
        assert!(answers[3].starts_with("…hay"), "{answers:?}");
        // What is written meanwhile moves nothing.
        let (mut path, mut seen) = ("/v1/search?q=needle&limit=2".to_owned(), Vec::new());
        loop {
            let page = owner.get(&path).await.expect(200);
            seen.extend(page["data"].as_array().unwrap().clone());
            let Some(next) = page["next_cursor"].as_str() else {
                break;
            };
            path = format!("/v1/search?q=NEEDLE&limit=2&after={next}");
            session(&owner, &json!({"title": "no such thing"})).await;
        }
        assert_eq!(seen, hits);
        let cursor = text(&owner.get("/v1/search?q=needle&limit=1").await.expect(200)["next_cursor"]);
        for other in ["q=needl", "q=needle&session_id=ses_00000000000000000000000000"] {
            let refused = owner.get(&format!("/v1/search?{other}&after={cursor}")).await;
            refused.problem(400, "invalid_cursor");
        }
        let id = one.rsplit('/').next().unwrap();
        let inside = list(&owner, &format!("/v1/search?q=needlework&session_id={id}")).await;
        assert!(inside.is_empty(), "{inside:?}");
        for wrong in [
            "q=",
            "q=%20",
            "q=%22%22",
            "q=1+2+3+4+5+6+7+8+9",
            &format!("q={}", "x".repeat(201)),
            "",
        ] {
            owner
                .get(&format!("/v1/search?{wrong}"))
                .await
                .problem(400, "invalid_request");
        }
        web.stop().await;
    });
}

#[test]
fn nobody_finds_the_words_of_others() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({"title": "secret plan"})).await;
        say(&owner, &path, "/say the secret word").await;
        let tenant = web.tenant("another").await;
        let elsewhere = NewKey {
            tenant,
            user: "owner",
            scopes: &[Scope::Admin],
            tools: None,
        };
        let stranger = web.with_key(elsewhere).await;
        let colleague = web.user("colleague", &[Scope::SessionsRead]).await;
        let boss = web.user("boss", &[Scope::SessionsRead, Scope::TenantAll]).await;
        let id = path.rsplit('/').next().unwrap();
        for words in ["secret", "se"] {
            let own = found(&owner, &q(words)).await;
            assert_eq!(own.len(), 3, "{own:?}");
            assert_eq!(found(&boss, &q(words)).await, own);
            for other in [&stranger, &colleague] {
                assert_eq!(found(other, &q(words)).await, []);
                assert_eq!(found(other, &format!("{}&session_id={id}", q(words))).await, []);
            }
        }
        web.stop().await;
    });
}

#[test]
fn a_changed_title_and_a_deleted_session_are_found_no_more() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({"title": "first name"})).await;
        owner.patch(&path, &json!({"title": "second name"})).await.expect(200);
        assert_eq!(found(&owner, &q("first")).await, []);
        assert_eq!(found(&owner, &q("second")).await.len(), 1);
        owner.patch(&path, &json!({"metadata": {}})).await.expect(200);
        assert_eq!(found(&owner, &q("second")).await.len(), 1);
        owner.patch(&path, &json!({"title": null})).await.expect(200);
        assert_eq!(found(&owner, &q("name")).await, []);
        say(&owner, &path, "/say remember me").await;
        owner.post(&format!("{path}/archive"), &json!({})).await.expect(200);
        assert_eq!(found(&owner, &q("remember")).await.len(), 2);
        owner.delete(&path).await;
        assert_eq!(found(&owner, &q("remember")).await, []);
        assert_eq!(found(&owner, &q("me")).await, []);
        web.stop().await;
    });
}
