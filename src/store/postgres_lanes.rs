//! Who goes with whom: a write that finds a lane free goes at once and alone, and
//! those that come while all lanes are busy go together when one is free again. So
//! nobody waits for company, and the more there is to do the less each costs.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::StoreError;
use super::postgres_group::Member;

/// Transactions of groups that are open at once: one is worked on by the database
/// while this process works for the other.
const LANES: usize = 2;
/// Members of a group. More of them no longer make each cheaper, and all wait for
/// the last.
const GROUP: usize = 32;
/// Writes that may wait. Each has a caller that waits for it, so there are not more
/// than requests and turns under way.
const WAITING: usize = 10_000;

#[derive(Default)]
pub(super) struct Lanes {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    busy: usize,
    waiting: VecDeque<Member>,
}

impl Lanes {
    /// A member that may go at once: its lane is busy until [`Lanes::next`] says that
    /// nobody waits.
    pub(super) fn enter(&self, member: Member) -> Option<Member> {
        let mut state = self.state();
        if state.busy < LANES {
            state.busy += 1;
            return Some(member);
        }
        if state.waiting.len() < WAITING {
            state.waiting.push_back(member);
            return None;
        }
        drop(state);
        let full = StoreError::unavailable("too many writes wait for the database");
        member.job.refuse(full);
        None
    }

    /// Those who go next on a lane that is free, each of another session; nothing
    /// gives the lane up.
    pub(super) fn next(&self) -> Vec<Member> {
        let mut state = self.state();
        let mut next: Vec<Member> = Vec::new();
        let mut left = VecDeque::new();
        while next.len() < GROUP {
            let Some(member) = state.waiting.pop_front() else { break };
            match next.iter().any(|other| other.session == member.session) {
                true => left.push_back(member),
                false => next.push(member),
            }
        }
        // In front, in the order in which they came.
        left.append(&mut state.waiting);
        state.waiting = left;
        if next.is_empty() {
            state.busy -= 1;
        }
        next
    }

    /// No code of others runs under this lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::{SessionId, TenantId};
    use crate::store::job::Job;

    fn member(session: u128) -> Member {
        let (job, _answer) = Job::new("test", |_| Box::pin(async { Ok(()) }));
        Member {
            tenant: TenantId::from_bits(1),
            session: SessionId::from_bits(session),
            job,
        }
    }

    fn sessions(members: &[Member]) -> Vec<SessionId> {
        members.iter().map(|member| member.session).collect()
    }

    fn ids(bits: &[u128]) -> Vec<SessionId> {
        bits.iter().map(|bits| SessionId::from_bits(*bits)).collect()
    }

    #[test]
    fn whoever_finds_a_lane_free_goes_and_the_others_go_together() {
        let lanes = Lanes::default();
        assert!(lanes.enter(member(1)).is_some());
        assert!(lanes.enter(member(2)).is_some());
        for session in [3, 4, 5] {
            assert!(lanes.enter(member(session)).is_none());
        }
        assert_eq!(sessions(&lanes.next()), ids(&[3, 4, 5]));
        assert!(lanes.next().is_empty(), "the lane is free again");
        assert!(lanes.enter(member(6)).is_some());
    }

    #[test]
    fn a_session_is_in_a_group_once_and_its_writes_keep_their_order() {
        let lanes = Lanes::default();
        for session in [1, 2, 3, 3, 4, 3, 5] {
            lanes.enter(member(session));
        }
        assert_eq!(sessions(&lanes.next()), ids(&[3, 4, 5]));
        assert_eq!(sessions(&lanes.next()), ids(&[3]));
        assert_eq!(sessions(&lanes.next()), ids(&[3]));
        assert!(lanes.next().is_empty());
    }

    #[test]
    fn a_group_is_bounded() {
        let lanes = Lanes::default();
        for session in 0..100 {
            lanes.enter(member(session));
        }
        let groups: Vec<usize> = (0..4).map(|_| lanes.next().len()).collect();
        assert_eq!(groups, [GROUP, GROUP, GROUP, 100 - LANES - 3 * GROUP]);
    }
}
