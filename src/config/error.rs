//! Why a configuration is refused. All problems of one start are collected, so
//! that a file is corrected once and not line by line.

use super::node::Origin;

/// One refused key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key as a dotted path.
    pub key: String,
    pub origin: Option<Origin>,
    /// What is wrong and what is allowed, without the place.
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`: {}", self.key, self.message)?;
        match &self.origin {
            Some(origin) => write!(f, " ({origin})"),
            None => Ok(()),
        }
    }
}

/// The start must not go on.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file that was asked for cannot be read.
    #[error("cannot read the configuration file `{path}`")]
    Unreadable {
        path: String,
        #[source]
        source: std::io::Error,
    },
    /// The text is not YAML; the parser's message names line and column.
    #[error("`{place}` is not valid YAML: {message}")]
    Malformed { place: String, message: String },
    /// Keys or values that the server does not accept.
    #[error("the configuration is not valid:{}", list(.0))]
    Invalid(Vec<Problem>),
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("\n  - {problem}")).collect()
}
