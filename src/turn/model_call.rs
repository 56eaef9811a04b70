//! One step of the model: build the request, stream the answer into the drafts,
//! store it. Failures before the first token are retried visibly; an answer
//! that cannot be used is asked for again; what broke off keeps its text.

use std::time::Duration;

use futures::StreamExt;

use super::change::Change;
use super::engine::Engine;
use super::next::Outcome;
use super::owner::{Gone, Owned, cancel_outcome};
use super::run::{ending, timed_out};
use super::said::{self, Said};
use super::scripted;
use super::step::{AnswerIn, Hooked, Partial};
use super::watch::{Signal, Watch};
use super::{context, hooked, overflow, prompt};
use crate::guard::redact::{Known, Mode, redact};
use crate::live::drafts::Item;
use crate::model::id::MessageId;
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::{CallRecord, LastAnswer, MessageRecord};
use crate::model::turn::{StopReason, TurnStatus};
use crate::model::usage::Spent;
use crate::provider::{Answer, ChatMessage, Delta, Failed, FailureKind, Finish, Request, retry};
use crate::tool::arguments::{self, Unreadable};
use crate::tool::dispatch;

/// How often an unusable answer is asked for again (Hermes: 3 for empty ones,
/// 3 for cut calls, 3 for calls that do not parse).
const MAX_UNUSABLE: u32 = 3;

/// Calls of one answer: far above what any model makes. They are planned pair by
/// pair and stored in one transaction, for which everybody else waits.
const MAX_CALLS: usize = 256;

/// How often this step was tried.
#[derive(Default)]
struct Tries {
    attempt: u32,
    unusable: u32,
}

enum Attempted {
    Answer(Answer),
    Failed(Failed),
    Signal(Signal),
}

/// `said` is the whole transcript, where it is known.
pub(super) async fn call_model(
    engine: &Engine,
    owned: &mut Owned,
    watch: &mut Watch,
    (with_tools, said): (bool, Option<Vec<MessageRecord>>),
) -> Result<(), Gone> {
    // Boxed: hardly any turn has a script.
    if let Some(done) = Box::pin(unasked(engine, owned, watch, with_tools)).await {
        return done;
    }
    engine.tools().refresh(&engine.registry(owned.tenant)).await;
    let context = context::read(engine, owned).await;
    let loaded = match said {
        Some(said) => {
            let asked = prompt::Asked {
                messages: &said,
                calls: &[],
                shortened: &overflow::Shortened::default(),
                context: context.as_deref(),
                skills: &engine.host().skill_index(owned.tenant).await,
                with_tools,
            };
            Some(prompt::request(engine, owned, &asked))
        }
        None => load_request(engine, owned, watch, (with_tools, context.as_deref())).await?,
    };
    let Some(mut request) = loaded else {
        // As soon as the store is back the turn ends.
        return owned
            .commit(engine, ending(Outcome::store_unavailable(), Vec::new()))
            .await;
    };
    let mut tries = Tries::default();
    loop {
        tries.attempt += 1;
        let message_id = MessageId::new(engine.clock());
        let outcome = attempt(engine, owned, &request, tries.attempt, message_id, watch).await;
        let again = match outcome {
            Attempted::Answer(answer) => {
                let spent = Spent::in_turn(&request.model, answer.usage, &engine.settings().prices);
                match unusable(&answer, with_tools, tries.unusable) {
                    None => {
                        let answer = (message_id, answer, Some(spent));
                        return store(engine, owned, watch, answer, (with_tools, context)).await;
                    }
                    Some(problem) if tries.unusable < MAX_UNUSABLE => {
                        let silent = answer.calls.is_empty() && owned.state.turn.progress.last == LastAnswer::Calls;
                        let thought = answer.calls.is_empty() && !answer.reasoning.trim().is_empty();
                        match tries.unusable {
                            0 if thought => request.messages.push(ChatMessage::user(prompt::ANSWER)),
                            0 if silent => request.messages.push(ChatMessage::user(prompt::NUDGE)),
                            _ => {}
                        }
                        tries.unusable += 1;
                        (Duration::ZERO, problem, Some(spent))
                    }
                    Some(problem) => return fail(engine, owned, message_id, problem, Some(spent)).await,
                }
            }
            Attempted::Failed(failed) => {
                let problem = problem_of(&failed, engine.host().known());
                match retry::decide(
                    &failed,
                    tries.attempt - tries.unusable,
                    &engine.settings().retry,
                    jitter(message_id),
                ) {
                    Some(delay) => (delay, problem, None),
                    None => return fail(engine, owned, message_id, problem, None).await,
                }
            }
            Attempted::Signal(signal) => return end(engine, owned, message_id, signal).await,
        };
        if let Some(signal) = try_again(engine, owned, tries.attempt, again, watch).await? {
            return end(engine, owned, message_id, signal).await;
        }
    }
}

