//! Registries that change while they are used: which of two tools stays, whose
//! tools are whose, and that nobody sees half of a change.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::super::live::{Bundle, Live, Reach};
use super::super::*;
use super::live;
use crate::base::{Clock, Id};
use crate::model::call::{Effect, Footprint};
use crate::tool::budget::Budget;
use crate::tool::testing::Bench;
use crate::tool::{Call, Done, Place, SpecOf, dispatch};

/// A tool that was brought at run time.
struct Brought {
    name: String,
    toolset: String,
}

impl Tool for Brought {
    fn spec(&self) -> SpecOf<'_> {
        SpecOf {
            name: &self.name,
            toolset: &self.toolset,
            emoji: "",
            description: "",
            requires_env: &[],
            result_limit: crate::tool::budget::ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        json!({})
    }

    fn example(&self) -> Value {
        json!({})
    }

    fn effect(&self, _: &Value) -> Effect {
        Effect::Write
    }

    fn footprint(&self, _: &Value, _: &Place<'_>) -> Footprint {
        Footprint::Alone
    }

    fn subject(&self, _: &Value) -> String {
        String::new()
    }

    fn run(&self, _: Call) -> BoxFuture<'static, Done> {
        let done = Done {
            result: self.toolset.clone(),
            ..Done::default()
        };
        Box::pin(async move {
            tokio::task::yield_now().await;
            done
        })
    }
}

fn brought(source: &str, name: &str, toolset: &str) -> Registration {
    let tool = Brought {
        name: name.to_owned(),
        toolset: toolset.to_owned(),
    };
    Registration::plain(Entry::loaded(Arc::new(tool), source).unwrap())
}

fn bundle(tools: Vec<Registration>) -> Option<Bundle> {
    Some(Bundle {
        tools,
        aliases: Vec::new(),
    })
}

#[test]
fn of_two_tools_with_one_name_the_rules_say_which_stays() {
    let live = live();
    let toolset = |name: &str| live.shared().get(name).map(|tool| tool.toolset().to_owned());
    let set = |source: &str, tools| live.set(Reach::Everybody, source, bundle(tools));
    assert_eq!(set("one", vec![brought("one", "paint", "studio")]), []);
    // Another toolset: the one that is there stays.
    let left_out = set(
        "two",
        vec![brought("two", "paint", "garage"), brought("two", "weld", "garage")],
    );
    assert!(matches!(left_out.as_slice(), [LeftOut::Taken { kept, .. }] if kept == "studio"));
    assert_eq!(
        (toolset("paint").unwrap(), toolset("weld").unwrap()),
        ("studio".into(), "garage".into())
    );
    // The same toolset: it is registered again.
    assert!(matches!(
        set("zwei", vec![brought("zwei", "paint", "studio")]).as_slice(),
        [LeftOut::Taken { .. }]
    ));
    assert_eq!(live.shared().get("paint").unwrap().source().name(), "zwei");
    // Tool servers refresh each other.
    set("mcp-a", vec![brought("mcp-a", "mcp__x", "mcp-a")]);
    set("mcp-b", vec![brought("mcp-b", "mcp__x", "mcp-b")]);
    assert_eq!(toolset("mcp__x").unwrap(), "mcp-b");
    // What is part of the binary stays, also within its own toolset.
    for own in ["file", "elsewhere"] {
        set("bad", vec![brought("bad", "read_file", own)]);
        assert_eq!(live.shared().get("read_file").unwrap().source(), &Source::BuiltIn);
    }
    let mut wanted = brought("bad", "read_file", "elsewhere");
    wanted.overrides = true;
    let left_out = live.set(Reach::Everybody, "bad", bundle(vec![wanted.clone()]));
    assert!(
        left_out
            .iter()
            .any(|left_out| matches!(left_out, LeftOut::NotAllowed { .. }))
    );
    wanted.may_override = true;
    live.set(Reach::Everybody, "bad", bundle(vec![wanted]));
    assert_eq!(toolset("read_file").unwrap(), "elsewhere");
    live.set(Reach::Everybody, "bad", None);
    assert_eq!(toolset("read_file").unwrap(), "file", "what was overridden is back");
}

