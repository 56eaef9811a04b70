//! The transactions of the engine. Each takes the session's lock first, reads
//! the record as it is under the lock, lets pure code decide, and writes what
//! was decided. An ended turn promotes the queue's head in the same
//! transaction.

use super::budgets;
use super::engine::{Engine, Scene};
use super::hooked::News;
use super::kin;
use super::policies;
use super::review;
use super::state::State;
use super::step::Step;
use super::world::World;
use crate::base::Timestamp;
use crate::live::drafts::Item;
use crate::live::hub::Pen;
use crate::model::approval::{Approval, ApprovalStatus, SMART};
use crate::model::call::Execution;
use crate::model::event::EventType;
use crate::model::id::{CallId, MessageId};
use crate::model::job::JOB_ID;
use crate::model::memory::Memories;
use crate::model::policy::DEFAULT;
use crate::model::record::{CallRecord, MessageRecord, NewEvent, SessionRecord, TurnRecord, Writes};
use crate::store::{Aside, LongWork, Rows, StoreError};
use crate::tool::readings::Unread;

/// What one transaction left.
#[derive(Debug)]
pub(super) struct Carried {
    pub state: State,
    /// The queue's head, if the end of the turn began it.
    pub promoted: Option<State>,
    /// Turns of sessions above and below that it moved.
    pub kin: Vec<State>,
    /// The number of the first event.
    pub first_seq: i64,
    /// Messages that it stored.
    pub said: Vec<MessageRecord>,
    /// Something that expires may have been asked, or a job was changed.
    pub due: bool,
    /// Approvals that a model is asked about first.
    pub to_review: Vec<Approval>,
    /// What hooks are told of it.
    pub news: News,
}

impl Carried {
    /// After the commit and not before it, or who is woken finds nothing and
    /// sleeps again.
    pub(super) fn wake(&self, engine: &Engine) {
        self.news.tell(engine);
        if self.due {
            engine.nudges().due.notify_one();
            engine.nudges().jobs.notify_one();
        }
        // The answer of a run may have to be told to another session, which may have
        // been busy until now.
        let is_run = || self.state.turn.options.metadata.contains_key(JOB_ID);
        let is_waited_for = || engine.nudges().is_awaited(self.state.session.session_id);
        if self.state.turn.status.is_terminal() && (is_run() || is_waited_for()) {
            engine.nudges().jobs.notify_one();
        }
        for approval in &self.to_review {
            review::begin(engine, &self.state, approval);
        }
        // Where the end was not an owner's, nobody else says that it can go.
        if self.state.session.deleted_at.is_some() && self.state.session.active_turn_id.is_none() {
            engine.nudges().purge.notify_one();
        }
    }
}

/// The record of a turn under the session's lock.
pub(super) async fn load(rows: &mut Rows<'_>, session: SessionRecord, turn: TurnRecord) -> Result<State, StoreError> {
    let open = rows.open_work(turn.turn_id).await?;
    // Boxed: many futures hold this one.
    Box::pin(at_work(rows, session, turn, open)).await
}

/// As [`load`], where what the turn has open is known.
pub(super) async fn at_work(
    rows: &mut Rows<'_>,
    session: SessionRecord,
    turn: TurnRecord,
    (calls, all): (Vec<CallRecord>, Vec<Approval>),
) -> Result<State, StoreError> {
    let own = |approval: &Approval| approval.asker().turn_id == turn.turn_id;
    let (approvals, mut risen): (Vec<_>, Vec<_>) = all.into_iter().partition(own);
    risen.retain(|approval| approval.status == ApprovalStatus::Pending);
    let asks = |call: &CallRecord| call.execution == Execution::Person && !call.status.is_settled();
    let questions = match calls.iter().any(asks) {
        true => rows.questions_of_turn(turn.turn_id).await?,
        false => Vec::new(),
    };
    Ok(State {
        session,
        turn,
        calls,
        approvals,
        risen,
        questions,
        budgets: Vec::new(),
        queue_is_empty: false,
        jobs: Vec::new(),
        waiting_writes: 0,
        memories: Memories::default(),
    })
}

