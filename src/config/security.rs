//! `security`: the external scanner of commands.

use std::time::Duration;

use serde_json::json;
use url::Url;

use super::node::Node;
use super::original;
use super::section::Section;

/// The newest release of the project.
const RELEASE: &str = "https://github.com/sheeki03/tirith/releases/latest/download/";

#[derive(Clone, Debug)]
pub struct Security {
    pub tirith_enabled: bool,
    /// A name that is looked for in `PATH`, or a path.
    pub tirith_path: String,
    pub tirith_timeout: Duration,
    /// A scanner that does not judge allows; otherwise a person is asked.
    pub tirith_fail_open: bool,
    /// It is fetched where it is not installed.
    pub tirith_auto_install: bool,
    /// The address of its release.
    pub tirith_url: Option<Url>,
    /// The hashes of the release must be signed.
    pub tirith_cosign: bool,
    /// SHA-256 of the only certificate that the address's host may show.
    pub tirith_pin: Option<[u8; 32]>,
}

impl Security {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.ignore(original::SECURITY);
        Self {
            tirith_enabled: section.flag("tirith_enabled", true),
            tirith_path: section.text("tirith_path", "tirith"),
            tirith_timeout: section.seconds("tirith_timeout", 5, 1..=60),
            tirith_fail_open: section.flag("tirith_fail_open", true),
            tirith_auto_install: section.flag("tirith_auto_install", false),
            tirith_url: release(section),
            tirith_cosign: section.flag("tirith_cosign", false),
            tirith_pin: pin(section),
        }
    }
}

fn release(section: &mut Section<'_>) -> Option<Url> {
    let read = |node: &Node| {
        let url = Url::parse(node.text()?.trim()).ok()?;
        let plain = url.username().is_empty() && url.password().is_none();
        (url.scheme() == "https" && url.has_host() && plain).then_some(Some(url))
    };
    section.take(
        "tirith_url",
        Url::parse(RELEASE).ok(),
        "an https URL without credentials",
        read,
        |url| json!(url.as_ref().map(Url::as_str)),
    )
}

/// As `openssl x509 -fingerprint -sha256` prints it, with or without colons.
fn pin(section: &mut Section<'_>) -> Option<[u8; 32]> {
    let read = |node: &Node| {
        let digits: String = node
            .text()?
            .chars()
            .filter(|digit| !matches!(digit, ':' | ' '))
            .collect();
        let mut bytes = [0; 32];
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(digits.get(2 * place..2 * place + 2)?, 16).ok()?;
        }
        (digits.len() == 64).then_some(Some(bytes))
    };
    section.take(
        "tirith_pin",
        None,
        "the SHA-256 fingerprint of a certificate, 64 hexadecimal digits",
        read,
        |pin| json!(pin.map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())),
    )
}