#[test]
fn tools_come_and_go_with_their_toolset_and_its_aliases() {
    let live = live();
    let before = live.shared().generation();
    let brings = Bundle {
        tools: vec![brought("mcp-docs", "mcp__docs__find", "mcp-docs")],
        aliases: vec![("docs".to_owned(), "mcp-docs".to_owned())],
    };
    live.set(Reach::Everybody, "mcp-docs", Some(brings));
    let with = live.shared();
    assert!(before < with.generation());
    assert!(with.catalog().is_valid("docs") && with.catalog().resolve("docs").contains("mcp__docs__find"));
    live.set(Reach::Everybody, "mcp-docs", None);
    let without = live.shared();
    assert!(with.generation() < without.generation());
    assert!(!without.catalog().is_valid("docs") && !without.catalog().is_valid("mcp-docs"));
    assert!(
        with.get("mcp__docs__find").is_some(),
        "who holds a registry keeps what it saw"
    );
    live.set(Reach::Everybody, "never-there", None);
}

#[test]
fn a_tenants_tools_are_its_own_and_follow_those_of_everybody() {
    let live = live();
    let (one, two) = (Id::from_bits(1), Id::from_bits(2));
    live.set(
        Reach::Tenant(one),
        "own",
        bundle(vec![brought("own", "paint", "studio")]),
    );
    let has = |tenant, name: &str| live.of(tenant).get(name).is_some();
    assert!(has(one, "paint") && !has(two, "paint") && live.shared().get("paint").is_none());
    live.set(Reach::Everybody, "all", bundle(vec![brought("all", "weld", "garage")]));
    assert!(has(one, "weld") && has(two, "weld") && has(one, "paint"));
    // Everybody's tools come first, whenever they came.
    live.set(Reach::Everybody, "all", bundle(vec![brought("all", "paint", "garage")]));
    assert_eq!(live.of(one).get("paint").unwrap().toolset(), "garage");
    live.set(Reach::Everybody, "all", None);
    assert_eq!(live.of(one).get("paint").unwrap().toolset(), "studio");
    live.set(Reach::Tenant(one), "own", None);
    assert!(!has(one, "paint"));
}

/// While tools come and go in pairs, nobody ever sees half a pair.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_64_readers_sees_one_generation_while_tools_come_and_go() {
    let bench = Bench::new().await;
    let live = Arc::new(Live::new(Clock::system(), BTreeMap::new()));
    let pair = |round: u32| {
        let toolset = format!("round{round}");
        let names = ["left", "right"].map(|name| brought("pair", name, &toolset));
        live.set(Reach::Everybody, "pair", bundle(names.to_vec()));
    };
    pair(0);
    let host = Arc::clone(&bench.host);
    let readers: Vec<_> = (0..64)
        .map(|_| {
            let (live, host) = (Arc::clone(&live), Arc::clone(&host));
            tokio::spawn(async move {
                let (mut last, mut seen) = (0, BTreeSet::new());
                for _ in 0..40 {
                    let registry = live.shared();
                    assert!(last <= registry.generation());
                    last = registry.generation();
                    seen.insert(last);
                    let toolset = registry.get("left").unwrap().toolset().to_owned();
                    let enabled = vec![toolset.clone()];
                    let selection = Selection {
                        presets: &enabled,
                        ..Selection::default()
                    };
                    let tools = registry.select(&selection, live.offers(&host)).unwrap();
                    assert_eq!(tools.names(), ["left", "right"]);
                    assert!(tools.offered().iter().all(|tool| tool.toolset() == toolset));
                    tokio::task::yield_now().await;
                }
                seen.len()
            })
        })
        .collect();
    for round in 1..200 {
        pair(round);
        tokio::task::yield_now().await;
    }
    let mut most = 0;
    for reader in readers {
        most = most.max(reader.await.unwrap());
    }
    assert!(0 < most);
    assert_eq!(live.shared().get("left").unwrap().toolset(), "round199");
}

