//! The rules: what stands around a secret of each kind.
//!
//! Every pattern is linear in the text. A rule finds generously, and what it
//! should not have found is spared by a condition beside the pattern.

use std::sync::LazyLock;

use regex::Regex;

use super::rule::{Found, Rule, Shown};
use super::spared::{self, is_reference};
use super::{Mode, compiled};

/// Words in a name that say its value is a secret.
const WORDS: &str = "api[ _.-]?key|token|secret|password|passwd|credential";
const FIELDS: &str = "api_?key|token|secret|password|passwd|access_token|refresh_token|auth_token|id_token|bearer|\
                      client_secret|secret_key|private_key|secret_value|raw_secret|secret_input|key_material";
const DATABASES: &str = "postgres(?:ql)?|mysql|mariadb|mongodb(?:\\+srv)?|rediss?|amqps?|mssql|sqlserver|clickhouse";
const HEADERS: &str = "x-api-key|x-goog-api-key|api-key|x-api-token|x-auth-token|x-access-token";
const QUOTED: &str = r#""(?<s>[^"\n]+)"|'(?<t>[^'\n]+)'"#;

fn rule(label: &'static str, holds: fn(Mode) -> bool, spares: fn(&Found<'_>) -> bool, pattern: &str) -> Rule {
    Rule {
        label,
        pattern: compiled(pattern),
        holds,
        shown: Shown::Ends,
        joint: "",
        spares,
    }
}

fn always(_: Mode) -> bool {
    true
}

fn outwards(mode: Mode) -> bool {
    mode == Mode::Egress
}

pub(super) static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let mut rules = keys();
    rules.extend(headers());
    rules.extend(assignments());
    rules.extend(addresses());
    rules.push(Rule {
        shown: Shown::As(middle_hidden),
        ..rule(
            "phone number",
            always,
            spared::no_phone,
            r"(?<n>)(?<s>\+[1-9][0-9]{6,})",
        )
    });
    rules
});

/// Private keys, whole and cut off, and what carries its own mark.
fn keys() -> Vec<Rule> {
    vec![
        Rule {
            shown: Shown::As(|_| "[REDACTED PRIVATE KEY]".to_owned()),
            ..rule(
                "private key",
                always,
                |_| false,
                r"(?s)(?<s>-----BEGIN[A-Z ]*PRIVATE KEY-----.*?-----END[A-Z ]*PRIVATE KEY-----)",
            )
        },
        Rule {
            shown: Shown::Nothing,
            ..rule(
                "private key",
                always,
                |_| false,
                r"-----BEGIN[A-Z ]*PRIVATE KEY-----(?<s>(?:(?:\s|\\[rn])*[A-Za-z0-9+/=]{16,})+)",
            )
        },
        Rule {
            shown: Shown::Nothing,
            ..rule("bot token", always, |_| false, r"[0-9]{8,}:(?<s>[-A-Za-z0-9_]{30,})")
        },
        rule(
            "jwt",
            always,
            |_| false,
            r"(?:^|[^A-Za-z0-9+/])(?<s>eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_=-]{4,}){0,2})",
        ),
    ]
}

