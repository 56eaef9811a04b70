//! Who may raise which budget. What bounds more than one session is not raised
//! by those it bounds.

use crate::model::approval::{Approval, ApprovalKind, Choice};
use crate::model::budget::BudgetQuestion;
use crate::model::problem::{Problem, ProblemCode};
use crate::store::Rows;

/// Why these rows' principal may not give this answer, if so.
pub(super) fn not_theirs(rows: &Rows<'_>, approval: &Approval, choice: Choice) -> Option<Problem> {
    if approval.kind != ApprovalKind::Budget || choice != Choice::GrantMore || rows.sees_whole_tenant() {
        return None;
    }
    let shared = match serde_json::from_value::<BudgetQuestion>(approval.arguments.clone()) {
        Ok(question) => question.budgets.iter().any(|one| one.budget.scope.is_shared()),
        Err(_) => true,
    };
    shared.then(|| {
        let detail = "a budget of a user, the tenant or a day is raised by somebody with the scope `tenant:all` only";
        Problem::new(ProblemCode::Forbidden, detail)
    })
}
