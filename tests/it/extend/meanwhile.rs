//! A checkpoint that is put back while a turn begins: the turn's calls wait for the
//! files, and whoever the files changed under is told, in the turn or behind it.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{call, results};
use crate::api_rest::Talk;
use crate::harness::http::{Answer, Web};
use crate::harness::script::terminal;
use crate::harness::{PATIENCE, Place, on_both};

const NOTICE: &str = "put back to an earlier state";

/// A session whose file `a.txt` says `two`, and said `one` at its checkpoint.
struct Began {
    web: Web,
    talk: Talk,
    restore: String,
    /// Held: whoever puts files back waits for it.
    gate: File,
}

impl Began {
    /// Begins to put the files back; comes back once that stands before the gate,
    /// with the workspace for itself.
    async fn put_back(&self) -> JoinHandle<Answer> {
        let (client, path) = (self.talk.client.clone(), self.restore.clone());
        let restoring = tokio::spawn(async move { client.post(&path, &Value::Null).await });
        let inode = format!(":{} ", self.gate.metadata().unwrap().ino());
        let waits = |line: &str| line.contains("->") && line.contains(&inode);
        let look = async {
            while !std::fs::read_to_string("/proc/locks").unwrap().lines().any(waits) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, look)
            .await
            .expect("it comes to the gate");
        restoring
    }
}

async fn begin(place: &mut Place) -> Began {
    place.config.checkpoints.enabled = true;
    let web = place.serve().await;
    let client = web.owner().await;
    let mut talk = Talk::new(&web, &client, &json!({"approvals": {"mode": "off"}})).await;
    for text in ["one", "two"] {
        let write = json!({"path": "a.txt", "content": text});
        results(&mut talk, &call("write_file", &write)).await;
    }
    let listed = client.get(&talk.path("/checkpoints")).await.expect(200);
    let newest = listed["data"][0]["id"].as_str().unwrap().to_owned();
    let kept = place.config.server.data_dir.join("checkpoints");
    let kept = kept.join(web.server.scope.tenant().to_string()).join(&talk.session);
    let gate = File::options().write(true).open(kept.join("making.lock")).unwrap();
    gate.lock().unwrap();
    let restore = talk.path(&format!("/checkpoints/{newest}/restore"));
    Began {
        web,
        talk,
        restore,
        gate,
    }
}

/// What a turn's model is sent, in order: role and text.
async fn said(talk: &Talk) -> Vec<(String, String)> {
    let all = talk.client.get(&talk.path("/messages?limit=200")).await.expect(200);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = all["data"].as_array().unwrap().iter();
    all.map(|message| (text(&message["role"]), text(&message["content"][0]["text"])))
        .collect()
}

#[test]
fn a_turn_that_began_meanwhile_waits_for_the_files_and_is_told_before_its_next_answer() {
    on_both(async |mut place| {
        let mut began = begin(&mut place).await;
        let restoring = began.put_back().await;
        let talk = &mut began.talk;
        // Its call goes on until the restoration is told.
        let looks = "cat a.txt > seen; until [ -e told ]; do sleep 0.05; done; echo over";
        talk.say(&format!("{}\n/then\n/say done", terminal(looks))).await;
        talk.events.until("tool_call.started").await;
        let workspace = began.web.server.workspace(talk.session.parse().unwrap());
        began.gate.unlock().unwrap();
        let restored = restoring.await.unwrap().expect(200);
        let told = talk.events.until("checkpoint.restored").await.data;
        assert_eq!(told["data"]["restored"], restored);
        std::fs::write(workspace.join("told"), "").unwrap();
        talk.events.until("turn.completed").await;
        assert_eq!(std::fs::read_to_string(workspace.join("seen")).unwrap(), "one");
        let said = said(talk).await;
        let roles: Vec<&str> = said.iter().rev().take(3).map(|(role, _)| role.as_str()).collect();
        assert_eq!(
            roles,
            ["assistant", "user", "tool"],
            "between the call's result and the answer"
        );
        let notices = said.iter().filter(|(_, text)| text.contains(NOTICE)).count();
        assert!(said[said.len() - 2].1.contains(NOTICE) && notices == 1, "{said:?}");
        began.web.stop().await;
    });
}

#[test]
fn a_turn_that_is_over_before_the_files_are_back_is_followed_by_what_was_done() {
    on_both(async |mut place| {
        let mut began = begin(&mut place).await;
        let restoring = began.put_back().await;
        let talk = &mut began.talk;
        results(talk, "/say quick").await;
        // Another one meets the first, which has the files.
        talk.client
            .post(&began.restore, &Value::Null)
            .await
            .problem(409, "session_busy");
        began.gate.unlock().unwrap();
        restoring.await.unwrap().expect(200);
        talk.events.until("checkpoint.restored").await;
        talk.events.until("turn.completed").await;
        let said = said(talk).await;
        let last: Vec<&str> = said.iter().rev().take(2).map(|(_, text)| text.as_str()).collect();
        assert!(last[0].contains(NOTICE) && last[1] == "quick", "{said:?}");
        let workspace = began.web.server.workspace(talk.session.parse().unwrap());
        assert_eq!(std::fs::read_to_string(workspace.join("a.txt")).unwrap(), "one");
        began.web.stop().await;
    });
}
