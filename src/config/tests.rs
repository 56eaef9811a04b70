use std::time::Duration;

use super::*;

fn load(yaml: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("hermes-config-{}-{count}.yaml", std::process::id()));
    std::fs::write(&path, yaml).unwrap();
    let sources = Sources {
        flags: Flags {
            config: Some(path.clone()),
            ..Flags::default()
        },
        environment: environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        directory: None,
    };
    let config = Config::load(&sources);
    std::fs::remove_file(path).unwrap();
    config
}

/// The text of a refusal.
fn refusal(yaml: &str, environment: &[(&str, &str)]) -> String {
    load(yaml, environment).unwrap_err().to_string()
}

#[test]
fn nothing_at_all_gives_the_defaults() {
    let config = Config::load(&Sources::default()).unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8642");
    assert_eq!(config.agent.max_turns, 90);
    assert_eq!(config.approvals.timeout, None);
    config.check().unwrap();
}

#[test]
fn the_file_then_the_environment_then_flags() {
    let yaml = "server: {listen: '127.0.0.1:1', data_dir: /a, heartbeat_seconds: 5}\n";
    let environment = [
        ("HERMES__SERVER__LISTEN", "127.0.0.1:2"),
        ("HERMES__SERVER__DATA_DIR", "/b"),
    ];
    let config = load(yaml, &environment).unwrap();
    assert_eq!(config.server.listen.port(), 2);
    assert_eq!(config.server.data_dir.to_str(), Some("/b"));
    assert_eq!(config.server.heartbeat, Duration::from_secs(5));
}
