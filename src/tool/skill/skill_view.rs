//! `skill_view`: the text of a skill, or of a file beside it.

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::library::{self, Found, Library, Skill};
use super::name;
use crate::model::call::{Effect, Footprint};
use crate::tool::budget::ResultLimit;
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Place, Spec, Tool, error_text};

inventory::submit!(Registered(&SkillView));

/// Names that are shown where one was not found (Hermes).
const SUGGESTED: usize = 20;

struct SkillView;

impl Tool for SkillView {
    fn spec(&self) -> Spec {
        Spec {
            name: "skill_view",
            toolset: "skills",
            emoji: "📖",
            description: "Reads a skill: how something is done here. Follow it when it fits the task. With \
                `file_path` it reads one of the files that the skill names.",
            requires_env: &[],
            result_limit: ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The skill, as `name` or `category/name`."},
                "file_path": {"type": "string", "description": "A file of it, such as `references/api.md`."},
            },
            "required": ["name"],
        })
    }

    fn example(&self) -> Value {
        json!({"name": "greet"})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Read
    }

    fn footprint(&self, _arguments: &Value, _place: &Place<'_>) -> Footprint {
        Footprint::Parallel
    }

    fn subject(&self, arguments: &Value) -> String {
        format!("skill {}", arguments["name"].as_str().unwrap_or_default())
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(view(call))
    }
}

async fn view(call: Call) -> Done {
    let library = call.host.skills(call.tenant_id);
    let arguments = call.arguments;
    match tokio::task::spawn_blocking(move || look(&library, &arguments)).await {
        Ok(Ok(Ok(shown))) => Done {
            result: shown.to_string(),
            ..Done::default()
        },
        Ok(Ok(Err(refused))) => Done::failure(refused.to_string()),
        Ok(Err(_)) | Err(_) => {
            tracing::warn!(session = %call.session_id, "the skills cannot be read");
            Done::failure(error_text::envelope(
                "the skills cannot be read now; the server's log says why",
            ))
        }
    }
}

type Looked = Result<Value, Value>;

fn look(library: &Library, arguments: &Value) -> std::io::Result<Looked> {
    let asked = arguments["name"].as_str().unwrap_or_default().trim();
    let (category, name) = match name::asked(asked) {
        Ok(parts) => parts,
        Err(bad) => return Ok(Err(json!({"success": false, "error": bad.to_string()}))),
    };
    let skill = match library.find(category, name)? {
        Found::One(skill) => skill,
        Found::Several(paths) => {
            let error = format!("several skills are called `{asked}`; say which");
            return Ok(Err(json!({"success": false, "error": error, "matches": paths})));
        }
        Found::None => {
            let known: Vec<String> = library.list()?.iter().take(SUGGESTED).map(Skill::path).collect();
            let error = format!("there is no skill `{asked}`");
            return Ok(Err(
                json!({"success": false, "error": error, "available_skills": known}),
            ));
        }
    };
    match arguments["file_path"].as_str().filter(|path| !path.is_empty()) {
        Some(file) => Ok(file_of(&skill, file)),
        None => whole(&skill).map(Ok),
    }
}

fn whole(skill: &Skill) -> std::io::Result<Value> {
    let content = library::read_file(&skill.folder.join("SKILL.md"))?;
    let document = &skill.document;
    let linked = linked_files(skill);
    // No variable of the server reaches a command, so none is ever set up here.
    let missing: Vec<&str> = document
        .variables
        .iter()
        .filter(|variable| !variable.optional)
        .map(|variable| variable.name.as_str())
        .collect();
    let setup_needed = !missing.is_empty() || !document.credential_files.is_empty();
    let mut shown = json!({
        "success": true,
        "name": skill.name,
        "description": document.description,
        "tags": document.tags,
        "related_skills": document.related,
        "content": String::from_utf8_lossy(&content),
        "path": format!("{}/SKILL.md", skill.path()),
        "skill_dir": skill.path(),
        "usage_hint": (!linked.is_empty()).then_some("read a linked file with `skill_view` and its `file_path`"),
        "linked_files": if linked.is_empty() { Value::Null } else { Value::Object(linked) },
        "required_environment_variables": document.variables,
        "missing_required_environment_variables": missing,
        "missing_credential_files": document.credential_files,
        "setup_needed": setup_needed,
        "setup_skipped": false,
        "readiness_status": if setup_needed { "setup_needed" } else { "available" },
    });
    let note = "what is missing has to be given in the session; commands see no secrets of the server";
    let more = [
        ("setup_note", setup_needed.then(|| json!(note))),
        ("setup_help", document.setup_help.as_ref().map(|help| json!(help))),
        ("compatibility", document.compatibility.as_ref().map(|text| json!(text))),
        ("metadata", document.metadata.clone()),
    ];
    if let Some(fields) = shown.as_object_mut() {
        let said = more
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        fields.extend(said);
    }
    Ok(shown)
}

fn linked_files(skill: &Skill) -> Map<String, Value> {
    let groups = library::support_files(&skill.folder).into_iter();
    groups.map(|(group, files)| (group.to_owned(), json!(files))).collect()
}

fn file_of(skill: &Skill, file: &str) -> Looked {
    let path = name::support(file).map_err(|bad| json!({"success": false, "error": bad.to_string()}))?;
    let bytes = library::support_file(&skill.folder, &path).map_err(|_| {
        let error = format!("the skill has no file `{file}`");
        json!({"success": false, "error": error, "available_files": linked_files(skill)})
    })?;
    let ending = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    Ok(match String::from_utf8(bytes) {
        Ok(content) => {
            json!({"success": true, "name": skill.name, "file": file, "file_type": ending, "content": content})
        }
        Err(_) => json!({"success": true, "name": skill.name, "file": file, "file_type": ending,
            "content": "[a binary file]", "is_binary": true}),
    })
}
