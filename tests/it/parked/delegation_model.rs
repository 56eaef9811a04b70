//! The model and the rounds of children, as their model server is asked.

use serde_json::{Value, json};

use super::results;
use crate::api_rest::Talk;
use crate::harness::model_server::{ModelServer, Reply};
use crate::harness::{Place, on_both};

fn calls(tool: &str, arguments: &Value) -> Reply {
    let function = json!({"name": tool, "arguments": arguments.to_string()});
    let call = json!({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]});
    Reply::stream(&[call], "tool_calls")
}

/// One turn with these replies: the report of the first child, and what the model
/// server was asked.
async fn delegated(place: &mut Place, turn: &Value, replies: Vec<Reply>) -> (Value, Vec<Value>) {
    let model = ModelServer::start(replies).await;
    place.config.openai.base_url = Some(model.base_url.clone());
    place.config.model = Some("large".to_owned());
    let web = place.serve().await;
    let mut talk = Talk::new(&web, &web.owner().await, &json!({})).await;
    talk.client.post(&talk.path("/turns"), turn).await.expect(202);
    talk.events.until("turn.completed").await;
    let messages = talk.client.get(&talk.path("/messages")).await.expect(200);
    let report: Value = serde_json::from_str(&results(&messages)[0]).unwrap();
    web.stop().await;
    (report["results"][0].clone(), model.asked())
}

fn models(asked: &[Value]) -> Vec<&str> {
    asked.iter().map(|body| body["model"].as_str().unwrap()).collect()
}

#[test]
fn children_have_the_model_and_the_rounds_that_are_configured_whatever_a_call_says() {
    on_both(async |mut place| {
        place.config.delegation.model = Some("small".to_owned());
        place.config.delegation.max_iterations = 2;
        let task = json!({"goal": "count to three", "model": "huge", "max_iterations": 50});
        let replies = vec![
            calls("delegate_task", &task),
            calls("todo", &json!({})),
            calls("todo", &json!({})),
            // Asked once more, without tools, what it has come to.
            Reply::say("came as far as two"),
            Reply::say("done"),
        ];
        let (report, asked) = delegated(&mut place, &json!({"input": "go"}), replies).await;
        assert_eq!(models(&asked), ["large", "small", "small", "small", "large"]);
        let offered: Vec<bool> = asked.iter().map(|body| body["tools"].is_array()).collect();
        assert_eq!(offered, [true, true, true, false, true]);
        assert_eq!(
            [
                &report["exit_reason"],
                &report["status"],
                &report["model"],
                &report["summary"]
            ],
            ["max_iterations", "completed", "small", "came as far as two"],
            "{report}"
        );
        assert_eq!(report["api_calls"], 3);
        assert_eq!(report["tool_trace"].as_array().unwrap().len(), 2);
        assert!(asked[1]["messages"].to_string().contains("count to three"));
    });
}

#[test]
fn without_a_model_of_their_own_children_have_that_of_the_turn() {
    on_both(async |mut place| {
        let replies = || {
            vec![
                calls("delegate_task", &json!({"goal": "look"})),
                Reply::say("seen"),
                Reply::say("done"),
            ]
        };
        let (report, asked) = delegated(&mut place, &json!({"input": "go", "model": "other"}), replies()).await;
        assert_eq!(models(&asked), ["other"; 3]);
        assert_eq!(report["model"], "other");
        let (report, asked) = delegated(&mut place, &json!({"input": "go"}), replies()).await;
        assert_eq!(models(&asked), ["large"; 3]);
        assert_eq!(
            (&report["model"], &report["exit_reason"]),
            (&json!("large"), &json!("completed"))
        );
    });
}

#[test]
fn files_that_childrens_children_wrote_are_told_all_the_way_up() {
    on_both(async |mut place| {
        place.config.delegation.max_spawn_depth = 3;
        let web = place.serve().await;
        let mut talk = Talk::new(&web, &web.owner().await, &json!({})).await;
        let write = |path: &str, text: &str| format!("/tool write_file {}", json!({"path": path, "content": text}));
        let delegate = |goal: &str| {
            let task = json!({"goal": goal, "role": "orchestrator"});
            format!("/tool delegate_task {task}\n/then\n/say done")
        };
        let deepest = format!(
            "{}\n{}\n/then\n/say written",
            write("deep.txt", "two\n"),
            write("new.txt", "x\n")
        );
        let middle = format!("{}\n/then\n{}", write("own.txt", "mine\n"), delegate(&deepest));
        let sides = json!({"tasks": [{"goal": delegate(&middle), "role": "orchestrator"}, {"goal": "/say nothing"}]});
        talk.say(&format!(
            "{}\n{}\n{}\n/then\n/tool delegate_task {sides}\n/then\n/say done",
            write("deep.txt", "one\n"),
            write("own.txt", "one\n"),
            write("kept.txt", "one\n"),
        ))
        .await;
        talk.events.until("turn.completed").await;
        let messages = talk.client.get(&talk.path("/messages")).await.expect(200);
        let report: Value = serde_json::from_str(results(&messages).last().unwrap()).unwrap();
        assert_eq!(
            report["results"][0]["stale_paths"],
            json!(["deep.txt", "own.txt"]),
            "{report}"
        );
        assert_eq!(report["results"][1]["stale_paths"], Value::Null);
        web.stop().await;
    });
}

#[test]
fn the_parent_is_told_which_files_that_it_knows_its_children_wrote() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let mut talk = Talk::new(&web, &web.owner().await, &json!({})).await;
        let write = |path: &str, text: &str| format!("/tool write_file {}", json!({"path": path, "content": text}));
        let goal = format!(
            "{}\n{}\n/then\n/say written",
            write("known.txt", "two\n"),
            write("new.txt", "x\n")
        );
        let tasks = json!({"tasks": [{"goal": goal}, {"goal": "/say nothing"}]});
        talk.say(&format!(
            "{}\n/then\n/tool delegate_task {tasks}\n/then\n/say done",
            write("known.txt", "one\n")
        ))
        .await;
        talk.events.until("turn.completed").await;
        let messages = talk.client.get(&talk.path("/messages")).await.expect(200);
        let report: Value = serde_json::from_str(results(&messages).last().unwrap()).unwrap();
        assert_eq!(report["results"][0]["stale_paths"], json!(["known.txt"]), "{report}");
        assert_eq!(report["results"][1]["stale_paths"], Value::Null);
        assert!(
            report["note"].as_str().unwrap().contains("while this call waited"),
            "{report}"
        );
        web.stop().await;
    });
}
