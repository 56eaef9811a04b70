//! Many answers in one transaction, without HTTP.

use std::sync::{Arc, Mutex};

use hermes_server::model::approval::{Approval, ApprovalStatus, Choice};
use hermes_server::model::event::EventBody;
use hermes_server::model::id::{ApprovalId, SessionId};
use hermes_server::model::problem::ProblemCode;
use hermes_server::store::Fate;
use hermes_server::turn::requests::{BatchRequest, EngineError};

use crate::harness::script::{answer, check_log, check_transcript, guarded};
use crate::harness::{Server, lines, on_both, probe};

fn batch(atomic: bool, asked: &[Approval], choices: &[Choice]) -> BatchRequest {
    let answers = asked.iter().zip(choices);
    BatchRequest {
        atomic,
        answers: answers
            .map(|(approval, choice)| (approval.id, answer(*choice)))
            .collect(),
    }
}

/// A session whose turn waits for these three, in the order of the asking.
const FILES: [&str; 3] = ["one", "two", "three"];

async fn asked(server: &Server) -> (SessionId, Vec<Approval>) {
    let session = server.session().await.id;
    let script = FILES.map(guarded).join("\n");
    server.turn(session, &format!("{script}\n/then\n/say done")).await;
    server
        .wait_for(session, |body| matches!(body, EventBody::TurnWaiting(_)))
        .await;
    let read = server.scope.read(move |mut rows| {
        Box::pin(async move {
            let pending = Some(ApprovalStatus::Pending);
            rows.approvals(Some(session), pending, None, 100).await
        })
    });
    let mut found = read.await.unwrap();
    found.reverse();
    assert_eq!(found.len(), FILES.len());
    (session, found)
}

async fn ended(server: &Server, session: SessionId) -> [usize; 3] {
    server
        .wait_for(session, |body| matches!(body, EventBody::TurnCompleted(_)))
        .await;
    check_transcript(&server.messages(session).await);
    check_log(&server.log(session).await);
    FILES.map(|file| lines(&server.workspace(session).join(file)))
}

#[test]
fn a_batch_is_one_commit_and_each_answer_is_its_own() {
    on_both(async |place| {
        let seen: Arc<Mutex<Vec<&'static str>>> = Arc::default();
        let sink = Arc::clone(&seen);
        let counted = probe(move |label| {
            sink.lock().unwrap().push(label);
            Fate::Go
        });
        let server = place.start_probed(counted).await;
        let (session, asked) = asked(&server).await;
        let request = batch(true, &asked, &[Choice::Once, Choice::Deny, Choice::Session]);
        let outcomes = server
            .engine
            .decide_batch(&server.scope, session, request.clone())
            .await;
        let outcomes: Vec<Approval> = outcomes.unwrap().into_iter().map(Result::unwrap).collect();
        let statuses: Vec<ApprovalStatus> = outcomes.iter().map(|approval| approval.status).collect();
        use ApprovalStatus::{Allowed, Denied};
        assert_eq!(statuses, [Allowed, Denied, Allowed]);
        assert_eq!(ended(&server, session).await, [1, 0, 1]);
        let again = server.engine.decide_batch(&server.scope, session, request).await;
        let again: Vec<Approval> = again.unwrap().into_iter().map(Result::unwrap).collect();
        assert_eq!(again, outcomes, "the same again is no error");
        let labels = seen.lock().unwrap().clone();
        let count = |label| labels.iter().filter(|own| **own == label).count();
        assert_eq!((count("decide_batch"), count("decide")), (2, 0), "{labels:?}");
        server.stop().await;
    });
}

#[test]
fn all_or_nothing_is_nothing_when_one_is_not_taken() {
    on_both(async |place| {
        let server = place.start().await;
        let (session, asked) = asked(&server).await;
        let head = server.log(session).await.len();
        let mut request = batch(true, &asked, &[Choice::Once; 3]);
        request.answers[1].1.digest = Some("0".repeat(64));
        let refused = server
            .engine
            .decide_batch(&server.scope, session, request.clone())
            .await;
        match refused.unwrap_err() {
            EngineError::Refused(problem) => {
                assert_eq!(problem.code, ProblemCode::ApprovalStale);
                assert_eq!(problem.context.unwrap()["index"], 1);
            }
            other => panic!("{other}"),
        }
        assert_eq!(server.log(session).await.len(), head);
        // The same, each for itself: the other two are taken.
        request.atomic = false;
        let outcomes = server
            .engine
            .decide_batch(&server.scope, session, request)
            .await
            .unwrap();
        let taken: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
        assert_eq!(taken, [true, false, true]);
        server
            .engine
            .decide(&server.scope, asked[1].id, answer(Choice::Deny))
            .await
            .unwrap();
        assert_eq!(ended(&server, session).await, [1, 0, 1]);
        server.stop().await;
    });
}

#[test]
fn of_two_batches_at_once_each_approval_hears_one() {
    on_both(async |place| {
        let server = place.start().await;
        let (session, asked) = asked(&server).await;
        let (once, deny) = (
            batch(false, &asked, &[Choice::Once; 3]),
            batch(false, &asked, &[Choice::Deny; 3]),
        );
        let (allowed, denied) = tokio::join!(
            server.engine.decide_batch(&server.scope, session, once),
            server.engine.decide_batch(&server.scope, session, deny),
        );
        let (allowed, denied) = (allowed.unwrap(), denied.unwrap());
        for (allowed, denied) in allowed.iter().zip(&denied) {
            assert!(allowed.is_ok() != denied.is_ok());
        }
        let ran = allowed.iter().map(|outcome| usize::from(outcome.is_ok()));
        assert_eq!(ended(&server, session).await.to_vec(), ran.collect::<Vec<_>>());
        server.stop().await;
    });
}

#[test]
fn an_approval_of_another_session_is_none_of_this_one() {
    on_both(async |place| {
        let server = place.start().await;
        let (session, own) = asked(&server).await;
        let (_, others) = asked(&server).await;
        let mixed = [own[0].clone(), others[0].clone()];
        let request = batch(false, &mixed, &[Choice::Deny; 2]);
        let outcomes = server
            .engine
            .decide_batch(&server.scope, session, request)
            .await
            .unwrap();
        assert!(outcomes[0].is_ok());
        assert_eq!(outcomes[1].as_ref().unwrap_err().code, ProblemCode::NotFound);
        let foreign: ApprovalId = others[0].id;
        let read = server
            .scope
            .read(move |mut rows| Box::pin(async move { rows.approval(foreign).await }));
        assert_eq!(read.await.unwrap().unwrap().status, ApprovalStatus::Pending);
        server.stop().await;
    });
}
