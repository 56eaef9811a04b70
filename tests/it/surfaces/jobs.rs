//! Jobs in the original's form.

use serde_json::{Value, json};

use crate::harness::client::NewKey;
use crate::harness::on_both;
use hermes_server::model::principal::Scope;

fn path(job: &Value, rest: &str) -> String {
    format!("/api/jobs/{}{rest}", job["id"].as_str().unwrap())
}

#[test]
fn a_job_is_made_changed_paused_run_and_removed_as_in_the_original() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let body = json!({"name": "news", "schedule": "every 2h", "prompt": "/say news", "deliver": "local",
            "repeat": 3, "unknown": true});
        let made = client.post("/api/jobs", &body).await.expect(200)["job"].clone();
        assert_eq!(
            (
                &made["schedule"]["kind"],
                &made["schedule"]["minutes"],
                &made["schedule_display"]
            ),
            (&json!("interval"), &json!(120), &json!("every 2h"))
        );
        assert_eq!(made["repeat"], json!({"times": 3, "completed": 0}));
        assert_eq!(
            (&made["enabled"], &made["state"], &made["deliver"]),
            (&json!(true), &json!("scheduled"), &json!("local"))
        );
        let next: &str = made["next_run_at"].as_str().unwrap();
        assert!(next.ends_with('Z'), "{next}");
        assert_eq!(client.get(&path(&made, "")).await.expect(200)["job"], made);

        let changed = client
            .patch(
                &path(&made, ""),
                &json!({"name": "more news", "repeat": {"times": null}}),
            )
            .await;
        let changed = changed.expect(200)["job"].clone();
        assert_eq!(
            (&changed["name"], &changed["repeat"]["times"]),
            (&json!("more news"), &Value::Null)
        );
        let paused = client.post(&path(&made, "/pause"), &json!({})).await.expect(200)["job"].clone();
        assert_eq!(
            (&paused["enabled"], &paused["state"]),
            (&json!(false), &json!("paused"))
        );
        assert_eq!(client.get("/api/jobs").await.expect(200)["jobs"], json!([]));
        let all = client.get("/api/jobs?include_disabled=true").await.expect(200);
        assert_eq!(all["jobs"], json!([paused]));
        let resumed = client
            .patch(&path(&made, ""), &json!({"enabled": true}))
            .await
            .expect(200)["job"]
            .clone();
        assert_eq!(resumed["state"], "scheduled");
        client.post(&path(&made, "/pause"), &json!({})).await.expect(200);
        client.post(&path(&made, "/resume"), &json!({})).await.expect(200);

        client.post(&path(&made, "/run"), &json!({})).await.expect(200);
        // It is the same job as on the native surface, and its run a turn like any other.
        let native = format!("/v1/jobs/{}", made["id"].as_str().unwrap());
        let runs = crate::jobs::runs(&client, &client.get(&native).await.expect(200), 1).await;
        assert_eq!(runs[0]["status"], "completed");
        let ran = client.get(&path(&made, "")).await.expect(200)["job"].clone();
        assert_eq!((&ran["last_status"], &ran["last_error"]), (&json!("ok"), &Value::Null));
        assert_eq!(ran["latest_execution"]["session_id"], runs[0]["session_id"]);
        assert_eq!(client.delete(&path(&made, "")).await.expect(200), json!({"ok": true}));
        assert_eq!(client.get(&path(&made, "")).await.status, 404);
        web.stop().await;
    });
}

#[test]
fn errors_of_jobs_are_bare_texts() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let job = client
            .post("/api/jobs", &json!({"schedule": "30m", "prompt": "/say x"}))
            .await
            .expect(200)["job"]
            .clone();
        for (body, names) in [
            (json!({"prompt": "x"}), "schedule"),
            (json!({"schedule": "never", "prompt": "x"}), "schedule"),
            (json!({"schedule": "30m"}), "prompt"),
            (json!({"schedule": "30m", "prompt": "x", "repeat": 0}), "repeat"),
            (json!({"schedule": "30m", "prompt": "x", "skills": [1]}), "skills"),
            (
                json!({"schedule": "30m", "prompt": "x", "deliver": "telegram"}),
                "deliver",
            ),
            (json!({"schedule": "30m", "prompt": "x", "no_agent": true}), "no_agent"),
            (json!({"schedule": "30m", "prompt": "x", "workdir": "/etc"}), "workdir"),
            (json!({"schedule": "30m", "prompt": "x", "script": "../x.sh"}), "script"),
            (
                json!({"schedule": "30m", "prompt": "x", "context_from": [1]}),
                "context_from",
            ),
            (
                json!({"schedule": "30m", "prompt": "x", "origin_session_id": "nowhere"}),
                "origin_session_id",
            ),
        ] {
            let refused = client.post("/api/jobs", &body).await;
            assert_eq!(refused.status, 400, "{body}");
            let text = refused.body["error"]
                .as_str()
                .unwrap_or_else(|| panic!("{}", refused.body));
            assert!(text.contains(names), "{text}");
        }
        assert_eq!(client.patch(&path(&job, ""), &json!({"unknown": 1})).await.status, 400);
        assert_eq!(
            client.patch(&path(&job, ""), &json!({"enabled": "yes"})).await.status,
            400
        );
        let run = client.post(&path(&job, "/run"), &json!({"prompt": 5})).await;
        assert_eq!(
            (run.status, run.body["error"].as_str().unwrap().contains("prompt")),
            (400, true)
        );
        let anonymous = web.anonymous().get("/api/jobs").await;
        assert_eq!(anonymous.status, 401);
        assert!(anonymous.body["error"].is_string());
        web.stop().await;
    });
}

