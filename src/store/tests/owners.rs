//! Processes and their leases; tenants; keys.

use std::time::Duration;

use super::super::across_tenants::{add_first_key, has_no_keys, key_with_hash, tenant_count, tenant_named};
use super::super::keys::{self, KeyRecord};
use super::super::process::{self, dead, is_dead, register};
use super::super::tenants;
use super::*;
use crate::base::{Clock, Timestamp};
use crate::model::id::{KeyId, NodeId, ProcessId};

const LEASE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_process_is_dead_when_its_lease_ended_or_it_left_or_its_node_is_mine() {
    on_both(async |bench| {
        let (store, clock) = (&bench.store, bench.store.clock());
        let (ours, theirs) = (NodeId::new(clock), NodeId::new(clock));
        let me = register(store, ours, LEASE).await.unwrap();
        let mut other = register(store, theirs, LEASE).await.unwrap();
        assert_eq!(dead(store, me.id(), ours).await.unwrap(), []);
        assert!(!is_dead(store, other.id()).await.unwrap());
        assert!(is_dead(store, ProcessId::new(clock)).await.unwrap());

        // A lease of nothing has ended, on whichever clock.
        other.renew(Duration::ZERO).await.unwrap();
        assert_eq!(dead(store, me.id(), ours).await.unwrap(), [other.id()]);
        assert!(is_dead(store, other.id()).await.unwrap());
        other.renew(LEASE).await.unwrap();
        assert!(!is_dead(store, other.id()).await.unwrap());

        // Whoever held the node's identity before is gone at once.
        let earlier = register(store, ours, LEASE).await.unwrap();
        assert_eq!(dead(store, me.id(), ours).await.unwrap(), [earlier.id()]);

        process::remove(store, other.id()).await.unwrap();
        assert!(matches!(other.renew(LEASE).await, Err(StoreError::Lost)));
        let gone = me.id();
        me.leave().await.unwrap();
        assert!(is_dead(store, gone).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_lease_runs_by_the_clock_of_the_process_on_sqlite() {
    let bench = Bench::sqlite(None).await;
    let clock = bench.store.clock();
    let process = register(&bench.store, NodeId::new(clock), LEASE).await.unwrap();
    clock.step(LEASE - Duration::from_millis(1));
    assert!(!is_dead(&bench.store, process.id()).await.unwrap());
    clock.step(Duration::from_millis(1));
    assert!(is_dead(&bench.store, process.id()).await.unwrap());
}

#[tokio::test]
async fn a_free_lock_proves_death_before_the_lease_ends() {
    on_postgres(async |bench| {
        let (store, clock) = (&bench.store, bench.store.clock());
        let me = register(store, NodeId::new(clock), LEASE).await.unwrap();
        let mut other = register(store, NodeId::new(clock), LEASE).await.unwrap();
        assert!(!is_dead(store, other.id()).await.unwrap());

        // What a killed process leaves behind: the row, and a closed connection.
        let mut raw = bench.raw_postgres().await;
        let sql = "select pg_terminate_backend(pid, 5000) from pg_locks where locktype = 'advisory' and granted \
                   and ((classid::bigint << 32) | objid::bigint) = hashtextextended($1, 0)";
        let ended = sqlx::query(sql)
            .bind(other.id().to_string())
            .fetch_all(&mut raw)
            .await
            .unwrap();
        assert_eq!(ended.len(), 1);
        assert!(is_dead(store, other.id()).await.unwrap());
        assert_eq!(dead(store, me.id(), NodeId::new(clock)).await.unwrap(), [other.id()]);

        // One that lost only its connection takes the lock again as it renews.
        other.renew(LEASE).await.unwrap();
        assert!(!is_dead(store, other.id()).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn tenants_are_found_by_name_and_made_once() {
    on_both(async |bench| {
        let store = &bench.store;
        assert_eq!(tenants::ensure_default(store).await.unwrap(), tenants::default_id());
        assert_eq!(tenants::ensure_default(store).await.unwrap(), tenants::default_id());
        assert_eq!(
            tenant_named(store, "default").await.unwrap().unwrap().tenant_id,
            tenants::default_id()
        );
        assert_eq!(tenant_count(store).await.unwrap(), 1);

        assert_eq!(tenant_named(store, "acme").await.unwrap(), None);
        let made = tenants::create(store, "acme").await.unwrap();
        assert!(matches!(
            tenants::create(store, "acme").await,
            Err(StoreError::Unique(_))
        ));
        assert_eq!(tenants::ensure(store, "acme").await.unwrap(), made);
        let (left, right) = tokio::join!(tenants::ensure(store, "both"), tenants::ensure(store, "both"));
        assert_eq!(left.unwrap(), right.unwrap());
        assert_eq!(tenant_count(store).await.unwrap(), 3);
    })
    .await;
}

fn key(clock: &Clock, tenant_id: TenantId, hash: &str) -> KeyRecord {
    KeyRecord {
        tenant_id,
        key_id: KeyId::new(clock),
        user_id: "user".to_owned(),
        name: "a key".to_owned(),
        hash: hash.to_owned(),
        scopes: vec!["admin".to_owned()],
        tools: None,
        created_at: clock.now(),
        expires_at: None,
        revoked_at: None,
    }
}

#[tokio::test]
async fn keys_are_listed_found_and_revoked_within_their_tenant() {
    on_both(async |bench| {
        let (store, clock) = (&bench.store, bench.store.clock());
        let ours = tenants::create(store, "ours").await.unwrap().tenant_id;
        let theirs = tenants::create(store, "theirs").await.unwrap().tenant_id;
        assert!(has_no_keys(store).await.unwrap());
        let first = key(clock, ours, "h1");
        let second = KeyRecord {
            tools: Some(vec!["read_file".to_owned()]),
            expires_at: Some(Timestamp(9)),
            ..key(clock, ours, "h2")
        };
        let foreign = key(clock, theirs, "h3");
        for one in [&first, &second, &foreign] {
            keys::add(store, one.clone()).await.unwrap();
        }
        assert!(!has_no_keys(store).await.unwrap());
        assert!(matches!(
            keys::add(store, key(clock, theirs, "h1")).await,
            Err(StoreError::Unique(_))
        ));

        assert_eq!(
            keys::list(store, ours, None, 10).await.unwrap(),
            [second.clone(), first.clone()]
        );
        assert_eq!(
            keys::list(store, ours, None, 1).await.unwrap(),
            std::slice::from_ref(&second)
        );
        let older = keys::list(store, ours, Some(second.key_id), 10).await.unwrap();
        assert_eq!(older, std::slice::from_ref(&first));
        assert_eq!(key_with_hash(store, "h3").await.unwrap(), Some(foreign.clone()));
        assert_eq!(key_with_hash(store, "h4").await.unwrap(), None);

        assert!(!keys::revoke(store, ours, foreign.key_id).await.unwrap());
        assert!(keys::revoke(store, ours, first.key_id).await.unwrap());
        let revoked_at = clock.now();
        clock.step(Duration::from_secs(1));
        assert!(keys::revoke(store, ours, first.key_id).await.unwrap());
        assert_eq!(
            key_with_hash(store, "h1").await.unwrap().unwrap().revoked_at,
            Some(revoked_at)
        );
        assert_eq!(key_with_hash(store, "h3").await.unwrap().unwrap().revoked_at, None);
    })
    .await;
}

#[tokio::test]
async fn of_several_first_starts_one_stores_its_key() {
    on_both(async |bench| {
        let (store, clock) = (&bench.store, bench.store.clock());
        let tenant = tenants::ensure_default(store).await.unwrap();
        let starts = ["a", "b", "c", "d"].map(|hash| add_first_key(store, key(clock, tenant, hash)));
        let stored = futures::future::try_join_all(starts).await.unwrap();
        assert_eq!(stored.iter().filter(|stored| **stored).count(), 1);
        assert_eq!(keys::list(store, tenant, None, 10).await.unwrap().len(), 1);
    })
    .await;
}
