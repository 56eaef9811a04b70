//! Secrets told by what stands around them: a header, a name, a URL.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::{Mode, compiled, hidden, mask};

/// Masks what any rule that holds in this mode finds.
pub(super) fn apply(mut text: String, mode: Mode) -> String {
    for rule in RULES.iter().filter(|rule| (rule.holds)(mode)) {
        text = rule.apply(text, mode);
    }
    // Bare `key=value` pairs are telling only where the whole text is a form.
    if mode.masks_assignments() && FORM.is_match(&text) {
        FORM_FIELD.apply(text, mode)
    } else {
        text
    }
}

/// A kind of secret told by what stands around it.
struct Rule {
    /// What a file's marker calls the secret.
    label: &'static str,
    pattern: Regex,
    holds: fn(Mode) -> bool,
    /// Nothing of the secret is shown, however long it is.
    whole: bool,
}

impl Rule {
    fn apply(&self, text: String, mode: Mode) -> String {
        match self
            .pattern
            .replace_all(&text, |found: &Captures<'_>| self.replace(found, mode))
        {
            Cow::Owned(masked) => masked,
            Cow::Borrowed(_) => text,
        }
    }

    fn replace(&self, found: &Captures<'_>, mode: Mode) -> String {
        let all = found.get(0).map_or("", |all| all.as_str());
        let secret = ["s", "t", "u"].iter().find_map(|group| found.name(group));
        let (Some(whole), Some(secret)) = (found.get(0), secret) else {
            return all.to_owned();
        };
        let is_code = !mode.masks_assignments() && names_a_value(secret.as_str());
        if is_code || is_placeholder(secret.as_str()) {
            return all.to_owned();
        }
        let masked = match mode {
            Mode::File => hidden(secret.as_str(), self.label, mode),
            _ if self.whole => "***".to_owned(),
            _ => mask(secret.as_str()),
        };
        let before = all.get(..secret.start() - whole.start()).unwrap_or_default();
        let after = all.get(secret.end() - whole.start()..).unwrap_or_default();
        format!("{before}{masked}{after}")
    }
}

/// A reference to a secret, a value that cannot be one, or an earlier mask.
fn is_placeholder(value: &str) -> bool {
    let is_mask = value.starts_with('«') || (value.chars().count() == 13 && value.get(6..9) == Some("..."));
    let is_reference = value.starts_with(['$', '{', '<', '*']) || value.starts_with("%(");
    is_mask
        || is_reference
        || ["null", "none", "true", "false", "~"]
            .iter()
            .any(|word| value.eq_ignore_ascii_case(word))
}

/// Code that fetches a value, such as `config.api_key` or `os.getenv(…)`.
fn names_a_value(value: &str) -> bool {
    let is_name = |character: char| character.is_ascii_alphabetic() || "_.".contains(character);
    let rest = value.trim_start_matches(is_name);
    let name = value.strip_suffix(rest).unwrap_or_default();
    name.contains('.') && (rest.is_empty() || rest.starts_with(['(', '[', ')', ']', '}']))
}

const NAMES: &str = "api_?key|token|secret|password|passwd|access_token|refresh_token|auth_token|id_token|bearer|client_secret|secret_key|private_key";
const QUERY: &str = "access_token|refresh_token|id_token|auth_token|token|api_?key|client_secret|password|passwd|secret|signature|sig|jwt|session_id|authorization|x-amz-signature|x-amz-credential|x-amz-security-token|code|key";
const DATABASES: &str = "postgres(?:ql)?|mysql|mariadb|mongodb(?:\\+srv)?|rediss?|amqps?|mssql|sqlserver|clickhouse";

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let always: fn(Mode) -> bool = |_| true;
    let rule = |label, holds, pattern: &str| Rule {
        label,
        pattern: compiled(pattern),
        holds,
        whole: false,
    };
    let whole = |label, holds, pattern: &str| Rule {
        label,
        pattern: compiled(pattern),
        holds,
        whole: true,
    };
    vec![
        whole(
            "private key",
            always,
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?<s>[\sA-Za-z0-9+/=:,.\\-]{40,}?)-----END|(?<t>(?:(?:\s|\\[rn])*[A-Za-z0-9+/=]{16,})+))",
        ),
        rule(
            "assignment",
            Mode::masks_assignments,
            r#"(?m)(?:^|[^A-Za-z0-9_])[A-Z0-9_]*(?:API_?KEYS?|(?:ACCESS|PRIVATE|SIGNING|ENCRYPTION)_KEY|TOKEN|SECRETS?|PASSWORDS?|PASSWD|CREDENTIALS?|AUTH)[0-9]*(?:_[A-Z0-9_]*)?[ \t]*=[ \t]*(?:"(?<s>[^"\n]+)"|'(?<t>[^'\n]+)'|(?<u>[^\s"'=]\S*))"#,
        ),
        rule(
            "field",
            Mode::masks_assignments,
            &format!(r#"(?i)"(?:{NAMES})"\s*:\s*"(?<s>[^"]+)""#),
        ),
        rule(
            "field",
            Mode::masks_assignments,
            &format!(r#"(?im)^[ \t]*(?:-[ \t]+)?(?:{NAMES})[ \t]*:[ \t]+["']?(?<s>[^\s"']+)["']?[ \t]*(?:#.*)?$"#),
        ),
        rule(
            "authorization",
            always,
            r#"(?i)\bauthorization["']?\s*:\s*["']?(?:bearer|basic|token|digest|apikey|negotiate)[ \t]+(?<s>[^\s"',;]+)"#,
        ),
        rule(
            "api key",
            always,
            r#"(?im)(?:^|[^/])\b(?:x-api-key|api-key|x-auth-token|x-access-token|x-goog-api-key)["']?\s*:\s*["']?(?<s>[^\s"',;]+)"#,
        ),
        whole("bot token", always, r"\b(?:bot)?\d{8,}:(?<s>[-A-Za-z0-9_]{30,})"),
        whole(
            "password",
            always,
            &format!(r#"(?i)\b(?:{DATABASES})://[^\s:/@"']*:(?<s>[^\s@"'`]+)@"#),
        ),
        rule("token", always, r"(?i)\bhttps?://(?<s>[A-Za-z0-9_-]{16,})@"),
        rule(
            "jwt",
            always,
            r"\b(?<s>eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_=-]{4,}){1,2})",
        ),
        whole(
            "password",
            |mode| mode == Mode::Egress,
            r#"(?i)\b[a-z][a-z0-9+.-]*://[^\s:/@"']*:(?<s>[^\s@/"'`]+)@"#,
        ),
        rule(
            "parameter",
            |mode| mode == Mode::Egress,
            &format!(r#"(?i)[?&](?:{QUERY})=(?<s>[^&\s#"']+)"#),
        ),
        rule(
            "phone number",
            Mode::masks_assignments,
            r"(?:^|[^A-Za-z0-9+])(?<s>\+[1-9]\d{6,14})\b",
        ),
    ]
});

static FORM: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"\A[A-Za-z_][\w.-]*=[^&\s=]*(?:&[A-Za-z_][\w.-]*=[^&\s=]*)+\s*\z"));
static FORM_FIELD: LazyLock<Rule> = LazyLock::new(|| Rule {
    label: "parameter",
    pattern: compiled(&format!(r"(?i)(?:\A|&)(?:{QUERY})=(?<s>[^&\s]+)")),
    holds: |_| true,
    whole: false,
});
