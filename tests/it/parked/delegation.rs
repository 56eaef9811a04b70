//! Work that is delegated to child sessions.

use serde_json::{Value, json};

use super::results;
use crate::api_rest::{Talk, decision_of};
use crate::harness::client::Client;
use crate::harness::http::Web;
use crate::harness::script::{guarded, mark};
use crate::harness::{lines, on_both};

/// A turn that delegates these tasks and says so when they are done.
fn delegate(goals: &[String]) -> String {
    let tasks: Vec<Value> = goals.iter().map(|goal| json!({"goal": goal})).collect();
    format!("/tool delegate_task {}\n/then\n/say done", json!({"tasks": tasks}))
}

async fn talk(web: &Web, owner: &Client) -> Talk {
    Talk::new(web, owner, &json!({})).await
}

/// The children of the talk's session, in the order of their tasks.
async fn children(talk: &Talk) -> Vec<Value> {
    let path = format!("/v1/sessions?root_session_id={}", talk.session);
    let mut found = talk.client.get(&path).await.expect(200)["data"]
        .as_array()
        .unwrap()
        .clone();
    found.sort_by_key(|child| child["lineage"]["index"].as_u64());
    found
}

async fn report(talk: &Talk) -> Value {
    let messages = talk.client.get(&talk.path("/messages")).await.expect(200);
    serde_json::from_str(&results(&messages)[0]).unwrap()
}

#[test]
fn children_work_side_by_side_and_their_reports_are_the_result() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        let goals = ["/say one".to_owned(), format!("{}\n/then\n/say two", mark("a"))];
        let turn = talk.say(&delegate(&goals)).await;
        let mut started = Vec::new();
        for _ in &goals {
            let event = talk.events.until("subagent.started").await.data;
            started.push(event["data"]["subagent"]["session_id"].clone());
        }
        let resumed = talk.events.until("turn.resumed").await.data;
        assert_eq!(resumed["data"]["reason"], "children");
        talk.events.until("turn.completed").await;

        let report = report(&talk).await;
        let [one, two] = report["results"].as_array().unwrap().as_slice() else {
            panic!("{report}")
        };
        assert_eq!((&one["summary"], &one["status"]), (&json!("one"), &json!("completed")));
        assert_eq!(
            (&two["task_index"], &two["summary"], &two["api_calls"]),
            (&json!(1), &json!("two"), &json!(2))
        );
        assert_eq!(two["tool_trace"][0]["tool"], "terminal");
        assert_eq!(
            lines(&web.server.workspace(talk.session.parse().unwrap()).join("a")),
            1,
            "in the root's files"
        );

        let children = children(&talk).await;
        let ids: Vec<Value> = children.iter().map(|child| child["id"].clone()).collect();
        assert_eq!(ids, started);
        assert_eq!(
            children[1]["lineage"]["ancestors"],
            json!([{"session_id": talk.session, "turn_id": turn}])
        );
        let log = format!("/v1/sessions/{}/events", children[1]["id"].as_str().unwrap());
        let log = owner.get(&log).await.expect(200)["data"].clone();
        assert_eq!(log[0]["type"], "session.created");
        assert_eq!(log.as_array().unwrap().last().unwrap()["type"], "session.status");
        // Each report says where its child is followed, and there it is.
        for (report, child) in [one, two].into_iter().zip(&ids) {
            let transcript = report["live_transcript"].as_str().unwrap();
            let mut followed = owner.stream(&web, &format!("{transcript}?after=0")).await;
            let created = followed.until("session.created").await.data;
            assert_eq!(created["data"]["session"]["id"], *child);
            followed.until("turn.completed").await;
        }
        let own = owner.get("/v1/sessions").await.expect(200);
        assert_eq!(
            own["data"].as_array().unwrap().len(),
            1,
            "children are in no other list"
        );
        // The root's two model calls, one of the first child, two of the second.
        let root = owner.get(&talk.path("")).await.expect(200);
        assert_eq!(root["usage"]["steps"], 5);
        let shown = owner.get(&talk.path(&format!("/turns/{turn}"))).await.expect(200);
        assert_eq!(shown["usage"], root["usage"]);
        web.stop().await;
    });
}

