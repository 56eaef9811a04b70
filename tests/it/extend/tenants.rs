//! Two sessions of two tenants at work at the same time: what one makes is never
//! in anything that the other can read.

use hermes_server::model::principal::Scope;
use serde_json::{Value, json};

use super::{call, program, results};
use crate::api_rest::Talk;
use crate::harness::client::{Client, NewKey};
use crate::harness::http::Web;
use crate::harness::on_both;

/// All that a session can do, each with the tenant's word in it; what the calls
/// answered.
async fn work(talk: &mut Talk, word: &str) -> String {
    let mut told = String::new();
    let background = json!({"command": format!("echo {word} > running; sleep 300 # {word}"), "background": true});
    for script in [
        call(&format!("{word}_tool"), &json!({})),
        call("write_file", &json!({"path": format!("{word}.txt"), "content": word})),
        call(
            "memory",
            &json!({"target": "memory", "action": "add", "content": format!("remember {word}")}),
        ),
        call("terminal", &background),
        call(
            "cronjob",
            &json!({"action": "create", "prompt": format!("say {word}"), "schedule": "0 0 1 1 *"}),
        ),
        call("process", &json!({"action": "list"})),
        call("cronjob", &json!({"action": "list"})),
        call(
            "skill_manage",
            &json!({"action": "create", "name": format!("{word}-skill"),
                "content": format!("---\nname: {word}\ndescription: How {word} is done\n---\nDo {word}.\n")}),
        ),
        call("skills_list", &json!({})),
        call("session_search", &json!({"query": "remember"})),
        call("session_search", &json!({})),
        call("search_files", &json!({"pattern": ".", "path": "."})),
    ] {
        told.push_str(&results(talk, &script).await.join("\n"));
        told.push('\n');
    }
    told
}

/// Everything that lists show to this client.
async fn shown(client: &Client, session: &str) -> String {
    let mut all = String::new();
    for path in [
        "/v1/sessions".to_owned(),
        "/v1/tools".to_owned(),
        "/v1/toolsets".to_owned(),
        "/v1/jobs".to_owned(),
        "/v1/skills".to_owned(),
        "/v1/pending-writes".to_owned(),
        "/v1/search?q=remember".to_owned(),
        "/v1/search?q=tool".to_owned(),
        format!("/v1/sessions/{session}/tools"),
        format!("/v1/sessions/{session}/processes"),
        format!("/v1/sessions/{session}/files"),
        format!("/v1/sessions/{session}/artifacts"),
        format!("/v1/sessions/{session}/messages?limit=200"),
        format!("/v1/sessions/{session}/events?limit=200"),
    ] {
        all.push_str(&client.get(&path).await.expect(200).to_string());
    }
    all
}

fn own_tool(web: &Web, data_dir: &std::path::Path, client: &Client, word: &str) {
    let tenant = client
        .tenant
        .unwrap_or_else(|| web.server.app.default_tenant())
        .to_string();
    let folder = data_dir.join("plugins/tenants").join(tenant).join(word);
    std::fs::create_dir_all(&folder).unwrap();
    let manifest = format!(
        "name: {word}\ntools:\n  - name: {word}_tool\n    description: Says {word}.\n    handler: {{command: [./say]}}\n"
    );
    std::fs::write(folder.join("plugin.yaml"), manifest).unwrap();
    program(
        &folder,
        "say",
        &format!("printf '{{\"type\":\"text\",\"text\":\"{word}\"}}'"),
    );
}

#[test]
fn two_tenants_at_work_at_once_never_see_each_others_things() {
    on_both(async |mut place| {
        let data_dir = place.config.server.data_dir.clone();
        let web = place.serve().await;
        let ours = web.owner().await;
        let theirs = web
            .with_key(NewKey {
                tenant: web.tenant("elsewhere").await,
                user: "owner",
                scopes: &[Scope::Admin],
                tools: None,
            })
            .await;
        own_tool(&web, &data_dir, &ours, "walnut");
        own_tool(&web, &data_dir, &theirs, "quince");
        ours.post("/v1/plugins/reload", &json!({})).await.expect(200);
        let settings = |word: &str| json!({"toolsets": {"enabled": [word, "cronjob", "clarify"]}, "title": word});
        let mut first = Talk::new(&web, &ours, &settings("walnut")).await;
        let mut second = Talk::new(&web, &theirs, &settings("quince")).await;
        let (one, two) = tokio::join!(work(&mut first, "walnut"), work(&mut second, "quince"));
        // Each did its work, or this proves nothing.
        for (told, word) in [(&one, "walnut"), (&two, "quince")] {
            assert!(10 < told.matches(word).count(), "{told}");
        }
        let one = one + &shown(&ours, &first.session).await;
        let two = two + &shown(&theirs, &second.session).await;
        assert!(!one.contains("quince") && !one.contains(&second.session), "{one}");
        assert!(!two.contains("walnut") && !two.contains(&first.session), "{two}");
        // Neither by name.
        let stolen = results(&mut first, &call("quince_tool", &json!({}))).await;
        assert!(stolen[0].contains("Unknown tool"), "{stolen:?}");
        let foreign = Value::from(second.path("/files/quince.txt"));
        ours.get(foreign.as_str().unwrap()).await.problem(404, "not_found");
        web.stop().await;
    });
}
