//! Questions: settled once, seen by their own tenant and user.

use super::*;
use crate::base::{Clock, Timestamp};
use crate::model::id::QuestionId;
use crate::model::question::{Question, QuestionAnswer, QuestionStatus};
use crate::model::record::QuestionUpdate;

fn question(clock: &Clock, expires_at: Option<Timestamp>) -> Question {
    Question {
        id: Id::new(clock),
        session_id: session(1),
        turn_id: Id::new(clock),
        tool_call_id: Id::new(clock),
        status: QuestionStatus::Pending,
        question: "Which \"one\"?".to_owned(),
        choices: vec!["a".to_owned(), "é".to_owned()],
        asked_at: Timestamp(1),
        expires_at,
        answer: None,
    }
}

async fn settle(store: &Store, id: QuestionId, status: QuestionStatus) -> Result<(), StoreError> {
    let update = QuestionUpdate {
        question_id: id,
        status,
        answer: Some(QuestionAnswer {
            text: "a".to_owned(),
            by: "ada".to_owned(),
            at: Timestamp(2),
        }),
    };
    let scope = store.scope(tenant_id("ours"));
    let work = scope.write("test", move |mut rows| {
        Box::pin(async move { rows.settle_question(&update).await })
    });
    work.await
}

#[tokio::test]
async fn a_question_is_settled_once_and_only_what_waits_is_due() {
    on_both(async |bench| {
        let store = &bench.store;
        write(store, "ours").await.unwrap();
        let clock = Clock::system();
        let asked = [question(&clock, Some(Timestamp(9))), question(&clock, None)];
        let stored = asked.clone();
        let scope = store.scope(tenant_id("ours"));
        let work = scope.write("test", move |mut rows| {
            Box::pin(async move {
                for one in &stored {
                    rows.add_question("ada", one).await?;
                }
                rows.questions_of_turn(stored[0].turn_id).await
            })
        });
        assert_eq!(work.await.unwrap(), asked[..1]);
        let due = store.due_across_tenants(10).await.unwrap();
        assert_eq!(due.len(), 1);
        assert_eq!(due[0].item, crate::store::approvals::DueItem::Question(asked[0].id));
        settle(store, asked[0].id, QuestionStatus::Answered).await.unwrap();
        let again = settle(store, asked[0].id, QuestionStatus::Expired).await;
        assert!(matches!(again, Err(StoreError::Lost)), "{again:?}");
        assert_eq!(store.due_across_tenants(10).await.unwrap(), []);
    })
    .await;
}
