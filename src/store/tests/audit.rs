//! The audit trail is only appended to, and becomes one chain for each tenant,
//! whoever chains it.

use super::*;
use crate::base::Timestamp;
use crate::model::audit::export::Verifier;
use crate::model::audit::{Actor, AuditAction, Audited};
use crate::model::id::ProcessId;
use crate::store::AuditExport;
use crate::store::chain_across_tenants::{Progress, batch};

async fn audited(store: &Store, tenant: &str, count: usize) {
    let scope = store.scope(tenant_id(tenant)).acting(Actor {
        user: "ada".to_owned(),
        key: None,
    });
    let entries = vec![Audited::new(AuditAction::SessionCreated, "ada"); count];
    let written = scope.write("test", move |mut rows| {
        Box::pin(async move { rows.audit(&entries, Timestamp(7)).await })
    });
    written.await.unwrap();
}

/// The export of a tenant, and what it proves.
async fn export(store: &Store, tenant: &str) -> (String, u64, usize) {
    let mut export = AuditExport::new(store.scope(tenant_id(tenant)));
    let mut text = String::new();
    while let Some(part) = export.next().await.unwrap() {
        text.push_str(&part);
    }
    let mut verifier = Verifier::new(None);
    text.lines().for_each(|line| verifier.line(line).unwrap());
    let proof = verifier.finish().unwrap();
    (text, proof.chained, proof.unchained.len())
}

fn process(number: u128) -> ProcessId {
    Id::from_bits(number)
}

#[tokio::test]
async fn no_entry_can_be_changed_or_deleted() {
    on_both(async |bench| {
        let store = &bench.store;
        audited(store, "ours", 2).await;
        let mut statements = vec![
            "update audit_entry set actor = 'eve'",
            "update audit_entry set exit_code = 0",
            "update audit_entry set chain_seq = 1, at = 0",
            "update audit_entry set hash = 'x'",
            "delete from audit_entry",
            "insert into audit_entry select * from audit_entry limit 1",
        ];
        match store.kind() {
            Kind::Sqlite => statements.push("insert or replace into audit_entry select * from audit_entry limit 1"),
            Kind::Postgres => statements.push("truncate audit_entry"),
        }
        for chained in [false, true] {
            for sql in &statements {
                let sql: &'static str = sql;
                let done = store.write(Wall::Across, "test", move |conn| {
                    Box::pin(async move { conn.execute(sql, &[]).await })
                });
                assert!(done.await.is_err(), "{sql}, chained: {chained}");
            }
            let before = export(store, "ours").await;
            assert_eq!(before.1 + before.2 as u64, 2);
            store.chain_audit_across_tenants(process(1)).await.unwrap();
        }
    })
    .await;
}

/// A column that a later version adds is looked after as well.
#[tokio::test]
async fn of_an_entry_nothing_changes_but_its_place() {
    on_postgres(async |bench| {
        let store = &bench.store;
        audited(store, "ours", 1).await;
        let read = store.read(Wall::Across, |conn| {
            Box::pin(async move {
                let sql = "select column_name from information_schema.columns where table_name = 'audit_entry'
                    and column_name not in ('chain_seq', 'prev_hash', 'hash')";
                conn.rows(sql, &[])
                    .await?
                    .iter()
                    .map(|row| row.text("column_name"))
                    .collect()
            })
        });
        let columns: Vec<String> = read.await.unwrap();
        assert!(columns.len() > 15, "{columns:?}");
        for column in columns {
            let sql = format!("update audit_entry set chain_seq = 1, hash = '', prev_hash = '', {column} = {column}");
            let sql: &'static str = Box::leak(sql.into_boxed_str());
            let changed = store.write(Wall::Across, "test", move |conn| {
                Box::pin(async move { conn.execute(sql, &[]).await })
            });
            let refusal = changed.await.unwrap_err().to_string();
            assert!(refusal.contains("audit entries are never changed"), "{sql}: {refusal}");
        }
    })
    .await;
}