/// Lets `change` decide on `state` and carries it out.
pub(super) async fn carry_out(
    rows: &mut Rows<'_>,
    engine: &Engine,
    state: State,
    pen: Option<&Pen>,
    change: impl FnOnce(&mut Step<'_>) + Clone + Send,
) -> Result<Carried, StoreError> {
    let decided = Box::pin(by_grants(rows, engine, state, change)).await?;
    // Boxed: many futures hold this one.
    Box::pin(carried(rows, engine, decided, pen)).await
}

/// As [`carry_out`], for a change after which no call is judged.
pub(super) async fn carry_out_callless(
    rows: &mut Rows<'_>,
    engine: &Engine,
    state: State,
    pen: Option<&Pen>,
    change: impl FnOnce(&mut Step<'_>) + Send,
) -> Result<Carried, StoreError> {
    let (scene, state) = bounded(rows, engine, state).await?;
    let state = with_memories(rows, &scene, state).await?;
    let decided = by_world(&engine.world(&scene, &[], &[]), state, change);
    // Boxed: many futures hold this one.
    Box::pin(carried(rows, engine, decided, pen)).await
}

type Decided = (State, Writes, Timestamp);

async fn carried(
    rows: &mut Rows<'_>,
    engine: &Engine,
    (mut state, mut writes, now): Decided,
    pen: Option<&Pen>,
) -> Result<Carried, StoreError> {
    place_released(rows, &state, &mut writes).await?;
    let mut promoted = None;
    if state.turn.status.is_terminal() && state.session.active_turn_id.is_none() {
        promoted = promote(rows, engine, &mut state, &mut writes).await?;
    }
    let mut asked = writes.new_approvals.iter().map(|approval| approval.expires_at);
    let mut questions = writes.new_questions.iter().map(|question| question.expires_at);
    let scheduled = !writes.jobs.is_empty();
    let due = scheduled || asked.any(|at| at.is_some()) || questions.any(|at| at.is_some());
    // The owner's fence is the step in the row, which it raises by writing it.
    if pen.is_some() && !writes.turns.iter().any(|turn| turn.turn_id == state.turn.turn_id) {
        writes.turns.push(state.turn.clone());
    }
    let risen = kin::risen(&state, &mut writes);
    let to_review = writes.new_approvals.iter();
    let to_review = to_review
        .filter(|approval| approval.reviewer == SMART)
        .cloned()
        .collect();
    let news = News::of(engine, &state, &writes);
    let first_seq = rows.apply(&mut state.session, &writes, now).await?;
    if let Some(pen) = pen {
        finish_drafts(pen, &writes, first_seq);
    }
    if let Some(promoted) = &mut promoted {
        promoted.session = state.session.clone();
    }
    let kin = match kin::concerns_others(&state, &writes) {
        true => Box::pin(kin::follow(rows, engine, &state, &writes, risen)).await?,
        false => Vec::new(),
    };
    Ok(Carried {
        state,
        promoted,
        kin,
        first_seq,
        said: writes.messages,
        due,
        to_review,
        news,
    })
}

/// Tries of a decision whose grant was revoked or used up beside it. Each try
/// meets one grant less.
const GRANT_TRIES: u32 = 8;

/// Decides by the grants that are in force, and takes what it uses of them. One
/// that somebody else used up or revoked in between counts for nothing: it is
/// decided anew without it.
async fn by_grants(
    rows: &mut Rows<'_>,
    engine: &Engine,
    state: State,
    change: impl FnOnce(&mut Step<'_>) + Clone + Send,
) -> Result<Decided, StoreError> {
    debug_assert_ne!(
        rows.long_work(),
        LongWork::None,
        "calls are judged where the transaction may begin anew"
    );
    let (scene, state) = bounded(rows, engine, state).await?;
    let user = state.session.user_id.clone();
    let (home, named) = (state.session.home(), policies::named(&state.session));
    let now = engine.clock().now();
    let (mut grants, bodies) = rows.grants_and_policies((home, &user, now), (DEFAULT, named)).await?;
    let policies = engine.policies().among(&state.session, &bodies, rows.long_work())?;
    for _ in 0..GRANT_TRIES {
        if grants.is_empty() {
            break;
        }
        let mut world = engine.world(&scene, &grants, &policies);
        world.unread = unread(rows);
        let (after, writes, now) = judged(engine, world, state.clone(), change.clone())?;
        if rows.use_grants(&user, &writes.used_grants, now).await? {
            return Ok((after, writes, now));
        }
        grants = rows.grants_in_force(home, &user, engine.clock().now()).await?;
    }
    // Without any grant somebody is asked.
    let mut world = engine.world(&scene, &[], &policies);
    world.unread = unread(rows);
    judged(engine, world, state, change)
}

/// Decides, unless what is judged for it is still to be read: that takes long.
fn judged(
    engine: &Engine,
    world: World<'_>,
    state: State,
    change: impl FnOnce(&mut Step<'_>),
) -> Result<Decided, StoreError> {
    let decided = by_world(&world, state, change);
    left_unread(engine, world.unread)?;
    Ok(decided)
}

/// Where a decision of this transaction notes what is to be read first.
pub(super) fn unread(rows: &Rows<'_>) -> Option<Unread> {
    (rows.long_work() == LongWork::Leave).then(Unread::default)
}

/// Leaves the transaction for what was met unread in it.
pub(super) fn left_unread(engine: &Engine, unread: Option<Unread>) -> Result<(), StoreError> {
    let noted = unread.map(Unread::noted).unwrap_or_default();
    if noted.is_empty() {
        return Ok(());
    }
    let host = engine.host().clone();
    Err(StoreError::Aside(Aside::new(move || host.read(&noted))))
}

/// Where a change is decided, and the state with what bounds it.
async fn bounded(rows: &mut Rows<'_>, engine: &Engine, mut state: State) -> Result<(Scene, State), StoreError> {
    let root = kin::held(rows, engine, &mut state.session).await?;
    let scene = engine.scene(&state.session, &state.turn);
    let subject = match &root {
        Some((session, turn)) => (session, turn),
        None => (&state.session, &state.turn),
    };
    let budgets = budgets::load(rows, &scene.rules, subject, engine.clock().now(), &[]);
    state.budgets = budgets.await?;
    Ok((scene, state))
}

/// What a first turn's prompt begins with: nothing that comes later changes it.
async fn with_memories(rows: &mut Rows<'_>, scene: &Scene, state: State) -> Result<State, StoreError> {
    let first = state.session.memory_block.is_none() && state.turn.started_at.is_none();
    if !first || scene.tools.get("memory").is_none() {
        return Ok(state);
    }
    let memories = rows.memories(&state.session.user_id).await?;
    Ok(State { memories, ..state })
}

fn by_world(world: &World<'_>, state: State, change: impl FnOnce(&mut Step<'_>)) -> Decided {
    let mut step = Step::new(world, state);
    change(&mut step);
    let (state, writes) = step.done();
    (state, writes, world.now)
}

/// Messages for the turn that became turns of their own, in their order.
fn released<'a>(turn: &TurnRecord, new_turns: &'a mut [TurnRecord]) -> impl Iterator<Item = &'a mut TurnRecord> {
    let own = turn.turn_id;
    new_turns.iter_mut().filter(move |new| new.turn_id != own)
}

/// Gives them their places, before all that wait.
async fn place_released(rows: &mut Rows<'_>, state: &State, writes: &mut Writes) -> Result<(), StoreError> {
    let count = released(&state.turn, &mut writes.new_turns).count();
    if count == 0 {
        return Ok(());
    }
    let last = rows.queue_front(state.session.session_id).await?;
    let first = last - i64::try_from(count).unwrap_or(0) + 1;
    for (turn, place) in released(&state.turn, &mut writes.new_turns).zip(first..) {
        turn.queue_place = place;
    }
    Ok(())
}

/// Begins the queue's head now that the session is free; of a deleted session
/// nothing begins any more.
async fn promote(
    rows: &mut Rows<'_>,
    engine: &Engine,
    state: &mut State,
    writes: &mut Writes,
) -> Result<Option<State>, StoreError> {
    if state.session.deleted_at.is_some() {
        return Ok(None);
    }
    // What the ended turn did not come to read goes first.
    let released = released(&state.turn, &mut writes.new_turns).next().cloned();
    let head = match released {
        Some(head) => Some(head),
        None if state.queue_is_empty => None,
        None => rows.queue_head(state.session.session_id).await?,
    };
    let Some(head) = head else { return Ok(None) };
    let scene = engine.scene(&state.session, &head);
    let world = engine.world(&scene, &[], &[]);
    let whose = (&state.session, &head);
    let budgets = budgets::load(rows, &scene.rules, whose, world.now, &writes.usage).await?;
    let waiting = State {
        budgets,
        ..State::fresh(state.session.clone(), head)
    };
    let waiting = with_memories(rows, &scene, waiting).await?;
    let mut step = Step::new(&world, waiting);
    step.begin();
    let (begun, more) = step.done();
    state.session = begun.session.clone();
    writes.append(more);
    Ok(Some(begun))
}

/// Items that this transaction makes final: readers at or past the event need
/// no pieces of them.
fn finish_drafts(pen: &Pen, writes: &Writes, first_seq: i64) {
    for (event, seq) in writes.events.iter().zip(first_seq..) {
        match event.kind {
            EventType::MessageCompleted => {
                let id: Option<MessageId> = id_in(event, "message_id");
                let ends = |item| match item {
                    Item::Started(own) | Item::Message(own) | Item::Reasoning(own) => Some(own) == id,
                    Item::Output(..) => false,
                };
                pen.finish(ends, seq);
            }
            EventType::ToolCallCompleted | EventType::ToolCallCancelled | EventType::ToolCallUnknown => {
                let id: Option<CallId> = id_in(event, "call_id");
                pen.finish(|item| matches!(item, Item::Output(own, _) if Some(own) == id), seq);
            }
            kind if kind == EventType::TurnWaiting || kind.ends_turn() => pen.end(seq),
            _ => {}
        }
    }
}

fn id_in<K: crate::base::id::Kind>(event: &NewEvent, key: &str) -> Option<crate::base::Id<K>> {
    event.data.get(key)?.as_str()?.parse().ok()
}
