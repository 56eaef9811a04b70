//! What model calls take: counted where their answer is stored, told when a
//! budget runs low, and asked about before a call that would cross the line.

use serde_json::json;

use super::Step;
use crate::model::approval::{Approval, ApprovalKind, ApprovalStatus, Choice, OnAsk, digest};
use crate::model::budget::{Budget, BudgetGrant, BudgetQuestion, BudgetUnit, Exceeded, Spender};
use crate::model::event::{BudgetData, EventType};
use crate::model::message::FinishReason;
use crate::model::turn::StopReason;
use crate::model::usage::{NANOS, Spent, UsageRecord};
use crate::turn::next::Outcome;

/// Stands in the digest where calls have their tool.
const SUBJECT: &str = "budget";

impl Step<'_> {
    /// Counts a model call, whatever became of its answer.
    pub fn spend(&mut self, spent: Spent) {
        let usage = spent.usage();
        let turn = &mut self.state.turn;
        turn.usage.add(&usage);
        turn.progress.foreseen = spent.foreseen;
        self.state.session.usage.add(&usage);
        for budget in &mut self.state.budgets {
            budget.spent = budget.spent.saturating_add(usage.of(budget.unit));
        }
        self.writes.usage.push(UsageRecord {
            usage_id: self.world.id(),
            session_id: self.state.session.session_id,
            turn_id: self.state.turn.turn_id,
            user_id: self.state.turn.user_id.clone(),
            spent,
            at: self.world.now,
        });
        self.tell_usage();
        self.warn();
    }

    /// Tells the sums, unless this transaction has told them.
    pub(super) fn tell_usage(&mut self) {
        let usage = json!({"turn": self.state.turn.usage, "session": self.state.session.usage});
        let event = self.event(EventType::UsageUpdated, usage);
        if !self.writes.events.contains(&event) {
            self.writes.events.push(event);
        }
    }

    fn warn(&mut self) {
        let percent = self.world.rules.budgets.warn_percent;
        for budget in self.state.budgets.clone() {
            let warned = &mut self.state.turn.progress.warned;
            if *warned & budget.bit() == 0 && budget.is_at(percent) {
                *warned |= budget.bit();
                self.push_budget_event(EventType::BudgetWarning, budget);
            }
        }
    }

    fn push_budget_event(&mut self, kind: EventType, budget: Budget) {
        let data = json!(BudgetData { budget });
        let event = self.event(kind, data);
        self.writes.events.push(event);
    }

    /// The next model call would cross a line: a person is asked for more, or
    /// the turn ends where nobody is there to be asked.
    pub(super) fn ask_budget(&mut self) {
        let exceeded: Vec<Exceeded> = self.state.exceeded().map(|budget| self.more_for(*budget)).collect();
        for one in &exceeded {
            self.push_budget_event(EventType::BudgetExceeded, one.budget);
        }
        if self.world.rules.on_ask == OnAsk::Deny {
            self.finish(Outcome::completed(StopReason::Budget));
            return;
        }
        let title = title(&exceeded);
        let arguments = json!(BudgetQuestion { budgets: exceeded });
        let backend = self.state.session.environment.backend.clone();
        let (at, origin) = self.asking();
        let approval = Approval {
            id: self.world.id(),
            session_id: at.session_id,
            turn_id: at.turn_id,
            origin,
            tool_call_id: None,
            batch_id: None,
            index: 0,
            kind: ApprovalKind::Budget,
            status: ApprovalStatus::Pending,
            tool: None,
            title,
            cwd: None,
            digest: digest(SUBJECT, &arguments, None, &backend, &[]),
            arguments,
            backend,
            findings: Vec::new(),
            choices: vec![Choice::GrantMore, Choice::Stop],
            requester: self.state.turn.user_id.clone(),
            reviewer: "human".to_owned(),
            requested_at: self.world.now,
            expires_at: self.expiry(),
            on_expiry: self.world.rules.on_expiry,
            decision: None,
        };
        self.request(approval);
    }

    /// What *grant more* adds: a share of the ceiling beyond what is spent, so
    /// that the next call fits whatever was overshot.
    fn more_for(&self, budget: Budget) -> Exceeded {
        let budgets = &self.world.rules.budgets;
        let ceiling = budgets.ceiling(budget.scope, budget.unit).unwrap_or(budget.limit);
        let share = u128::from(ceiling) * u128::from(budgets.grant_percent) / 100;
        let share = u64::try_from(share).unwrap_or(u64::MAX).max(1);
        let used = budget.after(self.state.turn.progress.foreseen);
        let add = used.saturating_sub(budget.limit).saturating_add(share);
        Exceeded { budget, add }
    }

    /// Carries out a *grant more*: what the approval says is added, no more.
    pub(super) fn grant_budget(&mut self, approval: &Approval) {
        let Ok(question) = serde_json::from_value::<BudgetQuestion>(approval.arguments.clone()) else {
            return;
        };
        let spender = Spender {
            session: approval.session_id,
            turn: approval.turn_id,
            user: &approval.requester,
        };
        for Exceeded { budget, add } in question.budgets {
            // Of a day: the one that was asked about.
            let subject = spender.subject(budget.scope, approval.requested_at);
            let same = |own: &&mut Budget| own.scope == budget.scope && own.unit == budget.unit;
            let current = subject == spender.subject(budget.scope, self.world.now);
            if let Some(own) = self.state.budgets.iter_mut().find(same).filter(|_| current) {
                own.limit = own.limit.saturating_add(add);
                self.state.turn.progress.warned &= !budget.bit();
            }
            self.writes.budget_grants.push(BudgetGrant {
                subject,
                unit: budget.unit,
                add,
            });
        }
    }

    /// What the transcript says of a turn that a budget ended.
    pub(super) fn note_budget(&mut self) {
        let id = self.world.id();
        let note = "[The turn ended here: its budget is used up.]".to_owned();
        self.push_answer(id, note, String::new(), FinishReason::Incomplete, 0);
    }
}

/// One line: what is used up, and how far.
fn title(exceeded: &[Exceeded]) -> String {
    let each = exceeded.iter().map(|Exceeded { budget, add }| {
        let Budget {
            scope,
            unit,
            limit,
            spent,
        } = budget;
        let whose = json!(scope);
        let whose = whose.as_str().unwrap_or_default();
        let show = |figure: &u64| match unit {
            BudgetUnit::Tokens => format!("{figure} tokens"),
            BudgetUnit::CostNanos => format!("{}.{:09}", figure / NANOS, figure % NANOS),
        };
        format!(
            "{whose} used {} of {}, grant {} more?",
            show(spent),
            show(limit),
            show(add)
        )
    });
    format!("budget: {}", each.collect::<Vec<_>>().join("; "))
}
