//! The configuration as an operator meets it: layers, refusals, what is shown.
//! Files are real, the environment is a list of pairs.

mod money;

use std::time::Duration;

use super::*;
use crate::model::budget::{BudgetScope, BudgetUnit};
use crate::model::usage::Price;

/// Loads `yaml` as the named file, under the given variables and flags.
fn load_all(yaml: &str, environment: &[(&str, &str)], flags: Flags) -> Result<Config, ConfigError> {
    let directory = Directory::with(yaml);
    Config::load(&Sources {
        flags,
        environment: environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        directory: Some(directory.0.clone()),
    })
}

fn load(yaml: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    load_all(yaml, environment, Flags::default())
}

/// The text of a refusal.
fn refusal(yaml: &str, environment: &[(&str, &str)]) -> String {
    load(yaml, environment).unwrap_err().to_string()
}

/// A directory that holds a `hermes.yaml` and goes with the test.
struct Directory(std::path::PathBuf);

impl Directory {
    fn with(yaml: &str) -> Self {
        let name = format!("hermes-config-{:x}", getrandom::u64().unwrap());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("hermes.yaml"), yaml).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn defaults() -> Config {
    Config::load(&Sources::default()).unwrap()
}

#[test]
fn nothing_at_all_gives_the_defaults() {
    let config = defaults();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8642");
    assert_eq!(config.agent.max_turns, 90);
    assert_eq!(config.approvals.timeout, None);
    assert_eq!(config.platform_toolsets.api_server, ["hermes-api-server"]);
    assert_eq!(config.store.url_in("/d".as_ref()).expose(), "sqlite:/d/hermes.db");
    config.check().unwrap();
}

#[test]
fn the_file_then_the_environment_then_flags() {
    let yaml = "server: {listen: '127.0.0.1:1', data_dir: /file, heartbeat_seconds: 5}\nstore: {url: 'sqlite:a'}";
    let environment = [
        ("HERMES__SERVER__LISTEN", "127.0.0.1:2"),
        ("HERMES__SERVER__DATA_DIR", "/variable"),
        ("DATABASE_URL", "postgres://variable"),
    ];
    let flags = Flags {
        listen: Some("127.0.0.1:3".to_owned()),
        ..Flags::default()
    };
    let config = load_all(yaml, &environment, flags).unwrap();
    assert_eq!(config.server.listen.port(), 3);
    assert_eq!(config.server.data_dir.to_str(), Some("/variable"));
    assert_eq!(config.server.heartbeat, Duration::from_secs(5));
    assert_eq!(config.store.url.unwrap().expose(), "postgres://variable");
}

#[test]
fn every_named_variable_reaches_its_key() {
    let environment = [
        ("DATABASE_URL", "sqlite:x"),
        ("OPENAI_BASE_URL", "http://localhost:9/v1/"),
        ("OPENAI_API_KEY", "123456"),
        ("HERMES_MODEL", "small"),
        ("HERMES_WRITE_SAFE_ROOT", "/srv/a:/srv/b"),
        ("HERMES_API_KEY", "0123456789abcdef"),
        ("API_SERVER_KEY", "fedcba9876543210"),
    ];
    let config = load("", &environment).unwrap();
    assert_eq!(config.store.url.unwrap().expose(), "sqlite:x");
    assert_eq!(config.openai.base_url.as_deref(), Some("http://localhost:9/v1"));
    assert_eq!(config.openai.api_key.unwrap().expose(), "123456");
    assert_eq!(config.model.as_deref(), Some("small"));
    assert_eq!(
        config.terminal.write_safe_root,
        ["/srv/a", "/srv/b"].map(std::path::PathBuf::from)
    );
    assert_eq!(config.auth.api_key.unwrap().expose(), "0123456789abcdef");
    let original = load("", &environment[6..]).unwrap();
    assert_eq!(original.auth.api_key.unwrap().expose(), "fedcba9876543210");
}

#[test]
fn any_key_can_be_set_by_a_variable_and_an_empty_one_is_not_set() {
    let environment = [
        ("HERMES__AUTH__JWT__CREATE_TENANTS", "true"),
        ("HERMES__TERMINAL__READABLE_PATHS", "[/srv, /opt]"),
        ("HERMES__COMMAND_ALLOWLIST", "git status, ls"),
        ("HERMES__APPROVALS__MODE", "off"),
        ("HERMES__MODEL", "42"),
        ("OPENAI_API_KEY", ""),
        ("HERMES__AGENT__MAX_TURNS", ""),
    ];
    let config = load("agent: {max_turns: 7}\nmodel: {default: a}\n", &environment).unwrap();
    assert!(config.auth.jwt.create_tenants);
    assert_eq!(
        config.terminal.readable_paths,
        ["/srv", "/opt"].map(std::path::PathBuf::from)
    );
    assert_eq!(config.command_allowlist, ["git status", "ls"]);
    assert_eq!(config.approvals.mode, Mode::Off);
    assert_eq!(config.model.as_deref(), Some("42"));
    assert!(config.openai.api_key.is_none());
    assert_eq!(config.agent.max_turns, 7);
}

#[test]
fn a_wrong_value_names_the_key_the_value_the_place_and_what_is_allowed() {
    let yaml = "server:\n  heartbeat_seconds: 31\n  listen: here\nterminal: {isolation: docker}\n";
    let text = refusal(yaml, &[("HERMES__LEASE__SECONDS", "soon")]);
    for part in [
        "`server.heartbeat_seconds`: `31` is not allowed; allowed: a whole number from 2 to 30",
        "hermes.yaml:2:22)",
        "`server.listen`: `here` is not allowed; allowed: an address and a port",
        "hermes.yaml:3:11)",
        "`terminal.isolation`: `docker` is not allowed; allowed: auto, bubblewrap, landlock, none",
        "`lease.seconds`: `soon` is not allowed; allowed: a whole number from 10 to 600 \
         (environment variable HERMES__LEASE__SECONDS)",
    ] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

#[test]
fn every_kind_of_key_refuses_what_it_does_not_take() {
    for yaml in [
        "server: 5",
        "server: [a]",
        "server: {data_dir: ''}",
        "server: {data_dir: 5}",
        "server: {data_dir_shared: maybe}",
        "server: {max_body_bytes: 1.5}",
        "server: {max_body_bytes: '10'}",
        "limits: {server: {executing_turns: 0}}",
        "limits: {tenant: {executing_turns: -1}}",
        "limits: {key: {requests: 1.5}}",
        "limits: {key: {window_seconds: 0}}",
        "limits: 5",
        "server: {allowed_hosts: '*'}",
        "server: {allowed_hosts: ['*']}",
        "server: {allowed_hosts: ['http://a']}",
        "server: {allowed_origins: ['https://a/']}",
        "server: {allowed_origins: ['*']}",
        "store: {url: 'mysql://a'}",
        "store: {url: 'sqlite:'}",
        "openai: {base_url: 'ftp://a'}",
        "openai: {base_url: 'https://user:pass@a/v1'}",
        "auth: {api_key: short}",
        "auth: {api_key: 'sixteen chars but spaces'}",
        "auth: {jwt: {hs256_secret: 'less than thirty-two bytes'}}",
        "terminal: {readable_paths: [relative]}",
        "terminal: {write_safe_root: '/srv:relative'}",
        "file_read_max_chars: 999",
        "tool_output: {max_lines: 2001}",
        "tool_output: {max_line_length: 79}",
        "terminal: {backend: docker}",
        "approvals: {mode: loud}",
        "approvals: {timeout: -1}",
        "log: {level: all}",
        "command_allowlist: {a: b}",
        "- a list",
    ] {
        assert!(load(yaml, &[]).is_err(), "{yaml}");
    }
}

#[test]
fn an_unknown_key_is_refused_with_the_name_that_was_meant() {
    let text = refusal(
        "server:\n  lissten: a\napprovels: {mode: off}\nlease: {wholly_other: 1}\n",
        &[],
    );
    assert!(
        text.contains("`server.lissten`: unknown key; did you mean `server.listen`?"),
        "{text}"
    );
    assert!(text.contains("hermes.yaml:2:12)"), "{text}");
    assert!(
        text.contains("`approvels`: unknown key; did you mean `approvals`?"),
        "{text}"
    );
    assert!(
        text.contains("`lease.wholly_other`: unknown key; known here: seconds"),
        "{text}"
    );
    let text = refusal("", &[("HERMES__SERVER__LISTN", "a"), ("HERMES__SERVER____X", "a")]);
    assert!(
        text.contains("did you mean `server.listen`? (environment variable HERMES__SERVER__LISTN)"),
        "{text}"
    );
    assert!(text.contains("`HERMES__SERVER____X`: not the name of a key"), "{text}");
}

#[test]
fn a_configuration_of_the_original_loads_and_names_what_it_does_not_use() {
    let yaml = "
_config_version: 12
model: {default: some/model, provider: auto, base_url: 'https://openrouter.ai/api/v1'}
toolsets: [hermes-cli]
agent: {max_turns: 60, reasoning_effort: medium, personalities: {a: b}}
terminal: {backend: local, cwd: ., timeout: 120, container_cpu: 1}
approvals: {mode: manual, timeout: 60, cron_mode: deny}
command_allowlist: ['recursive delete']
security: {tirith_enabled: true}
platform_toolsets: {cli: [hermes-cli], api_server: [web, file]}
file_read_max_chars: 50000
tool_output: {max_bytes: 50000, max_lines: 1000}
mcp_servers: {}
";
    let config = load(yaml, &[]).unwrap();
    assert_eq!(config.model.as_deref(), Some("some/model"));
    assert_eq!(config.agent.max_turns, 60);
    assert_eq!(config.terminal.timeout, Duration::from_secs(120));
    assert_eq!(config.approvals.timeout, Some(Duration::from_secs(60)));
    assert_eq!(config.command_allowlist, ["recursive delete"]);
    assert_eq!(config.platform_toolsets.api_server, ["web", "file"]);
    assert_eq!((config.files.page_chars, config.files.max_lines), (50_000, 1_000));
    let mut ignored = config.ignored;
    ignored.sort();
    assert_eq!(
        ignored,
        [
            "_config_version",
            "agent.personalities",
            "agent.reasoning_effort",
            "mcp_servers",
            "model.base_url",
            "model.provider",
            "platform_toolsets.cli",
            "terminal.container_cpu",
            "terminal.cwd",
            "tool_output.max_bytes",
            "toolsets",
        ]
    );
}

#[test]
fn the_mode_of_approvals_reads_words_and_yaml_booleans() {
    for (word, mode) in [
        ("manual", Mode::Manual),
        ("off", Mode::Off),
        ("false", Mode::Off),
        ("true", Mode::Manual),
        ("smart", Mode::Smart),
        ("OFF", Mode::Off),
        ("' Manual '", Mode::Manual),
    ] {
        assert_eq!(
            load(&format!("approvals: {{mode: {word}}}"), &[])
                .unwrap()
                .approvals
                .mode,
            mode,
            "{word}"
        );
    }
    let text = refusal("approvals: {mode: auto}", &[]);
    assert!(
        text.contains("`auto` is not allowed; allowed: manual, smart, off"),
        "{text}"
    );
}

#[test]
fn the_scanner_is_fetched_only_where_that_is_configured() {
    let plain = load("", &[]).unwrap().security;
    assert!(!plain.tirith_auto_install && !plain.tirith_cosign && plain.tirith_pin.is_none());
    assert_eq!(plain.tirith_url.unwrap().scheme(), "https");
    let pin = "0A:".repeat(31) + "0a";
    let text = format!("security: {{tirith_auto_install: true, tirith_url: 'https://m.test/t', tirith_pin: '{pin}'}}");
    let set = load(&text, &[]).unwrap().security;
    assert!(set.tirith_auto_install);
    assert_eq!(
        (set.tirith_pin, set.tirith_url.unwrap().as_str()),
        (Some([10; 32]), "https://m.test/t")
    );
    for (key, value) in [
        ("tirith_url", "http://m.test/t"),
        ("tirith_url", "https://a:b@m.test/t"),
        ("tirith_pin", "0a0a"),
        ("tirith_pin", &"zz".repeat(32)),
    ] {
        let refused = refusal(&format!("security: {{{key}: '{value}'}}"), &[]);
        assert!(refused.contains(&format!("`security.{key}`")), "{refused}");
    }
}

#[test]
fn the_scanners_own_variables_count() {
    let environment = [
        ("TIRITH_ENABLED", "1"),
        ("TIRITH_BIN", "/opt/tirith"),
        ("TIRITH_TIMEOUT", "7"),
        ("TIRITH_FAIL_OPEN", "no"),
    ];
    let security = load("security: {tirith_enabled: false}", &environment)
        .unwrap()
        .security;
    assert!(security.tirith_enabled && !security.tirith_fail_open);
    assert_eq!(
        (security.tirith_path.as_str(), security.tirith_timeout),
        ("/opt/tirith", Duration::from_secs(7))
    );
    assert!(refusal("", &[("TIRITH_TIMEOUT", "soon")]).contains("`security.tirith_timeout`"));
}

#[test]
fn no_secret_is_ever_shown() {
    let yaml = "
auth: {api_key: aaaa-secret-aaaa-1, jwt: {hs256_secret: secret-bbbbbbbbbbbbbbbbbbbbbbbbbbbb}}
openai: {api_key: secret-c}
store: {url: 'postgres://u:secret-d@h/db'}
";
    let config = load(yaml, &[]).unwrap();
    assert!(!format!("{config:?}").contains("secret-"), "{config:?}");
    let lines: Vec<String> = config.effective().iter().map(Setting::to_string).collect();
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("openai.api_key: \"[redacted]\"  # ")),
        "{lines:?}"
    );
    let secrets: Vec<&str> = config
        .effective()
        .iter()
        .filter(|s| s.value == section::REDACTED)
        .map(|s| s.key.as_str())
        .collect();
    assert_eq!(
        secrets,
        ["store.url", "auth.api_key", "auth.jwt.hs256_secret", "openai.api_key"]
    );
    for wrong in [
        "auth: {api_key: secret}",
        "auth: {jwt: {hs256_secret: secret}}",
        "store: {url: 'my://secret'}",
        "openai: {base_url: 'http://secret@h'}",
        "store: 'postgres://u:secret@h/db'",
        "auth: {api_key: \"secret\n",
    ] {
        let text = refusal(wrong, &[]);
        assert!(
            !text.contains("secret@") && !text.contains("`secret`") && !text.contains("my://"),
            "{text}"
        );
    }
}

