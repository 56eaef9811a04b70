//! Asking a model about an approval before a person has to: beside the turn, once,
//! within a bound. What comes of it is one more transaction; if nothing comes, the
//! approval waits for a person as it stands, whatever happens to this process.

use super::commit;
use super::engine::Engine;
use super::requests::lock_asker;
use super::state::State;
use super::step::ReviewIn;
use crate::guard::smart;
use crate::model::approval::{Approval, SMART};
use crate::model::audit::Actor;
use crate::model::id::TenantId;
use crate::model::sampling::Sampling;
use crate::model::usage::{Purpose, Spent};
use crate::provider::{ChatMessage, Delta, Request};
use crate::store::StoreError;

/// One word, and what a model may put around it.
const ANSWER_TOKENS: u32 = 16;

/// Begins the review of an approval that was committed.
pub(super) fn begin(engine: &Engine, state: &State, approval: &Approval) {
    let (own, tenant, approval) = (engine.clone(), state.session.tenant_id, approval.clone());
    let settings = &engine.settings().review;
    let of_turn = state.turn.options.model.as_ref().or(state.session.model.as_ref());
    let model = engine.settings().routed(settings.model.as_ref().or(of_turn));
    engine.beside(async move {
        let stopping = own.stopping();
        let reviewed = tokio::select! {
            reviewed = review(&own, tenant, &model, &approval) => reviewed,
            // A person decides; the next process does not know of it.
            () = stopping.cancelled() => return,
        };
        if let Err(error) = record(&own, tenant, &approval, reviewed).await {
            tracing::warn!(approval = %approval.id, %error, "a review could not be stored: a person has to decide");
        }
    });
}

async fn review(engine: &Engine, tenant: TenantId, model: &str, approval: &Approval) -> ReviewIn {
    let nothing = ReviewIn {
        approval: approval.id,
        model: model.to_owned(),
        answer: None,
        spent: None,
    };
    let Some(request) = question(engine, tenant, model, approval) else {
        return nothing;
    };
    let mut ignore = |_: Delta| {};
    let answer = engine.provider().attempt(&request, 1, &mut ignore);
    match tokio::time::timeout(engine.settings().review.timeout, answer).await {
        Ok(Ok(answer)) => {
            let prices = &engine.settings().prices;
            ReviewIn {
                answer: Some(match answer.calls.is_empty() {
                    true => smart::answer(&answer.text),
                    false => smart::Answer::Escalate,
                }),
                spent: Some(Spent::beside(Purpose::Judge, model, answer.usage, prices)),
                ..nothing
            }
        }
        Ok(Err(failed)) => {
            tracing::warn!(approval = %approval.id, %failed, "the reviewing model failed: a person has to decide");
            nothing
        }
        Err(_) => nothing,
    }
}

/// What the model is shown; nothing where that is more than it should be.
fn question(engine: &Engine, tenant: TenantId, model: &str, approval: &Approval) -> Option<Request> {
    let registry = engine.registry(tenant);
    let tool = registry.get(approval.tool.as_deref()?)?;
    let subject = tool.subject(&approval.arguments);
    let commands = match tool.toolset() {
        "terminal" => {
            let host = engine.host();
            host.judged(&subject, host.backend(), approval.cwd.as_deref(), [])
                .commands
        }
        _ => Vec::new(),
    };
    let text = smart::question(&subject, &commands, &approval.findings)?;
    Some(Request {
        model: model.to_owned(),
        messages: vec![
            ChatMessage::System {
                text: smart::TASK.to_owned(),
            },
            ChatMessage::user(text),
        ],
        tools: None,
        sampling: Sampling {
            temperature: Some(0.0),
            max_output_tokens: Some(ANSWER_TOKENS),
            ..Sampling::default()
        },
    })
}

async fn record(engine: &Engine, tenant: TenantId, approval: &Approval, input: ReviewIn) -> Result<(), StoreError> {
    let actor = Actor {
        user: SMART.to_owned(),
        key: None,
    };
    let scope = engine.store().scope(tenant).acting(actor);
    let (own, asked) = (engine.clone(), approval.clone());
    let recorded = scope.write_anew("review", move |mut rows| {
        Box::pin(async move {
            let asker = asked.asker();
            let Some(session) = lock_asker(&mut rows, &asked, true).await? else {
                return Ok(None);
            };
            let Some(turn) = rows.turn(asker.session_id, asker.turn_id).await? else {
                return Ok(None);
            };
            let state = commit::load(&mut rows, session, turn).await?;
            let carried = commit::carry_out(&mut rows, &own, state, None, |step| step.review(input));
            Box::pin(carried).await.map(Some)
        })
    });
    let recorded = recorded.await;
    if let Err(StoreError::Unclear(_)) = recorded {
        engine.adopt(&scope, approval.asker().session_id).await;
    }
    if let Some(carried) = recorded? {
        engine.spawn_woken(tenant, carried);
    }
    Ok(())
}
