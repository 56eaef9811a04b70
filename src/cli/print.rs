//! The only place that writes to the terminal. Text goes out whole and flushed,
//! so that lines of different tasks never mix.

use std::io::{self, Write};

/// Writes to the standard output what was asked for.
pub(super) fn out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes one line to the standard error, beside what was asked for.
pub(super) fn aside(line: &str) {
    // Where nobody reads there is nobody to tell.
    let _unread = writeln!(io::stderr().lock(), "{line}");
}

/// The text without what would steer a terminal: control characters but for
/// line ends and tabs stand as U+FFFD.
pub(super) fn harmless(text: &str) -> String {
    let steers = |char: char| char.is_control() && !matches!(char, '\n' | '\t');
    text.replace(steers, "\u{fffd}")
}
