//! Lists in pages: how many, from where on, what comes next. A cursor is opaque
//! to clients; inside it is the last id or place of the page before, signed, so
//! that it leads on in its own list and nowhere else.

use std::fmt::Display;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Value, json};
use sha2::Sha256;
use utoipa::ToSchema;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, schema::Type};

use crate::base::Secret;
use crate::model::id::TenantId;
use crate::store::Slice;

use super::caller::Caller;
use super::failure::Failure;
use super::state::ApiState;

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    pub data: Vec<T>,
    pub has_more: bool,
    /// Send it as `after` to get what follows. Lists that grow at their end give
    /// it always, the others while there is more.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// A page of a log that grows at its end: it always says where to go on,
    /// also when nothing more is there yet.
    pub fn log(found: Slice<T>, limit: Limit, key: impl Fn(&T) -> String, after: Option<String>) -> Self {
        let Slice { items: mut found, cut } = found;
        let wanted = limit.count() as usize;
        let has_more = cut || wanted < found.len();
        found.truncate(wanted);
        Self {
            next_cursor: found.last().map(key).or(after),
            data: found,
            has_more,
        }
    }

    pub fn map<U>(self, change: impl FnMut(T) -> U) -> Page<U> {
        Page {
            data: self.data.into_iter().map(change).collect(),
            has_more: self.has_more,
            next_cursor: self.next_cursor,
        }
    }
}

/// One list of one tenant, with its filters: a cursor belongs to no other.
pub struct List {
    signer: Hmac<Sha256>,
}

/// Of a signature; nothing is gained by guessing one, and 128 bits are enough.
const SIGNATURE: usize = 16;

impl ApiState {
    /// A list as this caller's tenant has it; see [`List::new`].
    pub(super) fn list(&self, caller: &Caller, what: &Value) -> Result<List, Failure> {
        List::new(self.store.cursor_key(), caller.principal.tenant, what)
    }
}

impl List {
    /// `what` names the list, what it belongs to and the filters; not the size
    /// of pages, which may change between them.
    pub fn new(key: &Secret, tenant: TenantId, what: &Value) -> Result<Self, Failure> {
        let mut signer = Hmac::<Sha256>::new_from_slice(key.expose().as_bytes()).map_err(Failure::internal)?;
        // The closing bracket tells where the list ends and the key begins.
        signer.update(json!([tenant, what]).to_string().as_bytes());
        Ok(Self { signer })
    }

    /// A page out of what was found when one more than `limit` was asked for;
    /// `key` is what the store continues after.
    pub fn cut<T, K: Display>(&self, mut found: Vec<T>, limit: Limit, key: impl Fn(&T) -> K) -> Page<T> {
        let wanted = limit.count() as usize;
        let has_more = wanted < found.len();
        found.truncate(wanted);
        let last = found.last().filter(|_| has_more).map(key);
        Page {
            next_cursor: last.map(|key| self.cursor(key)),
            data: found,
            has_more,
        }
    }

    /// A key as the client carries it.
    pub fn cursor(&self, key: impl Display) -> String {
        let key = key.to_string();
        let signature = self.signer.clone().chain_update(&key).finalize().into_bytes();
        let signed: Vec<u8> = signature.iter().copied().take(SIGNATURE).chain(key.bytes()).collect();
        URL_SAFE_NO_PAD.encode(signed)
    }

    /// The key in the cursor that the client sent as `after`.
    pub fn after<K: FromStr>(&self, given: Option<&str>) -> Result<Option<K>, Failure> {
        let Some(given) = given else { return Ok(None) };
        self.key(given).map(Some).ok_or_else(|| {
            let detail = "send the `next_cursor` of the page before, unchanged and with the same filters";
            Failure::invalid_cursor("after", detail)
        })
    }

    fn key<K: FromStr>(&self, given: &str) -> Option<K> {
        let signed = URL_SAFE_NO_PAD.decode(given).ok()?;
        let (signature, key) = signed.split_at_checked(SIGNATURE)?;
        let signer = self.signer.clone().chain_update(key);
        signer.verify_truncated_left(signature).ok()?;
        std::str::from_utf8(key).ok()?.parse().ok()
    }
}

/// How many entries a page holds at most: 1 to 200, 50 where nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(u32);

impl Limit {
    const MAX: u32 = 200;
    const DEFAULT: u32 = 50;

    pub fn count(self) -> u32 {
        self.0
    }

    /// To ask the store for: one more says whether there is a next page.
    pub fn and_one(self) -> u32 {
        self.0 + 1
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self(Self::DEFAULT)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let count = text.parse().ok().filter(|count| (1..=Self::MAX).contains(count));
        count
            .map(Self)
            .ok_or_else(|| de::Error::custom(format!("expected a number from 1 to {}", Self::MAX)))
    }
}

impl utoipa::PartialSchema for Limit {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(Self::MAX))
            .default(Some(Self::DEFAULT.into()))
            .into()
    }
}

impl ToSchema for Limit {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::SessionId;

    fn list(tenant: u128, what: &Value) -> List {
        List::new(&Secret::new("key"), TenantId::from_bits(tenant), what).unwrap()
    }

    #[test]
    fn a_full_page_says_where_the_next_begins() {
        let ids: Vec<SessionId> = (1..=3).map(SessionId::from_bits).collect();
        let list = list(1, &json!(["sessions"]));
        let page = list.cut(ids.clone(), Limit(2), |id| *id);
        assert_eq!((page.data.as_slice(), page.has_more), (&ids[..2], true));
        assert_eq!(list.after(page.next_cursor.as_deref()).unwrap(), Some(ids[1]));
        let page = list.cut(ids.clone(), Limit(3), |id| *id);
        assert_eq!((page.data, page.has_more, page.next_cursor), (ids, false, None));
        assert!(list.after::<SessionId>(None).unwrap().is_none());
    }

    #[test]
    fn what_is_no_cursor_of_that_list_is_refused() {
        let id = SessionId::from_bits(1);
        let what = json!(["turns", id, null]);
        let here = list(1, &what);
        let good = here.cursor(id);
        let other_key = List::new(&Secret::new("yek"), TenantId::from_bits(1), &what).unwrap();
        let mut bytes = URL_SAFE_NO_PAD.decode(&good).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        assert_eq!(here.after(Some(&good)).unwrap(), Some(id));
        for given in [
            "".to_owned(),
            "x".to_owned(),
            id.to_string(),
            URL_SAFE_NO_PAD.encode(id.to_string()),
            URL_SAFE_NO_PAD.encode(bytes),
            good[..good.len() - 2].to_owned(),
            here.cursor("turn_1"),
            other_key.cursor(id),
            list(2, &what).cursor(id),
            list(1, &json!(["approvals", id, null])).cursor(id),
            list(1, &json!(["turns", id, "queued"])).cursor(id),
        ] {
            let failure = here.after::<SessionId>(Some(&given)).unwrap_err();
            assert_eq!(failure.problem().status, 400, "{given}");
            assert_eq!(failure.problem().kind, "/problems/invalid_cursor");
        }
    }
}