#[test]
fn who_waits_for_the_turn_waits_for_its_children() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let talk = talk(&web, &owner).await;
        let body = json!({"input": delegate(&["/sleep 300\n/say x".to_owned()])});
        let ended = owner.post(&talk.path("/turns?wait=20"), &body).await.expect(200);
        assert_eq!(
            (&ended["turn"]["status"], &ended["required_actions"]),
            (&json!("completed"), &json!([]))
        );
        let body = json!({"input": delegate(&[guarded("a")])});
        let waits = owner.post(&talk.path("/turns?wait=20"), &body).await.expect(200);
        assert_eq!(waits["turn"]["status"], "waiting");
        assert_eq!(waits["required_actions"][0]["id"], waits["approvals"][0]["id"]);
        web.stop().await;
    });
}

#[test]
fn what_children_ask_is_asked_at_the_root() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        let again = format!("{}\n/then\n{}", guarded("a"), guarded("b"));
        talk.say(&delegate(&[again, guarded("c")])).await;
        let mut asked = Vec::new();
        for _ in 0..2 {
            asked.push(talk.events.until("approval.requested").await.data["data"]["approval"].clone());
        }
        let root = owner.get(&talk.path("")).await.expect(200);
        assert_eq!(root["status"], "requires_action");
        assert_eq!(root["required_actions"].as_array().unwrap().len(), 2);
        let children = children(&talk).await;
        for approval in &asked {
            assert_eq!(approval["session_id"], json!(talk.session));
            let origin = &approval["origin"]["session_id"];
            let child = children.iter().find(|child| child["id"] == *origin).unwrap();
            assert_eq!(child["required_actions"][0]["id"], approval["id"]);
        }
        assert!(web.server.is_left().await, "nobody holds a task");
        let first = asked
            .iter()
            .find(|one| one["origin"]["session_id"] == children[0]["id"])
            .unwrap();
        let second = asked
            .iter()
            .find(|one| one["origin"]["session_id"] == children[1]["id"])
            .unwrap();
        // What is allowed for the session covers the child's next command too.
        let body = json!({"choice": "session"});
        let decided = owner.post(&decision_of(first), &body).await.expect(200);
        assert_eq!(decided["status"], "allowed");
        let deny = json!({"mode": "atomic", "decisions": [{"approval_id": second["id"], "choice": "deny"}]});
        owner.post(&talk.path("/approvals/decisions"), &deny).await.expect(200);
        talk.events.until("turn.completed").await;
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        assert_eq!(["a", "b", "c"].map(|file| lines(&workspace.join(file))), [1, 1, 0]);
        let root = owner.get(&talk.path("")).await.expect(200);
        assert_eq!(
            (&root["status"], &root["required_actions"]),
            (&json!("idle"), &json!([]))
        );
        web.stop().await;
    });
}

#[test]
fn a_stop_at_the_root_stops_all() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        let goals = ["/sleep 60000\n/say never".to_owned(), guarded("a")];
        let turn = talk.say(&delegate(&goals)).await;
        talk.events.until("approval.requested").await;
        owner
            .post(&talk.path(&format!("/turns/{turn}/cancel")), &json!({}))
            .await
            .expect(200);
        talk.events.until("turn.cancelled").await;
        talk.events.until("approval.cancelled").await;
        for child in children(&talk).await {
            let path = format!("/v1/sessions/{}/stream?after=0", child["id"].as_str().unwrap());
            let mut events = owner.stream(&web, &path).await;
            events.until("turn.cancelled").await;
        }
        let pending = owner.get("/v1/approvals?status=pending").await.expect(200);
        assert_eq!(pending["data"], json!([]));
        web.stop().await;
    });
}

#[test]
fn how_many_and_how_deep_is_bounded() {
    on_both(async |mut place| {
        place.config.delegation.max_spawn_depth = 2;
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut first = talk(&web, &owner).await;
        first
            .say(&delegate(&[
                "/say x".to_owned(),
                "/say x".to_owned(),
                "/say x".to_owned(),
                "/say x".to_owned(),
            ]))
            .await;
        first.events.until("turn.completed").await;
        let messages = owner.get(&first.path("/messages")).await.expect(200);
        assert!(results(&messages)[0].contains("max_concurrent_children is 3"));
        assert!(children(&first).await.is_empty());

        let mut second = talk(&web, &owner).await;
        // A leaf has no tool for it; an orchestrator has, and its own children are
        // too deep.
        let inner = delegate(&["/tool delegate_task {\"goal\": \"/say deep\"}\n/then\n/say inner".to_owned()]);
        let outer = json!({"tasks": [{"goal": inner, "role": "orchestrator"}, {"goal": inner}]});
        second
            .say(&format!("/tool delegate_task {outer}\n/then\n/say done"))
            .await;
        second.events.until("turn.completed").await;
        let all = children(&second).await;
        assert_eq!(all.len(), 3, "two, and one of the orchestrator: {all:?}");
        let deepest = all
            .iter()
            .find(|child| child["lineage"]["ancestors"].as_array().unwrap().len() == 2);
        let path = format!("/v1/sessions/{}/messages", deepest.unwrap()["id"].as_str().unwrap());
        let messages = owner.get(&path).await.expect(200);
        assert!(results(&messages)[0].contains("Unknown tool: delegate_task"));
        web.stop().await;
    });
}

