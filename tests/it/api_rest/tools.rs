//! What the server can do, and what a session gets of it; the guard's word on a
//! command; the documents.

use hermes_server::model::principal::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use super::Talk;
use crate::harness::client::NewKey;
use crate::harness::script::mark;
use crate::harness::{lines, on_both};

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect()
}

#[test]
fn fc_074_a_session_tells_its_tools_and_why_others_are_absent() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let talk = Talk::new(&web, &owner, &json!({"preset": "hermes-api-server"})).await;
        let tools = owner.get(&talk.path("/tools")).await.expect(200);
        let (offered, absent) = (names(&tools["offered"]), names(&tools["absent"]));
        for name in ["terminal", "read_file", "write_file", "todo"] {
            assert!(offered.contains(&name), "{name}: {tools}");
        }
        for name in [
            "web_search",
            "process",
            "memory",
            "skills_list",
            "execute_code",
            "delegate_task",
            "cronjob",
        ] {
            assert!(offered.contains(&name) || absent.contains(&name), "{name}");
        }
        for name in ["clarify", "send_message", "text_to_speech"] {
            assert!(!offered.contains(&name) && !absent.contains(&name), "{name}");
        }
        for tool in tools["absent"].as_array().unwrap() {
            assert!(!tool["reason"].as_str().unwrap().is_empty(), "{tool}");
        }
        for tool in tools["offered"].as_array().unwrap() {
            assert_eq!(tool["parameters"]["type"], "object", "{tool}");
        }
        web.stop().await;
    });
}

#[test]
fn fc_076_a_keys_ceiling_holds_for_what_is_offered_and_for_what_runs() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let ceiling = NewKey {
            tenant: web.server.app.default_tenant(),
            user: "owner",
            scopes: &[Scope::Admin],
            tools: Some(&["read_file", "search_files"]),
        };
        let (narrow, wide) = (web.with_key(ceiling).await, web.owner().await);
        let mut talk = Talk::new(&web, &narrow, &json!({})).await;
        let tools = narrow.get(&talk.path("/tools")).await.expect(200);
        assert_eq!(names(&tools["offered"]), ["read_file", "search_files"]);
        let absent = tools["absent"].as_array().unwrap().iter();
        let terminal = absent.into_iter().find(|tool| tool["name"] == "terminal").unwrap();
        assert_eq!(terminal["reason"], "not permitted by the API key");
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        talk.say(&format!("{}\n/then\n/say x", mark("a"))).await;
        talk.events.until("turn.completed").await;
        assert_eq!(lines(&workspace.join("a")), 0);

        let tools = wide.get(&talk.path("/tools")).await.expect(200);
        assert!(names(&tools["offered"]).contains(&"terminal"));
        talk.client = wide;
        talk.say(&format!("{}\n/then\n/say x", mark("a"))).await;
        talk.events.until("turn.completed").await;
        assert_eq!(lines(&workspace.join("a")), 1);
        web.stop().await;
    });
}

#[test]
fn tools_toolsets_and_models_are_listed() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let reader = web.user("reader", &[Scope::SessionsRead]).await;
        let tools = reader.get("/v1/tools").await.expect(200);
        assert_eq!((&tools["object"], &tools["has_more"]), (&json!("list"), &json!(false)));
        let terminal = reader.get("/v1/tools/terminal").await.expect(200);
        assert!(tools["data"].as_array().unwrap().contains(&terminal));
        assert_eq!(
            (&terminal["toolset"], &terminal["parameters"]["type"]),
            (&json!("terminal"), &json!("object"))
        );
        reader.get("/v1/tools/teleport").await.problem(404, "not_found");

        let toolsets = reader.get("/v1/toolsets").await.expect(200);
        let file = reader.get("/v1/toolsets/file").await.expect(200);
        assert!(toolsets["data"].as_array().unwrap().contains(&file));
        assert!(file["resolved_tools"].as_array().unwrap().contains(&json!("read_file")) && file["available"] == true);
        reader.get("/v1/toolsets/teleport").await.problem(404, "not_found");

        let models = reader.get("/v1/models").await.expect(200);
        assert_eq!(models["object"], "list");
        assert_eq!(
            models["data"],
            json!([{"id": "demo", "object": "model", "created": 0, "owned_by": "hermes", "root": "demo",
                "parent": null, "permission": []}])
        );
        web.stop().await;
    });
}

