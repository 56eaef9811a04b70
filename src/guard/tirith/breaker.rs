//! A scanner that keeps failing is left alone for the rest of the process: its
//! failures would cost every command the whole timeout.

use super::{Ended, Scan};

/// Failures without a clean scan in between.
const MOST_FAILURES: u32 = 3;

#[derive(Clone, Copy, Debug, Default)]
pub struct Breaker {
    failures: u32,
}

impl Breaker {
    /// The scanner is not run any more.
    pub fn is_open(self) -> bool {
        MOST_FAILURES <= self.failures
    }

    /// What a scan that ended so says. A closed failure stays one, whether the
    /// scanner was run or not.
    pub fn judge(&mut self, ended: Ended, stdout: &str, fail_open: bool) -> Scan {
        if self.is_open() {
            return Scan::failed(fail_open, "the scanner failed too often and is not run any more");
        }
        if let Some(scan) = Scan::read(ended, stdout) {
            if ended == Ended::Exited(0) {
                self.failures = 0;
            }
            return scan;
        }
        let why = match ended {
            Ended::Missing => "the scanner is not installed",
            Ended::Timeout => "the scanner took too long",
            Ended::Spawn => "the scanner could not be started",
            Ended::Signalled => "the scanner was killed",
            Ended::Exited(_) => "the scanner failed",
        };
        // One that is not there costs nothing and may come.
        if ended != Ended::Missing {
            self.failures += 1;
        }
        Scan::failed(fail_open, why)
    }
}
