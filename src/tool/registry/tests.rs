//! The registry: what it collects, what a selection gives, what clients see.

use std::collections::BTreeSet;
use std::path::Path;

use futures::future::BoxFuture;
use serde_json::json;

use super::*;
use crate::model::call::{Effect, Footprint};
use crate::tool::testing::Bench;
use crate::tool::{Call, Done, Place, Spec};

/// A tool that does nothing, under any name.
struct Named(&'static str, &'static str);

impl Tool for Named {
    fn spec(&self) -> Spec {
        Spec {
            name: self.0,
            toolset: self.1,
            emoji: "",
            description: "",
            requires_env: &[],
            result_limit: crate::tool::budget::ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {}})
    }

    fn example(&self) -> Value {
        json!({})
    }

    fn effect(&self, _: &Value) -> Effect {
        Effect::Read
    }

    fn footprint(&self, _: &Value, _: &Place<'_>) -> Footprint {
        Footprint::Parallel
    }

    fn subject(&self, _: &Value) -> String {
        String::new()
    }

    fn run(&self, _: Call) -> BoxFuture<'static, Done> {
        Box::pin(std::future::ready(Done::default()))
    }
}

/// The files below `src/tool` that submit a tool: folder and file name.
fn submitting_files(directory: &Path, found: &mut BTreeSet<(String, String)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            submitting_files(&path, found);
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        if source.lines().any(|line| line.starts_with("inventory::submit!")) {
            let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
            found.insert((stem(path.parent().unwrap()), stem(&path)));
        }
    }
}

#[test]
fn the_registry_holds_exactly_the_tools_of_the_source() {
    let mut files = BTreeSet::new();
    submitting_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tool"), &mut files);
    assert!(!files.is_empty());
    let registry = Registry::collect();
    assert_eq!(registry.collisions(), []);
    let tools = registry.all().iter().map(|tool| tool.spec());
    let tools: BTreeSet<_> = tools
        .map(|spec| (spec.toolset.to_owned(), spec.name.to_owned()))
        .collect();
    assert_eq!(tools, files);
}

#[test]
fn every_tool_describes_its_arguments_and_its_example_keeps_to_them() {
    for tool in Registry::collect().all() {
        let name = tool.spec().name;
        let parameters = tool.parameters();
        assert_eq!(parameters["type"], "object", "{name}");
        let example = tool.example();
        for argument in example.as_object().unwrap().keys() {
            assert!(parameters["properties"][argument].is_object(), "{name}: {argument}");
        }
        for required in parameters["required"].as_array().into_iter().flatten() {
            assert!(example.get(required.as_str().unwrap()).is_some(), "{name}: {required}");
        }
    }
}

#[test]
fn the_second_tool_of_a_name_is_left_out_and_reported() {
    let tools: [&'static dyn Tool; 3] = [&Named("b", "x"), &Named("a", "z"), &Named("a", "y")];
    let registry = Registry::of(tools.into_iter());
    let kept: Vec<_> = registry
        .all()
        .iter()
        .map(|tool| (tool.spec().name, tool.spec().toolset))
        .collect();
    assert_eq!(kept, [("a", "y"), ("b", "x")]);
    assert_eq!(
        registry.collisions()[0].to_string(),
        "the tool `a` of toolset `z` is left out: `y` has a tool of this name"
    );
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn reason<'a>(tools: &'a SessionTools, name: &str) -> &'a str {
    let absent = tools.absent().iter().find(|absent| absent.name == name);
    absent.map_or("", |absent| absent.reason.as_str())
}

#[tokio::test]
async fn a_session_gets_its_preset_with_a_reason_for_each_absent_tool() {
    let bench = Bench::new().await;
    let registry = Registry::collect();
    let presets = names(&["hermes-api-server"]);
    let ceiling = names(&["todo", "terminal", "browser_click"]);
    let selection = Selection {
        presets: &presets,
        ceiling: Some(&ceiling),
        ..Selection::default()
    };
    let tools = registry.select(&selection, &bench.host).unwrap();
    assert_eq!(tools.names(), ["todo"]);
    assert_eq!(tools.names().len() + tools.absent().len(), 35);
    assert_eq!(reason(&tools, "read_file"), "not permitted by the API key");
    assert_eq!(reason(&tools, "browser_click"), "not built into this server");
    assert!(reason(&tools, "terminal").starts_with("commands cannot be isolated here"));
}

#[tokio::test]
async fn a_turns_selection_stands_in_place_of_the_sessions() {
    let bench = Bench::new().await;
    let registry = Registry::collect();
    let presets = names(&["todo"]);
    let session = ToolsetSelection {
        enabled: Some(names(&["file"])),
        disabled: names(&["todo"]),
    };
    let turn = ToolsetSelection {
        enabled: None,
        disabled: names(&["file"]),
    };
    let mut selection = Selection {
        presets: &presets,
        session: Some(&session),
        ..Selection::default()
    };
    let offered = |selection: &Selection<'_>| -> Vec<String> {
        let tools = registry.select(selection, &bench.host).unwrap();
        tools.names().into_iter().map(str::to_owned).collect()
    };
    assert_eq!(
        offered(&selection),
        ["patch", "read_file", "search_files", "write_file"]
    );
    selection.turn = Some(&turn);
    assert_eq!(offered(&selection), ["todo"]);
}

#[tokio::test]
async fn an_unknown_toolset_is_an_error_that_names_the_nearest() {
    let bench = Bench::new().await;
    let registry = Registry::collect();
    for (wrong, text) in [
        (
            "hermes-api-sever",
            "there is no toolset `hermes-api-sever`; did you mean `hermes-api-server`?",
        ),
        ("zzz", "there is no toolset `zzz`"),
    ] {
        let presets = names(&[wrong]);
        let selection = Selection {
            presets: &presets,
            ..Selection::default()
        };
        let error = registry.select(&selection, &bench.host).err().unwrap();
        assert_eq!(error.to_string(), text);
    }
}

#[tokio::test]
async fn clients_see_tools_and_toolsets_with_what_is_missing() {
    let bench = Bench::new().await;
    let registry = Registry::collect();
    let tools = registry.tool_views(&bench.host);
    let todo = tools.iter().find(|tool| tool.name == "todo").unwrap();
    assert!(todo.available && todo.reason.is_none());
    let toolsets = registry.toolset_views(&bench.host);
    let view = |name: &str| serde_json::to_value(toolsets.iter().find(|view| view.info.name == name).unwrap()).unwrap();
    assert_eq!(view("todo")["available"], true);
    assert_eq!(view("browser")["available"], false);
    assert_eq!(view("todo")["resolved_tools"], json!(["todo"]));
    assert_eq!(view("hermes-api-server")["tool_count"], 35);
}
