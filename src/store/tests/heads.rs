//! Asking how far many logs reach at once.

use std::time::Duration;

use super::children::record;
use super::*;
use crate::base::Timestamp;

#[tokio::test]
async fn each_learns_of_its_own_session_and_a_deleted_or_foreign_one_has_no_head() {
    on_both(async |bench| {
        let store = &bench.store;
        for tenant in ["ours", "theirs"] {
            write(store, tenant).await.unwrap();
        }
        let scope = store.scope(tenant_id("ours"));
        let made = scope.write("test", |mut rows| {
            Box::pin(async move {
                for (number, head_seq) in [(1, 4), (2, 7), (3, 9)] {
                    let mut new = record(number, None);
                    new.record.head_seq = head_seq;
                    rows.add_session(&new).await?;
                }
                rows.hide_session(session(3), Timestamp(2)).await
            })
        });
        made.await.unwrap();
        let (ours, theirs) = (tenant_id("ours"), tenant_id("theirs"));
        let asked = [(ours, 1), (ours, 2), (ours, 3), (theirs, 1)];
        let heads = asked.map(|(tenant, number)| store.head_across_tenants(tenant, session(number)));
        let heads: Vec<Option<i64>> = futures::future::try_join_all(heads).await.unwrap();
        assert_eq!(heads, [Some(4), Some(7), None, None]);
    })
    .await;
}

#[tokio::test]
async fn who_asks_beside_one_that_goes_away_is_answered_all_the_same() {
    on_both(async |bench| {
        let store = &bench.store;
        write(store, "ours").await.unwrap();
        let (tenant, before) = (tenant_id("ours"), store.round_trips());
        let first = store.head_across_tenants(tenant, session(1));
        let second = store.head_across_tenants(tenant, session(2));
        tokio::pin!(second);
        {
            tokio::pin!(first);
            assert!(futures::poll!(&mut first).is_pending());
            assert!(futures::poll!(&mut second).is_pending());
        }
        let told = tokio::time::timeout(Duration::from_secs(10), second).await;
        assert_eq!(told.unwrap().unwrap(), None);
        assert!(store.round_trips() - before <= 2, "one question");
    })
    .await;
}