/// What was chosen runs as it was chosen, however often it is replaced meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_64_dispatches_runs_the_generation_it_was_chosen_from() {
    let bench = Bench::new().await;
    let live = Arc::new(Live::new(Clock::system(), BTreeMap::new()));
    let changed = Arc::clone(&live);
    let change = move |round: u32| {
        let toolset = format!("round{round}");
        let names = ["left", "right"].map(|name| brought("pair", name, &toolset));
        changed.set(Reach::Everybody, "pair", bundle(names.to_vec()));
    };
    change(0);
    let changes = tokio::spawn(async move {
        for round in 1..400 {
            change(round);
            tokio::task::yield_now().await;
        }
    });
    let dispatch = async || {
        let mut seen = BTreeSet::new();
        for _ in 0..20 {
            let registry = live.shared();
            let toolset = registry.get("left").unwrap().toolset().to_owned();
            let enabled = [toolset.clone()];
            let selection = Selection {
                presets: &enabled,
                ..Selection::default()
            };
            let tools = registry.select(&selection, live.offers(&bench.host)).unwrap();
            for name in ["left", "right"] {
                let tool = Arc::clone(tools.get(name).unwrap());
                let reader = dispatch::Reader::Model(Budget::default());
                let done = dispatch::run(tool, bench.call(json!({})), reader, None).await;
                assert_eq!(done.result, toolset, "{name}");
            }
            seen.insert(toolset);
        }
        seen
    };
    let seen = futures::future::join_all((0..64).map(|_| dispatch())).await;
    changes.await.unwrap();
    let all: BTreeSet<String> = seen.into_iter().flatten().collect();
    assert!(1 < all.len(), "nothing changed while the calls ran: {all:?}");
}

/// Panics when it is asked how its check is called, or within the check.
struct Jumpy(&'static str);

impl Tool for Jumpy {
    fn spec(&self) -> SpecOf<'_> {
        SpecOf {
            name: self.0,
            toolset: "jumpy",
            emoji: "",
            description: "",
            requires_env: &[],
            result_limit: crate::tool::budget::ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        json!({})
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

    fn check_key(&self) -> Option<String> {
        assert!(self.0 != "key", "no key");
        None
    }

    fn probe(&self) -> Option<BoxFuture<'static, Option<String>>> {
        assert!(self.0 != "probe", "no probe");
        let name = self.0;
        Some(Box::pin(async move {
            assert!(name != "answer", "no answer");
            None
        }))
    }

    fn run(&self, _: Call) -> BoxFuture<'static, Done> {
        Box::pin(std::future::ready(Done::default()))
    }
}

#[tokio::test]
async fn a_check_that_panics_hides_its_own_tool_and_no_other() {
    let bench = Bench::new().await;
    let live = live();
    let tools = ["key", "probe", "answer", "sound"]
        .map(|name| Registration::plain(Entry::loaded(Arc::new(Jumpy(name)), "jumpy").unwrap()));
    live.set(Reach::Everybody, "jumpy", bundle(tools.to_vec()));
    let registry = live.shared();
    live.refresh(&registry).await;
    let views = registry.tool_views(live.offers(&bench.host));
    let jumpy = views.iter().filter(|view| view.toolset == "jumpy");
    let told: Vec<_> = jumpy.map(|view| (view.name.as_str(), view.reason.as_deref())).collect();
    let failed = Some("its check failed");
    assert_eq!(
        told,
        [("answer", failed), ("key", failed), ("probe", failed), ("sound", None)]
    );
    assert!(views.iter().any(|view| view.name == "todo" && view.available));
}
