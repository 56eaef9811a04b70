//! The public keys that tokens may be signed with, from a JWKS file. Each key
//! is tied to one algorithm when it is read; keys that are not for RS256, ES256
//! or EdDSA signatures are passed over.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value as Json;

use crate::base::Timestamp;

/// A key and the only algorithm it may be used with.
#[derive(Clone)]
pub struct Key {
    pub id: Option<String>,
    pub algorithm: Algorithm,
    pub key: DecodingKey,
}

/// The key set cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JwksError {
    #[error("cannot read the key set `{path}`")]
    Unreadable {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("no HTTP client for the key set")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("`{path}` is not a JSON object with a list of `keys`")]
    Malformed { path: String },
    #[error("`{path}` holds no key for RS256, ES256 or EdDSA signatures")]
    Empty { path: String },
}

/// Reads a key set. A key that is not ours to use is passed over, as RFC 7517
/// section 5 asks, also when it is of a type nobody knew when this was written.
pub fn parse(path: &str, text: &str) -> Result<Vec<Key>, JwksError> {
    let malformed = || JwksError::Malformed { path: path.to_owned() };
    let mut set: Json = serde_json::from_str(text).map_err(|_| malformed())?;
    let Some(Json::Array(list)) = set.get_mut("keys").map(Json::take) else {
        return Err(malformed());
    };
    let keys: Vec<Key> = list
        .into_iter()
        .filter_map(|jwk| usable(&serde_json::from_value(jwk).ok()?))
        .collect();
    if keys.is_empty() {
        Err(JwksError::Empty { path: path.to_owned() })
    } else {
        Ok(keys)
    }
}

fn usable(jwk: &Jwk) -> Option<Key> {
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => Algorithm::ES256,
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => Algorithm::EdDSA,
        _ => return None,
    };
    let signs = jwk
        .common
        .public_key_use
        .as_ref()
        .is_none_or(|purpose| *purpose == PublicKeyUse::Signature);
    let stated = jwk
        .common
        .key_algorithm
        .is_none_or(|stated| stated == KeyAlgorithm::from(algorithm));
    if !signs || !stated {
        return None;
    }
    Some(Key {
        id: jwk.common.key_id.clone(),
        algorithm,
        key: DecodingKey::from_jwk(jwk).ok()?,
    })
}

/// A key set that is read again now and then: a new key works, and a removed
/// one stops working, within [`REREAD`].
pub struct JwksFile {
    path: PathBuf,
    held: RwLock<Held>,
}

struct Held {
    keys: Arc<[Key]>,
    read_at: Timestamp,
}

/// How old the keys in use may be.
const REREAD: Duration = Duration::from_secs(60);

impl JwksFile {
    /// Reads the file for the first time; a server does not start without it.
    pub fn open(path: &Path, now: Timestamp) -> Result<Self, JwksError> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| unreadable(&shown, source))?;
        let keys = parse(&shown, &text)?.into();
        Ok(Self {
            path: path.to_owned(),
            held: RwLock::new(Held { keys, read_at: now }),
        })
    }

    /// The keys. A file that cannot be used any more leaves those that were
    /// read before in force.
    pub async fn keys(&self, now: Timestamp) -> Arc<[Key]> {
        if self.claim_reread(now) {
            match self.reread().await {
                Ok(keys) => self.write(|held| held.keys = keys),
                Err(error) => tracing::warn!(%error, "the key set was not renewed"),
            }
        }
        Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner).keys)
    }

    /// One caller in each interval rereads; the others go on with what is there.
    fn claim_reread(&self, now: Timestamp) -> bool {
        let is_due = |held: &Held| REREAD <= now.since(held.read_at);
        if !is_due(&self.held.read().unwrap_or_else(PoisonError::into_inner)) {
            return false;
        }
        self.write(|held| {
            let due = is_due(held);
            if due {
                held.read_at = now;
            }
            due
        })
    }

    async fn reread(&self) -> Result<Arc<[Key]>, JwksError> {
        let shown = self.path.display().to_string();
        let text = tokio::fs::read_to_string(&self.path)
            .await
            .map_err(|source| unreadable(&shown, source))?;
        Ok(parse(&shown, &text)?.into())
    }

    fn write<T>(&self, change: impl FnOnce(&mut Held) -> T) -> T {
        // A panic cannot leave the keys half written: they are swapped whole.
        change(&mut self.held.write().unwrap_or_else(PoisonError::into_inner))
    }
}

