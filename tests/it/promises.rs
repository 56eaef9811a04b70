//! What the document promises of whole kinds of operations, tried on each of
//! them: a new route is in here without anybody adding it.

use hermes_server::model::id::{CheckpointId, PendingWriteId};
use hermes_server::model::principal::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::extend::artifacts::planted;
use crate::extend::checkpoints;
use crate::harness::client::{Client, NewKey};
use crate::harness::http::{Answer, Web};
use crate::harness::on_both;
use crate::harness::script::guarded;
use crate::isolation::{Ids, World, body, closed, filled, least, question_asked, waiting_write, with, within};
use crate::jobs::runs;
use crate::openapi::{Operation, document};

const KEY: &str = "Idempotency-Key";

/// POST operations that change nothing, so that sending them twice is nothing.
const QUESTIONS: [(&str, &str); 6] = [
    ("check_command", "it says what the guard thinks"),
    ("create_session_stream_token", "a token is signed, not kept"),
    ("create_stream_token", "a token is signed, not kept"),
    ("reload_plugins", "to load again comes to the same"),
    ("resolve_toolsets", "it says what a choice comes to"),
    ("sample_toolsets", "it draws by chance or by the seed given"),
];

/// Lists whose cursors are not signed.
const OPEN_CURSORS: [(&str, &str); 1] = [(
    "list_events",
    "its cursor is the number of an event, as in streams, and shows nothing that the session's path does not",
)];

/// Filters without which a list of the test's world has one entry.
const FILTERED: [(&str, &str); 1] = [("list_usage", "group_by=session")];

fn posts(document: &Value) -> Vec<Operation> {
    let mut all = closed(document);
    all.retain(|operation| operation.method == "POST");
    all
}

fn is_question(operation: &Operation) -> bool {
    QUESTIONS.iter().any(|(id, _)| *id == operation.id)
}

fn parameters(operation: &Operation, place: &str) -> Vec<(String, Value)> {
    let all = operation.body["parameters"].as_array().into_iter().flatten();
    let here = all.filter(|parameter| parameter["in"] == place);
    here.map(|parameter| {
        (
            parameter["name"].as_str().unwrap().to_owned(),
            parameter["schema"].clone(),
        )
    })
    .collect()
}

#[test]
fn every_post_with_an_effect_takes_an_idempotency_key() {
    let document = document();
    let posts = posts(&document);
    for operation in &posts {
        let takes = parameters(operation, "header").iter().any(|(name, _)| name == KEY);
        assert_eq!(takes, !is_question(operation), "{}", operation.id);
        for status in ["409", "422"] {
            assert!(
                !takes || operation.body["responses"][status].is_object(),
                "{} {status}",
                operation.id
            );
        }
    }
    for (id, why) in QUESTIONS {
        assert!(
            posts.iter().any(|operation| operation.id == id),
            "`{id}` is gone: {why}"
        );
    }
}

async fn keyed(client: &Client, path: &str, key: &str, body: &str) -> Answer {
    let request = client.request(Method::POST, path).header(KEY, key);
    let request = match body {
        "" => request,
        body if body.lines().count() < 2 => request.header("content-type", "application/json").body(body.to_owned()),
        lines => request
            .header("content-type", "application/x-ndjson")
            .body(lines.to_owned()),
    };
    Answer::of(request.send().await.unwrap()).await
}

/// Carries the operation out, in a session that waits for a person or in an idle
/// one; answers its path and its body too.
async fn carried_out(web: &Web, owner: &Client, document: &Value, operation: &Operation) -> (String, String, Answer) {
    let world = World::of(web, owner).await;
    let idle = owner.post("/v1/sessions", &json!({})).await.expect(201);
    let mut elsewhere = world.ids.clone();
    elsewhere.insert("ses", idle["id"].as_str().unwrap().to_owned());
    checkpoints::planted(web, owner, &elsewhere["ses"], world.ids["chk"].parse().unwrap()).await;
    let body = match within(body(document, operation), &world.ids) {
        Some(Value::String(lines)) => lines,
        body => body.map_or(String::new(), |body| body.to_string()),
    };
    let mut refusals = Vec::new();
    for ids in [&world.ids, &elsewhere] {
        let path = filled(operation, ids);
        let answer = keyed(owner, &path, "k", &body).await;
        if answer.status < 300 {
            return (path, body, answer);
        }
        refusals.push(answer.body);
    }
    panic!("{}: no example of it is carried out: {refusals:?}", operation.id);
}