/// The step of a job's script, for which no model is asked.
async fn unasked(engine: &Engine, owned: &mut Owned, watch: &mut Watch, with_tools: bool) -> Option<Result<(), Gone>> {
    let answer = match scripted::answer(engine, owned).await? {
        Ok(answer) => answer,
        Err(error) => {
            tracing::error!(turn = %owned.state.turn.turn_id, %error, "what a script printed cannot be read");
            let ended = owned.commit(engine, ending(Outcome::store_unavailable(), Vec::new()));
            return Some(ended.await);
        }
    };
    let answer = (MessageId::new(engine.clock()), answer, None);
    Some(store(engine, owned, watch, answer, (with_tools, None)).await)
}

/// Stores an answer once hooks and the scanner have seen its calls.
async fn store(
    engine: &Engine,
    owned: &mut Owned,
    watch: &mut Watch,
    (message_id, answer, spent): (MessageId, Answer, Option<Spent>),
    (with_tools, context): (bool, Option<String>),
) -> Result<(), Gone> {
    let hooked = match hooked(engine, owned, watch, (message_id, &answer, with_tools)).await {
        Ok(hooked) => hooked,
        Err(signal) => return end(engine, owned, message_id, signal).await,
    };
    scan(engine, &answer, &hooked).await;
    let answer = AnswerIn {
        message_id,
        answer,
        with_tools,
        spent,
        hooked,
        artifacts: std::mem::take(&mut owned.overflowed),
        context,
    };
    owned.commit(engine, Change::Answer(Box::new(answer))).await
}

/// Commands that are scanned side by side.
const SCANS: usize = 8;

/// Has the external scanner look at the commands of an answer, as hooks left them:
/// judging them is pure and reads what it said.
async fn scan(engine: &Engine, answer: &Answer, hooked: &[Option<Hooked>]) {
    let replaced = |place: usize| hooked.get(place)?.as_ref()?.before.arguments.clone();
    let calls = answer.calls.iter().enumerate();
    let parsed = calls.filter_map(|(place, call)| replaced(place).or_else(|| arguments::parse(&call.arguments).ok()));
    let commands = parsed.filter_map(|arguments| Some(arguments.get("command")?.as_str()?.to_owned()));
    let commands: Vec<String> = commands.collect();
    futures::stream::iter(commands)
        .for_each_concurrent(SCANS, |command| async move { engine.host().scan(&command).await })
        .await;
}

/// Tells that the step is tried again, voids what is in flight, and waits.
async fn try_again(
    engine: &Engine,
    owned: &mut Owned,
    attempt: u32,
    (delay, error, spent): (Duration, Problem, Option<Spent>),
    watch: &mut Watch,
) -> Result<Option<Signal>, Gone> {
    let change = Change::Retrying {
        attempt,
        delay,
        error,
        spent,
    };
    owned.commit(engine, change).await?;
    // Over, or parked: the budget leaves no room for another try.
    if owned.state.turn.status != TurnStatus::Running {
        return Err(Gone);
    }
    owned.drafts.restart(owned.state.session.head_seq);
    watch.knows(owned.state.session.head_seq);
    let waited = engine.clock().sleep(delay);
    tokio::pin!(waited);
    loop {
        tokio::select! {
            () = &mut waited => return Ok(None),
            signal = watch.next() => match signal {
                // While the model is asked no call is open: nothing to do.
                Signal::Changed(_) => {}
                signal => return Ok(Some(signal)),
            }
        }
    }
}

