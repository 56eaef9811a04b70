//! The server's own log: to the standard error, as text or JSON lines. Of our
//! modules what `log.level` says; of libraries warnings at most, because theirs
//! may quote what passes through them.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::config::{Format, Level, Log};

pub(super) fn start(log: Log) {
    let begun = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter(log.level)))
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    match log.format {
        Format::Text => begun.with_target(false).init(),
        Format::Json => begun.json().flatten_event(true).init(),
    }
}

fn filter(level: Level) -> String {
    let libraries = match level {
        Level::Error => Level::Error,
        _ => Level::Warn,
    };
    format!("{},hermes_server={}", libraries.word(), level.word())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_never_get_louder_than_warnings() {
        assert_eq!(filter(Level::Trace), "warn,hermes_server=trace");
        assert_eq!(filter(Level::Error), "error,hermes_server=error");
    }
}
