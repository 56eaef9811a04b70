//! Who goes with whom: a write that finds its lane free goes at once and alone, and
//! those that come while it is busy go together when it is free again. So nobody
//! waits for company, and the more there is to do the less each costs.
//!
//! A session always takes the same lane, and so do all that raise the same part of
//! the sums of usage: what is under way in one lane never waits for another lane.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::StoreError;
use super::postgres_group::Member;
use super::usage;
use crate::model::id::SessionId;

/// Transactions of groups that are open at once: one is worked on by the database
/// while this process works for the other. A divisor of the parts of a sum.
const LANES: usize = 2;
/// Members of a group. More of them no longer make each cheaper, and all wait for
/// the last.
const GROUP: usize = 32;
/// Writes that may wait in a lane. Each has a caller that waits for it, so there are
/// not more than requests and turns under way.
const WAITING: usize = 10_000;

#[derive(Default)]
pub(super) struct Lanes([Mutex<Lane>; LANES]);

#[derive(Default)]
struct Lane {
    busy: bool,
    waiting: VecDeque<Member>,
}

impl Lanes {
    /// A member that may go at once: its lane is busy until [`Lanes::next`] says that
    /// nobody waits there.
    pub(super) fn enter(&self, member: Member) -> Option<Member> {
        let mut lane = self.of(member.session);
        if !lane.busy {
            lane.busy = true;
            return Some(member);
        }
        if lane.waiting.len() < WAITING {
            lane.waiting.push_back(member);
            return None;
        }
        drop(lane);
        let full = StoreError::unavailable("too many writes wait for the database");
        member.job.refuse(full);
        None
    }

    /// Those who go next in the lane of a session that was in it, each of another
    /// session; nothing gives the lane up.
    pub(super) fn next(&self, before: SessionId) -> Vec<Member> {
        let mut lane = self.of(before);
        let mut next: Vec<Member> = Vec::new();
        let mut left = VecDeque::new();
        while next.len() < GROUP {
            let Some(member) = lane.waiting.pop_front() else { break };
            match next.iter().any(|other| other.session == member.session) {
                true => left.push_back(member),
                false => next.push(member),
            }
        }
        // In front, in the order in which they came.
        left.append(&mut lane.waiting);
        lane.waiting = left;
        lane.busy = !next.is_empty();
        next
    }

    /// No code of others runs under this lock.
    #[allow(clippy::indexing_slicing, reason = "a remainder by the number of lanes")]
    fn of(&self, session: SessionId) -> MutexGuard<'_, Lane> {
        let lane = usage::part(session) as usize % LANES;
        self.0[lane].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::TenantId;
    use crate::store::job::Job;

    fn member(session: SessionId) -> Member {
        let (job, _answer) = Job::new("test", |_| Box::pin(async { Ok(()) }));
        Member {
            tenant: TenantId::from_bits(1),
            session,
            job,
        }
    }

    /// Sessions of one lane.
    fn of_lane(lane: u32) -> impl Iterator<Item = SessionId> {
        let sessions = (0..).map(SessionId::from_bits);
        sessions.filter(move |session| usage::part(*session) % 2 == lane)
    }

    fn sessions(members: &[Member]) -> Vec<SessionId> {
        members.iter().map(|member| member.session).collect()
    }

    #[test]
    fn whoever_finds_its_lane_free_goes_and_the_others_go_together() {
        let lanes = Lanes::default();
        let [own, other]: [Vec<SessionId>; 2] = [0, 1].map(|lane| of_lane(lane).take(5).collect());
        assert!(lanes.enter(member(own[0])).is_some());
        assert!(own[1..].iter().all(|session| lanes.enter(member(*session)).is_none()));
        assert!(lanes.enter(member(other[0])).is_some(), "another lane");
        assert_eq!(sessions(&lanes.next(own[0])), own[1..]);
        assert!(lanes.next(own[0]).is_empty(), "the lane is free again");
        assert!(lanes.enter(member(own[1])).is_some());
    }

    #[test]
    fn a_session_is_in_a_group_once_and_its_writes_keep_their_order() {
        let lanes = Lanes::default();
        let own: Vec<SessionId> = of_lane(0).take(4).collect();
        for place in [0, 1, 1, 2, 1, 3] {
            lanes.enter(member(own[place]));
        }
        assert_eq!(sessions(&lanes.next(own[0])), own[1..]);
        assert_eq!(sessions(&lanes.next(own[0])), own[1..2]);
        assert_eq!(sessions(&lanes.next(own[0])), own[1..2]);
        assert!(lanes.next(own[0]).is_empty());
    }

    #[test]
    fn a_group_is_bounded() {
        let lanes = Lanes::default();
        let own: Vec<SessionId> = of_lane(1).take(100).collect();
        for session in &own {
            lanes.enter(member(*session));
        }
        let groups: Vec<usize> = (0..4).map(|_| lanes.next(own[0]).len()).collect();
        assert_eq!(groups, [GROUP, GROUP, GROUP, 99 - 3 * GROUP]);
    }
}
