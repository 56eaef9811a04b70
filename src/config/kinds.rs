//! The kinds of values a key can have: for each a reader, the words for what
//! it allows, and how it is shown.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::base::Secret;

use super::node::{Node, Value};
use super::section::{REDACTED, Section};

impl Section<'_> {
    pub(super) fn text(&mut self, name: &'static str, default: &str) -> String {
        self.take(name, default.to_owned(), "text (numbers in quotes)", filled, |text| {
            json!(text)
        })
    }

    pub(super) fn optional_text(&mut self, name: &'static str) -> Option<String> {
        self.take(
            name,
            None,
            "text (numbers in quotes)",
            |node| filled(node).map(Some),
            |text| json!(text),
        )
    }

    pub(super) fn path(&mut self, name: &'static str, default: &str) -> PathBuf {
        self.take(
            name,
            default.into(),
            "a path",
            |node| filled(node).map(Into::into),
            |path| json!(path),
        )
    }

    pub(super) fn optional_path(&mut self, name: &'static str) -> Option<PathBuf> {
        self.take(
            name,
            None,
            "a path",
            |node| filled(node).map(|text| Some(text.into())),
            |path| json!(path),
        )
    }

    pub(super) fn flag(&mut self, name: &'static str, default: bool) -> bool {
        self.take(name, default, "true, false", truth, |flag| json!(flag))
    }

    pub(super) fn address(&mut self, name: &'static str, default: SocketAddr) -> SocketAddr {
        let allowed = "an address and a port such as 127.0.0.1:8642 or [::1]:8642";
        self.take(
            name,
            default,
            allowed,
            |node| node.text()?.parse().ok(),
            |address| json!(address.to_string()),
        )
    }

    pub(super) fn number<N>(&mut self, name: &'static str, default: N, range: RangeInclusive<N>) -> N
    where
        N: TryFrom<i64> + PartialOrd + Display + serde::Serialize,
    {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        let read = |node: &Node| {
            integer(node)
                .and_then(|n| N::try_from(n).ok())
                .filter(|n| range.contains(n))
        };
        self.take(name, default, &allowed, read, |number| json!(number))
    }

    /// A span in whole seconds; the key says so in its name.
    pub(super) fn seconds(&mut self, name: &'static str, default: u64, range: RangeInclusive<u64>) -> Duration {
        Duration::from_secs(self.number(name, default, range))
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy + PartialEq>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
        default: T,
    ) -> T {
        let allowed: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let read = |node: &Node| {
            let text = node.text()?;
            words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
        };
        let show = |value: &T| json!(words.iter().find(|(_, known)| known == value).map(|(word, _)| *word));
        self.take(name, default, &allowed.join(", "), read, show)
    }

    /// A list of texts; one text alone, with or without commas, is a list too
    /// when a variable or a flag holds it.
    pub(super) fn texts(&mut self, name: &'static str) -> Vec<String> {
        self.texts_or(name, &[])
    }

    /// As [`Section::texts`], each item held to a rule.
    pub(super) fn texts_where(
        &mut self,
        name: &'static str,
        allowed: &str,
        fits: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let read = |node: &Node| texts(node).filter(|list| list.iter().all(|item| fits(item)));
        self.take_list(name, &[], allowed, read)
    }

    /// As [`Section::texts`], with a default.
    pub(super) fn texts_or(&mut self, name: &'static str, default: &[&str]) -> Vec<String> {
        self.take_list(name, default, "a list of texts", texts)
    }

    /// A list of absolute paths.
    pub(super) fn paths(&mut self, name: &'static str) -> Vec<PathBuf> {
        let absolute = |text: &str| Path::new(text).is_absolute();
        self.texts_where(name, "a list of absolute paths", absolute)
            .into_iter()
            .map(PathBuf::from)
            .collect()
    }

    fn take_list(
        &mut self,
        name: &'static str,
        default: &[&str],
        allowed: &str,
        read: impl FnOnce(&Node) -> Option<Vec<String>>,
    ) -> Vec<String> {
        let default = default.iter().map(|item| (*item).to_owned()).collect();
        self.take(name, default, allowed, read, |list| json!(list))
    }

    /// The base address of an HTTP server, without a slash at its end.
    pub(super) fn http_url(&mut self, name: &'static str) -> Option<String> {
        let allowed = "an http or https URL without credentials, such as https://api.openai.com/v1";
        self.take(name, None, allowed, |node| http_url(node).map(Some), |url| json!(url))
    }

    /// The address of a document that is trusted for where it comes from.
    pub(super) fn trusted_url(&mut self, name: &'static str) -> Option<url::Url> {
        let allowed = "an https URL without credentials; http on this machine only";
        self.take(
            name,
            None,
            allowed,
            |node| trusted_url(node).map(Some),
            |url: &Option<url::Url>| json!(url.as_ref().map(url::Url::as_str)),
        )
    }

    /// A credential. Neither its value nor a refused value is ever shown.
    pub(super) fn secret(&mut self, name: &'static str, allowed: &str, fits: impl Fn(&str) -> bool) -> Option<Secret> {
        let node = self.raw(name).filter(|node| node.value != Value::Null);
        let secret = node
            .as_ref()
            .and_then(filled)
            .filter(|text| fits(text))
            .map(Secret::new);
        if let (Some(node), None) = (&node, &secret) {
            self.refuse_unseen(name, node, allowed);
        }
        self.note(name, json!(secret.as_ref().map(|_| REDACTED)), node.as_ref());
        secret
    }
}

fn filled(node: &Node) -> Option<String> {
    node.text()
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn integer(node: &Node) -> Option<i64> {
    match node.value {
        Value::Integer(number) => Some(number),
        _ => None,
    }
}

fn http_url(node: &Node) -> Option<String> {
    let text = filled(node)?;
    let url = url::Url::parse(&text).ok()?;
    let plain = url.username().is_empty() && url.password().is_none();
    let fits = matches!(url.scheme(), "http" | "https") && url.has_host() && plain;
    fits.then(|| text.trim_end_matches('/').to_owned())
}

pub(super) fn trusted_url(node: &Node) -> Option<url::Url> {
    let url = url::Url::parse(&http_url(node)?).ok()?;
    let here = match url.host()? {
        url::Host::Domain(name) => name == "localhost",
        url::Host::Ipv4(address) => address.is_loopback(),
        url::Host::Ipv6(address) => address.is_loopback(),
    };
    (url.scheme() == "https" || here).then_some(url)
}

/// YAML 1.1 files still say `yes` and `off` where they mean a boolean.
pub(super) fn truth(node: &Node) -> Option<bool> {
    match &node.value {
        Value::Bool(value) => Some(*value),
        Value::Text(text) => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn texts(node: &Node) -> Option<Vec<String>> {
    match &node.value {
        Value::List(items) => items.iter().map(filled).collect(),
        _ => {
            let typed = node.typed.as_deref()?;
            Some(
                typed
                    .split(',')
                    .map(str::trim)
                    .filter(|item| !item.is_empty())
                    .map(str::to_owned)
                    .collect(),
            )
        }
    }
}
