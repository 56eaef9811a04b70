//! What a turn asks the database, and that who watches it from its beginning is
//! told from memory what the log says.

use std::time::Duration;

use hermes_server::live::cursor::Cursor;
use hermes_server::live::follow::{Follow, Follower, Shown};
use hermes_server::model::approval::Choice;
use hermes_server::model::event::{Event, EventBody};
use hermes_server::model::id::{SessionId, TurnId};
use hermes_server::store::Kind;

use crate::harness::script::{answer, guarded, mark, terminal};
use crate::harness::{Server, name, on_both, until};

/// Makes a turn as a request that streams does: it listens before the turn is
/// there.
async fn watched(server: &Server, session: SessionId, text: &str) -> (TurnId, Follower) {
    let bell = server.engine.store().bell().subscribe(session);
    let made = server.turn(session, text).await;
    let follow = Follow {
        scope: server.scope.clone(),
        hub: server.engine.hub().clone(),
        session,
        turn: Some(made.turn.id),
        cursor: Cursor {
            seq: made.first_seq - 1,
            d: 0,
        },
        shown: Shown::default(),
        heartbeat: Duration::from_secs(30),
    };
    (made.turn.id, follow.start_with(bell, server.engine.clock().clone()))
}

/// The stored events of a turn to its end, as its maker sees them.
async fn seen(follower: &mut Follower) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(frame) = follower.next().await {
        let event = frame.unwrap().event;
        events.extend(is_stored(&event).then_some(event));
    }
    events
}

#[test]
fn who_watches_from_the_beginning_sees_what_the_log_says() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let scripts = [
            "/say hello".to_owned(),
            format!("{}\n{}\n/then\n/say done", mark("a"), mark("b")),
            format!("{}\n/then\n/say failed", terminal("exit 3")),
            "/tool nothing {}\n/then\n/say unknown".to_owned(),
            format!("/say {}", "long ".repeat(30_000)),
        ];
        let mut told = Vec::new();
        for script in &scripts {
            let (_, mut follower) = watched(&server, session, script).await;
            told.extend(seen(&mut follower).await);
        }
        let (turn, mut follower) = watched(&server, session, &format!("{}\n/then\n/say asked", guarded("c"))).await;
        let asked = until(&mut follower, |body| matches!(body, EventBody::TurnWaiting(_))).await;
        told.extend(asked.into_iter().map(|frame| frame.event).filter(is_stored));
        let approval = told.iter().find_map(|event| match &event.body {
            EventBody::ApprovalRequested(data) => Some(data.approval.id),
            _ => None,
        });
        let decided = server
            .engine
            .decide(&server.scope, approval.unwrap(), answer(Choice::Once));
        decided.await.unwrap();
        told.extend(seen(&mut follower).await);
        assert_eq!(told.last().map(name).as_deref(), Some("turn.completed"));
        assert_eq!(told.last().unwrap().turn_id, Some(turn));

        let log = server.log(session).await;
        let of_turns: Vec<Event> = log.into_iter().filter(|event| event.turn_id.is_some()).collect();
        assert_eq!(told.len(), of_turns.len());
        for (told, stored) in told.iter().zip(&of_turns) {
            // A stream's ids are cursors; all else is the event.
            assert_eq!(
                told,
                &Event {
                    id: told.id.clone(),
                    ..stored.clone()
                }
            );
        }
        server.stop().await;
    });
}

/// No frame of an item in flight or of the stream itself.
fn is_stored(event: &Event) -> bool {
    let name = name(event);
    !name.ends_with("delta") && !["stream.hello", "heartbeat", "message.started"].contains(&name.as_str())
}

#[test]
fn round_trips_of_a_turn_are_few() {
    on_both(async |place| {
        let server = place.start().await;
        let store = server.engine.store();
        let trips = async |script: &str| {
            // What the process does by itself comes rarely: the least of some
            // turns has none of it.
            let mut least = u64::MAX;
            for _ in 0..5 {
                let session = server.session().await.id;
                assert!(server.is_left().await);
                let before = store.round_trips();
                let (_, mut follower) = watched(&server, session, script).await;
                let events = seen(&mut follower).await;
                assert_eq!(events.last().map(name).as_deref(), Some("turn.completed"));
                least = least.min(store.round_trips() - before);
            }
            least
        };
        let text = trips("/say hello").await;
        let tools = trips(&format!("{}\n/then\n/say done", mark("a"))).await;
        match store.kind() {
            Kind::Sqlite => assert_eq!((text, tools), (0, 0)),
            // Two commits: BEGIN and lock, what is remembered of the user, one
            // statement with COMMIT; BEGIN and fence, one statement with COMMIT.
            Kind::Postgres => assert!(text <= 6 && tools <= 12, "text {text}, with a tool round {tools}"),
        }
        server.stop().await;
    });
}