#[test]
fn a_job_of_another_tenant_does_not_exist() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let job = json!({"schedule": "30m", "prompt": "/say x"});
        let job = client.post("/api/jobs", &job).await.expect(200)["job"].clone();
        let tenant = web.tenant("another").await;
        let key = NewKey {
            tenant,
            user: "owner",
            scopes: &[Scope::Admin],
            tools: None,
        };
        let other = web.with_key(key).await;
        assert_eq!(
            other.get("/api/jobs?include_disabled=1").await.expect(200)["jobs"],
            json!([])
        );
        let unknown = other.get("/api/jobs/0123456789ab").await;
        for (method, rest) in [
            ("GET", ""),
            ("PATCH", ""),
            ("DELETE", ""),
            ("POST", "/pause"),
            ("POST", "/resume"),
            ("POST", "/run"),
        ] {
            let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
            let answer = crate::harness::http::Answer::of(
                other
                    .request(method, &path(&job, rest))
                    .json(&json!({"name": "mine"}))
                    .send()
                    .await
                    .unwrap(),
            )
            .await;
            assert_eq!((answer.status, &answer.body), (404, &unknown.body), "{rest}");
        }
        web.stop().await;
    });
}

async fn ran(client: &crate::harness::client::Client, job: &Value, count: usize) -> Vec<Value> {
    let native = client
        .get(&format!("/v1/jobs/{}", job["id"].as_str().unwrap()))
        .await
        .expect(200);
    crate::jobs::runs(client, &native, count).await
}

/// What the model was asked in a run.
async fn asked(client: &crate::harness::client::Client, run: &Value) -> String {
    let path = format!("/v1/sessions/{}/messages", run["session_id"].as_str().unwrap());
    let messages = client.get(&path).await.expect(200);
    messages["data"][0]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_job_takes_what_jobs_take_and_a_run_may_ask_something_else() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        client.post("/api/sessions", &json!({"id": "talk"})).await.expect(201);
        let news = json!({"schedule": "every 2h", "name": "news", "prompt": "/say it rains"});
        let news = client.post("/api/jobs", &news).await.expect(200)["job"].clone();
        client.post(&path(&news, "/run"), &json!({})).await.expect(200);
        ran(&client, &news, 1).await;
        let body = json!({"schedule": "0 9 * * *", "time_zone": "Europe/Berlin", "prompt": "/say told",
            "context_from": "news", "workdir": "app", "deliver": "origin", "origin_session_id": "talk",
            "enabled_toolsets": ["file", "terminal"]});
        let job = client.post("/api/jobs", &body).await.expect(200)["job"].clone();
        for (field, value) in [
            ("context_from", json!(["news"])),
            ("workdir", json!("app")),
            ("deliver", json!("origin")),
            ("enabled_toolsets", json!(["file", "terminal"])),
            ("time_zone", json!("Europe/Berlin")),
            ("no_agent", json!(false)),
        ] {
            assert_eq!(job[field], value, "{field}");
        }
        client.post(&path(&job, "/run"), &json!({})).await.expect(200);
        let runs = ran(&client, &job, 1).await;
        assert!(asked(&client, &runs[0]).await.contains("it rains"));
        // The session that the job is for is told what came of it.
        let told = async || client.get("/api/sessions/talk/messages").await.expect(200)["data"].to_string();
        for _ in 0..2_000 {
            if told().await.contains("told") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert!(told().await.contains("told"));

        let once = json!({"prompt": "/say only now"});
        let shown = client.post(&path(&job, "/run"), &once).await.expect(200)["job"].clone();
        assert_eq!(shown["prompt"], "/say told", "the job asks what it asked");
        let runs = ran(&client, &job, 2).await;
        assert!(asked(&client, &runs[0]).await.ends_with("/say only now"));
        client.post(&path(&job, "/run"), &json!({})).await.expect(200);
        let runs = ran(&client, &job, 3).await;
        assert!(asked(&client, &runs[0]).await.ends_with("/say told"));

        let less = json!({"context_from": [], "workdir": "", "deliver": "local", "enabled_toolsets": []});
        let changed = client.patch(&path(&job, ""), &less).await.expect(200)["job"].clone();
        for (field, value) in [
            ("context_from", json!([])),
            ("workdir", Value::Null),
            ("deliver", json!("local")),
            ("enabled_toolsets", Value::Null),
        ] {
            assert_eq!(changed[field], value, "{field}");
        }
        let script = json!({"script": "news.sh", "no_agent": true});
        let changed = client.patch(&path(&job, ""), &script).await.expect(200)["job"].clone();
        assert_eq!(
            (&changed["script"], &changed["no_agent"]),
            (&json!("news.sh"), &json!(true))
        );
        web.stop().await;
    });
}
