//! Who is asking: a tenant, a user in it, what that user may do, and at most
//! which tools. Made from an API key or a token once per request; everything
//! below the API trusts it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use super::id::{KeyId, TenantId};
use crate::base::Timestamp;

/// The identity behind a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub tenant: TenantId,
    pub user: String,
    pub scopes: Scopes,
    /// The stored key that was shown; nothing for tokens and the key of the
    /// environment.
    pub key: Option<KeyId>,
    /// When the credential stops to count; nothing that it makes may do so later.
    pub expires_at: Option<Timestamp>,
    /// Tools the principal may use at most; `None` is no ceiling.
    pub tools: Option<Vec<String>>,
}

impl Principal {
    /// Sees the rows of every user of the tenant, not only its own.
    pub fn sees_whole_tenant(&self) -> bool {
        self.scopes.allow(Scope::TenantAll)
    }

    /// Whether the ceiling leaves room for a tool.
    pub fn may_use(&self, tool: &str) -> bool {
        self.tools
            .as_ref()
            .is_none_or(|tools| tools.iter().any(|allowed| allowed == tool))
    }
}

/// One right, under its wire name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub enum Scope {
    #[serde(rename = "sessions:read")]
    SessionsRead,
    #[serde(rename = "sessions:write")]
    SessionsWrite,
    #[serde(rename = "turns:write")]
    TurnsWrite,
    #[serde(rename = "approvals:decide")]
    ApprovalsDecide,
    #[serde(rename = "grants:write")]
    GrantsWrite,
    #[serde(rename = "keys:write")]
    KeysWrite,
    #[serde(rename = "audit:read")]
    AuditRead,
    /// Rows of all users of the tenant.
    #[serde(rename = "tenant:all")]
    TenantAll,
    /// All of the others.
    #[serde(rename = "admin")]
    Admin,
}

impl Scope {
    pub const ALL: [Self; 9] = [
        Self::SessionsRead,
        Self::SessionsWrite,
        Self::TurnsWrite,
        Self::ApprovalsDecide,
        Self::GrantsWrite,
        Self::KeysWrite,
        Self::AuditRead,
        Self::TenantAll,
        Self::Admin,
    ];

    /// The wire name.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionsRead => "sessions:read",
            Self::SessionsWrite => "sessions:write",
            Self::TurnsWrite => "turns:write",
            Self::ApprovalsDecide => "approvals:decide",
            Self::GrantsWrite => "grants:write",
            Self::KeysWrite => "keys:write",
            Self::AuditRead => "audit:read",
            Self::TenantAll => "tenant:all",
            Self::Admin => "admin",
        }
    }

    /// The scope of a wire name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// A set of scopes; on the wire a list of names in the order of [`Scope::ALL`].
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Scopes(u16);

impl Scopes {
    pub const NONE: Self = Self(0);

    /// The scope itself is in the set; `admin` is not unfolded.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// The set permits what the scope stands for: `admin` permits everything.
    pub fn allow(self, scope: Scope) -> bool {
        self.contains(scope) || self.contains(Scope::Admin)
    }

    /// Everything that `other` permits is permitted by this set too, so that
    /// its holder may hand `other` on.
    pub fn cover(self, other: Self) -> bool {
        other.iter().all(|scope| self.allow(scope))
    }

    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }

    /// Known names of a list; the rest belongs to somebody else.
    pub fn from_known_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        names.into_iter().filter_map(Scope::named).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(Scope::name)).finish()
    }
}

impl Serialize for Scopes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Scope>::deserialize(deserializer)?.into_iter().collect())
    }
}

impl utoipa::PartialSchema for Scopes {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ArrayBuilder::new()
            .items(utoipa::openapi::Ref::from_schema_name("Scope"))
            .unique_items(true)
            .into()
    }
}

impl ToSchema for Scopes {
    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>) {
        schemas.push((
            <Scope as ToSchema>::name().into_owned(),
            <Scope as utoipa::PartialSchema>::schema(),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_a_list_of_names_on_the_wire() {
        let scopes: Scopes = [Scope::Admin, Scope::SessionsRead].into_iter().collect();
        let text = serde_json::to_string(&scopes).unwrap();
        assert_eq!(text, r#"["sessions:read","admin"]"#);
        assert_eq!(serde_json::from_str::<Scopes>(&text).unwrap(), scopes);
        assert_eq!(serde_json::from_str::<Scopes>("[]").unwrap(), Scopes::NONE);
        assert!(serde_json::from_str::<Scopes>(r#"["sessions:delete"]"#).is_err());
        assert!(serde_json::from_str::<Scopes>(r#""admin""#).is_err());
    }

    #[test]
    fn every_scope_has_one_name_and_one_bit() {
        for scope in Scope::ALL {
            assert_eq!(Scope::named(scope.name()), Some(scope));
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.name());
            assert_eq!(Scopes::from_iter([scope]).iter().collect::<Vec<_>>(), [scope]);
        }
        assert_eq!(Scope::named("Admin"), None);
        assert_eq!(Scopes::from_iter(Scope::ALL).iter().count(), 9);
    }

    #[test]
    fn admin_permits_everything_and_nothing_permits_admin() {
        let admin = Scopes::from_iter([Scope::Admin]);
        assert!(Scope::ALL.into_iter().all(|scope| admin.allow(scope)));
        let others: Scopes = Scope::ALL.into_iter().filter(|scope| *scope != Scope::Admin).collect();
        assert!(!others.allow(Scope::Admin));
        assert!(admin.cover(others) && !others.cover(admin) && others.cover(Scopes::NONE));
        assert!(!Scopes::NONE.allow(Scope::SessionsRead));
    }

    #[test]
    fn a_ceiling_leaves_only_its_tools() {
        let mut principal = Principal {
            tenant: TenantId::from_bits(1),
            user: "u".to_owned(),
            scopes: Scopes::NONE,
            key: None,
            expires_at: None,
            tools: None,
        };
        assert!(principal.may_use("terminal"));
        principal.tools = Some(vec!["read_file".to_owned()]);
        assert!(principal.may_use("read_file") && !principal.may_use("terminal"));
    }
}
