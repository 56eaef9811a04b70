//! Which tools a selection of toolsets means.
//!
//! A [`Catalog`] is a value: the static toolsets merged with a snapshot of the
//! registry. It knows names only; whether a tool is available is the registry's
//! to say. Nothing here fails: an unknown name adds nothing and is reported.

mod defined;
pub mod distribution;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use utoipa::ToSchema;

/// One toolset as it was declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    pub description: String,
    pub tools: BTreeSet<String>,
    /// Toolsets that are part of this one.
    pub includes: Vec<String>,
    /// A way of working rather than a bundle; disabling it keeps core tools.
    pub is_posture: bool,
}

impl Definition {
    fn of(description: &str, tools: BTreeSet<String>) -> Self {
        Self {
            description: description.to_owned(),
            tools,
            ..Self::default()
        }
    }

    fn including(mut self, names: &[&str]) -> Self {
        self.includes = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }
}

/// What a toolset is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Info {
    pub name: String,
    pub description: String,
    pub direct_tools: Vec<String>,
    pub includes: Vec<String>,
    pub resolved_tools: Vec<String>,
    pub tool_count: usize,
    pub is_composite: bool,
}

/// What a session asked for, as tool names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub tools: BTreeSet<String>,
    /// Names that mean nothing here, for a warning.
    pub unknown: Vec<String>,
}

/// Every toolset that can be named.
#[derive(Clone, Debug)]
pub struct Catalog {
    core: BTreeSet<String>,
    defined: BTreeMap<String, Definition>,
    registered: BTreeMap<String, BTreeSet<String>>,
    aliases: BTreeMap<String, String>,
}

impl Catalog {
    /// The static toolsets with what was loaded: pairs of tool and toolset, and
    /// of alias and toolset.
    pub fn new<'a>(
        tools: impl IntoIterator<Item = (&'a str, &'a str)>,
        aliases: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        Self::with_built_in([], tools, aliases)
    }

    /// As [`Catalog::new`], with the tools that are part of the binary. One in a
    /// group of the core is in every preset that has this group.
    pub fn with_built_in<'a>(
        built_in: impl IntoIterator<Item = (&'a str, &'a str)>,
        loaded: impl IntoIterator<Item = (&'a str, &'a str)>,
        aliases: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let built_in = by_toolset(built_in);
        let mut registered = by_toolset(loaded);
        for (toolset, tools) in &built_in {
            registered
                .entry(toolset.clone())
                .or_default()
                .extend(tools.iter().cloned());
        }
        let aliases = aliases
            .into_iter()
            .map(|(alias, toolset)| (alias.to_owned(), toolset.to_owned()))
            .collect();
        let groups = defined::Groups::with(&built_in);
        Self {
            core: groups.core(),
            defined: groups.toolsets(),
            registered,
            aliases,
        }
    }

    /// Adds a custom toolset, or replaces one.
    pub fn define(&mut self, name: &str, definition: Definition) {
        self.defined.insert(name.to_owned(), definition);
    }

    /// Whether the name may stand in a selection; legacy names are not valid.
    pub fn is_valid(&self, name: &str) -> bool {
        is_all(name) || self.find(name).is_some()
    }

    /// Every toolset by the name to show, sorted; one of a tool server under
    /// its alias.
    pub fn names(&self) -> Vec<String> {
        let registered = self.registered.keys().map(|toolset| {
            let alias = self
                .aliases
                .iter()
                .find(|(_, target)| *target == toolset)
                .map(|(alias, _)| alias);
            alias.filter(|_| toolset.starts_with("mcp-")).unwrap_or(toolset)
        });
        let names: BTreeSet<&String> = self.defined.keys().chain(registered).collect();
        names.into_iter().cloned().collect()
    }

    /// The toolset of this name: static and registered tools together.
    pub fn find(&self, name: &str) -> Option<Definition> {
        let registered = self.registered.get(name);
        if let Some(definition) = self.defined.get(name) {
            let mut definition = definition.clone();
            definition.tools.extend(registered.into_iter().flatten().cloned());
            return Some(definition);
        }
        if let Some(tools) = registered {
            return Some(Definition::of(&format!("Plugin toolset: {name}"), tools.clone()));
        }
        let tools = self.registered.get(self.aliases.get(name)?)?;
        Some(Definition::of(&format!("MCP server '{name}' tools"), tools.clone()))
    }

    /// Every tool of a toolset and of all it includes. Loops end by themselves.
    pub fn resolve(&self, name: &str) -> BTreeSet<String> {
        self.resolve_many([name])
    }

    /// The union of several toolsets.
    pub fn resolve_many<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
        let mut open: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let mut seen = BTreeSet::new();
        let mut tools = BTreeSet::new();
        while let Some(name) = open.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            if is_all(&name) {
                open.extend(self.names());
            } else if let Some(definition) = self.find(&name) {
                tools.extend(definition.tools);
                open.extend(definition.includes);
            }
        }
        tools
    }

    /// The tools of the enabled toolsets (none given: all) without those of the
    /// disabled ones.
    pub fn select(&self, enabled: Option<&[String]>, disabled: &[String]) -> Selection {
        let mut selection = Selection::default();
        match enabled {
            None => selection.tools = self.resolve("all"),
            Some(names) => {
                for name in names {
                    match self.named(name) {
                        Some(tools) => selection.tools.extend(tools),
                        None => selection.unknown.push(name.clone()),
                    }
                }
            }
        }
        for name in disabled {
            match self.removed_by(name) {
                Some(tools) => selection.tools.retain(|tool| !tools.contains(tool)),
                None => selection.unknown.push(name.clone()),
            }
        }
        selection
    }

    /// What clients are told about a toolset.
    pub fn info(&self, name: &str) -> Option<Info> {
        let definition = self.find(name)?;
        let resolved_tools: Vec<String> = self.resolve(name).into_iter().collect();
        Some(Info {
            name: name.to_owned(),
            description: definition.description,
            direct_tools: definition.tools.into_iter().collect(),
            is_composite: !definition.includes.is_empty(),
            includes: definition.includes,
            tool_count: resolved_tools.len(),
            resolved_tools,
        })
    }

    fn named(&self, name: &str) -> Option<BTreeSet<String>> {
        if self.is_valid(name) {
            Some(self.resolve(name))
        } else {
            defined::legacy(name)
        }
    }

    /// Disabling a platform's bundle or a posture takes only what it adds to
    /// the core, so that it never strips a session bare.
    fn removed_by(&self, name: &str) -> Option<BTreeSet<String>> {
        let Some(definition) = self.find(name) else {
            return self.named(name);
        };
        if !name.starts_with("hermes-") && !definition.is_posture {
            return self.named(name);
        }
        let core = &self.core;
        let included = definition.includes.iter().filter_map(|include| self.find(include));
        let tools = included
            .flat_map(|included| included.tools)
            .chain(definition.tools.iter().cloned());
        Some(tools.filter(|tool| !core.contains(tool)).collect())
    }
}

