//! `skill_manage`: makes and changes the tenant's own skills.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::change::{Alone, AskedChange, Change, Consent, Made, Refusal};
use super::scan;
use crate::guard::{Finding, Severity, Span};
use crate::model::call::{Effect, Footprint};
use crate::model::pending::{PendingKind, Staged};
use crate::tool::budget::ResultLimit;
use crate::tool::readings::{Readings, Text};
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Host, Judged, Place, Spec, Tool, ToolWrites, error_text};

inventory::submit!(Registered(&SkillManage));

struct SkillManage;

impl Tool for SkillManage {
    fn spec(&self) -> Spec {
        Spec {
            name: "skill_manage",
            toolset: "skills",
            emoji: "🛠️",
            description: "Keeps what you learned to do, for later sessions. `create` a skill after a task that took \
                several steps and will come again; `patch` it as soon as it turns out to be wrong or incomplete; \
                `edit` replaces its whole text; `write_file` and `remove_file` change the files beside it; `delete` \
                removes it. The text begins with front matter between `---` lines that has `name` and `description`.",
            requires_env: &[],
            result_limit: ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        let text = |description: &str| json!({"type": "string", "description": description});
        json!({
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["create", "patch", "edit", "delete", "write_file", "remove_file"],
                },
                "name": text("The skill: lower-case letters, digits, `.`, `_` and `-`; `category/name` works too."),
                "content": text("The whole SKILL.md; for `create` and `edit`."),
                "old_string": text("The passage to replace; for `patch`."),
                "new_string": text("What takes its place; for `patch`."),
                "replace_all": {"type": "boolean", "description": "Replace every occurrence.", "default": false},
                "category": text("Folder of the new skill; for `create`."),
                "file_path": text("A file below `references/`, `templates/`, `scripts/` or `assets/`."),
                "file_content": text("Its text; for `write_file`."),
                "absorbed_into": text("The skill that has what a deleted one knew; for `delete`."),
            },
            "required": ["action", "name"],
        })
    }

    fn example(&self) -> Value {
        json!({"action": "create", "name": "greet", "content": "---\nname: greet\ndescription: How to greet\n---\nSay hello.\n"})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Write
    }

    fn footprint(&self, _arguments: &Value, _place: &Place<'_>) -> Footprint {
        Footprint::Alone
    }

    /// What only comes of a patch is looked at when it is made.
    fn judge(&self, arguments: &Value, place: &Place<'_>, host: &Host) -> Judged {
        // What waits for a person that person sees.
        if !host.skills.guard_agent_created || host.skills.write_approval {
            return Judged::Allow;
        }
        if let Some(unread) = place.unread
            && !host.readings().has_skill(arguments)
        {
            unread.note(Text::Skill(arguments.clone()));
            return Judged::Deny { message: String::new() };
        }
        let dangers = dangers(arguments, host.readings());
        let findings: Vec<Finding> = dangers.iter().map(|found| finding(found)).collect();
        match findings.is_empty() {
            true => Judged::Allow,
            false => Judged::Ask { findings },
        }
    }

    fn subject(&self, arguments: &Value) -> String {
        let text = |name: &str| arguments[name].as_str().unwrap_or_default();
        format!("{} skill {}", text("action"), text("name"))
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(manage(call))
    }
}

/// What the scan finds in the words of a call that a person has to know of.
pub(in crate::tool) fn dangers(arguments: &Value, readings: &Readings) -> Arc<Vec<String>> {
    readings.skill(arguments, || {
        // What will be refused needs nobody's consent.
        let change = asked(arguments).ok();
        change.map_or_else(Vec::new, |change| change.report().critical().to_vec())
    })
}

fn finding(found: &str) -> Finding {
    Finding {
        rule: scan::DANGEROUS.to_owned(),
        key: format!("skill_scan:{found}"),
        description: format!("the skill would say what turns agents against their owner ({found})"),
        severity: Severity::Critical,
        span: Span::default(),
        argv: Vec::new(),
    }
}