async fn attempt(
    engine: &Engine,
    owned: &Owned,
    request: &Request,
    number: u32,
    message_id: MessageId,
    watch: &mut Watch,
) -> Attempted {
    let pen = owned.drafts.pen();
    pen.push(Item::Started(message_id), "");
    let mut said = Said::new(&pen, message_id, engine.host().known());
    let outcome = {
        let mut on_delta = |delta: Delta| said.take(delta);
        let answer = engine.provider().attempt(request, number, &mut on_delta);
        tokio::pin!(answer);
        loop {
            tokio::select! {
                answer = &mut answer => break answer.map_or_else(Attempted::Failed, Attempted::Answer),
                signal = watch.next() => match signal {
                    Signal::Changed(_) => {}
                    signal => break Attempted::Signal(signal),
                }
            }
        }
    };
    said.finish();
    match outcome {
        Attempted::Answer(answer) => Attempted::Answer(said::masked(answer, engine.host().known())),
        outcome => outcome,
    }
}

/// `None` when the store was away for longer than commits are retried.
async fn load_request(
    engine: &Engine,
    owned: &mut Owned,
    watch: &mut Watch,
    (with_tools, context): (bool, Option<&str>),
) -> Result<Option<Request>, Gone> {
    let (session, turn) = (owned.state.session.session_id, owned.state.turn.turn_id);
    let began = tokio::time::Instant::now();
    loop {
        let read = owned
            .scope
            .read(move |mut rows| Box::pin(async move { rows.transcript_for(session, turn).await }));
        match read.await {
            Ok(None) => return Err(Gone),
            Ok(Some((standing, messages, calls))) => {
                watch.saw(standing);
                let shortened = overflow(engine, owned, &messages, &calls).await;
                let skills = engine.host().skill_index(owned.tenant).await;
                let asked = prompt::Asked {
                    messages: &messages,
                    calls: &calls,
                    shortened: &shortened,
                    context,
                    skills: &skills,
                    with_tools,
                };
                return Ok(Some(prompt::request(engine, owned, &asked)));
            }
            Err(error) if engine.settings().store_retry <= began.elapsed() => {
                tracing::error!(turn = %owned.state.turn.turn_id, %error, "the transcript cannot be read");
                return Ok(None);
            }
            Err(_) => tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
                () = owned.stopping.cancelled() => return Err(Gone),
            },
        }
    }
}

/// Stores whole what of the newest results does not fit beside each other.
async fn overflow(
    engine: &Engine,
    owned: &mut Owned,
    messages: &[MessageRecord],
    calls: &[CallRecord],
) -> overflow::Shortened {
    let (host, tenant, session) = (engine.host(), owned.tenant, owned.state.session.session_id);
    let directory = dispatch::results_directory(host, tenant, session);
    let shortened = overflow::shortened(messages, calls, &engine.budget(), &directory);
    owned.overflowed.clear();
    for (call, text) in overflow::fresh(messages, &shortened) {
        let kept = dispatch::store(host, tenant, session, call, &text).await;
        owned.overflowed.push((call, kept));
    }
    shortened
}

/// What hooks make of the calls of an answer, unless the turn has to stop.
async fn hooked(
    engine: &Engine,
    owned: &Owned,
    watch: &mut Watch,
    (message_id, answer, with_tools): (MessageId, &Answer, bool),
) -> Result<Vec<Option<Hooked>>, Signal> {
    if !with_tools || answer.calls.is_empty() {
        return Ok(Vec::new());
    }
    let asked = hooked::before(engine, owned, message_id, answer);
    tokio::pin!(asked);
    loop {
        tokio::select! {
            hooked = &mut asked => return Ok(hooked),
            signal = watch.next() => match signal {
                Signal::Changed(_) => {}
                signal => return Err(signal),
            }
        }
    }
}

