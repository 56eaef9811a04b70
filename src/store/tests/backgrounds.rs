//! Processes in the background: their rows, their ends, and what a server left.

use super::*;
use crate::model::background::{BackgroundEnd, BackgroundRecord, Completion, Notices};
use crate::model::id::{BackgroundId, ProcessId};
use crate::store::Scope;
use crate::store::testing::START;

fn process(scope: &Scope, session: SessionId, number: u128, owner: ProcessId) -> BackgroundRecord {
    BackgroundRecord {
        id: BackgroundId::from_bits(number),
        tenant_id: scope.tenant(),
        session_id: session,
        call_id: Id::from_bits(number),
        turn_id: Some(Id::from_bits(1)),
        owner: Some(owner),
        command: "make".to_owned(),
        cwd: "/w".to_owned(),
        pid: Some(7),
        terminal: number.is_multiple_of(2),
        notices: Notices {
            on_completion: true,
            patterns: vec!["ready".to_owned()],
        },
        started_at: START,
        end: None,
    }
}

async fn add(scope: &Scope, record: BackgroundRecord) {
    let added = scope.write("test", move |mut rows| {
        Box::pin(async move { rows.add_background("ada", &record).await })
    });
    added.await.unwrap();
}

async fn end(scope: &Scope, id: BackgroundId, completion: Completion) -> bool {
    let end = BackgroundEnd {
        exit_code: Some(0),
        completion,
        at: START,
    };
    let ended = scope.write("test", move |mut rows| {
        Box::pin(async move { rows.end_background(id, &end).await })
    });
    ended.await.unwrap()
}

async fn list(scope: &Scope, session: SessionId, before: Option<BackgroundId>, limit: u32) -> Vec<BackgroundRecord> {
    let read = scope.read(move |mut rows| Box::pin(async move { rows.backgrounds(session, before, limit).await }));
    read.await.unwrap()
}

#[tokio::test]
async fn a_process_is_a_row_that_ends_once_and_the_oldest_ends_go() {
    on_both(async |bench| {
        let scope = bench.store.scope(tenant_id("ours"));
        write(&bench.store, "ours").await.unwrap();
        let session = session(1);
        let gone = ProcessId::from_bits(9);
        let first = process(&scope, session, 1, gone);
        add(&scope, first.clone()).await;
        add(&scope, process(&scope, session, 2, gone)).await;
        assert_eq!(list(&scope, session, None, 9).await[1], first);
        let newer: Vec<_> = list(&scope, session, Some(BackgroundId::from_bits(2)), 9).await;
        assert_eq!(newer.iter().map(|process| process.id).collect::<Vec<_>>(), [first.id]);

        let orphans = bench.store.orphaned_backgrounds_across_tenants().await.unwrap();
        assert_eq!(orphans.len(), 2, "no such server lives");
        assert!(end(&scope, first.id, Completion::Killed).await);
        assert!(!end(&scope, first.id, Completion::Lost).await, "the first end stands");
        let id = first.id;
        let one = scope.read(move |mut rows| Box::pin(async move { rows.background(session, id).await }));
        assert_eq!(one.await.unwrap().unwrap().end.unwrap().completion, Completion::Killed);

        let silent = Notices::default();
        let second = BackgroundId::from_bits(2);
        let told = scope.write("test", move |mut rows| {
            Box::pin(async move { rows.set_background_notices(second, &silent).await })
        });
        assert!(told.await.unwrap());
        assert_eq!(list(&scope, session, None, 1).await[0].notices, Notices::default());

        for number in 3..70 {
            add(&scope, process(&scope, session, number, gone)).await;
            end(&scope, BackgroundId::from_bits(number), Completion::Exited).await;
        }
        let kept = list(&scope, session, None, 200).await;
        assert_eq!(kept.len(), 65, "64 newest, and the one that runs");
        assert!(kept.iter().any(|process| process.id == second));
    })
    .await;
}
