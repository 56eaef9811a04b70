//! `delegate_task`: hands tasks to child sessions and waits for all of them. The
//! call parks its turn; what the children came to is its result.

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::model::call::{Effect, Execution, Footprint};
use crate::model::lineage::{ChildRole, Task};
use crate::tool::budget::ResultLimit;
use crate::tool::park::{Park, not_here};
use crate::tool::registry::{Registered, Setup};
use crate::tool::{Call, Done, Place, Spec, Tool, Wording, error_text};

inventory::submit!(Registered(&DelegateTask));

/// A goal and its context are read whole by a model, as an input is.
const MAX_TASK_CHARS: usize = 200_000;

struct DelegateTask;

impl Tool for DelegateTask {
    fn spec(&self) -> Spec {
        Spec {
            name: "delegate_task",
            toolset: "delegation",
            emoji: "🔀",
            description: "Hands work to child agents and waits for what they found. Each child begins with an empty \
                conversation: it knows nothing but its goal and context, so write down paths, errors and constraints. \
                Give one `goal`, or several `tasks` that run side by side. Use it for work that would fill this \
                conversation with things nobody needs afterwards, or for independent parts of a larger job; not for \
                one tool call, nor for anything that needs an answer of the user. A child says what it did in its own \
                words: check what matters.",
            requires_env: &[],
            result_limit: ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        parameters(
            true,
            "Several tasks in place of `goal`; each runs in a child of its own.",
        )
    }

    fn configured(&self, setup: &Setup) -> Option<Wording> {
        let limits = setup.delegation?;
        let most = match limits.children {
            1 => "A call takes one task.".to_owned(),
            most => format!("A call takes up to {most} tasks."),
        };
        let depth = match limits.further_levels {
            0 => "Children cannot delegate.".to_owned(),
            levels => format!("With the role `orchestrator` a child may delegate in turn, {levels} deep at most."),
        };
        let tasks = format!(
            "Up to {} tasks in place of `goal`; each runs in a child of its own.",
            limits.children
        );
        Some(Wording {
            description: Some(format!("{} {most} {depth}", self.spec().description)),
            parameters: Some(parameters(0 < limits.further_levels, &tasks)),
        })
    }

    fn example(&self) -> Value {
        json!({"goal": "Say what notes.txt is about", "context": "It lies in the workspace."})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Internal
    }

    fn footprint(&self, _arguments: &Value, _place: &Place<'_>) -> Footprint {
        Footprint::Alone
    }

    fn subject(&self, arguments: &Value) -> String {
        match tasks(arguments) {
            Ok(tasks) => tasks.into_iter().map(|task| task.goal).collect::<Vec<_>>().join("; "),
            Err(_) => String::new(),
        }
    }

    fn execution(&self) -> Execution {
        Execution::Children
    }

    fn park(&self, arguments: &Value) -> Result<Park, String> {
        tasks(arguments)
            .map(Park::Children)
            .map_err(|why| error_text::envelope(&why))
    }

    fn run(&self, _call: Call) -> BoxFuture<'static, Done> {
        Box::pin(std::future::ready(Done::failure(not_here("delegate_task"))))
    }
}

/// Where no child may delegate, nobody is told of roles.
fn parameters(with_roles: bool, tasks: &str) -> Value {
    let said = |text: &str| json!({"type": "string", "description": text});
    let role = with_roles.then(|| {
        let role = json!({
            "type": "string",
            "enum": ["leaf", "orchestrator"],
            "description": "An `orchestrator` may delegate parts of its task, where the server allows it.",
        });
        ("role".to_owned(), role)
    });
    let text = json!({"type": "string"});
    let task = [("goal".to_owned(), text.clone()), ("context".to_owned(), text)];
    let task: Map<String, Value> = task.into_iter().chain(role.clone()).collect();
    let tasks = json!({"type": "array", "description": tasks,
        "items": {"type": "object", "properties": task, "required": ["goal"]}});
    let first = [
        (
            "goal".to_owned(),
            said("What the child is to achieve. It cannot ask back."),
        ),
        ("context".to_owned(), said("What the child has to know.")),
    ];
    let background = json!({"type": "boolean", "description": "Without effect: the call waits for the children."});
    let last = [("tasks".to_owned(), tasks), ("background".to_owned(), background)];
    let all: Map<String, Value> = first.into_iter().chain(role).chain(last).collect();
    json!({"type": "object", "properties": all})
}