#[test]
fn every_post_that_is_sent_again_is_answered_again_and_done_once() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let document = document();
        for (number, operation) in posts(&document).iter().enumerate() {
            if is_question(operation) {
                continue;
            }
            // Names are unique in a tenant.
            let owner = NewKey {
                tenant: web.tenant(&format!("t{number}")).await,
                user: "owner",
                scopes: &[Scope::Admin],
                tools: None,
            };
            let owner = web.with_key(owner).await;
            let (path, body, first) = carried_out(&web, &owner, &document, operation).await;
            let id = &operation.id;
            assert_eq!(first.header("idempotency-replayed"), "", "{id}");
            let again = keyed(&owner, &path, "k", &body).await;
            assert_eq!(
                (again.status, again.header("idempotency-replayed").as_str()),
                (first.status, "true"),
                "{id}: {}",
                again.body
            );
            assert_eq!(again.body["id"], first.body["id"], "{id}");
            let other = keyed(&owner, &path, "k", &format!("{body} ")).await;
            assert_eq!(other.body["code"], "idempotency_key_reused", "{id}: {}", other.body);
        }
        web.stop().await;
    });
}

/// Operations that answer a page.
pub fn lists(document: &Value) -> Vec<Operation> {
    let mut all = closed(document);
    all.retain(|operation| {
        let schema = &operation.body["responses"]["200"]["content"]["application/json"]["schema"]["$ref"];
        schema
            .as_str()
            .is_some_and(|name| name.starts_with("#/components/schemas/Page_"))
    });
    assert!(5 < all.len(), "lists are described in another way");
    all
}

#[test]
fn every_list_takes_a_limit_and_a_cursor() {
    let document = document();
    let lists = lists(&document);
    for operation in &lists {
        let names: Vec<String> = parameters(operation, "query")
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        for name in ["limit", "after"] {
            assert!(names.iter().any(|own| own == name), "{}: no `{name}`", operation.id);
        }
    }
    for (id, why) in OPEN_CURSORS {
        assert!(
            lists.iter().any(|operation| operation.id == id),
            "`{id}` is gone: {why}"
        );
    }
}

/// One more of everything that is listed, in the world's session where it has a
/// part in it.
async fn another_of_each(web: &Web, owner: &Client, world: &World) {
    waiting_write(web, owner, PendingWriteId::new(web.server.engine.clock())).await;
    question_asked(web, owner).await;
    let job = json!({"prompt": "/say x", "schedule": "every 1d"});
    owner.post("/v1/jobs", &job).await.expect(201);
    let job = json!({"id": world.ids["job"]});
    for count in 1..=2 {
        let trigger = format!("/v1/jobs/{}/trigger", world.ids["job"]);
        owner.post(&trigger, &json!({})).await.expect(200);
        runs(owner, &job, count).await;
    }
    let results = format!("/v1/sessions/{}/tool-results", world.ids["ses"]);
    let found = json!({"results": [{"tool_call_id": world.ids["call"], "output": "x"}]});
    owner.post(&results, &found).await.expect(200);
    let other = owner.post("/v1/sessions", &json!({})).await.expect(201);
    let path = format!("/v1/sessions/{}/turns?wait=20", other["id"].as_str().unwrap());
    owner.post(&path, &json!({"input": "/say x"})).await.expect(200);
    let turns = format!("/v1/sessions/{}/turns", world.ids["ses"]);
    let behind = json!({"input": "/say x", "on_busy": "enqueue"});
    owner.post(&turns, &behind).await.expect(202);
    let decision = format!("/v1/approvals/{}/decision", world.ids["apr"]);
    owner.post(&decision, &json!({"choice": "session"})).await.expect(200);
    let file = owner.request(Method::PUT, &format!("/v1/sessions/{}/files/other", world.ids["ses"]));
    assert_eq!(file.body("x").send().await.unwrap().status(), 201);
    for name in ["default", "other"] {
        let policy = owner.request(Method::PUT, &format!("/v1/policies/{name}"));
        assert_eq!(policy.json(&json!({})).send().await.unwrap().status(), 200);
    }
    // Two calls under the grant.
    let process = json!({"command": "true", "background": true});
    let script = [guarded("a"), guarded("b"), format!("/tool terminal {process}")].join("\n");
    let covered = json!({"input": script, "on_busy": "enqueue"});
    owner.post(&format!("{turns}?wait=20"), &covered).await.expect(200);
    planted(web, owner, &world.ids["ses"], "other").await;
    let checkpoint = CheckpointId::new(web.server.engine.clock());
    checkpoints::planted(web, owner, &world.ids["ses"], checkpoint).await;
}

/// A list with the cursor behind its first entry.
struct Listed {
    operation: Operation,
    path: String,
    after: String,
}

