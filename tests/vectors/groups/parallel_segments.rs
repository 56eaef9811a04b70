//! `parallel_segments`: which calls of one answer run side by side.
//!
//! What a call touches is what its tool says; the tools that this binary does
//! not have are played.

use std::path::Path;

use hermes_server::model::call::Footprint;
use hermes_server::tool::Place;
use hermes_server::tool::registry::Registry;
use hermes_server::turn::segments::{Slot, plan};
use serde_json::{Value, json};

use crate::case::Case;

pub fn judge(case: &Case) -> Result<(), String> {
    let registry = Registry::collect();
    let cwd = Path::new(case.text("cwd"));
    let calls = case.input["calls"].as_array().unwrap();
    let footprints: Vec<Footprint> = calls.iter().map(|call| footprint(&registry, cwd, call)).collect();
    case.check(written(calls, &plan(&footprints)))
}

fn footprint(registry: &Registry, cwd: &Path, call: &Value) -> Footprint {
    let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap_or_default();
    if !arguments.is_object() {
        return Footprint::Alone;
    }
    let name = call["name"].as_str().unwrap();
    let place = Place {
        workspace: cwd,
        cwd,
        backend: "local",
        policies: &[],
        unread: None,
    };
    match registry.get(name) {
        Some(tool) => tool.footprint(&arguments, &place),
        None => played(name, cwd, &arguments),
    }
}

fn played(name: &str, cwd: &Path, arguments: &Value) -> Footprint {
    let path = arguments["path"].as_str().filter(|path| !path.trim().is_empty());
    let path = path.map(|path| vec![cwd.join(path)]);
    match name {
        "search_files" => Footprint::Reads(path.unwrap_or_else(|| vec![cwd.to_owned()])),
        "patch" => path.map_or(Footprint::Alone, Footprint::Writes),
        "ha_get_state" | "ha_list_entities" | "ha_list_services" | "session_search" | "skill_view" | "skills_list"
        | "vision_analyze" | "web_extract" | "web_search" | "image_generate" => Footprint::Parallel,
        _ => Footprint::Alone,
    }
}

/// The plan as the cases write it: `[kind, ids]` for each segment.
fn written(calls: &[Value], slots: &[Slot]) -> Value {
    let mut segments: Vec<(u32, &str, Vec<&Value>)> = Vec::new();
    for (call, slot) in calls.iter().zip(slots) {
        match segments.last_mut() {
            Some((segment, _, ids)) if *segment == slot.segment => ids.push(&call["id"]),
            _ => {
                let kind = if slot.parallel { "parallel" } else { "sequential" };
                segments.push((slot.segment, kind, vec![&call["id"]]));
            }
        }
    }
    segments.into_iter().map(|(_, kind, ids)| json!([kind, ids])).collect()
}