async fn manage(call: Call) -> Done {
    let arguments = &call.arguments;
    let name = arguments["name"].as_str().unwrap_or_default().trim().to_owned();
    let change = match asked(arguments) {
        Ok(change) => change,
        Err(missing) => return refused(&missing),
    };
    let library = call.host.skills(call.tenant_id);
    if call.host.skills.write_approval {
        return staged(name, change);
    }
    let consent = match call.host.skills.guard_agent_created {
        true => Consent::ToTheChange,
        false => Consent::Unasked,
    };
    let made = tokio::task::spawn_blocking(move || Alone::with(&library)?.make(&name, &change, consent)).await;
    match made {
        Ok(Ok(made)) => {
            call.host.skills_changed(call.tenant_id);
            Done {
                result: told(&made).to_string(),
                ..Done::default()
            }
        }
        Ok(Err(Refusal::Disk(error))) => {
            tracing::warn!(session = %call.session_id, %error, "a skill cannot be written");
            refused("the skills cannot be written now; the server's log says why")
        }
        Ok(Err(Refusal::NoMatch { why, preview })) => {
            let told = json!({"success": false, "error": why, "file_preview": preview});
            Done::failure(told.to_string())
        }
        Ok(Err(refusal)) => refused(&refusal.to_string()),
        Err(_) => Done::failure(error_text::failed("Aborted", "the change was aborted")),
    }
}

/// The change waits for a person, once it is one that could be made.
fn staged(name: String, change: Change) -> Done {
    if let Err(refusal) = change.check(&name) {
        return refused(&refusal.to_string());
    }
    let subject = format!("{} skill {name}", change.verb());
    let asked = AskedChange { name, change };
    Done {
        writes: ToolWrites {
            pending: Some(Staged {
                kind: PendingKind::Skill,
                subject,
                change: json!(asked),
            }),
            ..ToolWrites::default()
        },
        ..Done::default()
    }
}

fn told(made: &Made) -> Value {
    let mut told = json!({
        "success": true,
        "message": format!("the skill `{}` was {}", made.path, made.done),
        "path": made.path,
        "hint": "prompts name it from the next model call on",
    });
    if let Some(fields) = told.as_object_mut().filter(|_| !made.findings.is_empty()) {
        fields.insert("findings".to_owned(), json!(made.findings));
    }
    told
}

fn refused(why: &str) -> Done {
    Done::failure(json!({"success": false, "error": why}).to_string())
}

/// What a call asks for; the error names what it lacks.
fn asked(arguments: &Value) -> Result<Change, String> {
    let optional = |name: &str| {
        arguments[name]
            .as_str()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let action = arguments["action"].as_str().unwrap_or_default();
    let required = |name: &str| optional(name).ok_or_else(|| format!("`{action}` needs `{name}`"));
    match action {
        "create" => Ok(Change::Create {
            category: optional("category"),
            content: required("content")?,
        }),
        "edit" => Ok(Change::Edit {
            content: required("content")?,
        }),
        "patch" => Ok(Change::Patch {
            // The skill's text is what is patched without it.
            file: optional("file_path").filter(|file| file != "SKILL.md"),
            old: required("old_string")?,
            new: arguments["new_string"]
                .as_str()
                .ok_or("`patch` needs `new_string`")?
                .to_owned(),
            all: arguments["replace_all"].as_bool().unwrap_or(false),
        }),
        "delete" => Ok(Change::Delete {
            absorbed_into: optional("absorbed_into"),
        }),
        "write_file" => Ok(Change::WriteFile {
            file: required("file_path")?,
            content: arguments["file_content"]
                .as_str()
                .ok_or("`write_file` needs `file_content`")?
                .as_bytes()
                .to_vec(),
        }),
        "remove_file" => Ok(Change::RemoveFile {
            file: required("file_path")?,
        }),
        other => Err(format!(
            "`action` must be create, patch, edit, delete, write_file or remove_file, not `{other}`"
        )),
    }
}
