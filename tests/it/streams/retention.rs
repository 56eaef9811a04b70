//! Logs whose beginning is folded: whoever comes with an old cursor is told and
//! goes on; what is not over stays whole.

use std::time::Duration;

use hermes_server::base::{Clock, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Connection;

use super::types;
use crate::api_rest::{Talk, decision_of};
use crate::harness::http::Answer;
use crate::harness::script::guarded;
use crate::harness::{PATIENCE, Place, on_both};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A place that keeps events for a day of a clock that the test moves.
fn forgetful(place: &mut Place) {
    place.clock = Clock::stepped(Timestamp(1_769_851_800_000));
    place.config.retention.events_days = Some(1);
}

/// The session's events once its log begins at another place.
async fn folded(talk: &Talk) -> Value {
    let found = async {
        loop {
            let page = talk.client.get(&talk.path("/events?limit=200")).await.expect(200);
            if page["data"][0]["type"] == "stream.reset" {
                return page;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("the log is folded")
}

/// Rows of events that the database holds of a session.
async fn rows(place: &Place, session: &str) -> i64 {
    const SQL: &str = "select count(*) from event where session_id = $1";
    match &place.config.store.url {
        Some(url) => {
            let mut link = sqlx::PgConnection::connect(url.expose()).await.unwrap();
            sqlx::query_scalar(SQL)
                .bind(session)
                .fetch_one(&mut link)
                .await
                .unwrap()
        }
        None => {
            let file = place.config.server.data_dir.join("hermes.db");
            let url = format!("sqlite:{}", file.display());
            let mut link = sqlx::SqliteConnection::connect(&url).await.unwrap();
            sqlx::query_scalar(SQL)
                .bind(session)
                .fetch_one(&mut link)
                .await
                .unwrap()
        }
    }
}

async fn finished(talk: &Talk, input: &str) -> String {
    let path = talk.path("/turns?wait=20");
    let done = talk.client.post(&path, &json!({"input": input})).await.expect(200);
    assert_eq!(done["turn"]["status"], "completed");
    done["turn"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_over_and_old_is_folded_and_what_waits_stays_whole() {
    on_both(async |mut place| {
        forgetful(&mut place);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &json!({})).await;
        let old = finished(&talk, "/say once").await;
        let before = client.get(&talk.path("/events?limit=200")).await.expect(200);
        talk.say(&format!("{}\n/then\n/say went on", guarded("a"))).await;
        let asked = talk.asked().await;
        let messages = client.get(&talk.path("/messages")).await.expect(200);
        place.clock.step(DAY + Duration::from_secs(3601));

        let page = folded(&talk).await;
        let oldest = page["data"][0]["data"]["oldest_seq"].as_i64().unwrap();
        let gone = before["data"].as_array().unwrap().len() as i64;
        assert!(1 < oldest && oldest <= gone + 1, "{oldest} of {gone}");
        assert_eq!(page["data"][0]["seq"], oldest - 1);
        let kept: Vec<i64> = page["data"].as_array().unwrap()[1..]
            .iter()
            .map(|event| event["seq"].as_i64().unwrap())
            .collect();
        assert_eq!(kept, (oldest..oldest + kept.len() as i64).collect::<Vec<_>>());
        let own = asked[0]["turn_id"].as_str().unwrap();
        assert_eq!(
            page["data"][1]["turn_id"], own,
            "from the first event of the turn that waits"
        );
        assert_eq!(page["data"][1]["type"], "turn.started");
        assert_eq!(client.get(&talk.path("/messages")).await.expect(200), messages);
        tokio::time::timeout(PATIENCE, async {
            while rows(&place, &talk.session).await != kept.len() as i64 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
        .expect("the rows go");

        streams_tell(&talk, &web, oldest).await;
        folded_turn_is_told(&talk, &web, &old, oldest).await;

        // The turn that waited goes on as if nothing had been folded.
        let path = talk.path(&format!("/turns/{own}/stream"));
        client
            .post(&decision_of(&asked[0]), &json!({"choice": "once"}))
            .await
            .expect(200);
        let frames = client.stream(&web, &path).await.rest().await;
        assert_eq!(types(&frames)[..2], ["stream.hello", "turn.started"]);
        assert_eq!(frames.last().unwrap().event, "turn.completed");
        web.stop().await;
    });
}

/// Streams of the session, from before and from behind the fold.
async fn streams_tell(talk: &Talk, web: &crate::harness::http::Web, oldest: i64) {
    for (cursor, d) in [("0".to_owned(), 0), ("1.7".to_owned(), 7)] {
        let path = talk.path(&format!("/stream?after={cursor}&types=turn.waiting"));
        let mut events = talk.client.stream(web, &path).await;
        let hello = events.next().await.unwrap();
        assert!(hello.id.unwrap().ends_with(&format!(".{d}")));
        let reset = events.next().await.unwrap();
        assert_eq!(
            (reset.event.as_str(), &reset.data["data"]),
            ("stream.reset", &json!({"oldest_seq": oldest}))
        );
        assert_eq!(reset.id, Some(format!("{}.0", oldest - 1)));
        assert_eq!(
            events.next().await.unwrap().event,
            "turn.waiting",
            "once, then on from there"
        );
    }
    let mut events = talk
        .client
        .stream(web, &talk.path(&format!("/stream?after={}", oldest - 1)))
        .await;
    events.next().await.unwrap();
    assert_eq!(events.next().await.unwrap().data["seq"], oldest, "nothing is missing");
    // A page of one is the notice, and the next one goes on behind it.
    let first = talk.client.get(&talk.path("/events?limit=1")).await.expect(200);
    assert_eq!(
        (&first["data"][0]["type"], &first["has_more"]),
        (&json!("stream.reset"), &json!(true))
    );
    let next = talk.path(&format!(
        "/events?limit=1&after={}",
        first["next_cursor"].as_str().unwrap()
    ));
    assert_eq!(talk.client.get(&next).await.expect(200)["data"][0]["seq"], oldest);
}

async fn folded_turn_is_told(talk: &Talk, web: &crate::harness::http::Web, turn: &str, oldest: i64) {
    let path = talk.path(&format!("/turns/{turn}"));
    assert_eq!(talk.client.get(&path).await.expect(200)["status"], "completed");
    let frames = talk.client.stream(web, &format!("{path}/stream")).await.rest().await;
    assert_eq!(types(&frames), ["stream.hello", "stream.reset"]);
    assert_eq!(frames[1].data["data"]["oldest_seq"], oldest);
    let text = talk
        .client
        .request(Method::GET, &format!("{path}/stream"))
        .header("accept", "text/plain");
    Answer::of(text.send().await.unwrap())
        .await
        .is_problem(404, "not_found");
    let after = oldest - 1;
    assert_eq!(
        talk.client.get(&format!("{path}/stream?after={after}")).await.status,
        204
    );
}

#[test]
fn a_log_that_is_folded_whole_grows_on() {
    on_both(async |mut place| {
        forgetful(&mut place);
        let web = place.serve().await;
        let talk = Talk::new(&web, &web.owner().await, &json!({})).await;
        finished(&talk, "/say once").await;
        place.clock.step(DAY / 2);
        finished(&talk, "/say in time").await;
        place.clock.step(DAY / 2 + Duration::from_secs(3601));
        let half = folded(&talk).await;
        assert!(half["data"].as_array().unwrap().len() > 3, "what is young stays");
        place.clock.step(DAY);
        let all = tokio::time::timeout(PATIENCE, async {
            loop {
                let page = folded(&talk).await;
                if page["data"].as_array().unwrap().len() == 1 {
                    return page;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        let all = all.await.expect("the rest is folded as well");
        let next = all["next_cursor"].as_str().unwrap().to_owned();
        finished(&talk, "/say again").await;
        let page = talk
            .client
            .get(&talk.path(&format!("/events?after={next}")))
            .await
            .expect(200);
        assert_ne!(page["data"][0]["type"], "stream.reset");
        assert_eq!(
            page["data"][0]["seq"].as_i64().unwrap() - 1,
            next.parse::<i64>().unwrap()
        );
        web.stop().await;
    });
}

#[test]
fn without_a_number_of_days_everything_stays() {
    on_both(async |mut place| {
        forgetful(&mut place);
        place.config.retention.events_days = None;
        let web = place.serve().await;
        let talk = Talk::new(&web, &web.owner().await, &json!({})).await;
        finished(&talk, "/say once").await;
        place.clock.step(400 * DAY);
        finished(&talk, "/say again").await;
        let page = talk.client.get(&talk.path("/events?limit=200")).await.expect(200);
        assert_eq!(
            (&page["data"][0]["type"], &page["data"][0]["seq"]),
            (&json!("session.created"), &json!(1))
        );
        web.stop().await;
    });
}