fn by_toolset<'a>(tools: impl IntoIterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, BTreeSet<String>> {
    let mut sets: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (tool, toolset) in tools {
        sets.entry(toolset.to_owned()).or_default().insert(tool.to_owned());
    }
    sets
}

/// Whether the name is that of a toolset of the product, or means all of them.
pub fn is_taken(name: &str) -> bool {
    is_all(name) || defined::legacy(name).is_some() || Catalog::new([], []).defined.contains_key(name)
}

fn is_all(name: &str) -> bool {
    name == "all" || name == "*"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registered_tools_join_their_toolset() {
        let catalog = Catalog::new(
            [
                ("read_terminal", "terminal"),
                ("mcp__docs__find", "mcp-docs"),
                ("paint", "studio"),
            ],
            [("docs", "mcp-docs")],
        );
        let names = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>();
        assert_eq!(
            names(catalog.resolve("terminal")),
            ["process", "read_terminal", "terminal"]
        );
        assert_eq!(names(catalog.resolve("docs")), ["mcp__docs__find"]);
        assert_eq!(names(catalog.resolve("mcp-docs")), ["mcp__docs__find"]);
        assert!(catalog.names().contains(&"docs".to_owned()) && !catalog.names().contains(&"mcp-docs".to_owned()));
        assert!(catalog.resolve("*").contains("paint"));
        assert_eq!(catalog.info("studio").unwrap().description, "Plugin toolset: studio");
    }

    #[test]
    fn a_new_tool_of_a_core_group_is_in_the_presets_by_itself() {
        let built_in = [
            ("stat_file", "file"),
            ("read_terminal", "terminal"),
            ("paint", "studio"),
        ];
        let catalog = Catalog::with_built_in(built_in, [("shout", "file")], []);
        for preset in [
            "hermes-api-server",
            "hermes-acp",
            "hermes-cli",
            "coding",
            "hermes-discord",
        ] {
            assert!(catalog.resolve(preset).contains("stat_file"), "{preset}");
            assert!(!catalog.resolve(preset).contains("paint"), "{preset}");
            assert!(
                !catalog.resolve(preset).contains("shout"),
                "{preset}: what was loaded joins its toolset only"
            );
        }
        assert!(!catalog.resolve("hermes-webhook").contains("stat_file"));
        assert!(!catalog.resolve("hermes-api-server").contains("read_terminal"));
        assert!(catalog.resolve("file").contains("shout"));
        // It is core: disabling a bundle leaves it.
        let selected = catalog.select(Some(&["hermes-cli".into()]), &["hermes-discord".into()]);
        assert!(selected.tools.contains("stat_file"));
    }

    #[test]
    fn unknown_names_are_reported_and_change_nothing() {
        let catalog = Catalog::new([], []);
        let selection = catalog.select(Some(&["todo".into(), "nope".into()]), &["neither".into()]);
        assert_eq!(selection.tools, BTreeSet::from(["todo".to_owned()]));
        assert_eq!(selection.unknown, ["nope", "neither"]);
    }

    #[test]
    fn disabling_a_platform_takes_only_what_it_adds() {
        let catalog = Catalog::new([], []);
        let discord = catalog.select(Some(&["hermes-discord".into()]), &["hermes-gateway".into()]);
        assert_eq!(discord.tools, catalog.resolve("hermes-cli"));
        let coding = catalog.select(Some(&["coding".into()]), &["coding".into()]);
        assert_eq!(coding.tools.len(), 32);
    }

    #[test]
    fn info_tells_what_a_toolset_is_made_of() {
        let info = Catalog::new([], []).info("debugging").unwrap();
        assert_eq!(info.includes, ["web", "file"]);
        assert_eq!(info.direct_tools, ["process", "terminal"]);
        assert!(info.is_composite && info.tool_count == info.resolved_tools.len() && info.tool_count == 8);
    }
}
