//! The server's own log: to the standard error, as text or JSON lines. Of our
//! modules what `log.level` says; of libraries warnings at most, because theirs
//! may quote what passes through them.

use std::io::{self, IsTerminal, Write};

use tracing_subscriber::EnvFilter;

use crate::config::{Format, Level, Log};
use crate::guard::redact::{Known, Mode, redact};

pub(super) fn start(log: Log, known: Known) {
    let begun = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter(log.level)))
        .with_writer(move || Masked {
            to: io::stderr(),
            known: known.clone(),
        })
        .with_ansi(io::stderr().is_terminal());
    match log.format {
        Format::Text => begun.with_target(false).init(),
        Format::Json => begun.json().flatten_event(true).init(),
    }
}

/// Leaves secrets out of what is written; an event comes in one piece.
struct Masked<W> {
    to: W,
    known: Known,
}

impl<W: Write> Write for Masked<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let text = redact(&self.known.mask(&text), Mode::Text);
        self.to.write_all(text.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
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
    fn no_secret_is_written() {
        let token = ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
        let known = Known::new(["a-key-of-this-server"]);
        let mut log = Masked { to: Vec::new(), known };
        let event = format!("asked with {token} and a-key-of-this-server, url=postgres://u:hunter22@h/db\n");
        log.write_all(event.as_bytes()).unwrap();
        let written = String::from_utf8(log.to).unwrap();
        assert!(
            written.starts_with("asked with ghp_") && written.ends_with('\n'),
            "{written}"
        );
        assert!(
            !written.contains("0123456789abc") && !written.contains("of-this") && !written.contains("hunter22"),
            "{written}"
        );
    }

    #[test]
    fn libraries_never_get_louder_than_warnings() {
        assert_eq!(filter(Level::Trace), "warn,hermes_server=trace");
        assert_eq!(filter(Level::Error), "error,hermes_server=error");
    }
}