/// Values of names that say they are secret.
fn assignments() -> Vec<Rule> {
    let upper = "[A-Z0-9_]*(?:API_?KEY|(?:ACCESS|PRIVATE|SIGNING|ENCRYPTION)_KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH)[A-Z0-9_]*";
    let upper_value = format!(r#"(?<j>[ \t]*=[ \t]*)(?:{QUOTED}|(?<u>[^\s=]\S*))"#);
    let lower_value = format!(r"=(?:{QUOTED}|(?<u>[^\s&]+))");
    vec![
        Rule {
            shown: Shown::Nothing,
            joint: "=",
            ..rule(
                "assignment",
                Mode::masks_assignments,
                spared::assigned,
                &format!(r"(?m)^[ \t]*(?:export[ \t]+)?(?<n>{upper}){upper_value}"),
            )
        },
        Rule {
            joint: "=",
            ..rule(
                "assignment",
                Mode::masks_assignments,
                spared::assigned,
                &format!("(?<n>{upper}){upper_value}"),
            )
        },
        rule(
            "assignment",
            Mode::masks_assignments,
            spared::set,
            &format!(
                r"(?im)(?<l>^[ \t]*(?:export[ \t]+)?)?(?<n>[A-Z0-9_.-]*(?:{WORDS}|auth)[A-Z0-9_.-]*){lower_value}"
            ),
        ),
        Rule {
            joint: ": ",
            ..rule(
                "field",
                Mode::masks_assignments,
                spared::is_known,
                &format!(r#"(?i)"(?:{FIELDS})"(?<j>\s*:\s*)"(?<s>[^"]+)""#),
            )
        },
        rule(
            "field",
            Mode::masks_assignments,
            spared::listed,
            &format!(
                r#"(?im)^[ \t]*(?:-[ \t]+)?(?<n>[A-Z0-9_.-]*(?:{WORDS}|\bbearer)[A-Z0-9_.-]*):[ \t]*(?:{QUOTED}|(?<u>[^\s&"'][^\s&]*))"#
            ),
        ),
    ]
}

fn headers() -> Vec<Rule> {
    vec![
        Rule {
            shown: Shown::Nothing,
            ..rule(
                "api key",
                Mode::masks_assignments,
                spared::is_known,
                &format!(r#"(?im)^[ \t]*[A-Z0-9_.-]*(?:{HEADERS}|apikey):[ \t]*(?<s>[^\s"']+)"#),
            )
        },
        rule(
            "authorization",
            always,
            spared::authorised,
            r#"(?i)authorization:[ \t]*(?:(?<n>[a-z][\w.+-]*)[ \t]+)?(?<s>[^\s"']+)"#,
        ),
        rule(
            "authorization",
            always,
            spared::is_code,
            r#"(?i)\bauthorization["']?\s*:\s*["']?(?:bearer|basic|token|digest|apikey|negotiate)[ \t]+(?<s>[^\s"']+)"#,
        ),
        rule(
            "api key",
            always,
            spared::is_code,
            &format!(r#"(?i)(?:{HEADERS})["']?\s*:\s*["']?(?<s>[^\s"']+)"#),
        ),
        rule(
            "api key",
            always,
            spared::is_code_word,
            r#"(?i)apikey\s*:\s*["']?(?<s>[^\s"']+)"#,
        ),
    ]
}

/// What URLs carry. Away from the border only what no flow needs is masked: a
/// link that somebody has to follow keeps its parameters.
fn addresses() -> Vec<Rule> {
    vec![
        Rule {
            shown: Shown::Nothing,
            ..rule(
                "password",
                always,
                spared::connection,
                &format!(r"(?i)(?:{DATABASES})://[^:\s]*:(?<s>[^@\s]+)@"),
            )
        },
        rule(
            "token",
            always,
            |found| is_reference(found.secret),
            r"(?i)(?:https?|wss?|git|ssh|ftps?|sftp)://(?<s>[^\s:@/]{8,})@[^\s]",
        ),
        Rule {
            shown: Shown::Nothing,
            ..rule(
                "parameter",
                outwards,
                |found| !spared::is_parameter(found.name),
                r#"[?#&;](?<n>[A-Za-z0-9_.~+%-]+)=(?<s>[^#&;\s"'<>]*)"#,
            )
        },
        Rule {
            shown: Shown::Nothing,
            ..rule(
                "password",
                outwards,
                |_| false,
                r"//(?:[^/\s?#@:]*:(?<s>[^/\s?#@]*)|(?<t>[^/\s?#@:]+))@",
            )
        },
    ]
}

/// Enough of a number to know it again.
fn middle_hidden(number: &str) -> String {
    let shown = if number.len() <= 8 { 2 } else { 4 };
    let (first, last) = (number.get(..shown), number.get(number.len().saturating_sub(shown)..));
    format!("{}****{}", first.unwrap_or_default(), last.unwrap_or_default())
}

pub(super) static FORM: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"\A[ \t]*[A-Za-z_][A-Za-z0-9_.-]*=[^&\s]*(?:&[A-Za-z_][A-Za-z0-9_.-]*=[^&\s]*)+\s*\z"));
pub(super) static FORM_FIELD: LazyLock<Rule> = LazyLock::new(|| Rule {
    shown: Shown::Nothing,
    ..rule(
        "parameter",
        always,
        |found| !spared::is_parameter(found.name),
        r"(?:\A[ \t]*|&)(?<n>[A-Za-z_][A-Za-z0-9_.-]*)=(?<s>[^&\s]*)",
    )
});
