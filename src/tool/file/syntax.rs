//! Whether a file that a program will read is well-formed. The kind follows
//! from the name; what has no checker here is not judged.

use std::path::Path;

use serde::de::IgnoredAny;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Json,
    Yaml,
    Toml,
}

impl Syntax {
    pub(super) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_string_lossy().to_lowercase().as_str() {
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Yaml => "YAML",
            Self::Toml => "TOML",
        }
    }

    /// What is wrong with the text, if something is.
    pub(super) fn fault(self, text: &str) -> Option<String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match self {
            Self::Json => serde_json::from_str::<IgnoredAny>(text)
                .err()
                .map(|error| error.to_string()),
            Self::Yaml => yaml_fault(text),
            Self::Toml => toml::from_str::<toml::Table>(text).err().map(|error| error.to_string()),
        }
    }
}

/// Several documents, unknown tags and repeated keys are well-formed.
fn yaml_fault(text: &str) -> Option<String> {
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    let error = serde_saphyr::from_multiple_with_options::<IgnoredAny>(text, options).err()?;
    // Too much to be looked at is no fault of the text.
    if matches!(error.without_snippet(), serde_saphyr::Error::Budget { .. }) {
        return None;
    }
    Some(error.without_snippet().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_text_has_no_fault() {
        for (syntax, text) in [
            (Syntax::Json, "\u{feff}{\"a\": [1, 2]}"),
            (Syntax::Yaml, ""),
            (Syntax::Yaml, "a: 1\n---\nb: [x, y]\n"),
            (Syntax::Yaml, "a: !Ref name\nb: &x 1\nc: *x\na: 2\n"),
            (Syntax::Yaml, "# only a comment\n"),
            (Syntax::Toml, ""),
            (Syntax::Toml, "\u{feff}[a.b]\nc = 1979-05-27\n[[d]]\ne = [1, \"x\"]\n"),
        ] {
            assert_eq!(syntax.fault(text), None, "{text}");
        }
    }

    #[test]
    fn a_fault_is_told_with_its_place() {
        for (syntax, text) in [
            (Syntax::Json, "{\"a\": 1,}"),
            (Syntax::Json, ""),
            (Syntax::Json, "{} {}"),
            (Syntax::Yaml, "a: [1, 2\nb: 3\n"),
            (Syntax::Yaml, "a: b: c\n"),
            (Syntax::Yaml, "a: \"open\n"),
            (Syntax::Yaml, "a: *nowhere\n"),
            (Syntax::Toml, "a = \n"),
            (Syntax::Toml, "a = 1\na = 2\n"),
            (Syntax::Toml, "[a]\n[a]\n"),
            (Syntax::Toml, "key: value\n"),
        ] {
            let fault = syntax.fault(text).unwrap_or_default();
            assert!(fault.contains("line"), "{text}: {fault}");
        }
    }

    #[test]
    fn hostile_text_ends_soon() {
        assert!(Syntax::Json.fault(&"[".repeat(100_000)).is_some());
        Syntax::Yaml.fault(&"[".repeat(100_000));
        assert!(Syntax::Toml.fault(&format!("a = {}", "[".repeat(100_000))).is_some());
        assert!(Syntax::Toml.fault(&format!("{}b = 1", "a.".repeat(100_000))).is_some());
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..9 {
            let before = level - 1;
            let copies = vec![format!("*a{before}"); 10].join(",");
            bomb.push_str(&format!("a{level}: &a{level} [{copies}]\n"));
        }
        Syntax::Yaml.fault(&bomb);
    }

    #[test]
    fn the_name_says_which_syntax() {
        assert_eq!(Syntax::of(Path::new("a/B.YML")), Some(Syntax::Yaml));
        assert_eq!(Syntax::of(Path::new("Cargo.toml")), Some(Syntax::Toml));
        assert_eq!(Syntax::of(Path::new("package.json")), Some(Syntax::Json));
        assert_eq!(Syntax::of(Path::new("a.jsonl")), None);
    }
}
