//! What is not as the document says, sent to every operation of it: the answer is
//! the documented problem, and nothing has changed. A new route or field is in
//! here without anybody adding it.

mod bodies;
mod heads;
mod names;
mod samples;
mod tokens;

use hermes_server::model::principal::Scope;
use serde_json::{Value, json};

use crate::harness::client::{Client, NewKey};
use crate::harness::http::{Answer, Web};
use crate::isolation::{World, filled, with};
use crate::openapi::Operation;
use crate::promises::lists;

/// Somebody with one thing of each kind, and what can be seen of it.
struct Stage {
    owner: Client,
    world: World,
}

impl Stage {
    async fn of(web: &Web) -> Self {
        let owner = web.owner().await;
        let world = World::of(web, &owner).await;
        Self { owner, world }
    }

    /// A tenant of its own, for what may be carried out.
    async fn apart(web: &Web, name: &str) -> Self {
        let owner = NewKey {
            tenant: web.tenant(name).await,
            user: "owner",
            scopes: &[Scope::Admin],
            tools: None,
        };
        let owner = web.with_key(owner).await;
        let world = World::of(web, &owner).await;
        Self { owner, world }
    }

    /// Every list, and each thing that has an address.
    async fn seen(&self, document: &Value) -> Vec<(String, Value)> {
        let ids = &self.world.ids;
        // A list that is grouped has to be told by what.
        let grouped = |list: &&Operation| list.id == "list_usage";
        let mut paths: Vec<String> = lists(document)
            .iter()
            .filter(|list| !grouped(list))
            .map(|list| with(&filled(list, ids), "limit=200"))
            .collect();
        paths.push("/v1/usage?group_by=session".to_owned());
        paths.push(format!("/v1/sessions/{}", ids["ses"]));
        paths.push(format!("/v1/sessions/{}/turns/{}", ids["ses"], ids["turn"]));
        paths.push(format!("/v1/approvals/{}", ids["apr"]));
        paths.push(format!("/v1/grants/{}", ids["grant"]));
        let mut seen = Vec::new();
        for path in paths {
            let mut body = self.owner.get(&path).await.expect(200);
            // The chain behind the rows grows by itself.
            if path.starts_with("/v1/audit") {
                body = json!(body["data"].as_array().unwrap().len());
            }
            seen.push((path, body));
        }
        seen
    }
}

/// What is wrong with an answer that had to be a problem of this operation.
fn no_problem(operation: &Operation, answer: &Answer) -> Option<String> {
    let told = operation.body["responses"][answer.status.to_string()].is_object();
    let problem = answer.header("content-type") == "application/problem+json" && answer.body["code"].is_string();
    let right = (400..500).contains(&answer.status) && told && problem;
    (!right).then(|| format!("{}: {} {}", operation.id, answer.status, answer.body))
}

/// As [`no_problem`], of an answer that may be a good one.
fn no_answer(operation: &Operation, answer: &Answer) -> Option<String> {
    if answer.status < 300 {
        return None;
    }
    no_problem(operation, answer)
}

#[track_caller]
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
