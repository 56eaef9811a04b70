//! Changes that wait for a person: seen by their own tenant and user, taken away
//! once.

use super::*;
use crate::base::{Clock, Timestamp};
use crate::model::pending::{PendingKind, PendingWrite};

fn pending(clock: &Clock, user: &str, kind: PendingKind) -> PendingWrite {
    PendingWrite {
        id: Id::new(clock),
        user_id: user.to_owned(),
        session_id: session(1),
        turn_id: Id::new(clock),
        tool_call_id: Id::new(clock),
        kind,
        subject: "create skill \"é\"".to_owned(),
        change: serde_json::json!({"name": "é", "action": "create"}),
        created_at: Timestamp(1),
    }
}

#[tokio::test]
async fn what_waits_is_its_users_and_goes_once() {
    on_both(async |bench| {
        let store = &bench.store;
        let clock = Clock::system();
        let (skill, note, other) = (
            pending(&clock, "ada", PendingKind::Skill),
            pending(&clock, "ada", PendingKind::Memory),
            pending(&clock, "bob", PendingKind::Skill),
        );
        for (tenant, all) in [
            ("ours", vec![skill.clone(), note.clone(), other.clone()]),
            ("theirs", vec![]),
        ] {
            let scope = store.scope(tenant_id(tenant));
            let wrote = scope.write("test", move |mut rows| {
                Box::pin(async move {
                    for one in &all {
                        rows.add_pending_write(one).await?;
                    }
                    rows.pending_writes(None, None, 10).await
                })
            });
            let listed = wrote.await.unwrap();
            assert_eq!(listed.len(), if tenant == "ours" { 3 } else { 0 });
        }
        let (id, foreign) = (note.id, other.id);
        let scope = store.scope(tenant_id("ours")).of_user("ada".to_owned());
        let read = scope.read(move |mut rows| {
            Box::pin(async move {
                Ok((
                    rows.pending_writes(None, None, 10).await?,
                    rows.pending_writes(Some(PendingKind::Skill), None, 10).await?,
                    rows.pending_writes(None, Some(id), 10).await?,
                    rows.pending_write(foreign).await?,
                    rows.count_pending_writes_of("ada").await?,
                ))
            })
        });
        let (all, skills, older, unseen, count) = read.await.unwrap();
        assert_eq!(all, [note.clone(), skill.clone()]);
        assert_eq!(
            (skills, older, unseen, count),
            (vec![skill.clone()], vec![skill], None, 2)
        );
        let wrote = scope.write("test", move |mut rows| {
            Box::pin(async move {
                let locked = rows.lock_pending_write(id).await?;
                let unseen = rows.lock_pending_write(foreign).await?;
                let foreign = rows.remove_pending_write(foreign).await?;
                Ok((
                    locked,
                    unseen,
                    foreign,
                    rows.remove_pending_write(id).await?,
                    rows.remove_pending_write(id).await?,
                ))
            })
        });
        assert_eq!(wrote.await.unwrap(), (Some(note), None, false, true, false));
    })
    .await;
}

#[tokio::test]
async fn one_that_was_let_in_waits_no_more_and_only_its_end_finds_it() {
    on_both(async |bench| {
        let store = &bench.store;
        let clock = Clock::system();
        let skill = pending(&clock, "ada", PendingKind::Skill);
        let scope = store.scope(tenant_id("ours")).of_user("ada".to_owned());
        let added = skill.clone();
        let wrote = scope.write("test", move |mut rows| {
            Box::pin(async move { rows.add_pending_write(&added).await })
        });
        wrote.await.unwrap();
        let id = skill.id;
        let plan = serde_json::json!({"path": "é"});
        let kept = plan.clone();
        let wrote = scope.write("test", move |mut rows| {
            Box::pin(async move {
                rows.approve_pending_write(id, &kept).await?;
                Ok((
                    rows.pending_writes(None, None, 10).await?.len(),
                    rows.pending_write(id).await?,
                    rows.lock_pending_write(id).await?,
                    rows.count_pending_writes_of("ada").await?,
                ))
            })
        });
        assert_eq!(wrote.await.unwrap(), (0, None, None, 0));
        let left = store.approved_writes_across_tenants().await.unwrap();
        let ours: Vec<_> = left.into_iter().filter(|left| left.id == id).collect();
        assert_eq!(ours.len(), 1);
        assert_eq!((ours[0].tenant_id, &ours[0].plan), (tenant_id("ours"), &plan));
        let gone = scope.write("test", move |mut rows| {
            Box::pin(async move { rows.remove_pending_write(id).await })
        });
        assert!(gone.await.unwrap());
        assert!(store.approved_writes_across_tenants().await.unwrap().is_empty());
    })
    .await;
}
