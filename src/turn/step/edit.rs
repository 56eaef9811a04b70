//! Arguments that a person puts in the place of a model's: read and judged like
//! those, and told to the model with the result. What no approval may allow, no
//! edit may bring in either.

use serde_json::{Map, Value, json};

use super::Step;
use crate::base::text::first_chars;
use crate::guard::Finding;
use crate::model::approval::{Approval, digest};
use crate::model::call::Effect;
use crate::model::id::CallId;
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::CallRecord;
use crate::tool::registry::Entry;
use crate::tool::{Judged, coerce, schema};
use crate::turn::segments::disturbs;

/// How much of the new arguments is repeated to the model: as much as an
/// ordinary command or edit, never a whole file that it did not ask for.
const TOLD_CHARS: usize = 8_000;

/// Arguments that may take the place of a call's.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    pub arguments: Value,
    /// What running the call may do now.
    pub effect: Effect,
    /// Names what was decided on, as the approval's digest named what was asked.
    pub digest: String,
}

impl Step<'_> {
    /// Reads and judges new arguments for what an approval asks about. Nothing
    /// changes.
    pub fn edit(&self, approval: &Approval, arguments: Map<String, Value>) -> Result<Edit, Problem> {
        let call = approval.tool_call_id.and_then(|id| self.state.call(id));
        let tool = call.and_then(|call| self.world.tools.get(&call.name));
        let (Some(call), Some(tool)) = (call, tool) else {
            return Err(not_allowed("the tool is not available to this turn any more"));
        };
        let schema = tool.schema();
        let arguments = Value::Object(coerce::coerce(schema, arguments));
        let faults = schema::faults(schema, &arguments);
        if !faults.is_empty() {
            let problem = Problem::new(
                ProblemCode::EditInvalid,
                "the arguments do not fit the tool; the approval is still pending",
            );
            return Err(faults.into_iter().fold(problem, |problem, fault| {
                problem.with_field(format!("/arguments{}", fault.pointer), fault.detail)
            }));
        }
        if self.disturbs_others(call, tool, &arguments) {
            return Err(not_allowed(
                "another call of the same answer runs beside this one and touches the same",
            ));
        }
        let session = &self.state.session;
        let place = self.world.place(session.cwd.as_deref(), &session.environment.backend);
        let findings = match self.judged(call, tool, &arguments, &place) {
            Judged::Allow => Vec::new(),
            Judged::Ask { findings } => findings,
            Judged::Deny { message } => return Err(not_allowed(&message)),
        };
        Ok(Edit {
            effect: tool.effect(&arguments),
            digest: self.digest_of(&call.name, &arguments, &findings),
            arguments,
        })
    }

    /// Calls that run side by side were planned by what the model wrote.
    fn disturbs_others(&self, call: &CallRecord, tool: &Entry, arguments: &Value) -> bool {
        let session = &self.state.session;
        let place = self.world.place(session.cwd.as_deref(), &session.environment.backend);
        let footprint = tool.footprint(arguments, &place);
        let beside = self.state.calls.iter().filter(|other| {
            call.parallel
                && other.segment == call.segment
                && other.call_id != call.call_id
                && !other.status.is_settled()
        });
        beside
            .filter_map(|other| {
                let tool = self.world.tools.get(&other.name)?;
                Some(tool.footprint(other.effective_arguments(), &place))
            })
            .any(|other| disturbs(&other, &footprint))
    }

    /// Puts the new arguments beside those of the model.
    pub(super) fn apply_edit(&mut self, id: CallId, edit: Edit) {
        if let Some(call) = self.call_mut(id) {
            call.edited = Some(edit.arguments);
            call.effect = edit.effect;
        }
    }

    /// The digest of what is shown or run here and now.
    pub(super) fn digest_of(&self, tool: &str, arguments: &Value, findings: &[Finding]) -> String {
        let session = &self.state.session;
        let backend = session.environment.backend.as_str();
        let place = self.world.place(session.cwd.as_deref(), backend);
        // Another form of a tool is another tool to whoever allowed it.
        let form = self.world.tools.get(tool).and_then(|tool| tool.form());
        let named = form.map(|form| format!("{tool}@{form}"));
        let cwd = place.cwd.to_string_lossy();
        digest(
            named.as_deref().unwrap_or(tool),
            arguments,
            Some(&cwd),
            backend,
            findings,
        )
    }
}

/// A result as the model reads it: what a person changed comes first.
pub(super) fn told(call: &CallRecord, result: String) -> String {
    let Some(edited) = &call.edited else { return result };
    let mut note = json!({
        "arguments_changed_by": "user",
        "note": "A person changed the arguments of this call before it ran. What follows is the result of the changed \
            arguments, not of yours.",
    });
    let whole = edited.to_string();
    let cut = first_chars(&whole, TOLD_CHARS);
    let (name, shown) = if cut.len() < whole.len() {
        ("arguments_beginning", Value::from(cut))
    } else {
        ("arguments", edited.clone())
    };
    if let Some(fields) = note.as_object_mut() {
        fields.insert(name.to_owned(), shown);
    }
    format!("{note}\n{result}")
}

fn not_allowed(why: &str) -> Problem {
    let detail = format!("these arguments cannot be run: {why}; the approval is still pending");
    Problem::new(ProblemCode::EditNotAllowed, detail).with_field("/arguments", why)
}
