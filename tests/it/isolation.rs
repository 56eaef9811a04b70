//! Who may see and do what, tried on every operation of the OpenAPI document: a
//! new route is in here without anybody adding it.

mod world;

use hermes_server::model::id::{
    ApprovalId, ArtifactId, BackgroundId, CallId, CheckpointId, GrantId, JobId, KeyId, PendingWriteId, QuestionId,
    SessionId, TurnId,
};
use hermes_server::model::principal::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::client::{Client, NewKey};
use crate::harness::http::{Answer, Events, Web};
use crate::harness::on_both;
use crate::openapi::{Operation, document, operations};

pub use world::{Ids, World, question_asked, waiting_write};
use world::{SECRET, SKILL, SKILL_FILE};

/// Operations whose path names something that belongs to no tenant. The list
/// may only shrink.
const SHARED: [(&str, &str); 3] = [
    ("get_model", "the server's models are the same for all"),
    ("get_tool", "the server's tools are the same for all"),
    ("get_toolset", "the server's toolsets are the same for all"),
];

/// Ids of the right form that name nothing.
fn unknown(web: &Web) -> Ids {
    let clock = web.server.engine.clock();
    Ids::from([
        ("ses", SessionId::new(clock).to_string()),
        ("turn", TurnId::new(clock).to_string()),
        ("apr", ApprovalId::new(clock).to_string()),
        ("grant", GrantId::new(clock).to_string()),
        ("key", KeyId::new(clock).to_string()),
        ("art", ArtifactId::new(clock).to_string()),
        ("call", CallId::new(clock).to_string()),
        ("qst", QuestionId::new(clock).to_string()),
        ("proc", BackgroundId::new(clock).to_string()),
        ("job", JobId::new(clock).to_string()),
        ("pend", PendingWriteId::new(clock).to_string()),
        ("chk", CheckpointId::new(clock).to_string()),
    ])
}

/// The kinds of the ids in an operation's path; what is not an id is left out.
fn kinds(operation: &Operation) -> Vec<(String, String)> {
    let parameters = operation.body["parameters"].as_array().into_iter().flatten();
    let in_path = parameters.filter(|parameter| parameter["in"] == "path");
    let kind = |parameter: &Value| {
        let kind = parameter["schema"]["$ref"].as_str()?.rsplit('/').next()?;
        Some((
            parameter["name"].as_str()?.to_owned(),
            kind.strip_suffix("_id")?.to_owned(),
        ))
    };
    in_path.filter_map(kind).collect()
}

/// The path with ids put in; names of shared things stay what is no name.
pub fn filled(operation: &Operation, ids: &Ids) -> String {
    let named = kinds(operation).into_iter();
    let path = named.fold(operation.path.clone(), |path, (name, kind)| {
        let id = ids
            .get(kind.as_str())
            .unwrap_or_else(|| panic!("no `{kind}` in the test's world"));
        path.replace(&format!("{{{name}}}"), id)
    });
    let path = path.replace("/v1/skills/{name}/files/{path}", &format!("{SKILL}/files/{SKILL_FILE}"));
    let path = path.replace("/v1/skills/{name}", SKILL);
    match asked(operation) {
        asked if asked.is_empty() => path,
        asked => format!("{path}?{asked}"),
    }
}

/// A path with one parameter more.
pub fn with(path: &str, parameter: &str) -> String {
    let mark = if path.contains('?') { '&' } else { '?' };
    format!("{path}{mark}{parameter}")
}

/// The parameters that a query cannot be without, with a part of what only the
/// owner knows.
fn asked(operation: &Operation) -> String {
    let parameters = operation.body["parameters"].as_array().into_iter().flatten();
    let asked = parameters.filter(|parameter| parameter["in"] == "query" && parameter["required"] == true);
    let asked = asked.map(|parameter| format!("{}={}", parameter["name"].as_str().unwrap(), &SECRET[4..9]));
    asked.collect::<Vec<_>>().join("&")
}

/// The least body that the operation's schema allows; of lines the example, as a
/// text.
pub fn body(document: &Value, operation: &Operation) -> Option<Value> {
    let lines = &operation.body["requestBody"]["content"]["application/x-ndjson"]["example"];
    if lines.is_string() {
        return Some(lines.clone());
    }
    let schema = operation.body["requestBody"]["content"]["application/json"].get("schema")?;
    Some(least(document, schema))
}

/// The body with the world's call in the place of any.
pub fn within(body: Option<Value>, ids: &Ids) -> Option<Value> {
    let text = body?
        .to_string()
        .replace(&format!("call_{}", "0".repeat(26)), &ids["call"]);
    serde_json::from_str(&text).ok()
}

