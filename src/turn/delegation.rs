//! The rules of delegated work: how many children at once, how deep, and what no
//! child may call.

use std::time::Duration;

use crate::model::lineage::{ChildRole, Lineage, Task};

/// What the configuration says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegation {
    /// Tasks of one call.
    pub max_children: usize,
    /// Delegations above a child, itself included.
    pub max_depth: usize,
    /// Whether children may be orchestrators at all.
    pub orchestrators: bool,
    /// Model calls of a child.
    pub max_steps: u32,
    /// Wall time of a child while it runs.
    pub timeout: Option<Duration>,
    /// The model of children; the parent's where nothing is said.
    pub model: Option<String>,
    /// Characters of a child's report that its parent's model is shown.
    pub max_summary_chars: usize,
    /// What children would ask is allowed without asking.
    pub auto_approve: bool,
}

/// What no child gets: nobody answers it, what it remembers would be its own,
/// and what it starts would outlive it.
const BLOCKED: [&str; 5] = ["clarify", "memory", "send_message", "execute_code", "cronjob"];
const BLOCKED_FOR_LEAVES: [&str; 6] = [
    "clarify",
    "memory",
    "send_message",
    "execute_code",
    "cronjob",
    "delegate_task",
];

/// Said of a tool that a child does not get.
pub const REASON: &str = "not for delegated work";

impl Delegation {
    /// Tools that a session does not get because of whose work it does.
    pub fn blocked(&self, lineage: &Lineage) -> &'static [&'static str] {
        match self.may_delegate(Some(lineage)) {
            true => &BLOCKED,
            false => &BLOCKED_FOR_LEAVES,
        }
    }

    fn may_delegate(&self, lineage: Option<&Lineage>) -> bool {
        match lineage {
            None => true,
            Some(own) => self.orchestrators && own.role == ChildRole::Orchestrator && own.depth() < self.max_depth,
        }
    }

    /// Why these tasks may not be delegated, if so.
    pub fn refusal(&self, lineage: Option<&Lineage>, tasks: &[Task]) -> Option<String> {
        if !self.may_delegate(lineage) {
            let depth = lineage.map_or(0, Lineage::depth);
            return Some(format!(
                "Delegation depth limit reached (depth={depth}, max_spawn_depth={}): do the task yourself.",
                self.max_depth
            ));
        }
        (self.max_children < tasks.len()).then(|| {
            format!(
                "Too many tasks: {} provided, but max_concurrent_children is {}. Split them into several calls.",
                tasks.len(),
                self.max_children
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;
    use crate::model::lineage::Ancestor;

    fn rules(max_depth: usize, orchestrators: bool) -> Delegation {
        Delegation {
            max_children: 2,
            max_depth,
            orchestrators,
            max_steps: 50,
            timeout: None,
            model: None,
            max_summary_chars: 24_000,
            auto_approve: false,
        }
    }

    fn lineage(depth: usize, role: ChildRole) -> Lineage {
        let ancestor = Ancestor {
            session_id: Id::from_bits(1),
            turn_id: Id::from_bits(1),
        };
        Lineage {
            ancestors: vec![ancestor; depth],
            tool_call_id: Id::from_bits(1),
            index: 0,
            role,
        }
    }

    #[test]
    fn only_an_orchestrator_above_the_greatest_depth_may_delegate() {
        let task = Task {
            goal: "a".to_owned(),
            context: None,
            role: ChildRole::Leaf,
        };
        let may = |rules: &Delegation, lineage: &Lineage| rules.refusal(Some(lineage), std::slice::from_ref(&task));
        assert_eq!(rules(1, true).refusal(None, std::slice::from_ref(&task)), None);
        assert!(may(&rules(1, true), &lineage(1, ChildRole::Orchestrator)).is_some());
        assert!(may(&rules(2, true), &lineage(1, ChildRole::Orchestrator)).is_none());
        assert!(may(&rules(2, false), &lineage(1, ChildRole::Orchestrator)).is_some());
        assert!(may(&rules(2, true), &lineage(1, ChildRole::Leaf)).is_some());
        assert!(may(&rules(2, true), &lineage(2, ChildRole::Orchestrator)).is_some());
        let many = rules(1, true).refusal(None, &vec![task; 3]).unwrap();
        assert!(many.contains("3 provided"), "{many}");
    }

    #[test]
    fn a_leaf_has_no_tool_to_delegate_with() {
        let rules = rules(2, true);
        assert!(rules.blocked(&lineage(1, ChildRole::Leaf)).contains(&"delegate_task"));
        assert!(
            !rules
                .blocked(&lineage(1, ChildRole::Orchestrator))
                .contains(&"delegate_task")
        );
        assert!(rules.blocked(&lineage(1, ChildRole::Orchestrator)).contains(&"clarify"));
    }
}
