//! Members of a group write as rows of one statement: each finds its own there, just
//! as it would have been written alone.

use futures::future::join_all;
use serde_json::json;
use sqlx::Row as _;

use super::groups::{COUNT_ON, Held, Work, session, sessions};
use super::*;
use crate::base::Timestamp;
use crate::model::audit::{AuditAction, Audited};
use crate::model::budget::BudgetUnit;
use crate::model::event::EventType;
use crate::model::id::TurnId;
use crate::model::message::{Part, Role};
use crate::model::record::{MessageRecord, NewEvent, TurnRecord, Writes};
use crate::model::turn::TurnStatus;
use crate::model::usage::{Spent, TokenUsage, UsageRecord};
use crate::store::{Row, Scope, dialect, postgres_rows, usage::SubjectSum};

/// What one says: everything that a constant and an array might take for their end.
fn said(number: usize) -> String {
    let odd = [
        "'",
        "\\",
        "\"",
        "},{",
        "]::text[]",
        "null",
        "",
        "$1 member.p2",
        "한국어\n\t",
        "NULL",
    ];
    format!("{number}: {}", odd[number % odd.len()])
}

fn id<K: crate::base::id::Kind>(number: usize, of: u128) -> Id<K> {
    Id::from_bits(u128::try_from(number).unwrap() * 100 + of)
}

fn message(number: usize, of: u128, role: Role) -> MessageRecord {
    MessageRecord {
        position: i64::try_from(of).unwrap(),
        message_id: id(number, of),
        turn_id: id(number, 0),
        role,
        content: vec![Part::text(said(number))],
        reasoning: (number.is_multiple_of(3)).then(|| said(number + 1)),
        finish_reason: None,
        call_id: None,
        steered: false,
        external_id: None,
        created_at: Timestamp(7),
    }
}

fn event(number: usize, kind: EventType) -> NewEvent {
    let turn_id: TurnId = id(number, 0);
    NewEvent {
        kind,
        turn_id: Some(turn_id),
        epoch: 1,
        data: json!({"turn_id": turn_id, "said": said(number)}),
    }
}

/// A model call of `number` tokens.
fn call(number: usize, of: u128) -> UsageRecord {
    let tokens = TokenUsage {
        input: u64::try_from(number).unwrap(),
        ..TokenUsage::default()
    };
    UsageRecord {
        usage_id: id(number, of),
        session_id: session(number),
        turn_id: id(number, 0),
        user_id: "ada".to_owned(),
        spent: Spent::in_turn("m", Some(tokens), &Default::default()),
        at: Timestamp(7),
    }
}

fn begun(number: usize) -> (TurnRecord, Writes) {
    let turn = TurnRecord {
        status: TurnStatus::Running,
        epoch: 1,
        first_seq: 1,
        active_since: (!number.is_multiple_of(4)).then_some(Timestamp(7)),
        ..TurnRecord::queued(
            id(number, 0),
            session(number),
            "ada".to_owned(),
            vec![Part::text(said(number))],
            Default::default(),
            Timestamp(6),
        )
    };
    let mut audited = Audited::new(AuditAction::CallExecuted, "ada");
    audited.tool = Some(said(number));
    let writes = Writes {
        new_turns: vec![turn.clone()],
        messages: vec![message(number, 1, Role::User)],
        events: vec![
            event(number, EventType::TurnStarted),
            event(number, EventType::MessageCompleted),
        ],
        audited: vec![audited],
        ..Writes::default()
    };
    (turn, writes)
}

/// Some end with one call, some with two, some with none.
fn over(number: usize) -> (TurnRecord, Writes) {
    let (mut turn, _) = begun(number);
    (turn.status, turn.step, turn.last_seq) = (TurnStatus::Completed, 1, Some(3));
    let calls = (0..number % 3).map(|of| call(number, 50 + u128::try_from(of).unwrap()));
    let writes = Writes {
        turns: vec![TurnRecord {
            last_seq: None,
            ..turn.clone()
        }],
        messages: vec![message(number, 2, Role::Assistant)],
        events: vec![event(number, EventType::TurnCompleted)],
        usage: calls.collect(),
        ..Writes::default()
    };
    (turn, writes)
}

fn carried_out(number: usize, writes: Writes) -> Work<i64> {
    Box::new(move |mut rows| {
        Box::pin(async move {
            let mut own = rows.lock_session(session(number)).await?.ok_or(StoreError::Lost)?;
            let first = rows.apply(&mut own, &writes, Timestamp(8)).await;
            let is_grouped = rows.conn.dialect() == Kind::Postgres;
            assert_eq!(rows.conn.written().next().is_some(), is_grouped);
            for part in rows.conn.written() {
                let of_many = postgres_rows::of_rows(part.sql, part.values.count(), 0);
                assert!(of_many.is_some(), "has no form for rows: {}", part.sql);
            }
            first
        })
    })
}

