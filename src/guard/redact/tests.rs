//! What is masked, what stays readable, and how long it takes.

use super::*;

/// Built from parts, so that this file holds nothing key-shaped.
fn token() -> String {
    ["ghp", "_", "0123456789abcdefghij"].concat()
}

#[test]
fn masking_twice_changes_nothing() {
    let text = format!(
        "MY_TOKEN=opaque-value-0123456789\nAuthorization: Bearer {}\npassword: hunter2pass\nmysql://a:b@c/d\n",
        token()
    );
    for mode in [Mode::Text, Mode::Egress, Mode::Code, Mode::File] {
        let once = redact(&text, mode);
        assert_eq!(redact(&once, mode), once, "{mode:?}");
        assert!(!once.contains("0123456789abc"), "{mode:?}: {once}");
    }
}

#[test]
fn a_private_key_goes_even_when_it_is_cut_off() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
    let begin = ["-----BEGIN ", "PRIVATE KEY-----"].concat();
    let cut = format!("{begin}\n{body}\n{body}");
    assert_eq!(redact(&cut, Mode::Code), format!("{begin}***"));
    let whole = format!("{begin}\n{body}\n{body}\nab==\n-----END PRIVATE KEY-----\nrest");
    assert_eq!(redact(&whole, Mode::File), "[REDACTED PRIVATE KEY]\nrest");
    let code = format!("if text.startswith(\"{begin}\"): keep(text)");
    assert_eq!(redact(&code, Mode::Code), code);
}

#[test]
fn code_and_placeholders_stay_readable() {
    for code in [
        "headers = {'x-api-key': config.api_key}",
        "-H \"Authorization: Bearer ${API_TOKEN}\"",
        "npm_config_registry=https://registry.example",
        "class=\"sk-folding-cube\"",
        "+1234567890 lines",
        "token: string;",
    ] {
        assert_eq!(redact(code, Mode::Code), code);
    }
    assert_eq!(
        redact("MAX_TOKENS=4096 AUTHOR=Jane", Mode::Text),
        "MAX_TOKENS=4096 AUTHOR=Jane"
    );
}

#[test]
fn forms_headers_and_phone_numbers_are_masked_in_text() {
    assert_eq!(redact("a=1&password=hunter2&b=2", Mode::Text), "a=1&password=***&b=2");
    assert_eq!(
        redact("{\"api_key\": \"abc123\"}", Mode::Text),
        "{\"api_key\": \"***\"}"
    );
    assert_eq!(redact("X-Api-Key: abc123def", Mode::Code), "X-Api-Key: ***");
    assert_eq!(redact("call +4915112345678 now", Mode::Text), "call +491****5678 now");
}

#[test]
fn hostile_text_takes_linear_time() {
    let started = std::time::Instant::now();
    for unit in [
        "sk-",
        "A_TOKEN",
        "eyJ",
        "-----BEGIN PRIVATE KEY-----",
        "https://",
        "a=1&",
        "bot1234567890",
        "x&token=a",
        "a.token=b&",
    ] {
        redact(&unit.repeat(50_000 / unit.len()), Mode::Egress);
    }
    // Seconds even in a debug build would mean a quadratic pass.
    assert!(started.elapsed().as_secs() < 10);
}

#[test]
fn a_command_that_shows_an_environment_file_is_masked_like_one_that_lists_variables() {
    for command in [
        "cat .env",
        "cd app && grep URL ./.env.local",
        "printenv",
        "sudo /usr/bin/env",
    ] {
        assert_eq!(
            redact_output("DB_PASSWORD=hunter2", command),
            "DB_PASSWORD=***",
            "{command}"
        );
    }
    for command in ["make test", "cat .env.example", "./environment.sh"] {
        assert_eq!(
            redact_output("DB_PASSWORD=hunter2", command),
            "DB_PASSWORD=hunter2",
            "{command}"
        );
    }
}

#[test]
fn a_value_that_only_begins_like_a_reference_is_masked() {
    assert_eq!(redact("DB_PASSWORD=$2y$10$abcdefg", Mode::Text), "DB_PASSWORD=***");
    assert_eq!(redact("password: {SSHA}abcdef", Mode::Text), "password: ***");
    for kept in [
        "TOKEN=$TOKEN",
        "TOKEN=${TOKEN}",
        "password: <yours>",
        "KEY_TOKEN=os.getenv('X')",
    ] {
        assert_eq!(redact(kept, Mode::Text), kept);
    }
}

#[test]
fn a_secret_that_two_rules_know_shows_no_end() {
    let token = token();
    assert_eq!(redact(&format!("run A_TOKEN={token}"), Mode::Text), "run A_TOKEN=***");
    assert_eq!(
        redact(&format!("Authorization: Bearer {token}"), Mode::Code),
        "Authorization: Bearer ***"
    );
    let long = "opaque-credential-1234567890";
    assert_eq!(redact(&format!("X-Api-Key: {long}"), Mode::Text), "X-Api-Key: ***");
    assert_eq!(
        redact(&format!("curl X-Api-Key: {long}"), Mode::Text),
        "curl X-Api-Key: opaque...7890"
    );
}

#[test]
fn settings_of_every_spelling_are_masked_and_sentences_are_not() {
    for (text, masked) in [
        ("spring.datasource.password=hunter2", "spring.datasource.password=***"),
        ("x app.token=hunter2", "x app.token=***"),
        ("export api_key=hunter2", "export api_key=***"),
        ("my_token_file: hunter2 # why", "my_token_file: *** # why"),
        ("A_SECRET = hunter2", "A_SECRET=***"),
        ("https://a.example/?a.token=b", "https://a.example/?a.token=b"),
        ("say password=hunter2", "say password=hunter2"),
        ("token_url: https://a.example/t", "token_url: https://a.example/t"),
    ] {
        assert_eq!(redact(text, Mode::Text), masked);
    }
}

#[test]
fn what_a_url_carries_is_masked_where_it_leaves() {
    for (text, masked) in [
        ("/back?api%255Fkey=v&a=b", "/back?api%255Fkey=***&a=b"),
        (
            "https://a.example/#code=1;state=2",
            "https://a.example/#code=***;state=2",
        ),
        ("//some-user-name@a.example", "//***@a.example"),
        ("ws://a:b@a.example", "ws://a:***@a.example"),
    ] {
        assert_eq!(redact(text, Mode::Egress), masked);
    }
    assert_eq!(
        redact("git clone ssh://deploy-token-x@a.example/r", Mode::Code),
        "git clone ssh://***@a.example/r"
    );
    assert_eq!(redact("redis://a:b\"c@d", Mode::Code), "redis://a:***@d");
}

#[test]
fn numbers_of_people_are_masked_and_those_of_code_are_not() {
    for (text, masked) in [
        ("tel: +14155551234", "tel: +141****1234"),
        ("tel: +1234567", "tel: +1****67"),
        ("\n+14155551234", "\n+14155551234"),
        ("x+14155551234", "x+14155551234"),
        (" +1234567890123456", " +1234567890123456"),
        (" +14155551234a", " +14155551234a"),
    ] {
        assert_eq!(redact(text, Mode::Code), masked);
    }
}
