//! Sessions that do delegated work: found by the call that made them, in no list
//! but their root's, gone with it.

use super::*;
use crate::base::Timestamp;
use crate::model::id::CallId;
use crate::model::lineage::{Ancestor, ChildRole, Lineage};
use crate::model::record::SessionRecord;
use crate::model::session::SessionStatus;
use crate::store::sessions::NewSession;
use crate::store::{Archived, SessionFilter};

pub(super) fn record(number: u128, lineage: Option<Lineage>) -> NewSession {
    let record = SessionRecord {
        tenant_id: tenant_id("ours"),
        session_id: session(number),
        user_id: "ada".to_owned(),
        model: None,
        instructions: None,
        preset: "none".to_owned(),
        toolsets: Default::default(),
        environment: Default::default(),
        approvals: Default::default(),
        sampling: Default::default(),
        tools: Vec::new(),
        budget: Default::default(),
        status: SessionStatus::Idle,
        head_seq: 0,
        next_position: 0,
        active_turn_id: None,
        usage: Default::default(),
        todo: "[]".to_owned(),
        seen_files: String::new(),
        memory_block: None,
        context_block: None,
        cwd: None,
        node_id: None,
        lineage: lineage.map(Box::new),
        deleted_at: None,
    };
    NewSession {
        record,
        external_id: None,
        title: None,
        metadata: Default::default(),
        parent: None,
        created_at: Timestamp(1),
    }
}

fn lineage(call: CallId, index: u32) -> Lineage {
    Lineage {
        ancestors: vec![Ancestor {
            session_id: session(1),
            turn_id: Id::from_bits(1),
        }],
        tool_call_id: call,
        index,
        role: ChildRole::Leaf,
    }
}

fn listed(root: Option<SessionId>) -> SessionFilter {
    SessionFilter {
        external_id: None,
        status: None,
        archived: Archived::All,
        metadata: Default::default(),
        root,
    }
}

#[tokio::test]
async fn children_are_found_by_their_call_and_go_with_their_root() {
    on_both(async |bench| {
        let store = &bench.store;
        write(store, "ours").await.unwrap();
        let (call, other): (CallId, CallId) = (Id::from_bits(7), Id::from_bits(8));
        let scope = store.scope(tenant_id("ours"));
        let done = scope.write("test", move |mut rows| {
            Box::pin(async move {
                rows.add_session(&record(1, None)).await?;
                for (number, own, index) in [(2, call, 0), (3, call, 1), (4, other, 0)] {
                    rows.add_session(&record(number, Some(lineage(own, index)))).await?;
                }
                let found = rows.children_of(call).await?;
                let own = rows.sessions(None, &listed(None), 10).await?;
                let delegated = rows.sessions(None, &listed(Some(session(1))), 10).await?;
                rows.hide_descendants(session(1), Timestamp(2)).await?;
                let after = rows.sessions(None, &listed(Some(session(1))), 10).await?;
                let still = rows.children_of(other).await?;
                Ok((found, own, delegated, after, still))
            })
        });
        let (found, own, delegated, after, still) = done.await.unwrap();
        let places: Vec<u32> = found
            .iter()
            .map(|child| child.lineage.as_ref().unwrap().index)
            .collect();
        assert_eq!(places, [0, 1]);
        assert_eq!((own.len(), own[0].id, delegated.len()), (1, session(1), 3));
        assert!(
            after.is_empty() && still[0].deleted_at.is_some(),
            "hidden, and their parent still finds them"
        );
        assert_eq!(found[0].home(), session(1));
    })
    .await;
}
