//! Processes in the background, towards the store: what happened to one becomes
//! a row, an event and, where the model is to be told, a turn of its own, all in
//! one transaction. Clients type to them and end them.

#![allow(
    clippy::indexing_slicing,
    reason = "keys of JSON objects: a read of a missing one is null, and what is written is an object made here"
)]

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::turns::{Made, QUEUE_BOUND, enqueue};
use super::{EngineError, Verdict, earlier};
use crate::model::background::{BackgroundEnd, BackgroundProcess, BackgroundRecord, Completion, WatchChange};
use crate::model::event::EventType;
use crate::model::id::{BackgroundId, SessionId, TurnId};
use crate::model::message::Part;
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::{NewEvent, SessionRecord, TurnRecord, Writes};
use crate::model::sampling::Sampling;
use crate::store::{Rows, Scope, StoreError};
use crate::tool::processes::{Entry, Told, note};
use crate::turn::commit;
use crate::turn::engine::Engine;
use crate::turn::state::State;

/// What became of typed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Typed {
    pub bytes_written: usize,
}

/// Something to be stored of a process.
#[derive(Clone)]
struct Happened {
    record: BackgroundRecord,
    kind: EventType,
    data: Value,
    end: Option<BackgroundEnd>,
    /// What the model is told in a turn of its own.
    note: Option<String>,
}

impl Engine {
    /// Stores the end of a process, once; the model is told of it where there is
    /// output to tell.
    pub async fn process_ended(
        &self,
        mut record: BackgroundRecord,
        end: BackgroundEnd,
        tell: Option<String>,
    ) -> Verdict<()> {
        record.end = Some(end);
        let happened = Happened {
            kind: EventType::ProcessExited,
            data: json!({"process": record.told()}),
            end: Some(end),
            note: tell.map(|output| note::ended(&record, &end, &output)),
            record,
        };
        self.store_happened(happened).await
    }

    /// Stores what a process was watched for.
    pub async fn process_watched(&self, record: BackgroundRecord, told: Told) -> Verdict<()> {
        let note = note::watched(&record, &told);
        let (kind, data) = match told {
            Told::Matched(matched) => {
                let data = json!({"process": record.told(), "matched": matched});
                (EventType::ProcessMatched, data)
            }
            Told::Changed { change, dropped } => {
                let data = json!({"process": record.told(), "change": change, "dropped": dropped});
                (EventType::ProcessWatchChanged, data)
            }
        };
        let happened = Happened {
            record,
            kind,
            data,
            end: None,
            note,
        };
        self.store_happened(happened).await
    }

    /// Processes that a server left which is gone: they ended with it.
    pub async fn lose_processes(&self) -> Verdict<()> {
        for record in self.store().orphaned_backgrounds_across_tenants().await? {
            let end = BackgroundEnd {
                exit_code: None,
                completion: Completion::Lost,
                at: self.clock().now(),
            };
            let tell = record.notices.on_completion.then(String::new);
            let lost = BackgroundRecord {
                end: Some(end),
                ..record.clone()
            };
            // Known before it is told, so that the model can look at it.
            self.host().processes().lost(lost);
            self.process_ended(record, end, tell).await?;
        }
        Ok(())
    }

    /// Ends processes of sessions that are gone: another server may have purged
    /// them.
    pub async fn end_processes_of_deleted(&self) -> Verdict<()> {
        let processes = self.host().processes();
        for (tenant, session) in processes.sessions_here() {
            let scope = self.store().scope(tenant);
            let read = scope.read(move |mut rows| Box::pin(async move { rows.session_record(session).await }));
            if read.await?.is_none() {
                processes.end_session(tenant, session).await;
            }
        }
        Ok(())
    }

    async fn store_happened(&self, happened: Happened) -> Verdict<()> {
        let engine = self.clone();
        let tenant = happened.record.tenant_id;
        let scope = self.store().scope(tenant);
        let stored = scope.write_anew("process", move |mut rows| {
            Box::pin(async move { happened.store(&mut rows, &engine).await })
        });
        if let Some(made) = stored.await? {
            if made.begun {
                self.spawn_own(tenant, made.carried);
            } else {
                self.spawn_promoted(tenant, made.carried);
            }
        }
        Ok(())
    }

    /// Types text to a process. Under a key it is typed once at most.
    pub async fn type_to_process(
        &self,
        scope: &Scope,
        session: SessionId,
        id: BackgroundId,
        text: String,
    ) -> Verdict<Typed> {
        let engine = self.clone();
        let typed = Typed {
            bytes_written: text.len(),
        };
        let found = scope.write_anew("process_input", move |mut rows| {
            Box::pin(async move {
                if let Some(earlier) = earlier(&mut rows).await? {
                    return Ok(Err(earlier));
                }
                let entry = match here(&mut rows, &engine, session, id).await? {
                    Ok((_, entry)) => entry,
                    Err(refused) => return Ok(Err(refused)),
                };
                rows.remember(&typed).await?;
                Ok(Ok(entry))
            })
        });
        let written = found.await??.write(text).await;
        let bytes_written = written
            .map_err(|unread| EngineError::Refused(Problem::new(ProblemCode::ProcessNotReady, unread.to_string())))?;
        Ok(Typed { bytes_written })
    }

