//! Who has asked how much lately, on this process. A request is judged by the
//! rates of its key, its tenant and the server at once and counts for all of
//! them or, refused, for none. Memory is bounded: of too many callers those who
//! have used least are forgotten, which is in their favour.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::bucket::{self, FullAt, Standing};
use crate::base::Timestamp;
use crate::config::{Limits, Quota};
use crate::model::principal::Principal;

/// Callers that are remembered; about 4 MB.
const MAX_BUCKETS: usize = 65_536;

/// Whose rate it is, from the narrowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    Key,
    Tenant,
    Server,
}

/// One of them. Hashed, since users have names of any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Holder(Whose, [u8; 16]);

/// One rate and how a request left it.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    pub whose: Whose,
    pub quota: Quota,
    pub standing: Standing,
}

/// What became of a request.
#[derive(Debug)]
pub struct Judged {
    /// In the order of [`Whose`].
    pub rates: Vec<Rate>,
    /// The rate that leaves no room for the longest time.
    pub refused: Option<Rate>,
}

pub struct Limiter {
    quotas: Vec<(Whose, Quota)>,
    buckets: Mutex<HashMap<Holder, FullAt>>,
    most: usize,
}

impl Limiter {
    /// Nothing where no rate is limited.
    pub fn new(limits: &Limits) -> Option<Self> {
        let all = [
            (Whose::Key, limits.key.requests),
            (Whose::Tenant, limits.tenant.requests),
            (Whose::Server, limits.server.requests),
        ];
        let quotas: Vec<_> = all
            .into_iter()
            .filter_map(|(whose, quota)| Some((whose, quota?)))
            .collect();
        (!quotas.is_empty()).then_some(Self {
            quotas,
            buckets: Mutex::default(),
            most: MAX_BUCKETS,
        })
    }

    /// Counts a request, if every rate has room for it.
    pub fn judge(&self, principal: &Principal, now: Timestamp) -> Judged {
        let now = FullAt::now(now);
        // No lock is held across an await and no code of others runs under it.
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let held = self.quotas.iter().map(|(whose, quota)| {
            let holder = holder(*whose, principal);
            let full = buckets.get(&holder).copied().unwrap_or(FullAt::LONG_AGO);
            (holder, *quota, full)
        });
        let held: Vec<(Holder, Quota, FullAt)> = held.collect();
        let rate = |(holder, quota, full): &(Holder, Quota, FullAt)| Rate {
            whose: holder.0,
            quota: *quota,
            standing: bucket::standing(*quota, *full, now),
        };
        let before: Vec<Rate> = held.iter().map(rate).collect();
        let refused = before.iter().filter(|rate| rate.standing.left == 0);
        if let Some(refused) = refused.max_by_key(|rate| rate.standing.wait).copied() {
            return Judged {
                rates: before,
                refused: Some(refused),
            };
        }
        let drawn = held.into_iter().map(|(holder, quota, full)| {
            let full = bucket::draw(quota, full, now);
            buckets.insert(holder, full);
            rate(&(holder, quota, full))
        });
        let rates = drawn.collect();
        if self.most < buckets.len() {
            forget(&mut buckets, now);
        }
        Judged { rates, refused: None }
    }
}

/// Drops the fuller half of the buckets, and what is full in any case. The
/// server's own is drawn from by all and stays.
fn forget(buckets: &mut HashMap<Holder, FullAt>, now: FullAt) {
    let mut all: Vec<FullAt> = buckets.values().copied().collect();
    let middle = all.len() / 2;
    let (_, middle, _) = all.select_nth_unstable(middle);
    let line = now.max(*middle);
    buckets.retain(|holder, full| holder.0 == Whose::Server || line < *full);
}

/// Who a request counts for. Callers without a stored key are told apart by
/// user; ids and names hold no space behind the first.
fn holder(whose: Whose, principal: &Principal) -> Holder {
    let text = match (whose, principal.key) {
        (Whose::Key, Some(key)) => format!("{key}"),
        (Whose::Key, None) => format!("{} {}", principal.tenant, principal.user),
        (Whose::Tenant, _) => format!("{}", principal.tenant),
        (Whose::Server, _) => String::new(),
    };
    let mut short = [0; 16];
    for (to, from) in short.iter_mut().zip(Sha256::digest(text.as_bytes())) {
        *to = from;
    }
    Holder(whose, short)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::Limit;
    use crate::model::id::{KeyId, TenantId};
    use crate::model::principal::Scopes;

    const NOW: Timestamp = Timestamp(1_769_851_800_000);

    fn principal(tenant: u128, key: Option<u128>, user: &str) -> Principal {
        Principal {
            tenant: TenantId::from_bits(tenant),
            user: user.to_owned(),
            scopes: Scopes::NONE,
            key: key.map(KeyId::from_bits),
            tools: None,
        }
    }

    fn limiter(key: u32, tenant: u32, server: u32) -> Limiter {
        let limit = |requests| Limit {
            executing_turns: None,
            requests: (requests != 0).then_some(Quota {
                requests,
                window: Duration::from_secs(60),
            }),
        };
        Limiter::new(&Limits {
            server: limit(server),
            tenant: limit(tenant),
            key: limit(key),
        })
        .unwrap()
    }

    fn refused(limiter: &Limiter, principal: &Principal) -> Option<Whose> {
        limiter.judge(principal, NOW).refused.map(|rate| rate.whose)
    }

    #[test]
    fn each_key_tenant_and_user_has_a_rate_of_its_own() {
        let limiter = limiter(1, 3, 0);
        let keyed = principal(1, Some(1), "ada");
        assert_eq!(refused(&limiter, &keyed), None);
        assert_eq!(refused(&limiter, &keyed), Some(Whose::Key));
        // Another key of the same user, a user without a key, another user.
        for other in [principal(1, Some(2), "ada"), principal(1, None, "ada")] {
            assert_eq!(refused(&limiter, &other), None);
        }
        assert_eq!(refused(&limiter, &principal(1, None, "bob")), Some(Whose::Tenant));
        assert_eq!(refused(&limiter, &principal(2, None, "ada")), None);
    }

    #[test]
    fn a_refused_request_counts_for_nothing() {
        let limiter = limiter(2, 0, 3);
        let (loud, quiet) = (principal(1, Some(1), "a"), principal(2, Some(2), "b"));
        for expected in [None, None, Some(Whose::Key), Some(Whose::Key), Some(Whose::Key)] {
            assert_eq!(refused(&limiter, &loud), expected);
        }
        // What the loud one was refused did not eat into what is everybody's.
        assert_eq!(refused(&limiter, &quiet), None);
        assert_eq!(refused(&limiter, &quiet), Some(Whose::Server));
        let rates = limiter.judge(&quiet, NOW).rates;
        assert_eq!((rates[0].whose, rates[0].standing.left), (Whose::Key, 1));
    }

    #[test]
    fn of_too_many_callers_those_who_used_least_are_forgotten() {
        let mut limiter = limiter(10, 0, 0);
        limiter.most = 100;
        let heavy = principal(1, Some(0), "heavy");
        for _ in 0..10 {
            assert_eq!(refused(&limiter, &heavy), None);
        }
        for key in 1..=10_000 {
            assert_eq!(refused(&limiter, &principal(1, Some(key), "x")), None);
            assert!(limiter.buckets.lock().unwrap().len() <= 100);
        }
        assert_eq!(refused(&limiter, &heavy), Some(Whose::Key));
    }
}
