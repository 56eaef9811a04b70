//! The text of a skill: `SKILL.md` with its front matter, read and checked.
//! Nothing here touches a disk.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Bounds of the original.
const MAX_DESCRIPTION_CHARS: usize = 1_024;
pub const MAX_DOCUMENT_CHARS: usize = 100_000;
/// A front matter is a handful of keys; YAML may describe far more than it is
/// long.
const MAX_NODES: usize = 4_096;

/// A skill's text, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub related: Vec<String>,
    pub variables: Vec<Variable>,
    /// Files of credentials that it wants, as it names them.
    pub credential_files: Vec<String>,
    /// Programs that it calls.
    pub commands: Vec<String>,
    /// Tools that it says it may use without asking, as it writes them. Shown only:
    /// no text of a skill loosens what a person is asked.
    pub allowed_tools: Vec<String>,
    pub compatibility: Option<String>,
    pub platforms: Vec<String>,
    pub setup_help: Option<String>,
    pub metadata: Option<Value>,
}

/// An environment variable that a skill needs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Variable {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_for: Option<String>,
    pub optional: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("SKILL.md must begin with a line `---` and its front matter")]
    NoFrontMatter,
    #[error("the front matter of SKILL.md is not closed by a line `---`")]
    Open,
    #[error("the front matter of SKILL.md is no YAML mapping: {0}")]
    NoMapping(String),
    #[error("the front matter of SKILL.md needs `{0}`")]
    Missing(&'static str),
    #[error("`description` is longer than {MAX_DESCRIPTION_CHARS} characters")]
    LongDescription,
    #[error("SKILL.md has nothing behind its front matter")]
    NoBody,
    #[error("SKILL.md is longer than {MAX_DOCUMENT_CHARS} characters")]
    TooLong,
}

/// As the front matter is written; what is of another type than expected counts
/// as absent, since only name and description decide whether a skill works.
#[derive(Deserialize)]
struct FrontMatter(BTreeMap<String, Value>);

impl FrontMatter {
    fn text(&self, key: &str) -> Option<String> {
        let text = match self.0.get(key)? {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        (!text.is_empty()).then_some(text)
    }

    fn texts(&self, key: &str) -> Vec<String> {
        texts(self.0.get(key).unwrap_or(&Value::Null))
    }
}

/// A list of texts, or one text of several between commas.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text
            .split(',')
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .collect(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

impl Document {
    pub fn read(text: &str) -> Result<Self, Malformed> {
        if MAX_DOCUMENT_CHARS < text.chars().count() {
            return Err(Malformed::TooLong);
        }
        let (front, body) = split(text)?;
        if body.trim().is_empty() {
            return Err(Malformed::NoBody);
        }
        let front = mapping(front)?;
        let description = front.text("description").ok_or(Malformed::Missing("description"))?;
        if MAX_DESCRIPTION_CHARS < description.chars().count() {
            return Err(Malformed::LongDescription);
        }
        let metadata = front.0.get("metadata").filter(|value| value.is_object()).cloned();
        let hermes = metadata.as_ref().map_or(&Value::Null, |metadata| &metadata["hermes"]);
        let listed = |key: &str| [front.texts(key), texts(&hermes[key])].concat();
        let variables = variables(&front);
        let helped = variables.iter().find_map(|variable| variable.help.clone());
        let setup = front.0.get("setup").and_then(|setup| setup["help"].as_str());
        Ok(Self {
            name: front.text("name").ok_or(Malformed::Missing("name"))?,
            description,
            tags: listed("tags"),
            related: listed("related_skills"),
            variables,
            credential_files: credential_files(&front),
            commands: older(&front, "commands"),
            allowed_tools: front.0.get("allowed-tools").map_or(Vec::new(), tool_names),
            compatibility: front.text("compatibility"),
            platforms: front.texts("platforms"),
            // What is said of one variable is nearer to what is missing.
            setup_help: helped.or_else(|| setup.map(str::to_owned)),
            metadata,
        })
    }
}

/// The original's names of platforms, where they are not ours.
const PLATFORMS: [(&str, &str); 3] = [("darwin", "macos"), ("osx", "macos"), ("win32", "windows")];

impl Document {
    /// Whether the skill is for this platform: it names it, or none.
    pub fn is_for(&self, platform: &str) -> bool {
        let named = |name: &String| {
            let name = name.trim().to_ascii_lowercase();
            let other = PLATFORMS.iter().find(|(other, _)| *other == name);
            other.map_or(name.as_str(), |(_, own)| own) == platform
        };
        self.platforms.is_empty() || self.platforms.iter().any(named)
    }
}

/// The front matter and what follows it.
fn split(text: &str) -> Result<(&str, &str), Malformed> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (first, rest) = text.split_once('\n').ok_or(Malformed::NoFrontMatter)?;
    if first.trim_end() != "---" {
        return Err(Malformed::NoFrontMatter);
    }
    let mut begin = 0;
    for line in rest.split_inclusive('\n') {
        let end = begin + line.len();
        if line.trim_end() == "---" {
            return Ok((
                rest.get(..begin).unwrap_or_default(),
                rest.get(end..).unwrap_or_default(),
            ));
        }
        begin = end;
    }
    Err(Malformed::Open)
}

fn mapping(front: &str) -> Result<FrontMatter, Malformed> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: MAX_NODES },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        // `description: y` says "y".
        strict_booleans: true,
    };
    serde_saphyr::from_str_with_options(front, options)
        .map_err(|error| Malformed::NoMapping(error.without_snippet().to_string()))
}

