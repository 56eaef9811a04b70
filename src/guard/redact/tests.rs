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
    assert_eq!(
        redact(&whole, Mode::File),
        format!("{begin}«redacted:private key…»-----END PRIVATE KEY-----\nrest")
    );
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
    assert_eq!(redact("call +4915112345678 now", Mode::Text), "call *** now");
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
    ] {
        redact(&unit.repeat(100_000 / unit.len()), Mode::Egress);
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