#[test]
fn a_named_file_must_exist_and_the_usual_one_need_not() {
    let missing = Flags {
        config: Some("/nowhere/h.yaml".into()),
        ..Flags::default()
    };
    let text = load_all("", &[], missing).unwrap_err().to_string();
    assert!(text.contains("/nowhere/h.yaml"), "{text}");
    assert!(load("", &[("HERMES_CONFIG", "/nowhere/h.yaml")]).is_err());
    let empty = Sources {
        directory: Some("/nowhere".into()),
        ..Sources::default()
    };
    Config::load(&empty).unwrap();
}

#[test]
fn a_door_to_other_machines_needs_a_key() {
    let open = |yaml: &str| load(yaml, &[]).unwrap().check().map_err(|error| error.to_string());
    for listen in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[::ffff:192.0.2.1]:1"] {
        let text = open(&format!("server: {{listen: '{listen}'}}")).unwrap_err();
        assert!(
            text.contains("`server.listen`") && text.contains("HERMES_API_KEY"),
            "{text}"
        );
        assert!(text.contains("hermes.yaml:1:18)"), "{text}");
    }
    for listen in ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        open(&format!("server: {{listen: '{listen}'}}")).unwrap();
    }
    open("server: {listen: '0.0.0.0:1'}\nauth: {api_key: 0123456789abcdef}").unwrap();
    open("server: {listen: '0.0.0.0:1'}\nauth: {jwt: {jwks_file: keys.json}}").unwrap();
}

#[test]
fn a_default_time_limit_above_the_highest_is_refused() {
    let config = load("terminal: {timeout: 700}", &[]).unwrap();
    assert!(
        config
            .check()
            .unwrap_err()
            .to_string()
            .contains("`terminal.timeout`: `700`")
    );
}

/// The reference page lists every key with its default, and none that is not.
#[test]
fn the_reference_page_lists_every_key_with_its_default() {
    let page = include_str!("../../docs/configuration.md");
    let tables = page.lines().skip_while(|line| !line.starts_with("| key | default |"));
    let documented: Vec<(String, String)> = tables.filter_map(table_row).collect();
    let real: Vec<(String, String)> = defaults()
        .effective()
        .iter()
        .map(|setting| (setting.key.clone(), setting.value.to_string()))
        .collect();
    assert_eq!(documented, real);
}

/// `| `key` | `default` | … |`
fn table_row(line: &str) -> Option<(String, String)> {
    let mut cells = line.strip_prefix("| `")?.split("` | `");
    let key = cells.next()?.to_owned();
    let default = cells.next()?.split('`').next()?.to_owned();
    Some((key, default))
}
