//! No ring is lost, and nothing is kept for those who left.

use futures::FutureExt;
use proptest::prelude::*;

use super::super::{Bell, BellReceiver};
use super::*;

#[derive(Clone, Debug)]
enum Act {
    Subscribe(u8),
    Ring(u8),
    /// Asks, without waiting, whether the oldest listener of the session heard.
    Ask(u8),
    Leave(u8),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let session = 0u8..3;
    let act = prop_oneof![
        session.clone().prop_map(Act::Subscribe),
        session.clone().prop_map(Act::Ring),
        session.clone().prop_map(Act::Ask),
        session.prop_map(Act::Leave),
    ];
    prop::collection::vec(act, 0..60)
}

proptest! {
    #[test]
    fn a_listener_hears_exactly_when_its_session_rang_since_it_asked(acts in acts()) {
        let bell = Bell::new();
        // (session, whether it rang since the listener last asked, listener)
        let mut listeners = Vec::new();
        for act in acts {
            match act {
                Act::Subscribe(number) => listeners.push((number, false, bell.subscribe(session(number.into())))),
                Act::Ring(number) => {
                    bell.ring(&[(session(number.into()), News::Other)]);
                    listeners.iter_mut().filter(|(own, ..)| *own == number).for_each(|(_, rang, _)| *rang = true);
                }
                Act::Ask(number) => {
                    if let Some((_, rang, listener)) = listeners.iter_mut().find(|(own, ..)| *own == number) {
                        prop_assert_eq!(listener.changed().now_or_never().is_some(), std::mem::take(rang));
                    }
                }
                Act::Leave(number) => {
                    let place = listeners.iter().position(|(own, ..)| *own == number);
                    place.map(|place| listeners.remove(place));
                }
            }
            let mut listened: Vec<u8> = listeners.iter().map(|(own, ..)| *own).collect();
            listened.sort_unstable();
            listened.dedup();
            prop_assert_eq!(bell.listened(), listened.len());
        }
    }
}

#[tokio::test]
async fn whoever_reads_after_subscribing_misses_no_commit() {
    on_both(async |bench| {
        const ROUNDS: usize = 60;
        let mut bell = bench.store.bell().subscribe(session(1));
        let mut all = bench.store.bell().subscribe_all();
        let store = bench.store.clone();
        let writer = tokio::spawn(async move {
            for round in 0..ROUNDS {
                let work = store.write(Wall::Across, "test", move |conn| {
                    Box::pin(async move {
                        conn.ring(session(1), News::Other);
                        insert(conn, &format!("{round:03}")).await
                    })
                });
                work.await.unwrap();
            }
        });
        // A follower that would hang here had lost the last ring.
        while names(&bench.store).await.len() < ROUNDS {
            bell.changed().await;
        }
        writer.await.unwrap();
        all.changed().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_transaction_that_is_undone_rings_nobody() {
    on_both(async |bench| {
        let mut bell = bench.store.bell().subscribe(session(1));
        let mut all = bench.store.bell().subscribe_all();
        let undone = bench.store.write(Wall::Across, "test", |conn| {
            Box::pin(async move {
                conn.ring(session(1), News::Other);
                Err::<(), _>(StoreError::Lost)
            })
        });
        assert!(undone.await.is_err());
        write(&bench.store, "silent").await.unwrap();
        assert!(bell.changed().now_or_never().is_none());
        assert!(all.changed().now_or_never().is_none());
    })
    .await;
}

#[tokio::test]
async fn who_knows_the_events_is_not_rung_for_them_but_for_whatever_else_happens() {
    let bell = Bell::new();
    let mut owner = bell.subscribe(session(1));
    let hears = |owner: &mut BellReceiver, known| owner.changed_past(known).now_or_never().is_some();
    bell.ring(&[(session(1), News::Events(4))]);
    assert!(!hears(&mut owner, 4), "its own commit");
    bell.ring(&[(session(1), News::Events(6))]);
    bell.ring(&[(session(1), News::Events(5))]);
    assert!(hears(&mut owner, 5), "somebody else's, whichever came last");
    bell.ring(&[(session(1), News::Other)]);
    assert!(hears(&mut owner, 6), "a cancel has no event");
    assert!(!hears(&mut owner, 6), "and is heard once");
}
