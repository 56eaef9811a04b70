//! The toolsets that are part of the product, as data.
//!
//! Every tool name stands once, in the leaf group it belongs to (`search` and
//! `browser` borrow one each). The core and every preset are computed from the
//! groups, so a tool added to a group reaches the presets by itself.

use std::collections::{BTreeMap, BTreeSet};

use super::Definition;

/// Name, what it is for, tools.
type Leaf = (&'static str, &'static str, &'static [&'static str]);

const LEAVES: &[Leaf] = &[
    ("web", "search the web and read pages", &["web_search", "web_extract"]),
    ("search", "search the web without reading pages", &["web_search"]),
    ("x_search", "search posts on X", &["x_search"]),
    ("vision", "look at images", &["vision_analyze"]),
    ("video", "look at videos", &["video_analyze"]),
    ("image_gen", "make images", &["image_generate"]),
    (
        "video_gen",
        "make and edit videos",
        &["video_generate", "xai_video_edit", "xai_video_extend"],
    ),
    ("computer_use", "drive a desktop", &["computer_use"]),
    (
        "terminal",
        "run commands and look after their processes",
        &["terminal", "process"],
    ),
    (
        "skills",
        "read and keep skill documents",
        &["skills_list", "skill_view", "skill_manage"],
    ),
    (
        "browser",
        "drive a web browser",
        &[
            "browser_navigate",
            "browser_snapshot",
            "browser_click",
            "browser_type",
            "browser_scroll",
            "browser_back",
            "browser_press",
            "browser_get_images",
            "browser_vision",
            "browser_console",
            "browser_cdp",
            "browser_dialog",
            "web_search",
        ],
    ),
    ("cronjob", "schedule jobs", &["cronjob"]),
    (
        "file",
        "read, write, patch and search files",
        &["read_file", "write_file", "patch", "search_files"],
    ),
    ("tts", "turn text into speech", &["text_to_speech"]),
    ("todo", "keep a task list for work of several steps", &["todo"]),
    ("memory", "remember across sessions", &["memory"]),
    ("context_engine", "tools of the active context engine", &[]),
    (
        "session_search",
        "find and read earlier conversations",
        &["session_search"],
    ),
    (
        "project",
        "switch between desktop projects",
        &["project_list", "project_create", "project_switch"],
    ),
    ("clarify", "ask the user a question", &["clarify"]),
    ("code_execution", "run a program that calls tools", &["execute_code"]),
    ("delegation", "hand work to child agents", &["delegate_task"]),
    (
        "homeassistant",
        "see and control a home",
        &[
            "ha_list_entities",
            "ha_get_state",
            "ha_list_services",
            "ha_call_service",
        ],
    ),
    (
        "kanban",
        "work on a shared board of tasks",
        &[
            "kanban_show",
            "kanban_list",
            "kanban_complete",
            "kanban_block",
            "kanban_heartbeat",
            "kanban_comment",
            "kanban_create",
            "kanban_link",
            "kanban_unblock",
            "kanban_attach",
            "kanban_attach_url",
            "kanban_attachments",
        ],
    ),
    ("discord", "read and write on Discord", &["discord"]),
    ("discord_admin", "moderate a Discord server", &["discord_admin"]),
    (
        "yuanbao",
        "groups, messages and stickers of Yuanbao",
        &[
            "yb_query_group_info",
            "yb_query_group_members",
            "yb_send_dm",
            "yb_search_sticker",
            "yb_send_sticker",
        ],
    ),
    ("feishu_doc", "read Feishu documents", &["feishu_doc_read"]),
    (
        "feishu_drive",
        "comment on Feishu documents",
        &[
            "feishu_drive_list_comments",
            "feishu_drive_list_comment_replies",
            "feishu_drive_reply_comment",
            "feishu_drive_add_comment",
        ],
    ),
    (
        "spotify",
        "play and find music",
        &[
            "spotify_playback",
            "spotify_devices",
            "spotify_queue",
            "spotify_search",
            "spotify_playlists",
            "spotify_albums",
            "spotify_library",
        ],
    ),
];

/// The groups that make up the core.
const CORE: &[&str] = &[
    "web",
    "terminal",
    "file",
    "vision",
    "image_gen",
    "skills",
    "browser",
    "tts",
    "todo",
    "memory",
    "session_search",
    "clarify",
    "code_execution",
    "delegation",
    "cronjob",
    "homeassistant",
    "kanban",
    "computer_use",
];