fn tasks(arguments: &Value) -> Result<Vec<Task>, String> {
    let role = role(&arguments["role"])?;
    // Models also write the list as text.
    let listed = match &arguments["tasks"] {
        Value::String(text) => serde_json::from_str(text).map_err(|error| format!("tasks is no JSON list: {error}"))?,
        other => other.clone(),
    };
    let tasks = match listed {
        Value::Null => Vec::new(),
        Value::Array(tasks) => tasks,
        _ => return Err("tasks must be a list of objects with a goal".to_owned()),
    };
    if !tasks.is_empty() {
        let read = tasks.iter().enumerate().map(|(index, task)| {
            let fields = task.as_object().ok_or(format!("task {index} is no object"))?;
            self::task(fields, role).map_err(|why| format!("task {index} {why}"))
        });
        return read.collect();
    }
    let empty = Map::new();
    let fields = arguments.as_object().unwrap_or(&empty);
    match task(fields, role) {
        Ok(task) => Ok(vec![task]),
        Err(why) => Err(format!(
            "either goal (one task) or tasks (several) is needed: the task {why}"
        )),
    }
}

fn task(fields: &Map<String, Value>, by_default: ChildRole) -> Result<Task, String> {
    let text = |name: &str| {
        fields
            .get(name)
            .and_then(Value::as_str)
            .map(str::trim)
            .unwrap_or_default()
    };
    let (goal, context) = (text("goal"), text("context"));
    if goal.is_empty() {
        return Err("has no goal".to_owned());
    }
    if MAX_TASK_CHARS < goal.chars().count() + context.chars().count() {
        return Err(format!("is longer than {MAX_TASK_CHARS} characters"));
    }
    Ok(Task {
        goal: goal.to_owned(),
        context: (!context.is_empty()).then(|| context.to_owned()),
        role: match fields.get("role").filter(|given| !given.is_null()) {
            Some(given) => role(given)?,
            None => by_default,
        },
    })
}

fn role(given: &Value) -> Result<ChildRole, String> {
    match given.as_str().map(str::trim) {
        None | Some("" | "leaf") => Ok(ChildRole::Leaf),
        Some("orchestrator") => Ok(ChildRole::Orchestrator),
        Some(other) => Err(format!("has the unknown role `{other}`: leaf or orchestrator")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::registry::{DelegationLimits, Entry};

    fn goals(arguments: &Value) -> Vec<String> {
        tasks(arguments).unwrap().into_iter().map(|task| task.goal).collect()
    }

    #[test]
    fn one_goal_is_one_task_and_tasks_come_before_it() {
        assert_eq!(goals(&json!({"goal": " a "})), ["a"]);
        assert_eq!(goals(&json!({"goal": "a", "tasks": []})), ["a"]);
        assert_eq!(
            goals(&json!({"goal": "a", "tasks": [{"goal": "b"}, {"goal": "c"}]})),
            ["b", "c"]
        );
        assert_eq!(goals(&json!({"tasks": "[{\"goal\": \"b\"}]"})), ["b"]);
        let task = tasks(&json!({"tasks": [{"goal": "b", "context": "x"}], "role": "orchestrator"})).unwrap();
        assert_eq!(
            (task[0].context.as_deref(), task[0].role),
            (Some("x"), ChildRole::Orchestrator)
        );
        let unsaid = tasks(&json!({"tasks": [{"goal": "b", "role": null}], "role": "orchestrator"})).unwrap();
        assert_eq!(unsaid[0].role, ChildRole::Orchestrator);
    }

    #[test]
    fn what_is_no_task_is_refused_and_says_why() {
        for (arguments, why) in [
            (json!({}), "goal"),
            (json!({"goal": " "}), "no goal"),
            (json!({"tasks": "nonsense"}), "no JSON"),
            (json!({"tasks": {"goal": "a"}}), "list"),
            (
                json!({"tasks": [{"goal": "a"}, {"context": "x"}]}),
                "task 1 has no goal",
            ),
            (json!({"tasks": [{"goal": "a", "role": "boss"}]}), "unknown role"),
        ] {
            let text = tasks(&arguments).unwrap_err();
            assert!(text.contains(why), "{arguments}: {text}");
        }
    }

    #[test]
    fn the_model_is_told_what_the_configuration_allows() {
        let told = |children, further_levels| {
            let setup = Setup {
                delegation: Some(DelegationLimits {
                    children,
                    further_levels,
                }),
                ..Setup::default()
            };
            let tool = Entry::built_in_as(&DelegateTask, &setup).unwrap();
            (tool.description().to_owned(), tool.schema().to_string())
        };
        let (description, schema) = told(3, 0);
        assert!(
            description.ends_with("A call takes up to 3 tasks. Children cannot delegate."),
            "{description}"
        );
        assert!(
            schema.contains("Up to 3 tasks") && !schema.contains("orchestrator"),
            "{schema}"
        );
        let (description, schema) = told(1, 2);
        assert!(
            description.contains("A call takes one task.") && description.contains("2 deep"),
            "{description}"
        );
        assert!(schema.contains("orchestrator"), "{schema}");
    }
}
