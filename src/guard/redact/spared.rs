//! What looks like a secret and is none: references to one, code that fetches
//! one, names that only sound so, and earlier masks.

use std::sync::LazyLock;

use regex::Regex;
use url::form_urlencoded;

use super::compiled;
use super::rule::Found;

/// A reference to a secret, a value that cannot be one, or an earlier mask. A
/// value that only begins like a reference (`$2y$10$…`) is none.
pub(super) fn is_reference(value: &str) -> bool {
    is_mask(value)
        || REFERENCE.is_match(value)
        || ["null", "none", "true", "false", "~"]
            .iter()
            .any(|word| value.eq_ignore_ascii_case(word))
}

static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"\A(?:\$\w+|\$\{[^{}]*\}|\$\(.*|`.*|\{[^{}]*\}|\{\{[^{}]*\}\}|<[^<>]*>|\*+|%\(\w+\)s|%\w+%|%s)[,;)]*\z")
});

fn is_mask(value: &str) -> bool {
    let has_ends = value.chars().count() == 13 && value.get(6..9) == Some("...");
    value.starts_with('«') || value == "***" || has_ends
}

/// Code that names the variable that holds a secret.
fn is_lookup(value: &str) -> bool {
    ["os.getenv", "os.environ", "process.env", "$ENV{"]
        .iter()
        .any(|begin| value.starts_with(begin))
}

pub(super) fn is_known(found: &Found<'_>) -> bool {
    is_reference(found.secret) || is_lookup(found.secret)
}

/// `NAME=value`.
pub(super) fn assigned(found: &Found<'_>) -> bool {
    is_known(found) || only_sounds(found)
}

/// `name=value`: at the start of a line, or of a name in a namespace. Within a
/// sentence it is said, not set, and a link keeps its parameters.
pub(super) fn set(found: &Found<'_>) -> bool {
    /// No link that is meant to be followed is longer.
    const LONGEST_LINK: usize = 2048;
    let is_set = found.begins_line || found.name.contains('.');
    let from = found.before.len().saturating_sub(LONGEST_LINK);
    let near = found.before.get(found.before.floor_char_boundary(from)..);
    let word = near.and_then(|near| near.rsplit(char::is_whitespace).next());
    !is_set || word.is_some_and(|word| word.contains("://")) || found.secret.contains("://") || assigned(found)
}

/// `name: value`.
pub(super) fn listed(found: &Found<'_>) -> bool {
    found.secret.starts_with("//") || found.secret.contains("://") || assigned(found)
}

/// `MAX_TOKENS=4096` and `AUTHOR=Jane` hold a telling word by chance.
fn only_sounds(found: &Found<'_>) -> bool {
    static WORD: LazyLock<Regex> = LazyLock::new(|| {
        compiled("api[ _.-]?key|(?:access|private|signing|encryption)_key|token|secret|passw|credential|auth|bearer")
    });
    let mut name = found.name.to_ascii_lowercase();
    name = name.replace("authori", "autho_i").replace("author", "");
    name = name.replace("autho_i", "auth");
    if found.secret.bytes().all(|byte| byte.is_ascii_digit()) {
        name = name.replace("tokens", "");
    }
    !WORD.is_match(&name)
}

/// What a header has behind its scheme, or instead of one.
pub(super) fn authorised(found: &Found<'_>) -> bool {
    let schemes = ["bearer", "basic", "token", "digest", "apikey", "negotiate"];
    let is_scheme = schemes.iter().any(|scheme| found.name.eq_ignore_ascii_case(scheme));
    is_code(found) || (!is_scheme && is_code_word(found))
}

/// In code what fetches a value is no secret.
pub(super) fn is_code(found: &Found<'_>) -> bool {
    is_known(found) || (!found.mode.masks_assignments() && names_a_value(found.secret))
}

/// In code a bare word is a name or a type.
pub(super) fn is_code_word(found: &Found<'_>) -> bool {
    let word = found.secret.trim_end_matches([',', ';', ')', '}', '.', '|', '`']);
    let is_word = word.chars().all(|letter| letter.is_alphabetic() || letter == '_');
    is_code(found) || (!found.mode.masks_assignments() && is_word)
}

/// Such as `config.api_key` or `getenv(…)`.
fn names_a_value(value: &str) -> bool {
    let is_name = |character: char| character.is_ascii_alphabetic() || "_.".contains(character);
    let rest = value.trim_start_matches(is_name);
    let name = value.strip_suffix(rest).unwrap_or_default();
    let is_call = !name.is_empty() && rest.starts_with('(');
    is_call || (name.contains('.') && (rest.is_empty() || rest.starts_with(['[', ')', ']', '}', ',', ';'])))
}

/// A template in code; elsewhere a password may look like one.
pub(super) fn connection(found: &Found<'_>) -> bool {
    if found.mode.masks_assignments() {
        return is_mask(found.secret);
    }
    let in_braces = found.secret.starts_with('{') && found.secret.ends_with('}');
    in_braces || is_reference(found.secret)
}

/// Longer numbers and what is joined to letters; in code also sums, and added
/// lines of a comparison.
pub(super) fn no_phone(found: &Found<'_>) -> bool {
    let is_long = 16 < found.secret.len();
    let goes_on = found.behind.starts_with(|next: char| next.is_ascii_alphanumeric());
    let is_free = !found.before.is_empty()
        && !found
            .before
            .ends_with(|last: char| last.is_alphanumeric() || ")]+\n".contains(last));
    is_long || goes_on || (!found.mode.masks_assignments() && !is_free)
}

/// Whether a parameter of this name carries a secret, however often the name is
/// encoded.
pub(super) fn is_parameter(name: &str) -> bool {
    const NAMES: &str = r"\A(?:(?:access|refresh|id|auth)_token|token|api_?key|client_secret|password|passwd|secret|private_key|signature|sig|auth|jwt|session|session_id|authorization|x_amz_(?:signature|credential|security_token)|code|key)\z";
    static KNOWN: LazyLock<Regex> = LazyLock::new(|| compiled(NAMES));
    let mut name = name.to_owned();
    for _ in 0..3 {
        let decoded = form_urlencoded::parse(name.as_bytes()).next();
        name = decoded.map_or_else(String::new, |(name, _)| name.into_owned());
    }
    KNOWN.is_match(&name.to_lowercase().replace('-', "_"))
}
