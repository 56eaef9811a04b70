//! `server` and `lease`: where the server listens, what it accepts from the
//! network, and how it shares work with its peers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::section::Section;

/// The HTTP listener and the limits of what it accepts.
#[derive(Clone, Debug)]
pub struct Server {
    pub listen: SocketAddr,
    pub data_dir: PathBuf,
    /// Names accepted in `Host` besides localhost, 127.0.0.1 and [::1].
    pub allowed_hosts: Vec<String>,
    /// Browser origins that may call; never a wildcard.
    pub allowed_origins: Vec<String>,
    pub max_body_bytes: usize,
    /// Characters of text in one input: it stays in the model's context.
    pub max_input_chars: usize,
    /// The longest a client may take to send a body.
    pub body_timeout: Duration,
    /// How long a client may leave what is sent to it unread.
    pub write_timeout: Duration,
    /// Several processes see the same data dir (a network volume).
    pub data_dir_shared: bool,
    pub heartbeat: Duration,
}

impl Server {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        Self {
            listen: section.address("listen", SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8642)),
            data_dir: section.path("data_dir", "./data"),
            allowed_hosts: section.texts_where(
                "allowed_hosts",
                "a list of host names without scheme, port or *",
                is_host,
            ),
            allowed_origins: section.texts_where(
                "allowed_origins",
                "a list of origins such as https://app.example.com",
                is_origin,
            ),
            max_body_bytes: section.number("max_body_bytes", 10 << 20, 1024..=1 << 30),
            max_input_chars: section.number("max_input_chars", 1_000_000, 1..=1 << 30),
            body_timeout: section.seconds("body_timeout_seconds", 30, 1..=3600),
            write_timeout: section.seconds("write_timeout_seconds", 60, 1..=3600),
            data_dir_shared: section.flag("data_dir_shared", false),
            heartbeat: section.seconds("heartbeat_seconds", 10, 2..=30),
        }
    }
}

fn is_host(text: &str) -> bool {
    let host = text.trim_start_matches('[').trim_end_matches(']');
    let named = host
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    (named && !host.is_empty()) || host.parse::<std::net::Ipv6Addr>().is_ok()
}

/// An origin as browsers send it: no path, no slash, no wildcard.
fn is_origin(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| url.origin().is_tuple() && url.origin().ascii_serialization() == text)
}

/// How long a process owns what it works on without a sign of life.
#[derive(Clone, Debug)]
pub struct Lease {
    pub duration: Duration,
}

impl Lease {
    /// An owner stops 5 s before its lease ends, so 10 is the least that leaves
    /// room for a renewal every third.
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        Self {
            duration: section.seconds("seconds", 30, 10..=600),
        }
    }
}
