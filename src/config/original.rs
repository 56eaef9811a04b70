//! Keys of the original agent's `config.yaml` that this server knows of and
//! does not use. A file that holds them loads, and the start names them.

/// Whole sections and single keys at the top of the file.
pub(super) const TOP_LEVEL: &[&str] = &["auxiliary", "compression", "mcp_servers", "security"];

/// Under `model`, when it is a section there.
pub(super) const MODEL: &[&str] = &["provider", "base_url", "api_key"];

pub(super) const AGENT: &[&str] = &["gateway_timeout"];

pub(super) const APPROVALS: &[&str] = &["cron_mode"];

pub(super) const TERMINAL: &[&str] = &["backend", "cwd", "lifetime_seconds"];
