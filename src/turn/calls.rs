//! Running the calls of one answer: those the record says are running. Results
//! are stored as they come, those that are ready together in one commit, and
//! each commit starts what may follow.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::change::Change;
use super::engine::Engine;
use super::followed::is_followed;
use super::nested::Programs;
use super::owner::{Gone, Owned, cancel_outcome};
use super::run::{KILL_PATIENCE, TOGETHER, ending, timed_out};
use super::scripted;
use super::state::State;
use super::watch::{Signal, Watch};
use super::world::standing;
use super::{consult, hooked};
use crate::base::Timestamp;
use crate::environment::Row;
use crate::model::approval::Approval;
use crate::model::call::CallStatus;
use crate::model::id::CallId;
use crate::model::record::CallRecord;
use crate::tool::checkpoints::{self, Moment};
use crate::tool::context_hints::Touched;
use crate::tool::dispatch::{self, Reader};
use crate::tool::registry::Entry;
use crate::tool::session_tools::SessionTools;
use crate::tool::{Call, Done, Place, error_text};

/// Calls that run together must be done by then (Hermes: 420 s).
const BATCH: Duration = Duration::from_secs(420);

type Results = Vec<(CallId, Done)>;

/// Calls under way in this process.
#[derive(Default)]
struct InFlight {
    tasks: JoinSet<(CallId, Done)>,
    /// Task of each call, for one that the runtime lost.
    by_task: HashMap<tokio::task::Id, CallId>,
    /// Results that wait for those that are ready with them. Kept here: a
    /// signal that ends the wait must not lose them, or a call ran for nothing
    /// and would run again.
    joined: Results,
    cancel: CancellationToken,
    /// The shell that waits for its next command, which goes with this.
    row: Row,
    /// When calls that run together must be done, while there are any.
    deadline: Option<Timestamp>,
}

pub(super) async fn run_calls(engine: &Engine, owned: &mut Owned, watch: &mut Watch) -> Result<(), Gone> {
    let (mut flight, mut programs) = (InFlight::default(), Programs::default());
    loop {
        programs.tell(&owned.state);
        watch.asks(programs.asks() || runs_script(engine, owned));
        flight.start_marked(engine, owned, &programs);
        if flight.is_empty() {
            return Ok(());
        }
        let late = overdue_at(engine, flight.deadline);
        tokio::select! {
            results = flight.ready() => {
                let change = Change::Results(results);
                if owned.commit(engine, change).await.is_err() {
                    flight.kill().await;
                    return Err(Gone);
                }
                if let Some(outcome) = owned.doomed.take() {
                    return end(engine, owned, flight, Ending::Outcome(Box::new(outcome))).await;
                }
                watch.knows(owned.state.session.head_seq);
                if engine.is_draining() && flight.is_empty() {
                    return Ok(());
                }
            }
            wanted = programs.next(|asked| consult::consult(engine, owned, asked)) => {
                let call = programs.begin(wanted);
                if owned.commit(engine, Change::Nested(Box::new(call))).await.is_err() {
                    flight.kill().await;
                    return Err(Gone);
                }
                if let Some(outcome) = owned.doomed.take() {
                    return end(engine, owned, flight, Ending::Outcome(Box::new(outcome))).await;
                }
                watch.knows(owned.state.session.head_seq);
            }
            () = late => {
                let results = flight.time_out().await;
                if owned.commit(engine, Change::Results(results)).await.is_err() {
                    return Err(Gone);
                }
                watch.knows(owned.state.session.head_seq);
            }
            signal = watch.next() => match signal {
                Signal::Changed(state) => owned.knows(*state),
                Signal::Cancelled => return end(engine, owned, flight, Ending::Outcome(Box::new(cancel_outcome()))).await,
                Signal::TimedOut(why) => return end(engine, owned, flight, Ending::Outcome(Box::new(timed_out(why)))).await,
                Signal::Stopping => return end(engine, owned, flight, Ending::ServerStops).await,
                Signal::Lost => {
                    flight.kill().await;
                    return Err(Gone);
                }
            }
        }
        if owned.state.turn.status.is_terminal() {
            flight.kill().await;
            return Ok(());
        }
    }
}

