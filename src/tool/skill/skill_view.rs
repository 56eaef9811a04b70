//! `skill_view`: the text of a skill, or of a file beside it.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::library::{self, Found, Library, Skill};
use super::name;
use crate::environment::Parents;
use crate::model::call::{Effect, Footprint};
use crate::model::id::TenantId;
use crate::model::skill::SkillState;
use crate::tool::budget::ResultLimit;
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Host, Place, Spec, Tool, error_text};

inventory::submit!(Registered(&SkillView));

/// Names that are shown where one was not found (Hermes).
const SUGGESTED: usize = 20;

/// What a skill is told that names credentials and is not the operator's.
const NOT_FOR_OWN_SKILLS: &str = "credential files are refused to a skill of your own: they are laid out only for \
    skills of the operator and of its plugins; ask the operator to provide this skill, or give what it needs in the session";

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
                "name": {
                    "type": "string",
                    "description": "The skill, as `name`, `category/name` or `plugin:name`.",
                },
                "file_path": {"type": "string", "description": "A file of it, such as `references/api.md`, as `linked_files` names it."},
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
    let (arguments, host, tenant) = (call.arguments.clone(), Arc::clone(&call.host), call.tenant_id);
    match tokio::task::spawn_blocking(move || look(&library, &arguments, (&host, tenant))).await {
        Ok(Ok(Ok(Shown {
            mut result,
            credentials,
        }))) => {
            let paths = lay_out(&call, credentials).await;
            if let Some(fields) = result.as_object_mut().filter(|_| !paths.is_empty()) {
                fields.insert("credential_files".to_owned(), Value::Object(paths));
            }
            Done {
                result: result.to_string(),
                ..Done::default()
            }
        }
        Ok(Ok(Err(refused))) => Done::failure(refused.to_string()),
        Ok(Err(_)) | Err(_) => {
            tracing::warn!(session = %call.session_id, "the skills cannot be read");
            Done::failure(error_text::envelope(
                "the skills cannot be read now; the server's log says why",
            ))
        }
    }
}

/// Files of credentials, put where the session's commands can read them; their
/// paths by their names.
async fn lay_out(call: &Call, credentials: Vec<(String, String)>) -> Map<String, Value> {
    let mut paths = Map::new();
    if credentials.is_empty() {
        return paths;
    }
    let Ok(workspace) = call.host.workspace(call.tenant_id, call.session_id).await else {
        return paths;
    };
    for (name, text) in credentials {
        let path = workspace.tmp().join("credentials").join(&name);
        let written = workspace.write_atomic(&path, text.into_bytes(), Parents::Create);
        match written.await {
            Ok(()) => drop(paths.insert(name, json!(path.to_string_lossy()))),
            Err(error) => {
                tracing::warn!(session = %call.session_id, %error, "credentials of a skill cannot be laid out");
            }
        }
    }
    paths
}

/// What a call is answered with, and the credentials that the skill may read.
struct Shown {
    result: Value,
    credentials: Vec<(String, String)>,
}

impl From<Value> for Shown {
    fn from(result: Value) -> Self {
        Self {
            result,
            credentials: Vec::new(),
        }
    }
}

type Looked = Result<Shown, Value>;

fn look(library: &Library, arguments: &Value, whose: (&Host, TenantId)) -> std::io::Result<Looked> {
    let asked = arguments["name"].as_str().unwrap_or_default().trim();
    let (shelf, name) = match name::asked(asked) {
        Ok(parts) => parts,
        Err(bad) => return Ok(Err(json!({"success": false, "error": bad.to_string()}))),
    };
    let skill = match library.find(shelf, name)? {
        Found::One(skill) if !skill.is_available() => return Ok(Err(unsupported(&skill))),
        Found::One(skill) => skill,
        Found::Several(paths) => {
            let error = format!("several skills are called `{asked}`; say which");
            return Ok(Err(json!({"success": false, "error": error, "matches": paths})));
        }
        Found::None => {
            let known = library.list()?.into_iter().filter(Skill::is_available);
            let known: Vec<String> = known.take(SUGGESTED).map(|skill| skill.path()).collect();
            let error = format!("there is no skill `{asked}`");
            return Ok(Err(
                json!({"success": false, "error": error, "available_skills": known}),
            ));
        }
    };
    match arguments["file_path"].as_str().filter(|path| !path.is_empty()) {
        Some(file) => Ok(file_of(&skill, file).map(Shown::from)),
        None => whole(&skill, whose).map(Ok),
    }
}

/// Of a skill that agents are not shown.
fn unsupported(skill: &Skill) -> Value {
    let error = match skill.state {
        SkillState::Unsupported => {
            let platforms = skill.document.platforms.join(", ");
            format!("the skill `{}` is for other platforms: {platforms}", skill.path())
        }
        _ => format!("the skill `{}` is disabled here", skill.path()),
    };
    json!({"success": false, "error": error, "readiness_status": "unsupported"})
}

fn whole(skill: &Skill, (host, tenant): (&Host, TenantId)) -> std::io::Result<Shown> {
    let content = library::read_file(&skill.folder.join("SKILL.md"))?;
    let document = &skill.document;
    let linked = linked_files(skill);
    let missing: Vec<&str> = document
        .variables
        .iter()
        .filter(|variable| !variable.optional && !host.passes(&variable.name))
        .map(|variable| variable.name.as_str())
        .collect();
    let (mut credentials, mut absent) = (Vec::new(), Vec::new());
    for name in &document.credential_files {
        // Of what a user's skill may not have it is not told whether it is there.
        match skill.origin.is_of_the_operator().then(|| host.credential(tenant, name)) {
            Some(Ok(text)) => credentials.push((name.clone(), text)),
            Some(Err(_)) | None => absent.push(name),
        }
    }
    let environment = host.environment();
    let is_missing = |name: &&String| !environment.has_program(name);
    let uncalled: Vec<&String> = document.commands.iter().filter(is_missing).collect();
    let is_refused = !skill.origin.is_of_the_operator() && !absent.is_empty();
    let setup_needed = !missing.is_empty() || !absent.is_empty();
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
        "required_commands": document.commands,
        "missing_required_environment_variables": missing,
        "missing_credential_files": absent,
        "missing_required_commands": uncalled,
        "setup_needed": setup_needed,
        "setup_skipped": false,
        "readiness_status": if setup_needed { "setup_needed" } else { "available" },
    });
    let note = if is_refused {
        NOT_FOR_OWN_SKILLS
    } else {
        "what is missing has to be given in the session; commands see no secrets of the server"
    };
    let tools = !document.allowed_tools.is_empty();
    let more = [
        ("setup_note", setup_needed.then(|| json!(note))),
        ("setup_help", document.setup_help.as_ref().map(|help| json!(help))),
        ("compatibility", document.compatibility.as_ref().map(|text| json!(text))),
        ("metadata", document.metadata.clone()),
        ("allowed_tools", tools.then(|| json!(document.allowed_tools))),
    ];
    if let Some(fields) = shown.as_object_mut() {
        let said = more
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        fields.extend(said);
    }
    Ok(Shown {
        result: shown,
        credentials,
    })
}

fn linked_files(skill: &Skill) -> Map<String, Value> {
    let groups = library::support_files(&skill.folder).into_iter();
    groups.map(|(group, files)| (group.to_owned(), json!(files))).collect()
}

fn file_of(skill: &Skill, file: &str) -> Result<Value, Value> {
    let path = name::inside(file).map_err(|bad| json!({"success": false, "error": bad.to_string()}))?;
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
