//! `toolset_resolution`: which tools a selection of toolsets means.

use hermes_server::tool::toolset::{Catalog, Definition};
use serde_json::{Value, json};

use crate::case::{Case, strings};

pub fn judge(case: &Case) -> Result<(), String> {
    let catalog = catalog(&case.input);
    let toolset = case.text("toolset");
    match case.text("op") {
        "resolve" => case.check(json!(catalog.resolve(toolset))),
        "is_valid" => case.check(catalog.is_valid(toolset)),
        "resolve_many" => {
            let names = strings(&case.input["toolsets"]);
            case.check(json!(catalog.resolve_many(names.iter().map(String::as_str))))
        }
        "select" => {
            let enabled = case.input["enabled"]
                .as_array()
                .map(|_| strings(&case.input["enabled"]));
            let disabled = strings(&case.input["disabled"]);
            case.check(json!(catalog.select(enabled.as_deref(), &disabled).tools))
        }
        other => case.unknown(other),
    }
}

/// The static toolsets, and those that the case defines.
fn catalog(input: &Value) -> Catalog {
    let mut catalog = Catalog::new([], []);
    for (name, toolset) in input["define"].as_object().into_iter().flatten() {
        let definition = Definition {
            tools: strings(&toolset["tools"]).into_iter().collect(),
            includes: strings(&toolset["includes"]),
            ..Definition::default()
        };
        catalog.define(name, definition);
    }
    catalog
}
