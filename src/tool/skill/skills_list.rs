//! `skills_list`: names and descriptions of the skills there are.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::library::Skill;
use crate::model::call::{Effect, Footprint};
use crate::tool::budget::ResultLimit;
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Place, Spec, Tool, error_text};

inventory::submit!(Registered(&SkillsList));

struct SkillsList;

impl Tool for SkillsList {
    fn spec(&self) -> Spec {
        Spec {
            name: "skills_list",
            toolset: "skills",
            emoji: "📚",
            description: "Lists the skills there are: what each is called and what it is for. Read one with \
                `skill_view` before you follow it.",
            requires_env: &[],
            result_limit: ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"category": {"type": "string", "description": "Only the skills of this category."}},
        })
    }

    fn example(&self) -> Value {
        json!({})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Read
    }

    fn footprint(&self, _arguments: &Value, _place: &Place<'_>) -> Footprint {
        Footprint::Parallel
    }

    fn subject(&self, _arguments: &Value) -> String {
        "the skills".to_owned()
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(list(call))
    }
}

async fn list(call: Call) -> Done {
    let library = call.host.skills(call.tenant_id);
    let listed = tokio::task::spawn_blocking(move || library.list()).await;
    let Ok(Ok(mut skills)) = listed else {
        tracing::warn!(session = %call.session_id, "the skills cannot be read");
        return Done::failure(error_text::envelope(
            "the skills cannot be read now; the server's log says why",
        ));
    };
    skills.retain(Skill::is_available);
    Done {
        result: shown(&skills, category(&call.arguments)).to_string(),
        ..Done::default()
    }
}

/// Nothing where the words for it are empty, as models write what they leave out.
fn category(arguments: &Value) -> Option<&str> {
    let named = arguments.get("category").and_then(Value::as_str);
    named.map(str::trim).filter(|name| !name.is_empty())
}

fn shown(skills: &[Skill], category: Option<&str>) -> Value {
    let categories: BTreeSet<&str> = skills.iter().filter_map(|skill| skill.category.as_deref()).collect();
    let wanted = skills
        .iter()
        .filter(|skill| category.is_none() || skill.category.as_deref() == category);
    let listed: Vec<Value> = wanted
        .map(|skill| {
            json!({
                // A plugin's is asked for by both names.
                "name": if skill.plugin.is_some() { skill.path() } else { skill.name.clone() },
                "description": skill.document.description,
                "category": skill.category,
            })
        })
        .collect();
    json!({
        "success": true,
        "count": listed.len(),
        "skills": listed,
        "categories": categories,
        "hint": "read a skill with `skill_view`, and a file of it with its `file_path`",
    })
}
