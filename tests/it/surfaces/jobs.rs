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
        assert_eq!(
            client
                .post(&path(&job, "/run"), &json!({"prompt": "other"}))
                .await
                .status,
            400
        );
        let anonymous = web.anonymous().get("/api/jobs").await;
        assert_eq!(anonymous.status, 401);
        assert!(anonymous.body["error"].is_string());

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