/// The script of a job has a limit of its own and may be silent meanwhile.
fn runs_script(engine: &Engine, owned: &Owned) -> bool {
    let State { turn, calls, .. } = &owned.state;
    let mut running = calls.iter().filter(|call| call.status == CallStatus::Running);
    running.any(|call| scripted::time(engine, turn, call).is_some())
}

/// Ends when calls that run together have taken too long.
async fn overdue_at(engine: &Engine, deadline: Option<Timestamp>) {
    match deadline {
        Some(deadline) => engine.clock().sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

enum Ending {
    Outcome(Box<super::next::Outcome>),
    /// The turn goes on at the next start; its killed calls do not.
    ServerStops,
}

/// Kills what runs, keeps what came of it, and commits.
async fn end(engine: &Engine, owned: &mut Owned, mut flight: InFlight, ending_with: Ending) -> Result<(), Gone> {
    let mut results = flight.kill().await;
    match ending_with {
        Ending::Outcome(outcome) => owned.commit(engine, ending(*outcome, results)).await,
        Ending::ServerStops => {
            for (_, done) in results.iter_mut().filter(|(_, done)| done.cancelled) {
                done.result = format!("{}\n[The server stopped while this call ran.]", done.result);
            }
            // One try: the store may be closing, and the record is true without
            // it (the calls become unknown at the next start).
            owned.commit(engine, Change::Kept(results)).await?;
            Err(Gone)
        }
    }
}

/// Who let the call run, as its result says it.
fn allowance(approvals: &[Approval], call: CallId) -> Option<String> {
    let of_call = approvals
        .iter()
        .rev()
        .filter(|approval| approval.tool_call_id == Some(call));
    of_call.filter_map(Approval::allowance).next()
}

impl InFlight {
    /// Starts calls that the committed record says are running.
    fn start_marked(&mut self, engine: &Engine, owned: &Owned, programs: &Programs) {
        let marked = owned
            .state
            .calls
            .iter()
            .filter(|call| call.status == CallStatus::Running);
        let fresh: Vec<_> = marked
            .filter(|call| !self.by_task.values().any(|own| *own == call.call_id))
            .collect();
        if fresh.is_empty() {
            return;
        }
        let scene = engine.scene(&owned.state.session, &owned.state.turn);
        for record in fresh {
            let id = record.call_id;
            let tool = match as_judged(&scene.tools, owned.state.turn.progress.forms.get(&id), &record.name) {
                Ok(tool) => tool,
                Err(text) => {
                    let task = self.tasks.spawn(async move { (id, failed(text)) });
                    self.by_task.insert(task.id(), id);
                    continue;
                }
            };
            let cwd = owned.state.session.cwd.as_deref();
            let is_nested = record.nested.is_some();
            let call = Call {
                tenant_id: owned.tenant,
                // Delegated work is done where its root's files are.
                session_id: owned.state.session.home(),
                call_id: id,
                arguments: record.effective_arguments().clone(),
                cwd: standing(&scene.workspace, cwd).to_owned(),
                todo: owned.state.session.todo.clone(),
                // A program gets what it reads, whatever the model has seen.
                seen_files: match is_nested {
                    true => String::new(),
                    false => owned.state.session.seen_files.clone(),
                },
                records: Some(owned.scope.clone().of_user(owned.state.session.user_id.clone())),
                tools: scene.tools.clone(),
                time: scripted::time(engine, &owned.state.turn, record),
                pen: owned.drafts.pen(),
                allowance: allowance(&owned.state.approvals, id),
                nest: (!is_nested).then(|| programs.nest(scene.tools.offered())),
                cancel: programs.cancel_of(id).unwrap_or_else(|| self.cancel.child_token()),
                row: match is_nested {
                    true => Row::default(),
                    false => self.row.then(is_followed(&owned.state.calls, record)),
                },
                clock: engine.clock().clone(),
                host: engine.host().clone(),
            };
            let after = hooked::after(engine, owned, record);
            let reader = match is_nested {
                true => Reader::Program,
                false => Reader::Model(engine.budget()),
            };
            let running = dispatch::run(tool.clone(), call, reader, after);
            let touched = touched(engine, owned, (record, tool), &scene.workspace);
            let ahead = checkpoints::ahead(engine.host().clone(), engine.clock().clone(), moment(owned, record));
            let task = self.tasks.spawn(async move {
                let _held = ahead.await;
                let mut done = running.await;
                if let Some(touched) = touched {
                    touched.hint(&mut done).await;
                }
                (id, done)
            });
            self.by_task.insert(task.id(), id);
        }
        let calls = owned.state.calls.iter();
        let own = calls.filter(|call| call.status == CallStatus::Running && call.nested.is_none());
        if 1 < own.count() && self.deadline.is_none() {
            self.deadline = Some(engine.clock().now().after(BATCH));
        }
    }

    /// Stops what runs. What was done keeps its result; of the others nobody
    /// knows how far they came.
    async fn time_out(&mut self) -> Results {
        let open: Vec<CallId> = self.by_task.values().copied().collect();
        let mut results = self.kill().await;
        let stopped: Vec<CallId> = open
            .into_iter()
            .filter(|id| !results.iter().any(|(known, done)| known == id && !done.cancelled))
            .collect();
        results.retain(|(id, _)| !stopped.contains(id));
        results.extend(stopped.into_iter().map(|id| (id, overdue())));
        (self.cancel, self.deadline) = (CancellationToken::new(), None);
        self.by_task.clear();
        results
    }

    fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.joined.is_empty()
    }

    /// The next result, and those that are ready with it. Dropping the future
    /// loses nothing.
    async fn ready(&mut self) -> Results {
        if self.joined.is_empty() {
            self.join_next().await;
        }
        while !self.tasks.is_empty() {
            if timeout(TOGETHER, self.join_next()).await.is_err() {
                break;
            }
        }
        std::mem::take(&mut self.joined)
    }

    /// Adds the next result to those that are there.
    async fn join_next(&mut self) {
        let Some(joined) = self.tasks.join_next_with_id().await else {
            return;
        };
        if self.tasks.is_empty() {
            self.deadline = None;
        }
        self.joined.extend(match joined {
            Ok((_, result)) => Some(result),
            Err(error) => {
                let id = self.by_task.get(&error.id()).copied();
                id.map(|id| (id, failed(error_text::failed("Aborted", "the tool was aborted"))))
            }
        });
    }

    /// Cancels all calls and waits for their results; those that do not die in
    /// time have none.
    async fn kill(&mut self) -> Results {
        self.kill_within(KILL_PATIENCE).await
    }

    async fn kill_within(&mut self, patience: Duration) -> Results {
        self.cancel.cancel();
        let all = async {
            while !self.tasks.is_empty() {
                self.join_next().await;
            }
        };
        let _late = timeout(patience, all).await;
        self.tasks.abort_all();
        std::mem::take(&mut self.joined)
    }
}

/// The tool of a call, if it still is the one that was judged; else what the model
/// is told. Between a commit and the start of a call tools may be replaced.
fn as_judged<'a>(tools: &'a SessionTools, form: Option<&String>, name: &str) -> Result<&'a Arc<Entry>, String> {
    let tool = tools.get(name).ok_or("is gone");
    let tool = tool.and_then(|tool| match form == tool.form().as_ref() {
        true => Ok(tool),
        false => Err("was replaced just before the call would have started"),
    });
    tool.map_err(|why| error_text::envelope(&format!("the tool `{name}` {why}: the call was not run")))
}