/// What the key says that older skills use.
fn older(front: &FrontMatter, what: &str) -> Vec<String> {
    let named = front.0.get("prerequisites");
    named.map_or(Vec::new(), |named| texts(&named[what]))
}

/// A list, or one text of names between blanks or commas; those in brackets belong to
/// the name before them, as in `Bash(git add:*)`.
fn tool_names(value: &Value) -> Vec<String> {
    let Value::String(text) = value else {
        return texts(value);
    };
    let mut depth = 0_usize;
    let parts = text.split(|character: char| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (character == ',' || character.is_whitespace())
    });
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Files by their paths, each a text or an object with a `path`.
fn credential_files(front: &FrontMatter) -> Vec<String> {
    let named = match front.0.get("required_credential_files") {
        Some(Value::Array(files)) => files.as_slice(),
        _ => return front.texts("required_credential_files"),
    };
    let path = |file: &Value| file.as_str().or_else(|| file["path"].as_str()).map(str::to_owned);
    named.iter().filter_map(path).collect()
}

fn variables(front: &FrontMatter) -> Vec<Variable> {
    let named = front.0.get("required_environment_variables").and_then(Value::as_array);
    let mut variables: Vec<Variable> = named.into_iter().flatten().filter_map(variable).collect();
    // Secrets that a set-up would ask for are needed like those that are required.
    let collected = front
        .0
        .get("setup")
        .and_then(|setup| setup["collect_secrets"].as_array());
    for secret in collected.into_iter().flatten().filter_map(variable) {
        if !variables.iter().any(|variable| variable.name == secret.name) {
            variables.push(secret);
        }
    }
    for name in older(front, "env_vars") {
        if !variables.iter().any(|variable| variable.name == name) {
            variables.extend(variable(&Value::String(name)));
        }
    }
    variables
}