    /// Ends a process and all that it started; one that has ended stays as it is.
    pub async fn kill_process(
        &self,
        scope: &Scope,
        session: SessionId,
        id: BackgroundId,
    ) -> Verdict<BackgroundProcess> {
        let engine = self.clone();
        let found = scope.write_anew("process_kill", move |mut rows| {
            Box::pin(async move {
                if let Some(earlier) = earlier(&mut rows).await? {
                    return Ok(Err(earlier));
                }
                match rows.background(session, id).await? {
                    Some(record) if record.end.is_some() => {
                        let view = record.view();
                        rows.remember(&view).await?;
                        Ok(Ok(Err(view)))
                    }
                    Some(_) => here(&mut rows, &engine, session, id).await.map(|found| found.map(Ok)),
                    None => Ok(Err(EngineError::NotFound("process"))),
                }
            })
        });
        let (record, entry) = match found.await?? {
            Ok(running) => running,
            Err(ended) => return Ok(ended),
        };
        entry.ask_to_end(Completion::Killed);
        entry.silence();
        entry.ended().await;
        let end = entry.end().ok_or(EngineError::NotFound("process"))?;
        self.process_ended(record.clone(), end, None).await?;
        let view = BackgroundRecord {
            end: Some(end),
            ..record
        }
        .view();
        let kept = view.clone();
        let remembered = scope.write_anew("process_killed", move |mut rows| {
            Box::pin(async move { rows.remember(&kept).await })
        });
        remembered.await?;
        Ok(view)
    }
}

/// A running process of this server.
async fn here(
    rows: &mut Rows<'_>,
    engine: &Engine,
    session: SessionId,
    id: BackgroundId,
) -> Result<Verdict<(BackgroundRecord, std::sync::Arc<Entry>)>, StoreError> {
    let Some(record) = rows.background(session, id).await? else {
        return Ok(Err(EngineError::NotFound("process")));
    };
    let entry = engine.host().processes().get(record.tenant_id, session, id);
    let refused = |code, detail: &str| Ok(Err(EngineError::Refused(Problem::new(code, detail))));
    match entry {
        Some(entry) if entry.end().is_none() => Ok(Ok((record, entry))),
        None if record.end.is_none() => refused(
            ProblemCode::EnvironmentLost,
            "the process runs on another server of this database; ask that one",
        ),
        _ => refused(ProblemCode::ProcessNotReady, "the process has ended"),
    }
}

impl Happened {
    /// Everything that follows from it; the turn that tells the model, if any.
    async fn store(self, rows: &mut Rows<'_>, engine: &Engine) -> Result<Option<Made>, StoreError> {
        let (now, record) = (engine.clock().now(), &self.record);
        let Some(mut session) = rows.lock_session(record.session_id).await? else {
            return Ok(None);
        };
        let is_news = match &self.end {
            Some(end) => rows.end_background(record.id, end).await?,
            None => match self.kind {
                EventType::ProcessWatchChanged if self.data["change"] == json!(WatchChange::Disabled) => {
                    rows.set_background_notices(record.id, &record.notices).await?
                }
                _ => rows.background(record.session_id, record.id).await?.is_some(),
            },
        };
        if !is_news {
            return Ok(None);
        }
        let writes = Writes {
            events: vec![NewEvent {
                kind: self.kind,
                turn_id: None,
                epoch: 0,
                data: self.data,
            }],
            ..Writes::default()
        };
        rows.apply(&mut session, &writes, now).await?;
        match self.note {
            Some(note) if !engine.is_draining() => Box::pin(follow_up(rows, engine, session, record, note)).await,
            _ => Ok(None),
        }
    }
}

/// A turn that tells the model, with the rights of the turn that started the
/// process: at once where the session is idle, behind the others where it is not.
async fn follow_up(
    rows: &mut Rows<'_>,
    engine: &Engine,
    session: SessionRecord,
    record: &BackgroundRecord,
    note: String,
) -> Result<Option<Made>, StoreError> {
    let Some(origin) = record.turn_id else { return Ok(None) };
    let Some(origin) = rows.turn(session.session_id, origin).await? else {
        return Ok(None);
    };
    let mut options = origin.options.clone();
    // What was forced was forced in that turn, and nobody follows this one.
    *options.sampling = Sampling::default().or(&session.sampling);
    options.on_disconnect = Default::default();
    options.metadata = [
        ("source".to_owned(), json!("process")),
        ("process_id".to_owned(), json!(record.id)),
    ]
    .into_iter()
    .collect();
    let id = TurnId::new(engine.clock());
    let now = engine.clock().now();
    let input = vec![Part::text(note)];
    let turn = TurnRecord {
        key_id: origin.key_id,
        ..TurnRecord::queued(id, session.session_id, origin.user_id, input, options, now)
    };
    if session.active_turn_id.is_some() {
        if QUEUE_BOUND <= rows.queued_turns(session.session_id).await?.len() {
            tracing::warn!(process = %record.id, "the queue is full: the model is not told of a process");
            return Ok(None);
        }
        return enqueue(rows, engine, session, turn).await.map(Some);
    }
    let state = State::fresh(session, turn);
    let carried = commit::carry_out_callless(rows, engine, state, None, |step| step.begin_new()).await?;
    Ok(Some(Made::of(carried, true)))
}
