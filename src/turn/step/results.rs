//! Results of calls: one for each, in its reserved place.

use serde_json::json;

use super::Step;
use super::edit::told;
use crate::guard::threat::Risk;
use crate::model::background::BackgroundRecord;
use crate::model::call::CallStatus;
use crate::model::event::{EventType, OutputRiskData};
use crate::model::guardrail::{Action, Signature};
use crate::model::id::CallId;
use crate::model::job::JobCeiling;
use crate::model::message::{ImageUrl, Part, Role};
use crate::model::record::{CallRecord, JobWrite, MessageRecord};
use crate::tool::Done;
use crate::tool::context_hints::Hint;
use crate::tool::file_views::{self, FileNews, FileViews};
use crate::tool::job_actions;
use crate::tool::memory_entries;

impl Step<'_> {
    /// Stores what calls gave back, and goes on.
    pub fn results(&mut self, results: Vec<(CallId, Done)>) {
        self.take_results(results);
        self.settle();
    }

    /// Stores what calls gave back; a successor asks what comes next.
    pub fn keep(&mut self, results: Vec<(CallId, Done)>) {
        self.take_results(results);
        self.touched = true;
    }

    /// What came of a program's calls goes before what came of the program, which
    /// closes those that are open.
    pub(super) fn take_results(&mut self, results: Vec<(CallId, Done)>) {
        let is_nested = |id: &CallId| self.state.call(*id).is_some_and(|call| call.nested.is_some());
        let (nested, own): (Vec<_>, Vec<_>) = results.into_iter().partition(|(id, _)| is_nested(id));
        for (id, done) in nested.into_iter().chain(own) {
            self.take_result(id, done);
        }
    }

    /// Stores results without asking what comes next: the turn is ending.
    fn take_result(&mut self, id: CallId, mut done: Done) {
        if self
            .state
            .call(id)
            .is_none_or(|call| call.status != CallStatus::Running)
        {
            return;
        }
        // Something was stored: a takeover after this begins its count anew.
        self.state.turn.progress.recoveries = 0;
        if !done.writes.trace.is_empty() {
            let traces = &mut self.state.turn.progress.traces;
            traces.entry(id).or_default().append(&mut done.writes.trace);
        }
        if let Some(cwd) = done.writes.cwd {
            self.state.session.cwd = Some(cwd);
        }
        if let Some(call) = self.call_mut(id) {
            call.exit_code = done.exit_code;
        }
        self.close_nested(id, "the program that made it ended");
        self.saw_files(id, &done.writes.files);
        if let Some(change) = done.writes.memory.take() {
            // As it was judged, whatever the rules are by now.
            (done.result, done.failed) = match self.state.turn.progress.staged.remove(&id) {
                true => self.stage(id, change.staged()),
                false => self.remember(&change),
            };
        }
        if let Some(action) = done.writes.jobs.take() {
            (done.result, done.failed) = self.schedule(action);
        }
        if let Some(staged) = done.writes.pending.take() {
            (done.result, done.failed) = self.stage(id, staged);
        }
        let (status, kind) = match (done.survived, done.cancelled, done.failed) {
            (true, ..) => (CallStatus::Unknown, EventType::ToolCallUnknown),
            (false, true, _) => (CallStatus::Cancelled, EventType::ToolCallCancelled),
            (false, false, true) => (CallStatus::Failed, EventType::ToolCallCompleted),
            (false, false, false) => (CallStatus::Succeeded, EventType::ToolCallCompleted),
        };
        self.watch_loop(id, status, &mut done.result);
        self.hint(id, std::mem::take(&mut done.writes.hints), &mut done.result);
        let artifacts = std::mem::take(&mut done.writes.artifacts);
        self.settle_call(id, status, kind, done.result);
        self.show(id, done.images);
        self.warn_of(id, done.writes.risk.take());
        for kept in artifacts {
            self.keep_artifact(id, kept);
        }
        for process in done.writes.processes {
            self.note_process(process);
        }
        if let Some(todo) = done.writes.todo {
            let todos: serde_json::Value = serde_json::from_str(&todo).unwrap_or(json!([]));
            let event = self.event(EventType::TodoUpdated, json!({"todos": todos}));
            self.writes.events.push(event);
            self.state.session.todo = todo;
        }
    }

    /// Puts images beside the words of a result. A program reads words only.
    fn show(&mut self, id: CallId, images: Vec<String>) {
        let images = images.into_iter().map(|url| Part::ImageUrl {
            image_url: ImageUrl { url },
        });
        let mut messages = self.writes.messages.iter_mut();
        if let Some(message) = messages.find(|message| message.call_id == Some(id)) {
            message.content.extend(images);
        }
    }

    /// The result says things that the model is not to follow: clients learn it too.
    fn warn_of(&mut self, id: CallId, risk: Option<Risk>) {
        if let (Some(found), Some(call)) = (risk, self.state.call(id)) {
            let tool = call.name.clone();
            let data = json!(OutputRiskData {
                tool_call_id: id,
                tool,
                found
            });
            let event = self.event(EventType::ToolOutputRisk, data);
            self.writes.events.push(event);
        }
    }

    /// A process goes on in the background of this turn's session.
    fn note_process(&mut self, process: BackgroundRecord) {
        let turn = &self.state.turn;
        let process = BackgroundRecord {
            turn_id: Some(turn.turn_id),
            owner: turn.owner.or(self.world.owner),
            ..process
        };
        let event = self.event(EventType::ProcessStarted, json!({"process": process.told()}));
        self.writes.events.push(event);
        self.writes.processes.push(process);
    }

    /// Does what is asked with the jobs of the user, under their lock.
    fn schedule(&mut self, action: job_actions::Action) -> (String, bool) {
        let options = &self.state.turn.options;
        let asker = job_actions::Asker {
            user: &self.state.session.user_id,
            session: self.state.session.session_id,
            ceiling: JobCeiling {
                key: options.key_id,
                tools: options.tool_ceiling.clone(),
            },
            now: self.world.now,
            new_id: self.world.id(),
        };
        let outcome = job_actions::apply(action, &self.state.jobs, asker);
        match &outcome.write {
            Some(JobWrite::Add(job)) => self.state.jobs.push((**job).clone()),
            Some(JobWrite::Change(job)) => {
                self.state.jobs.retain(|own| own.id != job.id);
                self.state.jobs.push((**job).clone());
            }
            Some(JobWrite::Remove(id)) => self.state.jobs.retain(|own| own.id != *id),
            None => {}
        }
        self.writes.jobs.extend(outcome.write);
        (outcome.told, outcome.failed)
    }

    /// Counts the call; where the turn goes round in circles the model is told so
    /// behind the result, or the turn ends.
    fn watch_loop(&mut self, id: CallId, status: CallStatus, result: &mut String) {
        let counts = |call: &&CallRecord| status != CallStatus::Cancelled && call.nested.is_none();
        let Some(call) = self.state.call(id).filter(counts) else {
            return;
        };
        let signature = Signature::of(&call.name, call.effective_arguments());
        let failed = status != CallStatus::Succeeded;
        let progress = &mut self.state.turn.progress;
        let limits = &self.world.rules.guardrail;
        let verdict = progress.guardrail.after(&signature, failed, result, limits);
        let suffix = verdict.suffix(&signature.tool);
        result.push_str(&suffix);
        if verdict.action == Action::Halt {
            progress.halted = Some(suffix.trim().to_owned());
        }
    }

    /// Makes a change of the memory under its lock: two sessions of a user that
    /// change it at once follow one another. Answers what the model is told.
    fn remember(&mut self, change: &memory_entries::Change) -> (String, bool) {
        let (target, limit) = (change.target, self.world.rules.memory.of(change.target));
        let before = self.state.memories.of(target).to_vec();
        match memory_entries::after(&before, &change.operations, limit) {
            Ok(after) => {
                if before != after {
                    let event = self.event(EventType::MemoryUpdated, json!({"target": target, "entries": after}));
                    self.writes.events.push(event);
                    self.writes.memories.push((target, after.clone()));
                    self.state.memories.set(target, after.clone());
                }
                (memory_entries::told(target, &before, &after, limit).to_string(), false)
            }
            Err(refusal) => {
                let overflows = &mut self.state.turn.progress.memory_overflows;
                *overflows += u32::from(matches!(refusal, memory_entries::Refusal::OverLimit { .. }));
                let told = memory_entries::refused(&refusal, &before, limit, *overflows);
                (told.to_string(), true)
            }
        }
    }

    /// Notes what the call saw of files; calls of other tools begin the count of
    /// repeated reads anew.
    fn saw_files(&mut self, id: CallId, news: &[FileNews]) {
        // What a program reads the model does not see.
        let Some(call) = self.state.call(id).filter(|call| call.nested.is_none()) else {
            return;
        };
        if let Some(seen) = file_views::after_call(&self.state.session.seen_files, &call.name, news) {
            self.state.session.seen_files.clone_from(&seen);
            self.writes.seen_files = Some(seen);
        }
    }

    /// Says behind the result what directories say of themselves, once in a session:
    /// calls that ran together may have come upon the same.
    fn hint(&mut self, id: CallId, hints: Vec<Hint>, result: &mut String) {
        for Hint { directory, text } in hints {
            if FileViews::parse(&self.state.session.seen_files).is_hinted(&directory) {
                continue;
            }
            result.push_str("\n\n");
            result.push_str(&text);
            self.saw_files(id, &[FileNews::Hinted { directory }]);
        }
    }

    /// The model is no longer shown what it has read so far.
    pub(super) fn forget_files(&mut self) {
        if !self.state.session.seen_files.is_empty() {
            self.state.session.seen_files.clear();
            self.writes.seen_files = Some(String::new());
        }
    }

    /// Gives a call its one result.
    pub(super) fn settle_call(&mut self, id: CallId, status: CallStatus, kind: EventType, text: String) {
        let Some(call) = self.state.call(id).filter(|call| !call.status.is_settled()) else {
            return;
        };
        let executed =
            call.status == CallStatus::Running || matches!(status, CallStatus::Unknown | CallStatus::Succeeded);
        if call.nested.is_some() {
            let text = Self::told_program(call, text);
            if let Some(nested) = self.call_mut(id).and_then(|call| call.nested.as_mut()) {
                nested.result = Some(text.into());
            }
            return self.settled(id, status, kind, executed);
        }
        // Of a call that was not run after all there is nothing to compare.
        let text = match status {
            CallStatus::Denied => text,
            _ => told(call, text),
        };
        let message = MessageRecord {
            position: call.position,
            message_id: self.world.id(),
            turn_id: call.turn_id,
            role: Role::Tool,
            content: vec![Part::text(text)],
            reasoning: None,
            finish_reason: None,
            call_id: Some(id),
            steered: false,
            external_id: None,
            created_at: self.world.now,
        };
        self.writes.messages.push(message);
        self.settled(id, status, kind, executed);
    }

    fn settled(&mut self, id: CallId, status: CallStatus, kind: EventType, executed: bool) {
        self.mark(id, status);
        if executed {
            self.trail_executed(id, status);
        }
        self.push_call_event(kind, id);
    }
}