fn variable(value: &Value) -> Option<Variable> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let name = value.as_str().map(str::to_owned);
    let name = name.or_else(|| text("name")).or_else(|| text("env_var"))?;
    Some(Variable {
        name,
        prompt: text("prompt"),
        help: text("help"),
        required_for: text("required_for"),
        optional: value["optional"].as_bool().unwrap_or(false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(front: &str) -> Result<Document, Malformed> {
        Document::read(&format!("---\n{front}\n---\n# Body\n"))
    }

    #[test]
    fn a_front_matter_is_read_with_what_is_said_in_two_places() {
        let document = skill(
            "name: deploy\ndescription: Ships it\ntags: [ops]\nmetadata:\n  hermes:\n    tags: [ci]\n    \
             related_skills: [test]\nrequired_environment_variables:\n  - TOKEN\n  - name: URL\n    optional: true\n\
             prerequisites:\n  env_vars: [TOKEN, OLD]\nsetup:\n  help: ask ops",
        )
        .unwrap();
        assert_eq!(
            (document.name.as_str(), document.description.as_str()),
            ("deploy", "Ships it")
        );
        assert_eq!(
            (document.tags, document.related),
            (vec!["ops".to_owned(), "ci".to_owned()], vec!["test".to_owned()])
        );
        let names: Vec<(&str, bool)> = document
            .variables
            .iter()
            .map(|variable| (variable.name.as_str(), variable.optional))
            .collect();
        assert_eq!(names, [("TOKEN", false), ("URL", true), ("OLD", false)]);
        assert_eq!(document.setup_help.as_deref(), Some("ask ops"));
        let help = "required_environment_variables:\n  - {name: A}\n  - {name: B, help: see b}\nsetup: {help: ask ops}";
        let document = skill(&format!("name: x\ndescription: y\n{help}")).unwrap();
        assert_eq!(document.setup_help.as_deref(), Some("see b"));
    }

    #[test]
    fn what_is_no_skill_is_refused_with_the_reason() {
        assert_eq!(Document::read("# no front matter\n"), Err(Malformed::NoFrontMatter));
        assert_eq!(Document::read("---\nname: x\n"), Err(Malformed::Open));
        assert_eq!(skill("name: x"), Err(Malformed::Missing("description")));
        assert_eq!(skill("description: x"), Err(Malformed::Missing("name")));
        assert!(matches!(skill("- a list"), Err(Malformed::NoMapping(_))));
        assert!(matches!(skill("name: [unclosed"), Err(Malformed::NoMapping(_))));
        assert_eq!(
            Document::read("---\nname: x\ndescription: y\n---\n \n"),
            Err(Malformed::NoBody)
        );
        let long = "d".repeat(MAX_DESCRIPTION_CHARS + 1);
        assert_eq!(
            skill(&format!("name: x\ndescription: {long}")),
            Err(Malformed::LongDescription)
        );
        let bomb = format!("name: x\ndescription: y\nz: [{}]", "1,".repeat(MAX_NODES));
        assert!(matches!(skill(&bomb), Err(Malformed::NoMapping(_))));
    }

    #[test]
    fn a_few_lines_that_describe_millions_of_values_are_refused() {
        let mut bomb = "name: x\ndescription: y\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let below = format!("*a{}, ", level - 1).repeat(10);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", below.trim_end_matches(", ")));
        }
        let began = std::time::Instant::now();
        assert!(matches!(skill(&bomb), Err(Malformed::NoMapping(_))));
        assert!(began.elapsed() < std::time::Duration::from_secs(2));
        let own = "name: x\ndescription: &d y\nmetadata: &m {hermes: *m}";
        assert!(skill(own).is_err(), "what holds itself");
        let deep = format!("name: x\ndescription: y\nz: {}{}", "[".repeat(5_000), "]".repeat(5_000));
        assert!(skill(&deep).is_err());
    }

    #[test]
    fn a_skill_names_the_platforms_that_it_is_for_or_is_for_all() {
        let on = |platforms: &str| skill(&format!("name: x\ndescription: y\n{platforms}")).unwrap();
        assert!(on("").is_for("linux") && on("platforms: [macos, Linux]").is_for("linux"));
        assert!(!on("platforms: [macos]").is_for("linux") && on("platforms: darwin").is_for("macos"));
    }

    #[test]
    fn what_a_set_up_would_collect_is_needed_too() {
        let document = skill(
            "name: x\ndescription: y\nsetup:\n  collect_secrets:\n    - env_var: TOKEN\n      prompt: which?\n\
             required_credential_files:\n  - a.json\n  - path: b.json\n    description: other",
        )
        .unwrap();
        assert_eq!(document.variables[0].name, "TOKEN");
        assert_eq!(document.credential_files, ["a.json", "b.json"]);
    }

    #[test]
    fn tools_and_programs_that_it_names_are_read_however_they_are_listed() {
        let read = |front: &str| skill(&format!("name: x\ndescription: y\n{front}")).unwrap();
        for front in [
            "allowed-tools: Bash(git add:*) Read,terminal",
            "allowed-tools: [\"Bash(git add:*)\", Read, terminal]",
        ] {
            assert_eq!(read(front).allowed_tools, ["Bash(git add:*)", "Read", "terminal"]);
        }
        assert_eq!(read("allowed-tools: a) b( c").allowed_tools, ["a)", "b( c"]);
        assert!(read("allowed-tools: {a: 1}").allowed_tools.is_empty() && read("").allowed_tools.is_empty());
        assert_eq!(read("prerequisites:\n  commands: [curl, jq]").commands, ["curl", "jq"]);
        assert_eq!(read("prerequisites:\n  commands: curl").commands, ["curl"]);
    }

    #[test]
    fn line_ends_and_marks_of_other_systems_do_not_matter() {
        let text = "\u{feff}---\r\nname: x\r\ndescription: y\r\n---\r\nbody\r\n";
        assert_eq!(Document::read(text).unwrap().name, "x");
    }
}
