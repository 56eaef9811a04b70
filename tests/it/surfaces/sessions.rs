//! Sessions and talking in them, in the original's form.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::client::Client;
use crate::harness::http::Answer;
use crate::harness::on_both;
use crate::harness::script::{guarded, mark};

async fn made(client: &Client, body: Value) -> Value {
    let made = client.post("/api/sessions", &body).await.expect(201);
    assert_eq!(made["object"], "hermes.session");
    made["session"].clone()
}

async fn says(client: &Client, session: &str, text: &str) -> Value {
    client
        .post(&format!("/api/sessions/{session}/chat"), &json!({"message": text}))
        .await
        .expect(200)
}

fn code(answer: &Answer, status: u16, code: &str) {
    assert_eq!(
        (answer.status, &answer.body["error"]["code"]),
        (status, &json!(code)),
        "{}",
        answer.body
    );
}

#[test]
fn a_session_is_made_read_changed_and_deleted() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let session = made(
            &client,
            json!({"id": "talk-1", "title": " The\n talk ", "system_prompt": "be brief"}),
        )
        .await;
        assert_eq!(
            (&session["id"], &session["title"]),
            (&json!("talk-1"), &json!("The talk"))
        );
        assert_eq!(
            (&session["source"], &session["has_system_prompt"]),
            (&json!("api_server"), &json!(true))
        );
        assert!(session["started_at"].is_f64());
        assert!(
            made(&client, json!({})).await["id"]
                .as_str()
                .unwrap()
                .starts_with("api_")
        );
        code(
            &client.post("/api/sessions", &json!({"session_id": "talk-1"})).await,
            409,
            "session_exists",
        );
        code(
            &client.post("/api/sessions", &json!({"title": "The talk"})).await,
            400,
            "invalid_title",
        );
        code(
            &client.post("/api/sessions", &json!({"title": "x".repeat(101)})).await,
            400,
            "invalid_title",
        );
        code(
            &client.post("/api/sessions", &json!({"id": "../x"})).await,
            400,
            "invalid_session_id",
        );
        code(&client.get("/api/sessions/nothing").await, 404, "session_not_found");

        let path = "/api/sessions/talk-1";
        let changed = client
            .patch(path, &json!({"title": "Other", "end_reason": "done"}))
            .await
            .expect(200);
        assert_eq!(
            (&changed["session"]["title"], &changed["session"]["end_reason"]),
            (&json!("Other"), &json!("done"))
        );
        let again = client.patch(path, &json!({"end_reason": "later"})).await.expect(200);
        assert_eq!(again["session"]["end_reason"], "done");
        let cleared = client.patch(path, &json!({"title": null})).await.expect(200);
        assert_eq!(cleared["session"]["title"], Value::Null);
        let refused = client.patch(path, &json!({"model": "x", "cwd": "y"})).await;
        code(&refused, 400, "unsupported_session_field");
        assert!(
            refused.body["error"]["message"]
                .as_str()
                .unwrap()
                .contains("cwd, model")
        );
        // An ended session still takes turns.
        assert_eq!(
            says(&client, "talk-1", "/say still here").await["message"]["content"],
            "still here"
        );

        let gone = client.delete(path).await.expect(200);
        assert_eq!(
            gone,
            json!({"object": "hermes.session.deleted", "id": "talk-1", "deleted": true})
        );
        code(&client.get(path).await, 404, "session_not_found");
        web.stop().await;
    });
}

#[test]
fn the_list_begins_with_what_was_touched_last() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        for name in ["a", "b", "c"] {
            made(&client, json!({"id": name})).await;
            tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        }
        says(
            &client,
            "a",
            "/say the first of all words that were said in this session, which are many",
        )
        .await;
        let list = client.get("/api/sessions?limit=2").await.expect(200);
        let ids: Vec<&Value> = list["data"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
        assert_eq!(ids, ["a", "c"]);
        assert_eq!(
            (&list["object"], &list["has_more"], &list["limit"]),
            (&json!("list"), &json!(true), &json!(2))
        );
        let first = &list["data"][0];
        assert_eq!(
            (&first["message_count"], &first["tool_call_count"]),
            (&json!(2), &json!(0))
        );
        assert_eq!(first["preview"].as_str().unwrap().chars().count(), 60);
        let rest = client.get("/api/sessions?limit=2&offset=2&unknown=1").await.expect(200);
        assert_eq!(
            (&rest["data"][0]["id"], &rest["has_more"]),
            (&json!("b"), &json!(false))
        );
        assert_eq!(
            client.get("/api/sessions?source=cli").await.expect(200)["data"],
            json!([])
        );
        assert_eq!(client.get("/api/sessions?limit=bad").await.expect(200)["limit"], 50);
        web.stop().await;
    });
}

