//! Delegated work at its bounds: long reports, too many tasks, questions that are
//! not asked.

use serde_json::{Value, json};

use super::results;
use crate::api_rest::Talk;
use crate::harness::script::guarded;
use crate::harness::{lines, on_both};

async fn first_result(talk: &mut Talk, call: &Value) -> Value {
    talk.say(&format!("/tool delegate_task {call}\n/then\n/say done")).await;
    talk.events.until("turn.completed").await;
    let messages = talk.client.get(&talk.path("/messages?limit=200")).await.expect(200);
    serde_json::from_str(results(&messages).last().unwrap()).unwrap()
}

#[test]
fn a_report_too_long_for_the_parent_is_kept_whole_where_both_can_read_it() {
    on_both(async |mut place| {
        place.config.delegation.max_summary_chars = 2_000;
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let long = format!("begin {} end", "word ".repeat(1_000));
        let tasks = json!({"tasks": [{"goal": format!("/say {long}")}, {"goal": "/say short"}]});
        let report = first_result(&mut talk, &tasks).await;
        let [cut, short] = report["results"].as_array().unwrap().as_slice() else {
            panic!("{report}")
        };
        let summary = cut["summary"].as_str().unwrap();
        assert!(
            summary.starts_with("begin word") && summary.ends_with("end"),
            "{summary}"
        );
        assert!(summary.chars().count() < 2_100, "{}", summary.len());
        assert_eq!(
            (&cut["summary_truncated"], &short["summary_truncated"]),
            (&json!(true), &Value::Null)
        );
        let path = cut["summary_full_path"].as_str().unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), long);
        let kept = owner.get(&talk.path("/artifacts")).await.expect(200)["data"].clone();
        assert_eq!(
            (kept.as_array().unwrap().len(), &kept[0]["tool"]),
            (1, &json!("delegate_task"))
        );
        let content = talk.path(&format!("/artifacts/{}/content", kept[0]["id"].as_str().unwrap()));
        let content = owner.request(reqwest::Method::GET, &content).send().await.unwrap();
        assert_eq!(content.text().await.unwrap(), long);
        // The parent's model reads it like any file of the session.
        let read = json!({"path": path});
        talk.say(&format!("/tool read_file {read}")).await;
        talk.events.until("turn.completed").await;
        let messages = owner.get(&talk.path("/messages?limit=200")).await.expect(200);
        assert!(results(&messages).last().unwrap().contains("begin word"), "{messages}");
        web.stop().await;
    });
}

#[test]
fn the_parents_window_bounds_what_it_reads_of_its_children() {
    on_both(async |mut place| {
        place.config.agent.context_length = Some(3_000);
        let web = place.serve().await;
        let mut talk = Talk::new(&web, &web.owner().await, &json!({})).await;
        let long = format!("/say {}", "x".repeat(7_000));
        let report = first_result(
            &mut talk,
            &json!({"tasks": [{"goal": long}, {"goal": long}, {"goal": long}]}),
        )
        .await;
        for one in report["results"].as_array().unwrap() {
            let shown = one["summary"].as_str().unwrap().chars().count();
            assert!(
                (2_000..2_100).contains(&shown),
                "half of a small window, and 2,000 at least: {shown}"
            );
        }
        web.stop().await;
    });
}

#[test]
fn a_hundred_tasks_are_refused_whole_and_make_no_child() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let tasks: Vec<Value> = (0..100)
            .map(|number| json!({"goal": format!("/say {number}")}))
            .collect();
        let refused = first_result(&mut talk, &json!({"tasks": tasks})).await;
        assert!(refused["error"].as_str().unwrap().contains("100 provided"), "{refused}");
        let children = owner
            .get(&format!("/v1/sessions?root_session_id={}", talk.session))
            .await
            .expect(200);
        assert_eq!(children["data"], json!([]));
        web.stop().await;
    });
}

#[test]
fn what_children_would_ask_may_be_allowed_for_all_of_them_and_the_floor_stays() {
    on_both(async |mut place| {
        place.config.delegation.subagent_auto_approve = true;
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let floor = "/tool terminal {\"command\": \"echo ran >> b; rm -rf /\"}\n/then\n/say tried";
        let tasks = json!({"tasks": [{"goal": guarded("a")}, {"goal": floor}]});
        let report = first_result(&mut talk, &tasks).await;
        assert_eq!(report["results"][1]["tool_trace"][0]["status"], "denied", "{report}");
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        assert_eq!(["a", "b"].map(|file| lines(&workspace.join(file))), [1, 0]);
        let asked = owner.get("/v1/approvals").await.expect(200);
        assert_eq!(asked["data"], json!([]));
        // It is about children alone.
        let approval = talk.ask(&guarded("c")).await;
        assert_eq!(approval["tool"], "terminal");
        web.stop().await;
    });
}