/// Even with plans that were made when the table was empty, as in a new database.
#[tokio::test]
async fn chaining_does_not_go_through_what_is_chained() {
    on_postgres(async |bench| {
        let store = &bench.store;
        audited(store, "ours", 1).await;
        let passed = store.write(Wall::Across, "test", |conn| {
            Box::pin(async move {
                while batch(conn).await? {}
                let scope = Actor::system();
                for _ in 0..5 {
                    let entries = vec![Audited::new(AuditAction::SessionCreated, "ada"); 300];
                    let by = (&scope, &crate::base::Clock::system());
                    crate::store::audit::insert(conn, tenant_id("ours"), by, &entries, Timestamp(7)).await?;
                    while batch(conn).await? {}
                }
                let sql = "select seq_tup_read from pg_stat_xact_user_tables where relname = 'audit_entry'";
                conn.row(sql, &[]).await?.ok_or(StoreError::Lost)?.int("seq_tup_read")
            })
        });
        assert_eq!(passed.await.unwrap(), 0);
        assert_eq!(export(store, "ours").await.1, 1501);
    })
    .await;
}

#[tokio::test]
async fn each_tenant_has_a_chain_of_its_own_and_new_entries_continue_it() {
    on_both(async |bench| {
        let store = &bench.store;
        audited(store, "ours", 3).await;
        audited(store, "theirs", 1).await;
        assert_eq!(export(store, "ours").await.2, 3, "the tail is there and not chained");
        assert_eq!(
            store.chain_audit_across_tenants(process(1)).await.unwrap(),
            Progress::Done
        );
        audited(store, "ours", 600).await;
        let mut progress = Progress::More;
        while progress == Progress::More {
            progress = store.chain_audit_across_tenants(process(1)).await.unwrap();
        }
        let (text, chained, unchained) = export(store, "ours").await;
        assert_eq!((chained, unchained), (603, 0));
        assert!(!text.contains(&tenant_id("theirs").to_string()));
        assert_eq!(export(store, "theirs").await.1, 1);
    })
    .await;
}

#[tokio::test]
async fn one_process_chains_at_a_time_until_its_lease_is_over() {
    on_both(async |bench| {
        let store = &bench.store;
        audited(store, "ours", 600).await;
        // The first has more to do, so it keeps the lease.
        assert_eq!(
            store.chain_audit_across_tenants(process(1)).await.unwrap(),
            Progress::More
        );
        assert_eq!(
            store.chain_audit_across_tenants(process(2)).await.unwrap(),
            Progress::Busy
        );
        let over = store.write(Wall::Across, "test", |conn| {
            Box::pin(async move { conn.execute("update task_lease set expires_at = 0", &[]).await })
        });
        over.await.unwrap();
        assert_eq!(
            store.chain_audit_across_tenants(process(2)).await.unwrap(),
            Progress::Done
        );
        assert_eq!(export(store, "ours").await.1, 600);
        audited(store, "ours", 1).await;
        assert_eq!(
            store.chain_audit_across_tenants(process(1)).await.unwrap(),
            Progress::Done
        );
    })
    .await;
}

#[tokio::test]
async fn who_sees_one_user_gets_the_whole_chain_and_the_entries_of_that_user() {
    on_both(async |bench| {
        let store = &bench.store;
        audited(store, "ours", 2).await;
        let scope = store.scope(tenant_id("ours"));
        let written = scope.write("test", |mut rows| {
            Box::pin(async move {
                rows.audit(&[Audited::new(AuditAction::SessionDeleted, "eve")], Timestamp(8))
                    .await
            })
        });
        written.await.unwrap();
        store.chain_audit_across_tenants(process(1)).await.unwrap();
        let mut export = AuditExport::new(store.scope(tenant_id("ours")).of_user("eve".to_owned()));
        let mut verifier = Verifier::new(None);
        let mut shown = 0;
        while let Some(part) = export.next().await.unwrap() {
            assert!(!part.contains("\"ada\""), "{part}");
            shown += part.matches("\"user_id\":\"eve\"").count();
            part.lines().for_each(|line| verifier.line(line).unwrap());
        }
        assert_eq!((verifier.finish().unwrap().chained, shown), (3, 1));
    })
    .await;
}