#[test]
fn messages_come_in_parts_from_either_end() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        made(&client, json!({"id": "talk"})).await;
        says(&client, "talk", &format!("{}\n/then\n/say done", mark("x"))).await;
        let all = client.get("/api/sessions/talk/messages").await.expect(200);
        let roles: Vec<&Value> = all["data"].as_array().unwrap().iter().map(|one| &one["role"]).collect();
        assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
        let call = &all["data"][1]["tool_calls"][0];
        assert_eq!(
            (&call["type"], &call["function"]["name"]),
            (&json!("function"), &json!("terminal"))
        );
        assert_eq!(
            (&all["data"][2]["tool_call_id"], &all["data"][2]["tool_name"]),
            (&call["id"], &json!("terminal"))
        );
        assert_eq!(all["data"][3]["content"], "done");
        let part = async |query: &str| {
            client
                .get(&format!("/api/sessions/talk/messages?{query}"))
                .await
                .expect(200)
        };
        assert_eq!(
            part("limit=2&order=oldest&offset=1").await["data"],
            json!([all["data"][1], all["data"][2]])
        );
        let latest = part("limit=1").await;
        assert_eq!(latest["data"], json!([all["data"][3]]));
        assert_eq!(
            (&latest["pagination"]["total"], &latest["pagination"]["has_more"]),
            (&json!(4), &json!(true))
        );
        code(
            &client.get("/api/sessions/talk/messages?order=sideways").await,
            400,
            "invalid_pagination",
        );
        web.stop().await;
    });
}

#[test]
fn a_fork_goes_on_apart_and_leaves_the_other_as_it_was() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        made(&client, json!({"id": "stem", "title": "Plan"})).await;
        says(&client, "stem", "/say one").await;
        // Without a body, as one of the clients sends it.
        let fork = Answer::of(
            client
                .request(Method::POST, "/api/sessions/stem/fork")
                .send()
                .await
                .unwrap(),
        )
        .await
        .expect(201);
        assert_eq!(
            (&fork["forked_from"], &fork["session"]["title"]),
            (&json!("stem"), &json!("Plan #2"))
        );
        let child = fork["session"]["id"].as_str().unwrap();
        assert_eq!(
            client.get("/api/sessions/stem").await.expect(200)["session"]["end_reason"],
            "branched"
        );
        says(&client, child, "/say two").await;
        let count = async |name: &str| {
            client.get(&format!("/api/sessions/{name}/messages")).await.expect(200)["data"]
                .as_array()
                .unwrap()
                .len()
        };
        assert_eq!((count("stem").await, count(child).await), (2, 4));
        let listed = client.get("/api/sessions").await.expect(200);
        assert_eq!(
            listed["data"].as_array().unwrap().len(),
            1,
            "forks are listed where they are asked for"
        );
        let listed = client.get("/api/sessions?include_children=true").await.expect(200);
        assert_eq!(listed["data"].as_array().unwrap().len(), 2);
        let third = client
            .post("/api/sessions/stem/fork", &json!({"id": "named"}))
            .await
            .expect(201);
        assert_eq!(
            (&third["session"]["id"], &third["session"]["title"]),
            (&json!("named"), &json!("Plan #3"))
        );
        web.stop().await;
    });
}

#[test]
fn what_was_said_is_found() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        made(&client, json!({"id": "talk"})).await;
        says(&client, "talk", "/say the heron stands in the reeds").await;
        let found = client.get("/api/sessions/search?q=heron&limit=5").await.expect(200);
        assert_eq!(found["query"], "heron");
        assert_eq!(found["count"], found["results"].as_array().unwrap().len());
        let hit = &found["results"][0];
        assert_eq!(hit["session_id"], "talk");
        assert!(hit["snippet"].as_str().unwrap().contains("heron"));
        assert_eq!(client.get("/api/sessions/search?q=").await.status, 400);
        web.stop().await;
    });
}

