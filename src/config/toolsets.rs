//! `platform_toolsets`: which toolsets a session has when nobody says so.

use super::section::Section;

/// The toolsets of sessions by the door they came in through. The original
/// has a list for each messenger; this server has one door.
#[derive(Clone, Debug)]
pub struct PlatformToolsets {
    pub api_server: Vec<String>,
}

/// Doors of the original that this server does not have.
const ELSEWHERE: &[&str] = &[
    "acp",
    "bluebubbles",
    "cli",
    "cron",
    "dingtalk",
    "discord",
    "email",
    "feishu",
    "gateway",
    "homeassistant",
    "matrix",
    "mattermost",
    "qqbot",
    "signal",
    "slack",
    "sms",
    "telegram",
    "tui",
    "webhook",
    "wecom",
    "wecom_callback",
    "weixin",
    "whatsapp",
    "yuanbao",
];

impl PlatformToolsets {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.ignore(ELSEWHERE);
        Self {
            api_server: section.texts_or("api_server", &["hermes-api-server"]),
        }
    }
}
