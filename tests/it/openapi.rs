//! The OpenAPI document: the committed file is what the code says, and it says
//! of every operation what a client has to know.

use std::collections::BTreeSet;
use std::path::Path;

use hermes_server::api;
use hermes_server::model::event::EventType;
use serde_json::Value;

/// The file that is committed and served.
const COMMITTED: &str = include_str!("../../openapi/native.json");

/// Operations that ask nobody who they are.
const OPEN: [&str; 3] = ["get_document", "health_live", "health_ready"];

fn text() -> String {
    api::document().to_pretty_json().unwrap() + "\n"
}

pub fn document() -> Value {
    serde_json::from_str(&text()).unwrap()
}

/// One operation of the document.
pub struct Operation {
    pub id: String,
    pub method: String,
    pub path: String,
    pub body: Value,
}

impl Operation {
    pub fn is_open(&self) -> bool {
        OPEN.contains(&self.id.as_str())
    }

    /// Names of the scopes that it takes.
    pub fn scopes(&self) -> Vec<&str> {
        let requirements = self.body["security"].as_array().unwrap();
        let names = requirements
            .iter()
            .flat_map(|one| one["bearer"].as_array().into_iter().flatten());
        names.map(|name| name.as_str().unwrap()).collect()
    }
}

/// Every operation, in the order of the document.
pub fn operations(document: &Value) -> Vec<Operation> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, body) in item.as_object().unwrap() {
            all.push(Operation {
                id: body["operationId"].as_str().unwrap_or_default().to_owned(),
                method: method.to_uppercase(),
                path: path.clone(),
                body: body.clone(),
            });
        }
    }
    assert!(all.len() > 25, "the document lost operations");
    all
}

#[test]
fn the_committed_document_is_what_the_code_says() {
    let text = text();
    if text != COMMITTED {
        let present = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native.json");
        std::fs::write(&present, text).unwrap();
        panic!(
            "`openapi/native.json` is out of date: write it with `hermes-server openapi --output openapi` (the present \
             document is at `{}`)",
            present.display()
        );
    }
}

#[test]
fn the_document_is_the_same_each_time() {
    assert_eq!(text(), text());
}

