//! Results too long for the model: shown in part, kept whole, listed and
//! downloadable, also those that are too long beside each other only.

use hermes_server::model::artifact::{Artifact, ArtifactKind, NewArtifact};
use hermes_server::model::id::ArtifactId;
use serde_json::{Value, json};

use super::{call, no_settings, results};
use crate::api_rest::Talk;
use crate::harness::client::Client;
use crate::harness::http::Web;
use crate::harness::model_server::{ModelServer, Reply};
use crate::harness::on_both;
use crate::harness::script::terminal;

#[test]
fn a_result_too_long_for_the_window_is_kept_whole_and_can_be_downloaded() {
    on_both(async |mut place| {
        // The smallest bounds: 8,000 characters a result.
        place.config.agent.context_length = Some(1_000);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &no_settings()).await;
        let shown = results(&mut talk, &terminal("seq 1 3000")).await;
        assert!(
            shown[0].contains("<persisted-output>") && shown[0].len() < 4_000,
            "{}",
            shown[0]
        );
        let list = client.get(&talk.path("/artifacts")).await.expect(200);
        let [artifact] = list["data"].as_array().unwrap().as_slice() else {
            panic!("one artifact: {list}")
        };
        let expected: Vec<String> = (1..=3000).map(|number| number.to_string()).collect();
        let expected = expected.join("\n");
        assert_eq!(
            (&artifact["tool"], &artifact["size"]),
            (&json!("terminal"), &json!(expected.len()))
        );
        let id = artifact["id"].as_str().unwrap();
        let whole = client.get(&talk.path(&format!("/artifacts/{id}"))).await.expect(200);
        assert_eq!(whole["content"], expected);
        let call = client.get(&talk.path("/messages")).await.expect(200)["data"][1]["tool_calls"][0]["id"].clone();
        assert_eq!(artifact["tool_call_id"], call);
        let raw = client.request(reqwest::Method::GET, &talk.path(&format!("/artifacts/{id}/content")));
        let raw = raw.send().await.unwrap();
        assert!(
            raw.headers()["content-disposition"]
                .to_str()
                .unwrap()
                .starts_with("attachment; filename=\"call_")
        );
        let text = raw.text().await.unwrap();
        assert_eq!(text, expected);
        assert_eq!(artifact["sha256"], sha256(&text));
        // The model finds it where the preview says.
        let path = shown[0].split("Full output saved to: ").nth(1).unwrap();
        let path = path.split("\\n").next().unwrap();
        let part = results(
            &mut talk,
            &self::call("read_file", &json!({"path": path, "offset": 2999, "limit": 2})),
        )
        .await;
        assert!(part[0].contains("3000"), "{}", part[0]);
        client
            .get(&talk.path("/artifacts/art_00000000000000000000000000"))
            .await
            .problem(404, "not_found");
        web.stop().await;
    });
}

fn sha256(text: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn results_that_fit_alone_and_not_together_are_shortened_for_the_model_only() {
    on_both(async |mut place| {
        place.config.agent.context_length = Some(1_000);
        let read = |number: u32| {
            let arguments = json!({"path": format!("f{number}.txt")}).to_string();
            let function = json!({"name": "read_file", "arguments": arguments});
            json!({"index": number - 1, "id": format!("c{number}"), "type": "function", "function": function})
        };
        let calls = json!({"tool_calls": [read(1), read(2), read(3)]});
        let model = ModelServer::start(vec![Reply::stream(&[calls], "tool_calls"), Reply::say("Read.")]).await;
        place.config.openai.base_url = Some(model.base_url.clone());
        place.config.model = Some("scripted".to_owned());
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &no_settings()).await;
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        std::fs::create_dir_all(&workspace).unwrap();
        for number in 1..=3 {
            let line = format!("{number} {}\n", "x".repeat(70));
            std::fs::write(workspace.join(format!("f{number}.txt")), line.repeat(85)).unwrap();
        }
        let kept = results(&mut talk, "read them").await;
        assert!(
            kept.iter()
                .all(|result| 6_000 < result.len() && !result.contains("persisted-output"))
        );
        let sent: Value = model.asked().last().unwrap().clone();
        let tools = sent["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "tool");
        let lengths: Vec<usize> = tools
            .map(|message| message["content"].as_str().unwrap().len())
            .collect();
        assert_eq!(
            lengths.iter().filter(|length| **length < 3_000).count(),
            1,
            "{lengths:?}"
        );
        assert!(lengths.iter().sum::<usize>() <= 16_000, "{lengths:?}");
        let list = client.get(&talk.path("/artifacts")).await.expect(200);
        assert_eq!(list["data"].as_array().unwrap().len(), 1);
        web.stop().await;
    });
}

#[test]
fn files_that_calls_write_are_listed_with_call_and_hash_and_sent_while_they_are_unchanged() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &no_settings()).await;
        let write = json!({"path": "out/a b.txt", "content": "one\n"});
        results(&mut talk, &call("write_file", &write)).await;
        let change = json!({"path": "out/a b.txt", "old_string": "one", "new_string": "two"});
        results(&mut talk, &call("patch", &change)).await;
        let list = client.get(&talk.path("/artifacts")).await.expect(200);
        let [second, first] = list["data"].as_array().unwrap().as_slice() else {
            panic!("two artifacts: {list}")
        };
        for (artifact, tool, text) in [(first, "write_file", "one\n"), (second, "patch", "two\n")] {
            assert_eq!(
                (
                    &artifact["tool"],
                    &artifact["kind"],
                    &artifact["path"],
                    &artifact["name"]
                ),
                (&json!(tool), &json!("file"), &json!("out/a b.txt"), &json!("a b.txt"))
            );
            assert_eq!(
                (&artifact["sha256"], &artifact["size"]),
                (&json!(sha256(text)), &json!(4))
            );
        }
        let messages = client.get(&talk.path("/messages")).await.expect(200);
        assert_eq!(first["tool_call_id"], messages["data"][1]["tool_calls"][0]["id"]);
        let content = |artifact: &Value| talk.path(&format!("/artifacts/{}/content", artifact["id"].as_str().unwrap()));
        let sent = client
            .request(reqwest::Method::GET, &content(second))
            .send()
            .await
            .unwrap();
        assert_eq!(sent.headers()["content-type"], "text/plain");
        assert_eq!(sent.text().await.unwrap(), "two\n");
        // What the first call wrote is not there any more.
        client.get(&content(first)).await.problem(404, "not_found");
        let whole = talk.path(&format!("/artifacts/{}", first["id"].as_str().unwrap()));
        assert_eq!(client.get(&whole).await.expect(200)["content"], json!(null));
        let events = client.get(&talk.path("/events?limit=200")).await.expect(200);
        let created = events["data"].as_array().unwrap().iter();
        let created = created.filter(|event| event["type"] == "artifact.created");
        assert_eq!(created.count(), 2);
        web.stop().await;
    });
}

