//! Results of calls that the client carries out: all of a request or none, each
//! once. The same result again is no error.

use serde_json::json;

use super::{EngineError, Verdict, earlier};
use crate::model::call::{CallStatus, Execution, ToolCall};
use crate::model::id::{CallId, SessionId};
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::CallRecord;
use crate::store::{Rows, Scope, StoreError};
use crate::turn::commit::{self, Carried};
use crate::turn::engine::Engine;
use crate::turn::step::ClientResult;

impl Engine {
    /// Gives calls of a session that wait for the client their results. The calls
    /// as they are then come back, in the order of the results.
    pub async fn tool_results(
        &self,
        scope: &Scope,
        session: SessionId,
        results: Vec<ClientResult>,
    ) -> Verdict<Vec<ToolCall>> {
        let (engine, scope) = (self.clone(), scope.clone());
        self.whole(Box::pin(
            async move { engine.take_results(&scope, session, results).await },
        ))
        .await
    }

    async fn take_results(
        &self,
        scope: &Scope,
        session: SessionId,
        results: Vec<ClientResult>,
    ) -> Verdict<Vec<ToolCall>> {
        let engine = self.clone();
        let taken = scope.write_anew("tool_results", move |mut rows| {
            Box::pin(async move {
                if let Some(earlier) = earlier(&mut rows).await? {
                    return Ok(Err(earlier));
                }
                let taken = take(&mut rows, &engine, session, results).await?;
                if let Ok((calls, _)) = &taken {
                    rows.remember(calls).await?;
                }
                Ok(taken)
            })
        });
        let taken = taken.await;
        if let Err(StoreError::Unclear(_)) = taken {
            // The same results given again are no error, should they have been taken.
            self.adopt(scope, session).await;
        }
        let (calls, carried) = taken??;
        if let Some(carried) = carried {
            self.spawn_woken(scope.tenant(), *carried);
        }
        Ok(calls)
    }
}

type Taken = (Vec<ToolCall>, Option<Box<Carried>>);

async fn take(
    rows: &mut Rows<'_>,
    engine: &Engine,
    id: SessionId,
    results: Vec<ClientResult>,
) -> Result<Verdict<Taken>, StoreError> {
    let Some(session) = rows.lock_session(id).await? else {
        return Ok(Err(EngineError::NotFound("session")));
    };
    let ids: Vec<CallId> = results.iter().map(|result| result.call_id).collect();
    let stored = rows.calls_with_results(id, &ids).await?;
    let turn = match session.active_turn_id {
        Some(active) => rows.turn(id, active).await?,
        None => None,
    };
    let stopping = turn.as_ref().is_some_and(|turn| turn.cancel_reason.is_some());
    let mut fresh = Vec::new();
    for (index, result) in results.into_iter().enumerate() {
        let found = stored.iter().find(|(call, _)| call.call_id == result.call_id);
        match judged(found, &result, stopping) {
            Ok(true) => fresh.push(result),
            Ok(false) => {}
            Err(problem) => return Ok(Err(EngineError::Refused(at_index(*problem, index, result.call_id)))),
        }
    }
    let carried = match turn.filter(|_| !fresh.is_empty()) {
        Some(turn) => {
            let state = commit::load(rows, session, turn).await?;
            let give = |step: &mut crate::turn::step::Step<'_>| step.client_results(fresh);
            Some(commit::carry_out(rows, engine, state, None, give).await?)
        }
        None => None,
    };
    let now = rows.calls_with_results(id, &ids).await?;
    let calls = ids.iter().filter_map(|id| {
        let (call, result) = now.iter().find(|(call, _)| call.call_id == *id)?;
        Some(call.view(result.clone()))
    });
    Ok(Ok((calls.collect(), carried.map(Box::new))))
}

/// Whether the result is to be stored, or was before.
fn judged(
    found: Option<&(CallRecord, Option<String>)>,
    result: &ClientResult,
    stopping: bool,
) -> Result<bool, Box<Problem>> {
    let refuse = |code, detail: &str| Err(Box::new(Problem::new(code, detail)));
    let Some((call, stored)) = found else {
        return refuse(ProblemCode::NotFound, "there is no such call in this session");
    };
    if call.execution != Execution::Client {
        let detail = "the call is not the client's to carry out: `execution` is not `client`";
        return refuse(ProblemCode::ToolCallNotWaiting, detail);
    }
    if call.status.is_settled() {
        let failed = call.status == CallStatus::Failed;
        let given = matches!(call.status, CallStatus::Failed | CallStatus::Succeeded);
        if given && failed == result.is_error && stored.as_ref() == Some(&result.output) {
            return Ok(false);
        }
        let detail = format!("the call has its result already: `{}`", call.status.name());
        let problem = Problem::new(ProblemCode::ToolCallSettled, detail);
        return Err(Box::new(
            problem.with_context(json!({"tool_call": call.view(stored.clone())})),
        ));
    }
    if stopping {
        return refuse(
            ProblemCode::TurnNotActive,
            "the turn is being cancelled; nothing of it goes on",
        );
    }
    if !call.is_handed_over() {
        let detail = "the call has not been handed over: an earlier call of its answer, or an approval, comes first; \
            `tool_call.started` tells when";
        return refuse(ProblemCode::ToolCallNotWaiting, detail);
    }
    Ok(true)
}

/// The problem of one result, told in terms of the whole request.
fn at_index(mut problem: Problem, index: usize, call: CallId) -> Problem {
    let detail = problem.detail.clone();
    let mut context = problem.context.take().unwrap_or_else(|| json!({}));
    if let Some(fields) = context.as_object_mut() {
        fields.insert("index".to_owned(), index.into());
        fields.insert("tool_call_id".to_owned(), json!(call));
    }
    problem
        .with_field(format!("/results/{index}/tool_call_id"), detail)
        .with_context(context)
}
