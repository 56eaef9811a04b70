//! What the server says at its start: where it is, what it uses, and lines that
//! work when they are pasted into a shell.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::base::Secret;
use crate::config::Config;
use crate::environment::Isolation;
use crate::store::Kind;

use super::first_key;

/// What the configuration does not say.
pub(super) struct Facts<'a> {
    /// Where the server really listens.
    pub(super) address: SocketAddr,
    pub(super) store: Kind,
    pub(super) isolation: &'a Isolation,
    /// A session can run commands.
    pub(super) has_terminal: bool,
    /// Made just now.
    pub(super) first_key: Option<Secret>,
    /// The key file opens this server.
    pub(super) key_file_works: bool,
}

pub(super) fn text(config: &Config, facts: &Facts<'_>) -> String {
    let mut text = format!("hermes-server {}\n", env!("CARGO_PKG_VERSION"));
    let lines = [
        ("address", format!("http://{}", facts.address)),
        ("data", config.server.data_dir.display().to_string()),
        ("store", store(config, facts.store)),
        ("model", model(config)),
        ("commands", commands(facts.isolation)),
    ];
    for (name, value) in lines {
        text.push_str(&format!("  {name:<10}{value}\n"));
    }
    if let Some(key) = &facts.first_key {
        let path = first_key::path(&config.server.data_dir);
        text.push_str(&format!(
            "\nThe key of this server, stored in {} and not shown again:\n\n  {}\n",
            path.display(),
            key.expose()
        ));
    }
    text + &examples(config, facts)
}

fn store(config: &Config, kind: Kind) -> String {
    let url = config.store.url_in(&config.server.data_dir);
    match kind {
        Kind::Sqlite => format!("SQLite, {}", url.expose().trim_start_matches("sqlite:")),
        Kind::Postgres => format!("PostgreSQL{}", place(url.expose())),
    }
}

/// Host and name of a database: what stands before or behind them may be a
/// password.
fn place(url: &str) -> String {
    let Ok(url) = url::Url::parse(url) else {
        return String::new();
    };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!(", {}{port}{}", url.host_str().unwrap_or_default(), url.path())
}

fn model(config: &Config) -> String {
    match &config.openai.base_url {
        None => "demo: built in, answers offline; OPENAI_BASE_URL and HERMES_MODEL name a real one".to_owned(),
        Some(url) => format!(
            "{} at {url}",
            config.model.as_deref().unwrap_or("as each session names it")
        ),
    }
}

fn commands(isolation: &Isolation) -> String {
    match isolation {
        Isolation::Working { mechanism, detail } => {
            let name = format!("{mechanism:?}").to_lowercase();
            match name.as_str() {
                "none" => "NOT isolated (`terminal.isolation: none`)".to_owned(),
                _ => format!("isolated by {name}: {detail}"),
            }
        }
        Isolation::Unavailable { reason } => format!("the terminal tool is unavailable: {reason}"),
    }
}

fn examples(config: &Config, facts: &Facts<'_>) -> String {
    let curl = Curl {
        base: format!("http://{}", reachable(facts.address)),
        bearer: bearer(config, facts.key_file_works),
    };
    let mut text = format!(
        "\nCreate a session and watch a turn:\n\n{}\n",
        curl.turn("Hello, who are you?")
    );
    if config.openai.base_url.is_none() && facts.has_terminal {
        let asks = r#"/tool terminal {\"command\":\"rm -rf build\"}"#;
        text.push_str(&format!(
            "\nMake the demo model ask for an approval; the stream waits:\n\n{}\n\
             \nDecide it in another terminal, in this directory (`once`, `session`, `always` or `deny`):\n\n{}\n",
            curl.turn(asks),
            curl.decision()
        ));
    }
    text + "\n"
}

/// Lines for a shell; each works alone.
struct Curl {
    base: String,
    /// What stands behind `Bearer`, within double quotes.
    bearer: String,
}

impl Curl {
    /// `input` is text within a JSON string within single quotes.
    fn turn(&self, input: &str) -> String {
        let Self { base, bearer } = self;
        let headers = format!("-H \"Authorization: Bearer {bearer}\" -H 'Content-Type: application/json'");
        format!(
            "SES=$(curl -sS {base}/v1/sessions {headers} -d '{{\"preset\":\"hermes-api-server\"}}' \
             | grep -o 'ses_[0-9a-z]*' | head -n 1) && curl -sSN {base}/v1/sessions/$SES/turns {headers} \
             -H 'Accept: text/event-stream' -d '{{\"input\":\"{input}\"}}'"
        )
    }

