//! What a session's model has seen of files, on both databases: it outlives the
//! server, and a turn that is rolled back takes it along.

use hermes_server::model::event::EventBody;
use hermes_server::model::id::{SessionId, TurnId};
use hermes_server::model::message::{Role, text_of};
use hermes_server::model::turn::OnBusy;
use hermes_server::turn::requests::NewTurn;
use serde_json::{Value, json};

use crate::harness::script::{guarded, terminal};
use crate::harness::{Server, new_turn, on_both};

fn tool(name: &str, arguments: &Value) -> String {
    format!("/tool {name} {arguments}")
}

/// The results of a turn's calls, in their order.
async fn results(server: &Server, session: SessionId, turn: TurnId) -> Vec<Value> {
    server.frames(session, turn).await;
    let messages = server.messages(session).await;
    let of_tools = messages
        .iter()
        .filter(|message| message.turn_id == turn && message.role == Role::Tool);
    of_tools
        .map(|message| serde_json::from_str(&text_of(&message.content)).unwrap())
        .collect()
}

async fn run(server: &Server, session: SessionId, calls: &[String]) -> Vec<Value> {
    let turn = server.turn(session, &calls.join("\n/then\n")).await.turn;
    results(server, session, turn.id).await
}

#[test]
fn what_was_read_is_known_after_a_restart_and_counted_on() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let read = tool("read_file", &json!({"path": "a.txt"}));
        let write = tool("write_file", &json!({"path": "a.txt", "content": "one\n"}));
        let first = run(&server, session, &[write, read.clone()]).await;
        assert_eq!(first[1]["content"], "1|one");
        server.stop().await;

        let server = place.start().await;
        let later = run(
            &server,
            session,
            &[
                read.clone(),
                read.clone(),
                terminal("true"),
                read.clone(),
                terminal("echo two >> a.txt"),
                read.clone(),
            ],
        )
        .await;
        assert_eq!(
            (&later[0]["status"], &later[0]["dedup"]),
            (&json!("unchanged"), &json!(true))
        );
        assert!(
            later[1]["error"].as_str().unwrap().starts_with("BLOCKED"),
            "{}",
            later[1]
        );
        assert_eq!(later[3]["status"], "unchanged", "another tool ran");
        assert_eq!(later[5]["content"], "1|one\n2|two", "the file changed");
        server.stop().await;

        let server = place.start().await;
        std::fs::write(server.workspace(session).join("a.txt"), "somebody else's\n").unwrap();
        let write = tool("write_file", &json!({"path": "a.txt", "content": "mine\n"}));
        let written = run(&server, session, &[write.clone(), write]).await;
        assert!(
            written[0]["_warning"].as_str().unwrap().contains("had changed on disk"),
            "{}",
            written[0]
        );
        assert_eq!(written[1].get("_warning"), None);
        server.stop().await;
    });
}

#[test]
fn reads_of_one_batch_are_all_remembered() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let names = ["a", "b", "c", "d"];
        let write: Vec<String> = names
            .iter()
            .map(|name| tool("write_file", &json!({"path": name, "content": "x"})))
            .collect();
        let read: Vec<String> = names
            .iter()
            .map(|name| tool("read_file", &json!({"path": name})))
            .collect();
        let batches = [write.join("\n"), read.join("\n"), read.join("\n")];
        let all = run(&server, session, &batches).await;
        for (first, again) in all[4..8].iter().zip(&all[8..]) {
            assert_eq!(
                (&first["content"], &again["status"]),
                (&json!("1|x"), &json!("unchanged"))
            );
        }
        server.stop().await;
    });
}

#[test]
fn what_a_rolled_back_turn_has_read_is_shown_again() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let write = tool("write_file", &json!({"path": "a.txt", "content": "one\n"}));
        run(&server, session, &[write]).await;
        let read = tool("read_file", &json!({"path": "a.txt"}));
        let script = format!("{read}\n/then\n{}", guarded("a"));
        server.turn(session, &script).await;
        server
            .wait_for(session, |body| matches!(body, EventBody::TurnWaiting(_)))
            .await;
        let new = NewTurn {
            on_busy: OnBusy::Rollback,
            ..new_turn(&read)
        };
        let new = server
            .engine
            .create_turn(&server.scope, session, new)
            .await
            .unwrap()
            .turn;
        assert_eq!(results(&server, session, new.id).await[0]["content"], "1|one");
        server.stop().await;
    });
}