#[test]
fn the_guard_judges_without_running() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let reader = web.user("reader", &[Scope::SessionsRead]).await;
        let check = async |body: Value| reader.post("/v1/guard/check", &body).await;
        let verdict = async |command: &str| check(json!({"command": command})).await.expect(200)["verdict"].clone();
        assert_eq!(verdict("ls -l").await, "allow");
        assert_eq!(verdict("rm -rf /").await, "deny");
        let judged = check(json!({"command": "echo hi; rm -rf build", "backend": "local"}))
            .await
            .expect(200);
        assert_eq!(judged["verdict"], "ask");
        let finding = &judged["findings"][0];
        assert!(finding["rule"].is_string() && finding["key"].is_string() && finding["severity"].is_string());
        assert!(9 <= finding["span"]["start"].as_u64().unwrap(), "{finding}");
        let programs: Vec<&Value> = judged["commands"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["program"])
            .collect();
        assert_eq!(programs, ["echo", "rm"]);
        for (body, pointer) in [
            (json!({"command": "ls", "backend": "moon"}), "/backend"),
            (json!({"command": 7}), "/command"),
        ] {
            let problem = check(body).await.problem(400, "invalid_request");
            assert_eq!(problem["errors"][0]["pointer"], pointer);
        }
        web.stop().await;
    });
}

#[test]
fn the_documents_are_open_and_need_no_other_host() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let open = async |path: &str| web.bare(Method::GET, path).send().await.unwrap();
        let document = open("/openapi.json").await;
        assert_eq!(document.headers()["content-type"], "application/json");
        assert_eq!(
            document.text().await.unwrap(),
            include_str!("../../../openapi/native.json")
        );
        // Without the slash the client is sent to the page.
        let page = open("/docs").await;
        assert_eq!(
            (page.status().as_u16(), &page.headers()["content-type"]),
            (200, &"text/html".parse().unwrap())
        );
        let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.contains("script-src 'self'"), "{policy}");
        let page = page.text().await.unwrap();
        let files: Vec<&str> = page
            .split('"')
            .filter(|text| text.ends_with(".js") || text.ends_with(".css"))
            .collect();
        assert!(3 <= files.len(), "{page}");
        for file in files {
            assert!(!file.contains("//"), "{file} is somebody else's");
            let answer = open(&format!("/docs/{}", file.trim_start_matches("./"))).await;
            assert_eq!(answer.status(), 200, "{file}");
            assert!(!answer.bytes().await.unwrap().is_empty());
        }
        let start = open("/docs/swagger-initializer.js").await.text().await.unwrap();
        assert!(start.contains("\"/openapi.json\""), "{start}");
        web.anonymous()
            .get("/docs/nothing.js")
            .await
            .is_problem(404, "not_found");
        web.stop().await;
    });
}

#[test]
fn a_choice_of_toolsets_is_resolved_with_a_reason_for_each_absent_tool() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let reader = web.user("reader", &[Scope::SessionsRead]).await;
        let resolve = async |choice: Value| reader.post("/v1/toolsets/resolve", &choice).await;
        let chosen = resolve(json!({"enabled": ["file", "browser"], "disabled": ["search"]}))
            .await
            .expect(200);
        let tools = chosen["tools"].as_array().unwrap();
        let named = |name: &str| tools.iter().find(|tool| tool["name"] == name);
        assert_eq!(
            named("read_file").unwrap(),
            &json!({"name": "read_file", "state": "offered", "reason": null})
        );
        let absent = named("browser_click").unwrap();
        assert_eq!(
            (&absent["state"], &absent["reason"]),
            (&json!("absent"), &json!("not built into this server"))
        );
        assert_eq!(named("web_search"), None);
        let preset = resolve(json!({"preset": "hermes-acp"})).await.expect(200);
        assert_eq!(preset["tools"].as_array().unwrap().len(), 29);
        let own = resolve(json!({})).await.expect(200);
        assert_eq!(own["tools"].as_array().unwrap().len(), 35);
        let unknown = resolve(json!({"preset": "hermes-acp", "disabled": ["flie"]})).await;
        let problem = unknown.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], "/disabled");
        web.stop().await;
    });
}

#[test]
fn a_seed_draws_the_same_toolsets_again() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let reader = web.user("reader", &[Scope::SessionsRead]).await;
        let draw = async |body: Value| reader.post("/v1/toolsets/sample", &body).await;
        let first = draw(json!({"distribution": "balanced", "count": 20})).await.expect(200);
        assert_eq!(first["draws"].as_array().unwrap().len(), 20);
        let again = json!({"distribution": "balanced", "count": 20, "seed": first["seed"]});
        assert_eq!(draw(again).await.expect(200)["draws"], first["draws"]);
        let all = draw(json!({"distribution": "terminal_web", "seed": 1}))
            .await
            .expect(200);
        assert_eq!(all["draws"], json!([["terminal", "file", "web"]]));
        let unknown = draw(json!({"distribution": "moa"}))
            .await
            .problem(400, "invalid_request")
            .clone();
        assert!(unknown["detail"].as_str().unwrap().contains("mixed_tasks"), "{unknown}");
        draw(json!({"distribution": "safe", "count": 0}))
            .await
            .problem(400, "invalid_request");
        web.stop().await;
    });
}