fn unreadable(path: &str, source: std::io::Error) -> JwksError {
    JwksError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &str = include_str!("../../../tests/data/keys/jwks.json");
    const UNUSABLE: &str = include_str!("../../../tests/data/keys/jwks-unusable.json");

    fn algorithms(keys: &[Key]) -> Vec<(Option<&str>, Algorithm)> {
        keys.iter().map(|key| (key.id.as_deref(), key.algorithm)).collect()
    }

    #[test]
    fn each_key_is_tied_to_the_algorithm_of_its_type() {
        assert_eq!(
            algorithms(&parse("f", SET).unwrap()),
            [
                (Some("rsa-1"), Algorithm::RS256),
                (Some("ec-1"), Algorithm::ES256),
                (Some("ed-1"), Algorithm::EdDSA)
            ]
        );
    }

    #[test]
    fn keys_for_other_ends_are_passed_over() {
        assert!(matches!(parse("f", UNUSABLE), Err(JwksError::Empty { .. })));
        let mut both: Json = serde_json::from_str(UNUSABLE).unwrap();
        let set: Json = serde_json::from_str(SET).unwrap();
        both["keys"].as_array_mut().unwrap().push(set["keys"][1].clone());
        assert_eq!(
            algorithms(&parse("f", &both.to_string()).unwrap()),
            [(Some("ec-1"), Algorithm::ES256)]
        );
        // An RSA key that says it is for another algorithm.
        let other = SET.replace("RS256", "RS512").replace("ES256", "ES384");
        assert_eq!(
            algorithms(&parse("f", &other).unwrap()),
            [(Some("ed-1"), Algorithm::EdDSA)]
        );
    }

    #[test]
    fn what_is_no_key_set_is_refused() {
        for text in ["", "[]", "{}", r#"{"keys": {}}"#] {
            assert!(matches!(parse("f", text), Err(JwksError::Malformed { .. })), "{text}");
        }
        assert!(matches!(
            parse("f", r#"{"keys": [5, {}, "x"]}"#),
            Err(JwksError::Empty { .. })
        ));
        let missing = JwksFile::open("/nowhere/keys.json".as_ref(), Timestamp(0));
        assert!(matches!(missing, Err(JwksError::Unreadable { .. })));
    }

    #[tokio::test]
    async fn a_changed_file_is_in_force_within_a_minute_and_a_broken_one_never() {
        let path = std::env::temp_dir().join(format!("hermes-jwks-{:x}.json", getrandom::u64().unwrap()));
        std::fs::write(&path, SET).unwrap();
        let file = JwksFile::open(&path, Timestamp(0)).unwrap();
        let one = SET.replace("rsa-1", "rsa-2");
        std::fs::write(&path, &one).unwrap();
        assert_eq!(file.keys(Timestamp(59_999)).await[0].id.as_deref(), Some("rsa-1"));
        assert_eq!(file.keys(Timestamp(60_000)).await[0].id.as_deref(), Some("rsa-2"));
        std::fs::write(&path, "{").unwrap();
        assert_eq!(file.keys(Timestamp(120_000)).await[0].id.as_deref(), Some("rsa-2"));
        std::fs::write(&path, SET).unwrap();
        assert_eq!(file.keys(Timestamp(180_000)).await[0].id.as_deref(), Some("rsa-1"));
        std::fs::remove_file(&path).unwrap();
    }
}
