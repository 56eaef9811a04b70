//! Viewers that lose their connection anywhere and come back with their last
//! cursor rebuild the same as one that never lost it: events, message texts and
//! reasoning, without gap, repeat or a step back.

use std::collections::HashMap;
use std::time::Duration;

use hermes_server::live::cursor::Cursor;
use hermes_server::live::follow::Frame;
use hermes_server::model::approval::Choice;
use hermes_server::model::event::{Event, EventBody};
use hermes_server::model::id::{CallId, MessageId, SessionId};
use hermes_server::model::message::{Message, text_of};
use hermes_server::turn::requests::AnswerRequest;
use serde_json::Value;

use crate::harness::script::{check_log, guarded, is_terminal, terminal};
use crate::harness::{PATIENCE, Place, Server, names, on_both};

/// Viewers beside each other, runs, and how many cuts all of them make at least.
const VIEWERS: u64 = 10;
const RUNS: u64 = 2;
const CUTS: usize = 500;

/// Everything a stream can show: reasoning, words, output over some time, an
/// approval, and a turn queued behind.
fn first_turn() -> String {
    let lines = "for n in 1 2 3 4 5 6 7 8 9 10; do echo line $n; sleep 0.03; done";
    format!(
        "/reason thinking about it for a while before anything is said\\n/say I look around first.\\n{}\\n{}\\n/then\\n\\
         /reason so that is what there is\\n/tokens 120 600\\n",
        terminal(lines),
        guarded("a")
    )
    .replace("\\n", "\n")
}

/// What a client makes of the frames it got.
#[derive(Debug, Default)]
struct Rebuilt {
    frames: Vec<Frame>,
    durable: Vec<Value>,
    /// Pieces as they came, by message.
    text: HashMap<MessageId, String>,
    reasoning: HashMap<MessageId, String>,
    /// What the client shows in the end.
    final_text: HashMap<MessageId, String>,
    final_reasoning: HashMap<MessageId, String>,
    begun: Vec<CallId>,
    cursor: Cursor,
    ended: usize,
}

impl Rebuilt {
    fn take(&mut self, frame: Frame) {
        if let Some(cursor) = frame.cursor {
            let hello = matches!(frame.event.body, EventBody::StreamHello(_));
            assert!(
                if hello {
                    cursor == self.cursor
                } else {
                    self.cursor < cursor
                },
                "{cursor} after {}: {:?}",
                self.cursor,
                frame.event
            );
            self.cursor = cursor;
            assert_eq!(frame.event.id.split('.').next(), Some(cursor.seq.to_string().as_str()));
        }
        match &frame.event.body {
            EventBody::StreamHello(_) | EventBody::Heartbeat(_) => return,
            EventBody::MessageStarted(_) => {}
            EventBody::MessageDelta(data) => self.text.entry(data.message_id).or_default().push_str(&data.text),
            EventBody::ReasoningDelta(data) => self.reasoning.entry(data.message_id).or_default().push_str(&data.text),
            EventBody::ToolCallOutputDelta(data) => {
                assert!(
                    self.begun.contains(&data.tool_call_id),
                    "output of a call that did not start yet"
                );
            }
            body => {
                self.durable(body);
                self.durable.push(as_json(&frame.event));
            }
        }
        self.frames.push(frame);
    }

    fn durable(&mut self, body: &EventBody) {
        match body {
            EventBody::ToolCallStarted(data) => self.begun.push(data.tool_call.id),
            EventBody::ReasoningCompleted(data) => {
                self.final_reasoning.insert(data.message_id, data.text.clone());
            }
            EventBody::MessageCompleted(data) => {
                self.final_text.insert(data.message.id, text_of(&data.message.content));
            }
            body if is_terminal(body) => self.ended += 1,
            _ => {}
        }
    }

    /// Pieces never come twice or out of order: what came is how the text begins.
    fn check_pieces(&self) {
        for (pieces, whole) in [(&self.text, &self.final_text), (&self.reasoning, &self.final_reasoning)] {
            for (id, text) in pieces {
                let whole = whole.get(id).expect("what was begun is completed");
                assert!(whole.starts_with(text.as_str()), "pieces {text:?} of {whole:?}");
            }
        }
    }
}