    fn decision(&self) -> String {
        let Self { base, bearer } = self;
        let headers = format!("-H \"Authorization: Bearer {bearer}\"");
        format!(
            "APR=$(curl -sS '{base}/v1/approvals?status=pending' {headers} | grep -o 'apr_[0-9a-z]*' | head -n 1) \
             && curl -sS {base}/v1/approvals/$APR/decision {headers} -H 'Content-Type: application/json' \
             -d '{{\"choice\":\"once\"}}'"
        )
    }
}

/// Where this machine itself reaches the server.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn bearer(config: &Config, key_file_works: bool) -> String {
    if config.auth.api_key.is_none() && key_file_works {
        return format!("$(cat {})", quoted(&first_key::path(&config.server.data_dir)));
    }
    if config.auth.api_key.is_none() && config.auth.jwt.is_configured() {
        return "$TOKEN".to_owned();
    }
    "$HERMES_API_KEY".to_owned()
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    if text.bytes().all(is_plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;
    use crate::environment::Mechanism;

    const ADDRESS: &str = "127.0.0.1:4000";

    fn config(variables: &[(&str, &str)]) -> Config {
        let environment = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::load(&Sources {
            environment: environment.collect(),
            ..Sources::default()
        })
        .unwrap()
    }

    fn greeting(variables: &[(&str, &str)], isolation: &Isolation, kind: Kind) -> String {
        let facts = Facts {
            address: ADDRESS.parse().unwrap(),
            store: kind,
            isolation,
            has_terminal: matches!(isolation, Isolation::Working { .. }),
            first_key: None,
            key_file_works: true,
        };
        text(&config(variables), &facts)
    }

    fn landlock() -> Isolation {
        Isolation::Working {
            mechanism: Mechanism::Landlock,
            detail: "v5".to_owned(),
        }
    }

    #[test]
    fn the_password_of_the_database_and_the_configured_key_are_not_shown() {
        let url = "postgres://ada:s3cret@db.internal:5433/hermes?password=s3cret";
        let said = greeting(
            &[("DATABASE_URL", url), ("HERMES_API_KEY", "0123456789abcdef")],
            &landlock(),
            Kind::Postgres,
        );
        assert!(said.contains("PostgreSQL, db.internal:5433/hermes\n"), "{said}");
        assert!(said.contains("Bearer $HERMES_API_KEY"), "{said}");
        for hidden in ["s3cret", "ada", "0123456789abcdef"] {
            assert!(!said.contains(hidden), "{said}");
        }
    }

    #[test]
    fn lines_use_the_directory_as_given_and_an_address_that_can_be_reached() {
        let said = greeting(&[("HERMES__SERVER__DATA_DIR", "my data")], &landlock(), Kind::Sqlite);
        assert!(said.contains("Bearer $(cat 'my data/api-key')\""), "{said}");
        assert_eq!(
            said.matches("http://127.0.0.1:4000/v1/sessions -H").count(),
            2,
            "{said}"
        );
        assert_eq!(reachable("0.0.0.0:1".parse().unwrap()).to_string(), "127.0.0.1:1");
        assert_eq!(reachable("[::]:1".parse().unwrap()).to_string(), "[::1]:1");
    }

    #[test]
    fn without_isolation_or_the_demo_model_nothing_is_promised_about_approvals() {
        let none = Isolation::Unavailable {
            reason: "this kernel is too old".to_owned(),
        };
        let said = greeting(&[], &none, Kind::Sqlite);
        assert!(
            said.contains("the terminal tool is unavailable: this kernel is too old"),
            "{said}"
        );
        assert!(!said.contains("approval"), "{said}");
        let real = [("OPENAI_BASE_URL", "http://localhost:1/v1"), ("HERMES_MODEL", "qwen3")];
        let said = greeting(&real, &landlock(), Kind::Sqlite);
        assert!(
            said.contains("qwen3 at http://localhost:1/v1") && !said.contains("approval"),
            "{said}"
        );
    }
}