/// Why an answer cannot be used, if it cannot. Calls that do not parse are asked
/// for again as long as that may help; then they get an error each.
fn unusable(answer: &Answer, with_tools: bool, tries: u32) -> Option<Problem> {
    let invalid = |detail: &str| Some(Problem::new(ProblemCode::ModelAnswerInvalid, detail));
    if answer.finish == Finish::ContentFilter {
        return None;
    }
    if !with_tools || answer.calls.is_empty() {
        let empty = answer.text.trim().is_empty();
        return if empty {
            invalid("the model answered with nothing")
        } else {
            None
        };
    }
    if MAX_CALLS < answer.calls.len() {
        return invalid("the model made more than 256 tool calls in one answer");
    }
    let unreadable: Vec<Unreadable> = answer
        .calls
        .iter()
        .filter_map(|call| arguments::parse(&call.arguments).err())
        .collect();
    let cut = answer.finish == Finish::Length || unreadable.contains(&Unreadable::Truncated);
    if cut && (!unreadable.is_empty() || answer.finish == Finish::Length) {
        return invalid("the model's tool call was cut off");
    }
    if !unreadable.is_empty() && tries < MAX_UNUSABLE {
        return invalid("the arguments of the model's tool call cannot be read");
    }
    None
}

/// Ends the turn as failed; text that arrived is kept.
async fn fail(
    engine: &Engine,
    owned: &mut Owned,
    message_id: MessageId,
    problem: Problem,
    spent: Option<Spent>,
) -> Result<(), Gone> {
    let reason = if problem.code == ProblemCode::UpstreamRefused {
        StopReason::Refusal
    } else {
        StopReason::Error
    };
    let partial = partial(owned, message_id);
    let outcome = Outcome::failed(reason, problem);
    owned
        .commit(
            engine,
            Change::End {
                outcome,
                results: Vec::new(),
                partial: Some((message_id, partial)),
                spent,
            },
        )
        .await
}

async fn end(engine: &Engine, owned: &mut Owned, message_id: MessageId, signal: Signal) -> Result<(), Gone> {
    let outcome = match signal {
        Signal::Cancelled => cancel_outcome(),
        Signal::TimedOut(why) => timed_out(why),
        // The model is asked again after the next start.
        Signal::Stopping | Signal::Lost | Signal::Changed(_) => return Err(Gone),
    };
    let partial = partial(owned, message_id);
    owned
        .commit(
            engine,
            Change::End {
                outcome,
                results: Vec::new(),
                partial: Some((message_id, partial)),
                spent: None,
            },
        )
        .await
}

/// What the drafts hold is what viewers saw.
fn partial(owned: &Owned, message_id: MessageId) -> Partial {
    Partial {
        text: owned.drafts.text(Item::Message(message_id)),
        reasoning: owned.drafts.text(Item::Reasoning(message_id)),
    }
}

/// The retry's jitter from the random part of an id, 0 to 1.
fn jitter(id: MessageId) -> f64 {
    let low: u32 = id
        .to_string()
        .bytes()
        .rev()
        .take(4)
        .fold(0, |all, byte| all * 31 + u32::from(byte));
    f64::from(low % 1000) / 1000.0
}

fn problem_of(failed: &Failed, known: &Known) -> Problem {
    use FailureKind as K;
    let code = match failed.kind {
        K::Unreachable | K::Untrusted => ProblemCode::UpstreamUnreachable,
        K::Unauthenticated => ProblemCode::UpstreamAuthentication,
        K::UnknownModel => ProblemCode::UpstreamUnknownModel,
        K::Billing => ProblemCode::UpstreamBilling,
        K::RateLimited => ProblemCode::UpstreamRateLimited,
        K::Overloaded | K::ServerError | K::Malformed => ProblemCode::UpstreamError,
        K::ContextTooLong => ProblemCode::UpstreamContextTooLong,
        K::ContentFiltered => ProblemCode::UpstreamRefused,
        K::InvalidRequest => ProblemCode::UpstreamInvalidRequest,
        K::Timeout => ProblemCode::UpstreamTimeout,
        K::Interrupted => ProblemCode::UpstreamInterrupted,
    };
    // It may quote the credential that the server was asked with.
    Problem::new(code, redact(&known.mask(&failed.message), Mode::Egress))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_a_failed_call_quotes_no_secret() {
        let token = ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
        let failed = Failed {
            kind: FailureKind::InvalidRequest,
            message: format!("unexpected header `authorization: Bearer {token}` at https://u:hunter22@h/v1"),
            status: Some(400),
            retry_after: None,
            partial: None,
        };
        let told = serde_json::to_string(&problem_of(&failed, &Known::default())).unwrap();
        assert!(!told.contains("0123456789") && !told.contains("hunter22"), "{told}");
    }
}