#[test]
fn a_child_takes_no_orders_and_goes_with_its_root() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        talk.say(&delegate(&["/say x".to_owned()])).await;
        talk.events.until("turn.completed").await;
        let child = children(&talk).await[0]["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/sessions/{child}");
        let turn = json!({"input": "/say y"});
        owner
            .post(&format!("{path}/turns"), &turn)
            .await
            .problem(409, "session_is_child");
        owner.delete(&path).await.problem(409, "session_is_child");
        owner.delete(&talk.path("")).await;
        owner.get(&path).await.problem(404, "not_found");
        web.stop().await;
    });
}

#[test]
fn what_children_take_counts_for_the_budget_of_the_turn() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        let goal = format!("{}\n/then\n{}\n/then\n/say x", mark("a"), mark("b"));
        let body = json!({"input": delegate(&[goal]), "limits": {"max_tokens": 120}});
        owner.post(&talk.path("/turns"), &body).await.expect(202);
        let asked = talk.events.until("approval.requested").await.data["data"]["approval"].clone();
        assert_eq!(
            (&asked["kind"], &asked["session_id"]),
            (&json!("budget"), &json!(talk.session))
        );
        assert!(asked["origin"].is_object(), "a child met the ceiling: {asked}");
        owner
            .post(&decision_of(&asked), &json!({"choice": "stop"}))
            .await
            .expect(200);
        talk.events.until("subagent.completed").await;
        web.stop().await;
    });
}

#[test]
fn a_budget_that_is_set_while_children_work_holds_them_too() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        let goal = format!("{}\n/then\n/say x", guarded("a"));
        talk.say(&delegate(&[goal])).await;
        let asked = talk.events.until("approval.requested").await.data["data"]["approval"].clone();
        assert_eq!(asked["kind"], "tool_call");
        let budget = json!({"budget": {"max_tokens": 1}});
        owner.patch(&talk.path(""), &budget).await.expect(200);
        let once = json!({"choice": "once"});
        owner.post(&decision_of(&asked), &once).await.expect(200);
        let asked = talk.events.until("approval.requested").await.data["data"]["approval"].clone();
        assert_eq!(asked["kind"], "budget");
        assert!(asked["origin"].is_object(), "a child met the ceiling: {asked}");

        let budget = json!({"budget": {"max_tokens": 1_000_000}});
        owner.patch(&talk.path(""), &budget).await.expect(200);
        let more = json!({"choice": "grant_more"});
        owner.post(&decision_of(&asked), &more).await.expect(200);
        talk.events.until("turn.completed").await;
        assert_eq!(report(&talk).await["results"][0]["summary"], "x");
        web.stop().await;
    });
}

#[test]
fn a_policy_that_is_set_while_children_work_holds_them_too() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let put = owner.request(reqwest::Method::PUT, "/v1/policies/strict");
        assert_eq!(
            put.json(&json!({"deny": ["*forbidden*"]}))
                .send()
                .await
                .unwrap()
                .status(),
            200
        );
        let mut talk = talk(&web, &owner).await;
        let goal = format!(
            "{}\n/then\n/tool terminal {{\"command\":\"echo forbidden > b\"}}\n/then\n/say x",
            guarded("a")
        );
        talk.say(&delegate(&[goal])).await;
        let asked = talk.events.until("approval.requested").await.data["data"]["approval"].clone();
        let strict = json!({"approvals": {"policy": "strict"}});
        owner.patch(&talk.path(""), &strict).await.expect(200);
        owner
            .post(&decision_of(&asked), &json!({"choice": "once"}))
            .await
            .expect(200);
        talk.events.until("turn.completed").await;
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        assert_eq!((lines(&workspace.join("a")), lines(&workspace.join("b"))), (1, 0));
        web.stop().await;
    });
}