/// Where the call looks about, for what is said there; a program is told nothing.
fn touched(engine: &Engine, owned: &Owned, (call, tool): (&CallRecord, &Entry), workspace: &Path) -> Option<Touched> {
    let session = &owned.state.session;
    if !engine.settings().context_files || call.nested.is_some() {
        return None;
    }
    let place = Place {
        workspace,
        cwd: standing(workspace, session.cwd.as_deref()),
        backend: &session.environment.backend,
        policies: &[],
        unread: None,
    };
    let whose = (engine.host(), owned.tenant, session.home());
    Touched::by(tool, call.effective_arguments(), &place, whose, &session.seen_files)
}

/// What a checkpoint is told of a call.
fn moment(owned: &Owned, call: &CallRecord) -> Moment {
    Moment {
        tenant: owned.tenant,
        home: owned.state.session.home(),
        session: owned.state.session.session_id,
        turn: call.turn_id,
        answer: call.message_id,
        call: call.call_id,
        tool: call.name.clone(),
        is_due: checkpoints::is_due(&call.name, call.effective_arguments()),
    }
}

fn overdue() -> Done {
    let text = format!(
        "the calls that run together were not done within {} seconds; this one was stopped and may have had an effect",
        BATCH.as_secs()
    );
    Done {
        survived: true,
        ..failed(error_text::failed("Timeout", &text))
    }
}