async fn listed(owner: &Client, operation: Operation, ids: &Ids) -> Listed {
    let path = filled(&operation, ids);
    let filter = FILTERED.iter().find(|(id, _)| *id == operation.id);
    let path = filter.map_or(path.clone(), |(_, filter)| with(&path, filter));
    let page = owner.get(&with(&path, "limit=1")).await.expect(200);
    assert_eq!(page["has_more"], true, "{}: make another one of it above", operation.id);
    let after = page["next_cursor"].as_str().unwrap().to_owned();
    let next = owner
        .get(&with(&path, &format!("limit=1&after={after}")))
        .await
        .expect(200);
    let (first, second) = (&page["data"][0], &next["data"][0]);
    assert!(second.is_object() && first != second, "{}: {next}", operation.id);
    Listed { operation, path, after }
}

#[track_caller]
fn assert_refused(answer: &Answer, id: &str, why: &str) {
    assert_eq!(
        (
            answer.status,
            &answer.body["code"],
            &answer.body["errors"][0]["pointer"]
        ),
        (400, &json!("invalid_cursor"), &json!("after")),
        "{id}, {why}: {}",
        answer.body
    );
}

/// A filter of many entries, each a parameter of its own.
fn is_object(schema: &Value) -> bool {
    schema["additionalProperties"].is_object()
}

/// A value of a filter that the list was not made with.
fn sample(document: &Value, schema: &Value, ids: &Ids) -> String {
    let schema = schema["oneOf"].as_array().map_or(schema, |options| {
        options.iter().find(|option| option["type"] != "null").unwrap()
    });
    if let Some(kind) = schema["$ref"].as_str().and_then(|name| name.strip_suffix("_id")) {
        let kind = kind.rsplit('/').next().unwrap();
        let nobodys = || format!("{kind}_01jz8m4s7ye2tv6m0c9w3kq5rd");
        return ids.get(kind).cloned().unwrap_or_else(nobodys);
    }
    let kind = &schema["type"];
    let is = |name: &str| kind == name || kind.as_array().is_some_and(|kinds| kinds.contains(&json!(name)));
    match schema["format"].as_str() {
        Some("date-time") => "2030-01-01T00:00:00.000Z".to_owned(),
        _ if is("integer") => "1".to_owned(),
        _ if is("boolean") => "true".to_owned(),
        _ if is("string") && schema["enum"].is_null() => "x".to_owned(),
        _ => least(document, schema).as_str().unwrap().to_owned(),
    }
}

#[test]
fn every_cursor_leads_on_in_its_own_list_alone() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let document = document();
        let owner = web.owner().await;
        let world = World::of(&web, &owner).await;
        another_of_each(&web, &owner, &world).await;
        let other = owner.post("/v1/sessions", &json!({})).await.expect(201);
        let mut elsewhere = world.ids.clone();
        elsewhere.insert("ses", other["id"].as_str().unwrap().to_owned());
        let stranger = NewKey {
            tenant: web.tenant("another").await,
            user: "owner",
            scopes: &[Scope::Admin],
            tools: None,
        };
        let stranger = web.with_key(stranger).await;
        let mut all = Vec::new();
        for operation in lists(&document) {
            if OPEN_CURSORS.iter().all(|(id, _)| *id != operation.id) {
                all.push(listed(&owner, operation, &world.ids).await);
            }
        }
        for list in &all {
            let Listed { operation, path, after } = list;
            let id = &operation.id;
            let behind = async |client: &Client, path: &str, after: &str, more: &str| {
                client.get(&with(path, &format!("after={after}{more}"))).await
            };
            let flipped: String = after.chars().rev().collect();
            for forged in ["x", "", &after[1..], &flipped, &world.ids["ses"]] {
                assert_refused(&behind(&owner, path, forged, "").await, id, forged);
            }
            for foreign in all.iter().filter(|other| other.operation.id != *id) {
                let answer = behind(&owner, path, &foreign.after, "").await;
                assert_refused(&answer, id, &foreign.operation.id);
            }
            for (name, schema) in parameters(operation, "query") {
                if ["limit", "after"].contains(&name.as_str()) || path.contains(&format!("?{name}=")) {
                    continue;
                }
                let filter = match is_object(&schema) {
                    _ if ["since", "until"].contains(&name.as_str()) => {
                        format!("&{name}=2026-01-31T00:00:00Z")
                    }
                    true => format!("&{name}[x]=x"),
                    false => format!("&{name}={}", sample(&document, &schema, &world.ids)),
                };
                assert_refused(&behind(&owner, path, after, &filter).await, id, &filter);
            }
            if path.contains("/sessions/") {
                let answer = behind(&owner, &filled(operation, &elsewhere), after, "").await;
                assert_refused(&answer, id, "another session");
            } else {
                assert_refused(&behind(&stranger, path, after, "").await, id, "another tenant");
            }
        }
        web.stop().await;
    });
}