type Kept = (Option<TurnRecord>, Vec<MessageRecord>, Vec<(i64, String, String)>);

async fn kept(scope: &Scope, number: usize) -> Kept {
    const EVENTS: &str = "
        select seq, type, data from event where tenant_id = $1 and session_id = $2 order by seq";
    let read = scope.read(move |mut rows| {
        Box::pin(async move {
            let turn = rows.turn(session(number), id(number, 0)).await?;
            let (messages, _) = rows.transcript(session(number)).await?;
            let args = [rows.tenant().into(), session(number).into()];
            let events = rows.conn.rows(EVENTS, &args).await?;
            let told = |row: &Row| Ok((row.int("seq")?, row.text("type")?, row.text("data")?));
            Ok((
                turn,
                messages,
                events.iter().map(told).collect::<Result<_, StoreError>>()?,
            ))
        })
    });
    read.await.unwrap()
}

fn expected(number: usize) -> Kept {
    let (_, first) = begun(number);
    let (turn, last) = over(number);
    let messages = first.messages.iter().chain(&last.messages).cloned().collect();
    let events = first.events.iter().chain(&last.events).zip(1..);
    let events = events.map(|(event, seq)| (seq, event.kind.name().to_owned(), event.data.to_string()));
    (Some(turn), messages, events.collect())
}

async fn sums(scope: &Scope) -> Vec<SubjectSum> {
    let read = scope.read(|mut rows| {
        Box::pin(async move { rows.subject_sums(&["tenant".to_owned(), "user:ada".to_owned()]).await })
    });
    let mut sums = read.await.unwrap();
    sums.sort_by(|one, other| one.subject.cmp(&other.subject));
    sums
}

#[tokio::test]
async fn each_member_finds_what_it_wrote_and_the_sums_have_all_of_them() {
    on_both(async |bench| {
        let store = &bench.store;
        let ours = sessions(store, "ours", 1..=18).await;
        let theirs = sessions(store, "theirs", 19..=30).await;
        let of = |number: usize| if number <= 18 { &ours } else { &theirs };
        for (step, writes) in [(1, begun as fn(usize) -> (TurnRecord, Writes)), (2, over)] {
            let held = Held::new(&ours).await;
            let members = (1..=30).map(|number| {
                of(number).write_grouped(session(number), "test", move || carried_out(number, writes(number).1))
            });
            let mut members = Box::pin(join_all(members));
            assert!(futures::poll!(&mut members).is_pending());
            let commits = store.commits();
            held.let_go().await;
            for (number, first) in (1..).zip(members.await) {
                assert_eq!(first.unwrap(), if step == 1 { 1 } else { 3 }, "{number}");
            }
            if store.kind() == Kind::Postgres {
                assert_eq!(
                    store.commits() - commits,
                    2,
                    "who held the lane, and all of them together"
                );
            }
        }
        for number in 1..=30 {
            assert_eq!(kept(of(number), number).await, expected(number), "{number}");
        }
        for (scope, numbers) in [(&ours, 1..=18), (&theirs, 19..=30)] {
            let tokens: usize = numbers.map(|number| number * (number % 3)).sum();
            for sum in sums(scope).await {
                assert_eq!(sum.spent(BudgetUnit::Tokens), tokens as u64, "{}", sum.subject);
            }
            assert_eq!(sums(scope).await.len(), 2);
        }
    })
    .await;
}

/// A plan lives as long as its connection: one that was made for an empty table must
/// do for a full one.
#[tokio::test]
async fn each_members_row_is_looked_up_by_a_plan_that_was_made_when_there_was_none() {
    on_postgres(async |bench| {
        let mut raw = bench.raw_postgres().await;
        let look_up = dialect::LOOK_UP.map(|setting| format!("set {setting} = off;")).concat();
        let of_many = postgres_rows::of_rows(COUNT_ON, 3, 0).unwrap();
        let ours = tenant_id("ours");
        let prepared = format!(
            "set role hermes_app; set app.tenant = '{ours}'; set plan_cache_mode = force_generic_plan; {look_up}
            prepare counted (text, text[], bigint[]) as {of_many}"
        );
        let run = async |sql: String, link: &mut sqlx::PgConnection| {
            let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).fetch_all(link).await.unwrap();
            rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>()
        };
        run(prepared, &mut raw).await;
        let explain = format!("explain execute counted ('{ours}', array['a', 'b'], array[1, 2])");
        let plan = run(explain, &mut raw).await.join("\n");
        for part in [
            "Index Cond: ((tenant_id = $1) AND (session_id = member_1.p2))",
            "Tid Scan on session",
        ] {
            assert!(plan.contains(part), "{plan}");
        }
        assert!(!plan.contains("Join Filter"), "{plan}");
    })
    .await;
}
