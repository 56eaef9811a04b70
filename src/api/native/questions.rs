//! Questions that the model asks a person: the list, one question, and the
//! answer to one.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::path::InPath;
use crate::api::payload::Payload;
use crate::api::query::Query;
use crate::api::state::ApiState;
use crate::model::id::{QuestionId, SessionId};
use crate::model::principal::Scope;
use crate::model::problem::Problem;
use crate::model::question::{Question, QuestionStatus};

/// An answer reaches the model whole; longer texts are messages.
const MAX_ANSWER_CHARS: usize = 20_000;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(list_questions))
        .routes(routes!(get_question))
        .routes(routes!(answer_question))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct QuestionFilter {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
    status: Option<QuestionStatus>,
    session_id: Option<SessionId>,
}

/// An answer to a question.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct QuestionAnswerRequest {
    /// One of the question's `choices`, or other words.
    #[schema(min_length = 1, max_length = 20_000)]
    answer: String,
}

/// List questions of the model, newest first.
#[utoipa::path(get, path = "/v1/questions", tag = "questions",
    params(QuestionFilter),
    responses((status = 200, description = "A page of questions.", body = Page<Question>)))]
pub(super) async fn list_questions(
    State(state): State<ApiState>,
    caller: Caller,
    Query(filter): Query<QuestionFilter>,
) -> Result<Json<Page<Question>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let list = state.list(&caller, &json!(["questions", filter.status, filter.session_id]))?;
    let before = list.after(filter.after.as_deref())?;
    let QuestionFilter {
        limit,
        status,
        session_id,
        ..
    } = filter;
    let found = caller.scope.read(move |mut rows| {
        Box::pin(async move { rows.questions(session_id, status, before, limit.and_one()).await })
    });
    Ok(Json(list.cut(found.await?, limit, |question| question.id)))
}

/// Read a question.
#[utoipa::path(get, path = "/v1/questions/{id}", tag = "questions",
    params(("id" = QuestionId, Path)),
    responses((status = 200, description = "The question.", body = Question)))]
pub(super) async fn get_question(caller: Caller, InPath(id): InPath<QuestionId>) -> Result<Json<Question>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.question(id).await }));
    found.await?.map(Json).ok_or_else(|| Failure::not_found("question"))
}

/// Answer a question. The turn that waits for it goes on.
///
/// The first answer wins. The same answer by the same user again is no error;
/// any other gets the question as it was settled in `context`.
#[utoipa::path(post, path = "/v1/questions/{id}/answer", tag = "questions",
    params(("id" = QuestionId, Path)), request_body = QuestionAnswerRequest,
    responses(
        (status = 200, description = "The question with its answer.", body = Question),
        (status = 409, description = "It was answered already, has expired, or its turn is over or being cancelled \
            (`question_resolved`); `context` has the question as it stands.",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn answer_question(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<QuestionId>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let (request, once): (QuestionAnswerRequest, _) = payload.json_once(&caller.principal).await?;
    let count = request.answer.chars().count();
    if request.answer.trim().is_empty() || MAX_ANSWER_CHARS < count {
        let detail = format!("expected 1 to {MAX_ANSWER_CHARS} characters that say something, not {count}");
        return Err(Failure::field("/answer", detail));
    }
    let engine = state.engine.clone();
    let by = caller.principal.user.clone();
    let scope = caller.scope.once(once);
    let answered = state.finish_once(async move { engine.answer_question(&scope, id, request.answer, by).await });
    Ok(answered.await?.answer(|question| Json(question).into_response()))
}
