//! The registry: what it collects, what a selection gives, what clients see.

mod live;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::live::Live;
use super::*;
use crate::base::{Clock, Timestamp};
use crate::model::call::{Effect, Footprint};
use crate::tool::testing::Bench;
use crate::tool::{Call, Done, Host, Place, Spec, Wording};

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

/// The files below `src/tool` that submit a tool: file name and folder.
fn submitting_files(directory: &Path, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            submitting_files(&path, found);
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        if source
            .lines()
            .any(|line| line.starts_with("inventory::submit!(Registered"))
        {
            let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
            found.insert(stem(&path), stem(path.parent().unwrap()));
        }
    }
}

#[test]
fn the_registry_holds_exactly_the_tools_of_the_source() {
    let mut files = BTreeMap::new();
    submitting_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tool"), &mut files);
    assert!(!files.is_empty());
    let registry = Registry::collect();
    assert_eq!(registry.left_out(), []);
    let tools: BTreeSet<&str> = registry.all().iter().map(|tool| tool.name()).collect();
    assert_eq!(tools, files.keys().map(String::as_str).collect());
    for tool in registry.all() {
        let folder = &files[tool.name()];
        assert!(tool.toolset().starts_with(folder), "{tool:?} lies in `{folder}`");
    }
}

#[test]
fn every_tool_describes_its_arguments_and_its_example_keeps_to_them() {
    for tool in Registry::collect().all() {
        let name = tool.name();
        assert_eq!(
            tool.schema(),
            &tool.parameters(),
            "{name}: a schema of our own needs no mending"
        );
        let parameters = tool.schema();
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

fn of_built_in(tools: &[&'static dyn Tool]) -> Registry {
    Registry::of(tools.iter().copied(), 0, &Setup::default(), [])
}

fn placed(registry: &Registry) -> Vec<(&str, &str)> {
    registry
        .all()
        .iter()
        .map(|tool| (tool.name(), tool.toolset()))
        .collect()
}

#[test]
fn the_second_tool_of_a_name_is_left_out_and_reported() {
    let registry = of_built_in(&[&Named("b", "x"), &Named("a", "z"), &Named("a", "y")]);
    assert_eq!(placed(&registry), [("a", "y"), ("b", "x")]);
    assert_eq!(
        registry.left_out()[0].to_string(),
        "the tool `a` of toolset `z` is left out: `y` has a tool of this name"
    );
}

/// Fails in one of the things that are asked of a tool.
struct Broken(&'static str);

impl Tool for Broken {
    fn spec(&self) -> Spec {
        assert!(self.0 != "spec", "no name");
        Spec {
            name: self.0,
            toolset: "broken",
            emoji: "",
            description: "",
            requires_env: &[],
            result_limit: crate::tool::budget::ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        match self.0 {
            "schema" => panic!("no schema"),
            "no_object" => json!({"type": "array"}),
            _ => json!({}),
        }
    }

    fn unavailable(&self, _: &Host) -> Option<String> {
        assert!(self.0 != "check", "no check");
        None
    }

    fn worded(&self, _: &[&str]) -> Option<Wording> {
        assert!(self.0 != "worded", "no words");
        None
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

#[tokio::test]
async fn a_tool_that_fails_is_listed_with_its_reason_and_hides_no_other() {
    let bench = Bench::new().await;
    let tools: [&'static dyn Tool; 6] = [
        &Broken("spec"),
        &Broken("schema"),
        &Broken("no_object"),
        &Broken("check"),
        &Broken("worded"),
        &Named("sound", "broken"),
    ];
    let registry = of_built_in(&tools);
    let live = Live::new(Clock::system(), BTreeMap::new());
    assert_eq!(registry.left_out(), [LeftOut::Nameless]);
    let views = registry.tool_views(live.offers(&bench.host));
    let reasons: Vec<_> = views
        .iter()
        .map(|view| (view.name.as_str(), view.reason.as_deref()))
        .collect();
    assert_eq!(
        reasons,
        [
            ("check", Some("its check failed")),
            ("no_object", Some("its schema is broken: arguments are an object")),
            ("schema", Some("its schema is broken: making it failed")),
            ("sound", None),
            ("worded", None),
        ]
    );
    let enabled = names(&["broken"]);
    let selection = Selection {
        presets: &enabled,
        ..Selection::default()
    };
    let tools = registry.select(&selection, live.offers(&bench.host)).unwrap();
    assert_eq!(tools.names(), ["sound", "worded"]);
    assert_eq!(reason(&tools, "schema"), "its schema is broken: making it failed");
}

fn live() -> Live {
    Live::new(Clock::stepped(Timestamp(0)), BTreeMap::new())
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
    let live = live();
    let registry = live.shared();
    let presets = names(&["hermes-api-server"]);
    let ceiling = names(&["todo", "terminal", "browser_click"]);
    let selection = Selection {
        presets: &presets,
        ceiling: Some(&ceiling),
        ..Selection::default()
    };
    let tools = registry.select(&selection, live.offers(&bench.host)).unwrap();
    assert_eq!(tools.names(), ["todo"]);
    assert_eq!(tools.names().len() + tools.absent().len(), 35);
    assert_eq!(reason(&tools, "read_file"), "not permitted by the API key");
    assert_eq!(reason(&tools, "browser_click"), "not built into this server");
    assert!(reason(&tools, "terminal").starts_with("commands cannot be isolated here"));
}

#[tokio::test]
async fn a_turns_selection_stands_in_place_of_the_sessions() {
    let bench = Bench::new().await;
    let live = live();
    let registry = live.shared();
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
        let tools = registry.select(selection, live.offers(&bench.host)).unwrap();
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
    let live = live();
    let registry = live.shared();
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
        let error = registry.select(&selection, live.offers(&bench.host)).err().unwrap();
        assert_eq!(error.to_string(), text);
    }
}

#[tokio::test]
async fn clients_see_tools_and_toolsets_with_what_is_missing() {
    let bench = Bench::new().await;
    let live = live();
    let registry = live.shared();
    let tools = registry.tool_views(live.offers(&bench.host));
    let todo = tools.iter().find(|tool| tool.name == "todo").unwrap();
    assert!(todo.available && todo.reason.is_none());
    let presets = names(&["hermes-api-server"]);
    let toolsets = registry.toolset_views(live.offers(&bench.host), &presets);
    let view = |name: &str| serde_json::to_value(toolsets.iter().find(|view| view.info.name == name).unwrap()).unwrap();
    assert_eq!(view("todo")["available"], true);
    assert_eq!(view("browser")["available"], false);
    assert_eq!(view("todo")["resolved_tools"], json!(["todo"]));
    // What clients of the original read.
    let todo = view("todo");
    assert_eq!(
        (&todo["enabled"], &todo["configured"], &todo["tools"]),
        (&json!(true), &json!(true), &json!(["todo"]))
    );
    assert!(todo["label"].as_str().unwrap().ends_with(" todo"), "{todo}");
    assert_eq!(
        (&view("browser")["enabled"], &view("clarify")["enabled"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(view("hermes-api-server")["tool_count"], 35);
}

/// Recommends another tool where that one is offered too.
struct Recommending;

impl Tool for Recommending {
    fn spec(&self) -> Spec {
        Spec {
            name: "go_somewhere",
            description: "Goes to a page. To read one, look_up is quicker.",
            ..Named("go_somewhere", "pages").spec()
        }
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]})
    }

    fn worded(&self, offered: &[&str]) -> Option<Wording> {
        (!offered.contains(&"look_up")).then(|| Wording {
            description: Some("Goes to a page.".to_owned()),
            parameters: None,
        })
    }

    fn example(&self) -> Value {
        json!({})
    }

    fn effect(&self, _: &Value) -> Effect {
        Effect::Read
    }

    fn footprint(&self, _: &Value, _: &Place<'_>) -> Footprint {
        Footprint::Alone
    }

    fn subject(&self, _: &Value) -> String {
        String::new()
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Named("go_somewhere", "pages").run(call)
    }
}

#[test]
fn a_tool_is_described_by_the_tools_that_are_offered_beside_it() {
    let described = |others: &[&'static Named]| {
        let others = others.iter().map(|tool| Entry::built_in(*tool).unwrap());
        let all: Vec<Arc<Entry>> = others.chain(Entry::built_in(&Recommending)).collect();
        let definitions = SessionTools::new(all, Vec::new()).definitions().unwrap();
        let definitions: Value = serde_json::from_str(definitions.get()).unwrap();
        definitions[0]["function"].clone()
    };
    let (alone, beside) = (described(&[]), described(&[&Named("look_up", "pages")]));
    assert_eq!(
        (&alone["description"], &beside["description"]),
        (
            &json!("Goes to a page."),
            &json!("Goes to a page. To read one, look_up is quicker.")
        )
    );
    // What nothing is said about stands as it was registered.
    assert_eq!(alone["parameters"], beside["parameters"]);
    assert_eq!(alone["parameters"]["required"], json!(["url"]));
}