#[test]
fn files_that_commands_and_programs_leave_are_listed_with_their_call() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &json!({"approvals": {"mode": "off"}})).await;
        results(
            &mut talk,
            &terminal("mkdir out; printf one > out/a.txt; echo ran; exit 3"),
        )
        .await;
        results(
            &mut talk,
            &terminal("cat out/a.txt; touch .hidden; mkdir t; for n in $(seq 30); do echo > t/$n; done"),
        )
        .await;
        let code =
            "from hermes_tools import terminal\nterminal('printf two > b.csv')\nopen('out/a.txt', 'w').write('three')";
        results(&mut talk, &call("execute_code", &json!({"code": code}))).await;
        let list = client.get(&talk.path("/artifacts")).await.expect(200);
        let told: Vec<(&str, &str, &str)> = list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                ["tool", "path", "sha256"]
                    .map(|name| one[name].as_str().unwrap())
                    .into()
            })
            .collect();
        let (one, two, three) = (sha256("one"), sha256("two"), sha256("three"));
        assert_eq!(
            told,
            [
                ("execute_code", "out/a.txt", three.as_str()),
                ("execute_code", "b.csv", &two),
                ("terminal", "out/a.txt", &one)
            ]
        );
        let messages = client.get(&talk.path("/messages")).await.expect(200);
        assert_eq!(
            list["data"][2]["tool_call_id"],
            messages["data"][1]["tool_calls"][0]["id"]
        );
        let content = talk.path(&format!(
            "/artifacts/{}/content",
            list["data"][1]["id"].as_str().unwrap()
        ));
        let sent = client.request(reqwest::Method::GET, &content).send().await.unwrap();
        assert_eq!(sent.headers()["content-type"], "text/csv");
        assert_eq!(sent.text().await.unwrap(), "two");
        web.stop().await;
    });
}

/// Something a call of the session made that is kept whole.
pub async fn planted(web: &Web, owner: &Client, session: &str, secret: &str) -> String {
    let messages = owner.get(&format!("/v1/sessions/{session}/messages")).await.expect(200);
    let call = messages["data"][1]["tool_calls"][0].clone();
    let parsed = |value: &Value| value.as_str().unwrap().to_owned();
    let artifact = Artifact {
        id: ArtifactId::new(web.server.engine.clock()),
        session_id: session.parse().unwrap(),
        turn_id: parsed(&messages["data"][1]["turn_id"]).parse().unwrap(),
        tool_call_id: parsed(&call["id"]).parse().unwrap(),
        tool: secret.to_owned(),
        kind: ArtifactKind::Result,
        path: None,
        name: "result.txt".to_owned(),
        media_type: "text/plain".to_owned(),
        size: i64::try_from(secret.len()).unwrap(),
        sha256: sha256(secret),
        created_at: web.server.engine.clock().now(),
    };
    let id = artifact.id;
    let content = Some(secret.to_owned());
    let tenant = owner.tenant.unwrap();
    let scope = web.server.engine.store().scope(tenant);
    let added = scope.write("test", move |mut rows| {
        Box::pin(async move {
            let session = rows.lock_session(artifact.session_id).await?.unwrap();
            rows.add_artifacts(&session, &[NewArtifact { artifact, content }]).await
        })
    });
    added.await.unwrap();
    id.to_string()
}