#[test]
fn every_operation_has_a_name_a_tag_and_a_summary() {
    let document = document();
    let known: Vec<&Value> = document["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| &tag["name"])
        .collect();
    let mut ids = BTreeSet::new();
    for operation in operations(&document) {
        let Operation { id, body, .. } = &operation;
        assert!(
            !id.is_empty() && ids.insert(id.clone()),
            "{} {}: `{id}`",
            operation.method,
            operation.path
        );
        let tags = body["tags"].as_array().unwrap();
        assert!(tags.len() == 1 && known.contains(&&tags[0]), "{id}: {tags:?}");
        let summary = body["summary"].as_str().unwrap_or_default();
        assert!(!summary.is_empty() && !summary.contains('\n'), "{id}: {summary:?}");
    }
}

#[test]
fn every_operation_takes_a_scope_but_for_the_open_ones() {
    let document = document();
    let all = operations(&document);
    for operation in &all {
        let (id, scopes) = (&operation.id, operation.scopes());
        if operation.is_open() {
            assert_eq!(operation.body["security"].to_string(), "[{}]", "{id}");
        } else {
            assert_eq!(scopes.len(), 1, "{id}: {scopes:?}");
        }
    }
    let open = all.iter().filter(|operation| operation.is_open()).count();
    assert_eq!(open, OPEN.len(), "an open operation is gone");
    assert_eq!(document["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
}

#[test]
fn every_operation_tells_its_problems() {
    let document = document();
    for operation in operations(&document) {
        let (id, responses) = (&operation.id, operation.body["responses"].as_object().unwrap());
        let mut expected = vec!["400", "403", "500"];
        if !operation.is_open() {
            expected.extend(["401", "429", "503"]);
        }
        if operation.path.contains('{') {
            expected.push("404");
        }
        if operation.body.get("requestBody").is_some() {
            expected.extend(["408", "413", "415"]);
        }
        for status in expected {
            assert!(responses.contains_key(status), "{id} does not tell of {status}");
        }
        for (status, response) in responses {
            assert!(
                !response["description"].as_str().unwrap_or_default().is_empty(),
                "{id} {status}"
            );
            if status.starts_with('4') || status.starts_with('5') {
                let schema = &response["content"]["application/problem+json"]["schema"]["$ref"];
                assert_eq!(schema, "#/components/schemas/Problem", "{id} {status}");
            }
        }
    }
}

#[test]
fn every_code_is_told_with_its_meaning() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    assert_eq!(
        schemas["Problem"]["properties"]["code"]["$ref"],
        "#/components/schemas/ProblemCode"
    );
    let codes = &schemas["ProblemCode"];
    let told = codes["description"].as_str().unwrap();
    let names = codes["enum"].as_array().unwrap();
    assert!(names.len() > 30);
    for name in names {
        assert!(told.contains(&format!("- `{}` (", name.as_str().unwrap())), "{name}");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let (text, document) = (text(), document());
    let mut count = 0;
    for reference in text.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(!document["components"]["schemas"][name].is_null(), "no schema `{name}`");
        count += 1;
    }
    assert!(count > 100, "references are written in another way: {count}");
}

/// An object that takes no other fields, in an `allOf` with one that asks for
/// more: nothing would fit both.
#[test]
fn nothing_closed_is_part_of_something_wider() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut count = 0;
    for (name, schema) in schemas {
        let variants = schema["oneOf"].as_array().into_iter().flatten();
        for whole in variants.chain([schema]) {
            for part in whole["allOf"].as_array().into_iter().flatten() {
                let referred = part["$ref"].as_str().and_then(|path| path.rsplit('/').next());
                let part = referred.map_or(part, |name| &schemas[name]);
                assert_ne!(part["additionalProperties"], false, "in `{name}`");
                count += 1;
            }
        }
    }
    assert!(count > 50, "wholes are written in another way: {count}");
    let lines = &schemas["TransferLine"]["discriminator"]["mapping"];
    assert_eq!(lines["turn"], "#/components/schemas/TurnLine");
    assert_eq!(
        schemas["TurnLine"]["properties"]["type"]["enum"],
        serde_json::json!(["turn"])
    );
    assert!(schemas["AuditRecord"]["properties"]["link"].is_object());
}

/// Durable events as the model has them, and the frames that only streams have.
#[test]
fn streams_are_described_as_a_union_of_events() {
    let document = document();
    let mapping = union(&document, "Event");
    let durable = mapping
        .keys()
        .filter(|name| EventType::from_name(name).is_some())
        .count();
    assert!(durable > 20 && mapping.contains_key("message.delta") && mapping.contains_key("stream.hello"));
    let of_lists = union(&document, "TenantEvent");
    assert!(of_lists.contains_key("approval.expired") && of_lists.contains_key("session.deleted"));
    let streams = operations(&document)
        .into_iter()
        .filter(|operation| operation.id.starts_with("stream_"));
    let mut count = 0;
    for operation in streams {
        let schema = &operation.body["responses"]["200"]["content"]["text/event-stream"]["schema"]["$ref"];
        let name = match operation.path.starts_with("/v1/sessions/") {
            true => "Event",
            false => "TenantEvent",
        };
        assert_eq!(schema, &format!("#/components/schemas/{name}"), "{}", operation.id);
        let ways = operation.body["security"].as_array().unwrap();
        assert!(
            ways.iter().any(|way| way["stream_token"].is_array()),
            "{}",
            operation.id
        );
        count += 1;
    }
    assert_eq!(count, 4);
    let takes_tokens = document["paths"].to_string().matches("\"stream_token\":").count();
    assert_eq!(takes_tokens, 4, "nothing else takes a token from its query");
}

/// The types of a union of events, each an envelope with its own type.
fn union<'a>(document: &'a Value, name: &str) -> &'a serde_json::Map<String, Value> {
    let schemas = &document["components"]["schemas"];
    let event = &schemas[name];
    assert_eq!(event["discriminator"]["propertyName"], "type");
    let mapping = event["discriminator"]["mapping"].as_object().unwrap();
    assert_eq!(mapping.len(), event["oneOf"].as_array().unwrap().len());
    for (kind, reference) in mapping {
        let part = reference.as_str().unwrap().rsplit('/').next().unwrap();
        let parts = schemas[part]["allOf"].as_array().unwrap();
        assert_eq!(
            parts[0]["$ref"],
            format!("#/components/schemas/{name}Envelope"),
            "{kind}"
        );
        assert_eq!(parts[1]["properties"]["type"]["enum"], serde_json::json!([kind]));
    }
    mapping
}
