//! Rules that look at several keys at once. Each key alone has been read and
//! found good before.

use super::{Config, ConfigError, Problem};

impl Config {
    /// Refuses combinations that must not start.
    pub fn check(&self) -> Result<(), ConfigError> {
        let problems: Vec<Problem> = [self.open_door(), self.limits()].into_iter().flatten().collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(ConfigError::Invalid(problems))
        }
    }

    /// The server can be reached from another machine.
    pub fn is_public(&self) -> bool {
        !self.server.listen.ip().to_canonical().is_loopback()
    }

    fn open_door(&self) -> Option<Problem> {
        (self.is_public() && !self.auth.is_configured()).then(|| {
            self.problem(
                "server.listen",
                format!(
                    "`{}` can be reached from other machines and no credential is configured; allowed: \
                     a loopback address such as 127.0.0.1:8642, or set HERMES_API_KEY or `auth.jwt`",
                    self.server.listen
                ),
            )
        })
    }

    fn limits(&self) -> Option<Problem> {
        let (default, most) = (self.terminal.timeout, self.terminal.max_foreground_timeout);
        (most < default).then(|| {
            let message = format!(
                "`{}` is not allowed; allowed: at most `terminal.max_foreground_timeout`, which is {}",
                default.as_secs(),
                most.as_secs()
            );
            self.problem("terminal.timeout", message)
        })
    }

    fn problem(&self, key: &str, message: String) -> Problem {
        let setting = self.effective().iter().find(|setting| setting.key == key);
        Problem {
            key: key.to_owned(),
            origin: setting.and_then(|setting| setting.origin.clone()),
            message,
        }
    }
}
