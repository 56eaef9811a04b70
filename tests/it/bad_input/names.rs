//! Paths and queries that name nothing or are of no form.

use serde_json::Value;

use super::{Stage, no_answer, no_problem, none};
use crate::harness::on_both;
use crate::isolation::{body, call, closed, filled, with};
use crate::openapi::document;

/// Values that some parameter could stumble over, as they stand in a URL.
const VALUES: [&str; 14] = [
    "",
    "%00",
    "a%00b",
    "%FF",
    "%C3%28",
    "%",
    "-1",
    "1e9",
    "99999999999999999999999",
    "%F0%9F%98%80",
    "..%2F..%2Fetc",
    "%27%3B--",
    "*",
    "[]",
];

#[test]
fn no_value_of_a_parameter_is_a_fault_of_the_server() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (document, stage) = (document(), Stage::of(&web).await);
        let before = stage.seen(&document).await;
        let (mut wrong, mut count) = (Vec::new(), 0);
        for operation in closed(&document).iter().filter(|operation| operation.method == "GET") {
            let path = filled(operation, &stage.world.ids);
            let bare = path.split('?').next().unwrap().to_owned();
            let parameters = operation.body["parameters"].as_array().into_iter().flatten();
            for parameter in parameters.filter(|parameter| parameter["in"] == "query") {
                let name = parameter["name"].as_str().unwrap();
                let long = "x".repeat(20_000);
                for value in VALUES.into_iter().chain([long.as_str()]) {
                    count += 1;
                    let given = match name {
                        "metadata" => format!("metadata[{value}]={value}"),
                        name => format!("{name}={value}"),
                    };
                    let path = match path.contains(&format!("?{name}=")) {
                        true => with(&bare, &given),
                        false => with(&path, &given),
                    };
                    let answer = call(&stage.owner, operation, &path, None).await;
                    wrong.extend(no_answer(operation, &answer).map(|fault| format!("{path:.200}: {fault}")));
                }
            }
            let unknown = call(&stage.owner, operation, &with(&path, "no_such=1"), None).await;
            let fault = no_answer(operation, &unknown);
            wrong.extend(fault.map(|fault| format!("an unknown parameter: {fault}")));
        }
        none(&wrong);
        assert!(500 < count, "parameters are described in another way: {count}");
        assert_eq!(stage.seen(&document).await, before);
        web.stop().await;
    });
}

#[test]
fn what_is_no_id_names_nothing() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (document, stage) = (document(), Stage::of(&web).await);
        let before = stage.seen(&document).await;
        let mut wrong = Vec::new();
        for operation in closed(&document) {
            let good = filled(&operation, &stage.world.ids);
            for (kind, id) in stage.world.ids.iter().filter(|(_, id)| good.contains(id.as_str())) {
                let other = if *kind == "ses" { "turn" } else { "ses" };
                for bad in [
                    "x".to_owned(),
                    "%00".to_owned(),
                    "%FF".to_owned(),
                    format!("{id}%00"),
                    format!("{id}%20"),
                    id.to_uppercase(),
                    format!("{kind}_"),
                    format!("{kind}_{}", "8".repeat(26)),
                    format!("{kind}_{}", "z".repeat(5000)),
                    format!("{kind}_{}", "%C3%A9".repeat(13)),
                    "..%2F..".to_owned(),
                    stage.world.ids[other].clone(),
                ] {
                    let path = good.replace(id.as_str(), &bad);
                    let body: Option<Value> = body(&document, &operation);
                    let answer = call(&stage.owner, &operation, &path, body.as_ref()).await;
                    let is_unknown = answer.status == 404 && answer.body["code"] == "not_found";
                    let fault = no_problem(&operation, &answer).or((!is_unknown).then(|| answer.body.to_string()));
                    wrong.extend(fault.map(|fault| format!("{} {path:.200}: {fault}", operation.method)));
                }
            }
        }
        none(&wrong);
        assert_eq!(stage.seen(&document).await, before);
        web.stop().await;
    });
}