fn as_json(event: &Event) -> Value {
    let mut value = serde_json::to_value(event).unwrap();
    // The cursor of a durable frame depends on what was live beside it.
    value["id"] = event.seq.into();
    value
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // An LCG with Knuth's constants; the high bits are the good ones.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Watches until both turns are over, and loses its connection all the time.
async fn cut_viewer(server: &Server, session: SessionId, seed: u64) -> (Rebuilt, usize) {
    let mut dice = Dice(seed);
    let (mut rebuilt, mut cuts) = (Rebuilt::default(), 0);
    while rebuilt.ended < 2 {
        let mut follower = server.follow(session, None, rebuilt.cursor);
        // 0: cut before any frame; 1: after the greeting.
        let frames = dice.roll(9);
        for _ in 0..frames {
            let Some(frame) = follower.next().await else { break };
            rebuilt.take(frame.unwrap());
            if rebuilt.ended == 2 {
                return (rebuilt, cuts);
            }
        }
        if dice.roll(3) == 0 {
            // Cut in the middle of waiting.
            let wait = tokio::time::timeout(Duration::from_millis(dice.roll(30)), follower.next());
            if let Ok(Some(frame)) = wait.await {
                rebuilt.take(frame.unwrap());
            }
        }
        drop(follower);
        cuts += 1;
        tokio::time::sleep(Duration::from_millis(dice.roll(25))).await;
    }
    (rebuilt, cuts)
}

async fn steady_viewer(server: &Server, session: SessionId) -> Rebuilt {
    let mut follower = server.follow(session, None, Cursor::default());
    let mut rebuilt = Rebuilt::default();
    while rebuilt.ended < 2 {
        rebuilt.take(follower.next().await.expect("the stream goes on").unwrap());
    }
    rebuilt
}

/// Starts both turns and answers the approval after a moment.
async fn play(server: &Server, session: SessionId) {
    server.turn(session, &first_turn()).await;
    server.enqueue(session, "/reason more\n/tokens 150 900").await;
    let requested = server
        .wait_for(session, |body| matches!(body, EventBody::ApprovalRequested(_)))
        .await;
    let EventBody::ApprovalRequested(data) = requested.body else {
        panic!()
    };
    tokio::time::sleep(Duration::from_millis(450)).await;
    let answer = AnswerRequest {
        choice: Choice::Once,
        digest: Some(data.approval.digest),
        reason: None,
        stop_turn: false,
        arguments: None,
        grant: None,
        by: "tester".to_owned(),
    };
    server
        .engine
        .decide(&server.scope, data.approval.id, answer)
        .await
        .unwrap();
}

/// All frames from a cursor on, to the second turn's end.
async fn replay(server: &Server, session: SessionId, cursor: Cursor, until: i64) -> Vec<(Option<Cursor>, Value)> {
    let mut follower = server.follow(session, None, cursor);
    let mut frames = Vec::new();
    loop {
        let frame = follower.next().await.unwrap().unwrap();
        let seq = frame.event.seq;
        if !matches!(frame.event.body, EventBody::StreamHello(_) | EventBody::Heartbeat(_)) {
            frames.push((frame.cursor, serde_json::to_value(&frame.event).unwrap()));
        }
        if until <= seq {
            return frames;
        }
    }
}

async fn one_run(server: &Server, seed: u64) -> usize {
    let session = server.session().await.id;
    let steady = steady_viewer(server, session);
    let cut = (0..VIEWERS).map(|number| cut_viewer(server, session, seed * 1000 + number));
    let all = async { tokio::join!(steady, futures::future::join_all(cut), play(server, session)) };
    let (steady, cut, ()) = Box::pin(tokio::time::timeout(PATIENCE, all))
        .await
        .expect("all viewers see the end");
    let messages = server.messages(session).await;
    check_steady(&steady, &messages);
    check_log(&server.log(session).await);
    let mut cuts = 0;
    for (viewer, made) in &cut {
        viewer.check_pieces();
        same_events(&viewer.durable, &steady.durable);
        assert_eq!(viewer.final_text, steady.final_text);
        assert_eq!(viewer.final_reasoning, steady.final_reasoning);
        cuts += made;
    }
    check_replays(server, session, &steady, seed).await;
    cuts
}

/// FC-016: the pieces of an attached viewer are the stored text, byte for byte.
fn check_steady(steady: &Rebuilt, messages: &[Message]) {
    steady.check_pieces();
    let shown = names(&steady.frames).join(" ");
    for wanted in [
        "reasoning.delta",
        "tool_call.output_delta",
        "approval.requested",
        "turn.queued",
    ] {
        assert!(shown.contains(wanted), "{wanted} is missing: {shown}");
    }
    let said = messages
        .iter()
        .filter(|message| message.role == hermes_server::model::message::Role::Assistant);
    for message in said {
        let joined = steady.text.get(&message.id).map_or("", String::as_str);
        assert_eq!(joined, text_of(&message.content));
        let reasoned = steady.reasoning.get(&message.id).map_or("", String::as_str);
        assert_eq!(reasoned, message.reasoning.as_deref().unwrap_or_default());
    }
}

/// FC-011: the same cursor gives the same replay, and after the end it is the
/// durable rest.
async fn check_replays(server: &Server, session: SessionId, steady: &Rebuilt, seed: u64) {
    let last = steady.frames.last().unwrap().event.seq;
    let mut dice = Dice(seed);
    for _ in 0..12 {
        let at = usize::try_from(dice.roll(steady.frames.len() as u64 - 1)).unwrap();
        let cursor = steady.frames[at].cursor.unwrap();
        let once = replay(server, session, cursor, last).await;
        assert_eq!(once, replay(server, session, cursor, last).await);
        let seqs: Vec<i64> = once
            .iter()
            .filter_map(|(cursor, _)| cursor.map(|cursor| cursor.seq))
            .collect();
        assert_eq!(seqs, (cursor.seq + 1..=last).collect::<Vec<_>>());
    }
    let all = replay(server, session, Cursor::default(), last).await;
    let durable: Vec<Value> = all
        .into_iter()
        .map(|(_, mut value)| {
            value["id"] = value["seq"].clone();
            value
        })
        .collect();
    same_events(&durable, &steady.durable);
}

/// Compared one by one, so that a failure names the event.
fn same_events(one: &[Value], other: &[Value]) {
    for (one, other) in one.iter().zip(other) {
        assert_eq!(one, other, "two viewers see the same");
    }
    assert_eq!(one.len(), other.len());
}

async fn cut_everywhere(place: Place) {
    let server = place.start().await;
    let mut cuts = 0;
    let mut seed = 0;
    // A busy machine joins more frames, so that a run holds fewer cuts.
    while seed < RUNS || cuts < CUTS {
        seed += 1;
        assert!(seed <= 10 * RUNS, "only {cuts} cuts");
        cuts += Box::pin(one_run(&server, seed)).await;
    }
    assert_eq!(server.engine.hub().len(), 0, "nobody reads any more");
    server.stop().await;
}

#[test]
fn fc_010_011_016_viewers_that_are_cut_anywhere_rebuild_the_same() {
    on_both(cut_everywhere);
}

#[test]
fn a_viewer_that_comes_after_the_end_of_a_cancelled_turn_is_shown_no_fragment() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let mut viewer = server.follow(session, None, Cursor::default());
        let turn = server.turn(session, "/sleep 60000").await.turn;
        crate::harness::until(&mut viewer, |body| matches!(body, EventBody::MessageStarted(_))).await;
        // This viewer never sees what is live: it reads the log when all is over.
        let log_reader = server.follow(session, None, Cursor::default());
        server
            .engine
            .cancel_turn(&server.scope, session, turn.id)
            .await
            .unwrap();
        crate::harness::until(&mut viewer, is_terminal).await;
        let mut log_reader = log_reader;
        crate::harness::until(&mut log_reader, is_terminal).await;
        let after = async {
            loop {
                let frame = log_reader.next().await.unwrap().unwrap();
                let durable = frame.event.turn_id.is_none();
                assert!(durable || frame.cursor.is_none(), "after the end: {frame:?}");
            }
        };
        let quiet = tokio::time::timeout(Duration::from_millis(100), after).await;
        assert!(quiet.is_err(), "the stream stays open");
        server.stop().await;
    });
}