#[test]
fn the_events_of_a_chat_count_on_and_end_with_done() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        made(&client, json!({"id": "talk"})).await;
        let body =
            json!({"input": format!("/say I look.\n{}\n/then\n/say done", mark("x")), "instructions": "be brief"});
        let frames = client
            .post_stream("/api/sessions/talk/chat/stream", &body)
            .await
            .rest()
            .await;
        let names: Vec<&str> = frames
            .iter()
            .map(|frame| frame.event.as_deref().unwrap())
            .filter(|name| *name != "assistant.delta")
            .collect();
        assert_eq!(
            names,
            [
                "run.started",
                "message.started",
                "tool.started",
                "tool.completed",
                "assistant.completed",
                "run.completed",
                "done"
            ]
        );
        for (frame, seq) in frames.iter().zip(1..) {
            let data = frame.json();
            assert_eq!((&data["seq"], &data["session_id"]), (&json!(seq), &json!("talk")));
            assert!(data["ts"].is_f64() && data["run_id"].as_str().unwrap().starts_with("run_"));
        }
        let done = frames[frames.len() - 2].json();
        let roles: Vec<&Value> = done["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| &row["role"])
            .collect();
        assert_eq!(roles, ["assistant", "tool", "assistant"]);
        assert_eq!(frames[frames.len() - 3].json()["content"], "done");
        let run = done["run_id"].as_str().unwrap();
        assert_eq!(
            client.get(&format!("/v1/runs/{run}")).await.expect(200)["status"],
            "completed"
        );
        web.stop().await;
    });
}

#[test]
fn a_chat_asks_for_approvals_as_a_run_does() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        made(&client, json!({"id": "talk"})).await;
        let script = format!("{}\n/then\n/say after", guarded("x"));
        let waits = says(&client, "talk", &script).await;
        assert_eq!(
            (&waits["status"], &waits["completed"]),
            (&json!("waiting_for_approval"), &json!(false))
        );
        let run = waits["runtime"]["run_id"].as_str().unwrap().to_owned();
        client
            .post(&format!("/v1/runs/{run}/approval"), &json!({"choice": "deny"}))
            .await
            .expect(200);
        client.get_stream(&format!("/v1/runs/{run}/events")).await.rest().await;

        let mut stream = client
            .post_stream("/api/sessions/talk/chat/stream", &json!({"message": script}))
            .await;
        let frames = stream
            .until(|frame| frame.event.as_deref() == Some("approval.request"))
            .await;
        let asked = frames.last().unwrap().json();
        let run = asked["run_id"].as_str().unwrap();
        let answer = json!({"choice": "once", "approval_id": asked["approval_id"]});
        client
            .post(&format!("/v1/runs/{run}/approval"), &answer)
            .await
            .expect(200);
        let rest = stream.rest().await;
        assert!(
            rest.iter()
                .any(|frame| frame.event.as_deref() == Some("approval.responded"))
        );
        assert_eq!(rest[rest.len() - 2].event.as_deref(), Some("run.completed"));
        web.stop().await;
    });
}

#[test]
fn a_chat_that_failed_says_so() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        made(&client, json!({"id": "talk"})).await;
        let failed = says(&client, "talk", "/error 401").await;
        assert_eq!(
            (&failed["failed"], &failed["completed"], &failed["status"]),
            (&json!(true), &json!(false), &json!("failed"))
        );
        assert_eq!(failed["message"]["content"], failed["error"]);
        let frames = client
            .post_stream("/api/sessions/talk/chat/stream", &json!({"message": "/error 401"}))
            .await
            .rest()
            .await;
        let names: Vec<&str> = frames.iter().map(|frame| frame.event.as_deref().unwrap()).collect();
        assert_eq!(names[names.len() - 3..], ["assistant.completed", "error", "done"]);
        assert_eq!(frames[frames.len() - 3].json()["completed"], false);
        code(
            &client.post("/api/sessions/talk/chat", &json!({})).await,
            400,
            "missing_message",
        );
        code(
            &client.post("/api/sessions/none/chat", &json!({"message": "x"})).await,
            404,
            "session_not_found",
        );
        web.stop().await;
    });
}
