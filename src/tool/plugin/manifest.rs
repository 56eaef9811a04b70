//! `plugin.yaml` (or `plugin.json`): what a plugin declares. Read whole and
//! checked before anything is registered; a fault of one tool is that tool's.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use url::Url;

/// The longest a handler may take, and what it may take where nothing is said.
const MAX_SECONDS: u64 = 3_600;
const DEFAULT_SECONDS: u64 = 60;
/// Checks are asked while somebody waits.
const MAX_CHECK_SECONDS: u64 = 10;
const MAX_TOOLS: usize = 100;
/// What model servers take for a name.
const NAME_CHARS: usize = 64;

/// Why a plugin, or one of its tools, cannot be loaded.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum Fault {
    #[error("the manifest cannot be read: {0}")]
    Unreadable(String),
    #[error("`{0}` is no name for a plugin; expected lower-case letters, digits, `-` and `_`, as its folder is named")]
    PluginName(String),
    #[error("`{0}` is no name for a tool or toolset; expected up to 64 letters, digits, `-` and `_`")]
    Name(String),
    #[error("more than 100 tools")]
    TooMany,
    #[error("`{0}`: a handler has either `command` or `url`")]
    Handler(String),
    #[error("`{0}`: the address has to be https; http on this machine only")]
    Url(String),
    #[error("`{0}`: expected 1 to {1} seconds")]
    Seconds(String, u64),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub version: Option<Value>,
    /// Of tools that name none; the plugin's name where none is said.
    #[serde(default)]
    pub toolset: Option<String>,
    /// Of all its tools.
    #[serde(default)]
    check: Option<Handler>,
    #[serde(default)]
    pub tools: Vec<DeclaredTool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeclaredTool {
    pub name: String,
    #[serde(default)]
    pub toolset: Option<String>,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub emoji: String,
    #[serde(default)]
    pub parameters: Value,
    #[serde(default)]
    pub effect: DeclaredEffect,
    /// May run beside other calls.
    #[serde(default)]
    pub parallel: bool,
    /// Each call waits for a person.
    #[serde(default)]
    pub approval: bool,
    /// Takes the place of a tool of this name, where the operator allows it.
    #[serde(default, rename = "override")]
    pub overrides: bool,
    /// Its results are strangers' words; those from an address always are.
    #[serde(default)]
    pub untrusted: bool,
    #[serde(default)]
    pub max_result_size_chars: Option<usize>,
    handler: Handler,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DeclaredEffect {
    Read,
    #[default]
    Write,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Handler {
    #[serde(default)]
    command: Option<Vec<String>>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

/// What runs when a tool is called, or a check is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Words, the first of which is the program.
    Command(Vec<String>),
    Url(Url),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Handled {
    pub action: Action,
    pub timeout: Duration,
}

impl Manifest {
    /// `folder` is the name of the directory that it lies in.
    pub(super) fn read(text: &str, folder: &str) -> Result<Self, Fault> {
        let read: Result<Self, _> = serde_saphyr::from_str(text);
        let manifest = read.map_err(|error| Fault::Unreadable(error.to_string()))?;
        let is_plain =
            |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || "-_".contains(character);
        if manifest.name != folder || manifest.name.is_empty() || !manifest.name.chars().all(is_plain) {
            return Err(Fault::PluginName(manifest.name));
        }
        if MAX_TOOLS < manifest.tools.len() {
            return Err(Fault::TooMany);
        }
        let toolset = manifest.toolset.as_deref().unwrap_or(&manifest.name);
        if !is_name(toolset) {
            return Err(Fault::Name(toolset.to_owned()));
        }
        manifest.check()?;
        Ok(manifest)
    }

    /// Asked before its tools are offered.
    pub(super) fn check(&self) -> Result<Option<Handled>, Fault> {
        let check = self.check.as_ref();
        check
            .map(|check| check.read("check", MAX_CHECK_SECONDS, MAX_CHECK_SECONDS))
            .transpose()
    }
}

impl DeclaredTool {
    pub(super) fn handled(&self) -> Result<Handled, Fault> {
        let toolset = self.toolset.as_deref().unwrap_or("x");
        if let Some(wrong) = [self.name.as_str(), toolset].into_iter().find(|name| !is_name(name)) {
            return Err(Fault::Name(wrong.to_owned()));
        }
        self.handler.read(&self.name, MAX_SECONDS, DEFAULT_SECONDS)
    }
}

impl Handler {
    fn read(&self, of: &str, most: u64, default: u64) -> Result<Handled, Fault> {
        let action = match (&self.command, &self.url) {
            (Some(words), None) if words.first().is_some_and(|program| !program.is_empty()) => {
                Action::Command(words.clone())
            }
            (None, Some(text)) => Action::Url(address(text).ok_or_else(|| Fault::Url(of.to_owned()))?),
            _ => return Err(Fault::Handler(of.to_owned())),
        };
        let seconds = self.timeout_seconds.unwrap_or(default);
        if !(1..=most).contains(&seconds) {
            return Err(Fault::Seconds(of.to_owned(), most));
        }
        Ok(Handled {
            action,
            timeout: Duration::from_secs(seconds),
        })
    }
}

fn address(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_here = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    (url.scheme() == "https" || (url.scheme() == "http" && is_here)).then_some(url)
}

fn is_name(name: &str) -> bool {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    !name.is_empty() && name.len() <= NAME_CHARS && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "
name: weather
description: tells the weather
version: 1.2
check: {command: [./check]}
tools:
  - name: weather_now
    description: The weather at a place.
    parameters: {type: object, properties: {place: {type: string}}, required: [place]}
    effect: read
    parallel: true
    handler: {command: [./now, --short], timeout_seconds: 5}
  - name: weather_alert
    approval: true
    handler: {url: 'https://weather.example/alert'}
";

    #[test]
    fn a_manifest_says_what_its_tools_are() {
        let manifest = Manifest::read(WHOLE, "weather").unwrap();
        let [now, alert] = manifest.tools.as_slice() else {
            panic!("two tools")
        };
        assert_eq!(
            (now.effect, alert.effect),
            (DeclaredEffect::Read, DeclaredEffect::Write)
        );
        let handled = now.handled().unwrap();
        assert_eq!(
            handled.action,
            Action::Command(vec!["./now".to_owned(), "--short".to_owned()])
        );
        assert_eq!(handled.timeout, Duration::from_secs(5));
        assert!(matches!(alert.handled().unwrap().action, Action::Url(_)));
        assert_eq!(manifest.check().unwrap().unwrap().timeout, Duration::from_secs(10));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |from: &str, to: &str| Manifest::read(&WHOLE.replace(from, to), "weather");
        assert_eq!(
            wrong("name: weather\n", "name: Weather\n").unwrap_err(),
            Fault::PluginName("Weather".into())
        );
        assert_eq!(
            Manifest::read(WHOLE, "sun").unwrap_err(),
            Fault::PluginName("weather".into())
        );
        assert!(matches!(
            wrong("effect: read", "efect: read"),
            Err(Fault::Unreadable(_))
        ));
        let tool = |from: &str, to: &str| wrong(from, to).unwrap().tools.last().unwrap().handled();
        assert_eq!(
            tool("https://", "http://").unwrap_err(),
            Fault::Url("weather_alert".into())
        );
        assert_eq!(
            tool("weather_alert", "weather alert").unwrap_err(),
            Fault::Name("weather alert".into())
        );
        let both = "{url: 'https://a.example', command: [x]}";
        let both = tool("{url: 'https://weather.example/alert'}", both);
        assert_eq!(both.unwrap_err(), Fault::Handler("weather_alert".into()));
        assert!(tool("https://weather.example", "http://127.0.0.1:9").is_ok());
    }
}