fn failed(result: String) -> Done {
    Done {
        result,
        failed: true,
        ..Done::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;

    #[tokio::test]
    async fn a_signal_while_results_are_gathered_loses_none() {
        let mut flight = InFlight::default();
        let (quick, slow): (CallId, CallId) = (Id::from_bits(1), Id::from_bits(2));
        flight.tasks.spawn(async move { (quick, Done::default()) });
        flight.tasks.spawn(async move {
            std::future::pending::<()>().await;
            (slow, Done::default())
        });
        tokio::task::yield_now().await;
        // A decision arrives while the quick one waits for company.
        assert!(futures::poll!(std::pin::pin!(flight.ready())).is_pending());
        let ids: Vec<CallId> = flight.ready().await.into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [quick]);
        assert!(!flight.is_empty(), "the slow one is still to come");
    }

    #[tokio::test]
    async fn calls_that_take_too_long_together_are_stopped_and_what_was_done_is_kept() {
        let mut flight = InFlight::default();
        let (quick, slow): (CallId, CallId) = (Id::from_bits(1), Id::from_bits(2));
        let task = flight.tasks.spawn(async move { (quick, Done::default()) });
        flight.by_task.insert(task.id(), quick);
        let stopped = flight.cancel.child_token();
        let task = flight.tasks.spawn(async move {
            stopped.cancelled().await;
            let done = Done {
                cancelled: true,
                ..Done::default()
            };
            (slow, done)
        });
        flight.by_task.insert(task.id(), slow);
        let mut results = flight.time_out().await;
        results.sort_by_key(|(id, _)| *id);
        let [(first, done), (second, late)] = results.as_slice() else {
            panic!("each has one result: {results:?}")
        };
        assert_eq!((first, second), (&quick, &slow));
        assert!(!done.survived && late.survived, "only the late one is unknown");
        assert!(late.result.contains("420 seconds"), "{}", late.result);
        assert!(!flight.cancel.is_cancelled(), "what comes next may run");
    }

    #[tokio::test]
    async fn a_call_that_does_not_die_in_time_has_no_result_and_holds_nobody_up() {
        let mut flight = InFlight::default();
        let (tame, wild): (CallId, CallId) = (Id::from_bits(1), Id::from_bits(2));
        let cancelled = flight.cancel.child_token();
        flight.tasks.spawn(async move {
            cancelled.cancelled().await;
            (tame, Done::default())
        });
        flight.tasks.spawn(async move {
            std::future::pending::<()>().await;
            (wild, Done::default())
        });
        let results = flight.kill_within(Duration::from_millis(100)).await;
        let ids: Vec<CallId> = results.into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [tame]);
    }
}