/// In the core, but offered only where a desktop is attached; the registry adds
/// them to `terminal` then.
const DESKTOP: &[&str] = &["read_terminal", "close_terminal"];

/// What a preset holds, in groups.
enum Content {
    CoreAnd(&'static [&'static str]),
    /// The core without these groups; the flag says whether desktop tools stay.
    CoreWithout(&'static [&'static str], bool),
    Only(&'static [&'static str]),
}

const API_SERVER_WITHOUT: &[&str] = &["tts", "clarify", "kanban", "computer_use"];
const ACP_WITHOUT: &[&str] = &[
    "tts",
    "clarify",
    "kanban",
    "computer_use",
    "image_gen",
    "cronjob",
    "homeassistant",
];
const CODING_WITHOUT: &[&str] = &["tts", "kanban", "computer_use", "image_gen", "cronjob", "homeassistant"];

const PRESETS: &[(&str, Content)] = &[
    ("hermes-api-server", Content::CoreWithout(API_SERVER_WITHOUT, false)),
    ("hermes-acp", Content::CoreWithout(ACP_WITHOUT, false)),
    ("hermes-cli", Content::CoreAnd(&[])),
    ("hermes-cron", Content::CoreAnd(&[])),
];

/// Presets of messengers; `hermes-gateway` is all of them together.
const MESSENGERS: &[(&str, Content)] = &[
    ("hermes-telegram", Content::CoreAnd(&[])),
    ("hermes-whatsapp", Content::CoreAnd(&[])),
    ("hermes-slack", Content::CoreAnd(&[])),
    ("hermes-signal", Content::CoreAnd(&[])),
    ("hermes-bluebubbles", Content::CoreAnd(&[])),
    ("hermes-homeassistant", Content::CoreAnd(&[])),
    ("hermes-email", Content::CoreAnd(&[])),
    ("hermes-mattermost", Content::CoreAnd(&[])),
    ("hermes-matrix", Content::CoreAnd(&[])),
    ("hermes-dingtalk", Content::CoreAnd(&[])),
    ("hermes-weixin", Content::CoreAnd(&[])),
    ("hermes-qqbot", Content::CoreAnd(&[])),
    ("hermes-wecom", Content::CoreAnd(&[])),
    ("hermes-wecom-callback", Content::CoreAnd(&[])),
    ("hermes-sms", Content::CoreAnd(&[])),
    ("hermes-discord", Content::CoreAnd(&["discord", "discord_admin"])),
    ("hermes-feishu", Content::CoreAnd(&["feishu_doc", "feishu_drive"])),
    ("hermes-yuanbao", Content::CoreAnd(&["yuanbao"])),
    // What arrives by webhook was written by strangers: nothing that acts.
    ("hermes-webhook", Content::Only(&["web", "vision", "clarify"])),
];

/// Names of an older generation: group, tools of it that they leave out.
const LEGACY: &[(&str, &str, &[&str])] = &[
    ("web_tools", "web", &[]),
    ("terminal_tools", "terminal", &["process"]),
    ("vision_tools", "vision", &[]),
    ("image_tools", "image_gen", &[]),
    ("skills_tools", "skills", &[]),
    (
        "browser_tools",
        "browser",
        &["browser_cdp", "browser_dialog", "web_search"],
    ),
    ("cronjob_tools", "cronjob", &[]),
    ("file_tools", "file", &[]),
    ("tts_tools", "tts", &[]),
];

/// The groups with the tools of this binary in them.
pub(super) struct Groups<'a> {
    built_in: &'a BTreeMap<String, BTreeSet<String>>,
}

impl<'a> Groups<'a> {
    pub(super) fn with(built_in: &'a BTreeMap<String, BTreeSet<String>>) -> Self {
        Self { built_in }
    }

    /// Every static toolset by name.
    pub(super) fn toolsets(&self) -> BTreeMap<String, Definition> {
        let leaves = LEAVES.iter();
        let leaves = leaves.map(|(name, description, _)| (*name, Definition::of(description, self.group(name))));
        let presets = PRESETS.iter().chain(MESSENGERS).map(|(name, content)| {
            let surface = name.trim_start_matches("hermes-");
            let description = format!("tools for `{surface}`");
            (*name, Definition::of(&description, self.tools_of(content)))
        });
        leaves
            .chain(presets)
            .chain(self.composites())
            .map(|(name, definition)| (name.to_owned(), definition))
            .collect()
    }