pub fn least(document: &Value, schema: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        // An id of the right form that names nothing.
        if let Some(kind) = name.strip_suffix("_id") {
            return json!(format!("{kind}_{}", "0".repeat(26)));
        }
        return least(document, &document["components"]["schemas"][name]);
    }
    if !schema["example"].is_null() {
        return schema["example"].clone();
    }
    if let Some(options) = schema["oneOf"].as_array() {
        return least(document, &options[0]);
    }
    if let Some(values) = schema["enum"].as_array() {
        return values[0].clone();
    }
    match schema["type"]
        .as_str()
        .unwrap_or_else(|| panic!("no example for {schema}"))
    {
        "object" => {
            let required = schema["required"].as_array().into_iter().flatten();
            let fields = required.map(|name| {
                let name = name.as_str().unwrap();
                (name.to_owned(), least(document, &schema["properties"][name]))
            });
            Value::Object(fields.collect())
        }
        "array" if schema["minItems"].is_u64() => json!([least(document, &schema["items"])]),
        "array" => json!([]),
        "string" => json!("x"),
        other => panic!("no example of type {other}: {schema}"),
    }
}

/// What the operation answers; of a session's stream that it begins, the head;
/// of a stream of lists, the frames that show what is there.
pub async fn call(client: &Client, operation: &Operation, path: &str, body: Option<&Value>) -> Answer {
    let method = Method::from_bytes(operation.method.as_bytes()).unwrap();
    let mut request = client.request(method, path);
    match body {
        Some(Value::String(lines)) => {
            request = request
                .header("content-type", "application/x-ndjson")
                .body(lines.clone());
        }
        Some(body) => request = request.json(body),
        None => {}
    }
    let response = request.send().await.unwrap();
    let kind = response
        .headers()
        .get("content-type")
        .map(|kind| kind.to_str().unwrap().to_owned());
    if kind.as_deref() == Some("text/event-stream") {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let last = match path.split('?').next() {
            Some("/v1/approvals/stream") => "stream.ready",
            Some("/v1/stream") => "stream.hello",
            _ => "",
        };
        let mut shown = Vec::new();
        if !last.is_empty() {
            let mut events = Events::of(response);
            loop {
                let frame = events.next().await.unwrap();
                if frame.event == last {
                    break;
                }
                shown.extend((!frame.event.starts_with("stream.")).then_some(frame.data));
            }
        }
        let body = json!({"data": shown});
        return Answer { status, headers, body };
    }
    Answer::of(response).await
}

/// A problem without what differs from request to request.
fn plain(answer: &Answer) -> Value {
    let mut problem = answer.body.clone();
    problem
        .as_object_mut()
        .unwrap()
        .remove("request_id")
        .expect("a request id");
    problem
}

pub fn closed(document: &Value) -> Vec<Operation> {
    let mut all = operations(document);
    all.retain(|operation| !operation.is_open());
    all
}

fn all_but(without: &[&str]) -> Vec<Scope> {
    let mut scopes = Scope::ALL.to_vec();
    scopes.retain(|scope| *scope != Scope::Admin && !without.contains(&scope.name()));
    scopes
}

#[test]
fn without_a_key_nothing_is_answered() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (document, ids) = (document(), unknown(&web));
        let strangers = [web.anonymous(), web.client("hsk_wrong"), web.client("a.b.c")];
        for operation in closed(&document) {
            for stranger in &strangers {
                let path = filled(&operation, &ids);
                let answer = call(stranger, &operation, &path, body(&document, &operation).as_ref()).await;
                assert_eq!(answer.header("www-authenticate"), "Bearer", "{}", operation.id);
                answer.is_problem(401, "unauthenticated");
            }
        }
        web.stop().await;
    });
}

#[test]
fn without_the_scope_nothing_is_done() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let document = document();
        let world = World::of(&web, &web.owner().await).await;
        for operation in closed(&document) {
            let scopes = operation.scopes();
            let lacking = web.user("owner", &all_but(&scopes)).await;
            let path = filled(&operation, &world.ids);
            let answer = call(&lacking, &operation, &path, body(&document, &operation).as_ref()).await;
            assert_eq!(answer.status, 403, "{}: {}", operation.id, answer.body);
            let problem = answer.problem(403, "forbidden");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(scopes[0]), "{}: {detail}", operation.id);
        }
        web.stop().await;
    });
}