    /// The core: what every ordinary preset starts from.
    pub(super) fn core(&self) -> BTreeSet<String> {
        self.core_without(&[], true)
    }

    /// Toolsets made of toolsets, and the posture.
    fn composites(&self) -> [(&'static str, Definition); 4] {
        let messengers: Vec<&str> = MESSENGERS.iter().map(|(name, _)| *name).collect();
        let safe = Definition::of("nothing that changes the machine", BTreeSet::new());
        let coding = Definition {
            is_posture: true,
            ..Definition::of("work on code", self.core_without(CODING_WITHOUT, true))
        };
        let debugging = Definition::of("commands, files and the web", self.group("terminal"));
        let gateway = Definition::of("tools of every messenger", BTreeSet::new());
        [
            ("debugging", debugging.including(&["web", "file"])),
            ("safe", safe.including(&["web", "vision", "image_gen"])),
            ("coding", coding),
            ("hermes-gateway", gateway.including(&messengers)),
        ]
    }

    fn tools_of(&self, content: &Content) -> BTreeSet<String> {
        match content {
            Content::CoreAnd(groups) => self.core().into_iter().chain(self.union(groups)).collect(),
            Content::CoreWithout(groups, desktop) => self.core_without(groups, *desktop),
            Content::Only(groups) => self.union(groups),
        }
    }

    fn core_without(&self, groups: &[&str], desktop: bool) -> BTreeSet<String> {
        let desktop = if desktop { DESKTOP } else { &[] };
        let without = self.union(groups);
        let tools = self.union(CORE).into_iter();
        let tools = tools.chain(desktop.iter().map(|tool| (*tool).to_owned()));
        tools.filter(|tool| !without.contains(tool)).collect()
    }

    fn union(&self, groups: &[&str]) -> BTreeSet<String> {
        groups.iter().flat_map(|group| self.group(group)).collect()
    }

    fn group(&self, name: &str) -> BTreeSet<String> {
        let own = self.built_in.get(name).into_iter().flatten().cloned();
        let own = own.filter(|tool| !DESKTOP.contains(&tool.as_str()));
        leaf(name).chain(own).collect()
    }
}

/// The tools of a legacy name, none if it is no such name.
pub(super) fn legacy(name: &str) -> Option<BTreeSet<String>> {
    let (_, group, without) = LEGACY.iter().find(|(legacy, ..)| *legacy == name)?;
    Some(leaf(group).filter(|tool| !without.contains(&tool.as_str())).collect())
}

fn leaf(name: &str) -> impl Iterator<Item = String> + use<> {
    let found = LEAVES.iter().find(|(leaf, ..)| *leaf == name);
    let tools = found.map_or(&[][..], |(_, _, tools)| *tools);
    tools.iter().map(|tool| (*tool).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_named_anywhere_exists() {
        let contents = PRESETS.iter().chain(MESSENGERS).flat_map(|(_, content)| match content {
            Content::CoreAnd(groups) | Content::CoreWithout(groups, _) | Content::Only(groups) => groups.to_vec(),
        });
        let legacy = LEGACY.iter().map(|(_, group, _)| *group);
        for group in contents
            .chain(legacy)
            .chain(CORE.iter().copied())
            .chain(CODING_WITHOUT.iter().copied())
        {
            assert!(LEAVES.iter().any(|(name, ..)| *name == group), "{group}");
        }
    }

    #[test]
    fn sizes_are_those_of_the_original() {
        let built_in = BTreeMap::new();
        let toolsets = Groups::with(&built_in).toolsets();
        for (name, size) in [
            ("hermes-api-server", 35),
            ("hermes-acp", 29),
            ("coding", 32),
            ("hermes-cli", 52),
            ("hermes-feishu", 57),
        ] {
            assert_eq!(toolsets[name].tools.len(), size, "{name}");
        }
        assert_eq!(legacy("browser_tools").unwrap().len(), 10);
        assert_eq!(legacy("web"), None);
    }
}