/// The counterpart: so that a refusal above is the scope's and no other fault.
/// Reading comes with it, which is the scope that the example of a key hands on.
#[test]
fn with_the_scope_the_owner_is_served() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let document = document();
        let world = World::of(&web, &web.owner().await).await;
        let mut all = closed(&document);
        // What takes something away comes last, the session at the very end.
        let whole = ["delete_skill", "delete_session"];
        all.sort_by_key(|operation| {
            (
                operation.method == "DELETE",
                whole.iter().position(|id| *id == operation.id),
            )
        });
        for operation in all.iter().filter(|operation| is_tenants(operation)) {
            let mut scopes: Vec<Scope> = operation.scopes().into_iter().filter_map(Scope::named).collect();
            scopes.push(Scope::SessionsRead);
            let client = web.user("owner", &scopes).await;
            // One that was let in is gone already.
            if operation.id == "reject_pending_write" {
                waiting_write(&web, &client, world.ids["pend"].parse().unwrap()).await;
            }
            let path = filled(operation, &world.ids);
            let body = within(body(&document, operation), &world.ids);
            let answer = call(&client, operation, &path, body.as_ref()).await;
            let served = answer.status < 300 || answer.status == 409;
            assert!(served, "{}: {} {}", operation.id, answer.status, answer.body);
        }
        web.stop().await;
    });
}

fn is_tenants(operation: &Operation) -> bool {
    SHARED.iter().all(|(id, _)| *id != operation.id)
}

#[test]
fn to_others_what_is_foreign_is_what_never_existed() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let document = document();
        let owner = web.owner().await;
        let world = World::of(&web, &owner).await;
        let approval = format!("/v1/approvals/{}", world.ids["apr"]);
        let before = owner.get(&approval).await.expect(200);
        let tenant = web.tenant("another").await;
        let elsewhere = NewKey {
            tenant,
            user: "owner",
            scopes: &[Scope::Admin],
            tools: None,
        };
        let others = [
            web.with_key(elsewhere).await,
            web.user("colleague", &all_but(&["tenant:all"])).await,
        ];
        for other in &others {
            for operation in closed(&document) {
                foreign(&web, &document, &operation, &world, other).await;
            }
        }
        let after = owner.get(&approval).await.expect(200);
        assert_eq!((&after["status"], &after), (&json!("pending"), &before));
        let grants = owner.get("/v1/grants").await.expect(200);
        assert_eq!(grants["data"][0]["revoked_at"], Value::Null);
        let keys = owner.get("/v1/keys").await.expect(200);
        assert!(
            keys["data"]
                .as_array()
                .unwrap()
                .iter()
                .all(|key| key["revoked_at"].is_null())
        );
        web.stop().await;
    });
}

async fn foreign(web: &Web, document: &Value, operation: &Operation, world: &World, other: &Client) {
    let body = body(document, operation);
    if !is_tenants(operation) {
        return;
    }
    let (theirs, nobodys) = (filled(operation, &world.ids), filled(operation, &unknown(web)));
    if kinds(operation).is_empty() {
        let answer = call(other, operation, &theirs, body.as_ref()).await;
        assert!(
            !world.is_in(&answer.body.to_string()),
            "{} shows foreign things: {}",
            operation.id,
            answer.body
        );
        if has_parameter(operation, "session_id") {
            let filtered = with(&theirs, &format!("session_id={}", world.ids["ses"]));
            let answer = call(other, operation, &filtered, None).await.expect(200);
            assert_eq!(answer["data"], json!([]), "{}", operation.id);
        }
        return;
    }
    let seen = call(other, operation, &theirs, body.as_ref()).await;
    let unseen = call(other, operation, &nobodys, body.as_ref()).await;
    assert_eq!(
        (seen.status, unseen.status),
        (404, 404),
        "{}: {} / {}",
        operation.id,
        seen.body,
        unseen.body
    );
    assert_eq!(plain(&seen), plain(&unseen), "{}", operation.id);
    if operation.path.contains("{turn_id}") {
        // A foreign turn does not become visible through one's own session.
        let own = other.post("/v1/sessions", &json!({})).await.expect(201);
        let mixed = Ids::from([
            ("ses", own["id"].as_str().unwrap().to_owned()),
            ("turn", world.ids["turn"].clone()),
        ]);
        let answer = call(other, operation, &filled(operation, &mixed), body.as_ref()).await;
        assert_eq!(answer.status, 404, "{}: {}", operation.id, answer.body);
    }
}

fn has_parameter(operation: &Operation, name: &str) -> bool {
    let mut parameters = operation.body["parameters"].as_array().into_iter().flatten();
    parameters.any(|parameter| parameter["name"] == name)
}

#[test]
fn no_exception_is_made_that_is_not_needed() {
    let document = document();
    for (id, why) in SHARED {
        let all = operations(&document);
        let operation = all.iter().find(|operation| operation.id == id);
        let operation = operation.unwrap_or_else(|| panic!("`{id}` is gone: drop the exception"));
        assert!(
            operation.path.contains('{') && kinds(operation).is_empty(),
            "`{id}` is no exception: {why}"
        );
    }
}
