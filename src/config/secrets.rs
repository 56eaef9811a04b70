//! What the server was told and tells nobody: keys, and the password of the
//! database. Masked wherever it turns up.

use super::Config;
use crate::base::Secret;
use crate::guard::redact::Known;

impl Config {
    /// The secrets of this configuration, to be looked for.
    pub fn known_secrets(&self) -> Known {
        let keys = [&self.auth.api_key, &self.openai.api_key, &self.auth.jwt.hs256_secret];
        let mut secrets: Vec<String> = keys.into_iter().flatten().map(|key| key.expose().to_owned()).collect();
        if let Some(url) = &self.store.url {
            secrets.extend(of_address(url));
        }
        Known::new(secrets.iter().map(String::as_str))
    }
}

/// The password of an address, as it is and as it stands in there. A short one is a
/// word as well, and is only looked for beside its user.
fn of_address(url: &Secret) -> Vec<String> {
    let text = url.expose();
    let written = text
        .split_once("://")
        .and_then(|(_, rest)| rest.split(['/', '?']).next()?.rsplit_once('@'))
        .map(|(account, _)| account);
    let Some((account, password)) = written.and_then(|account| Some((account, account.split_once(':')?.1))) else {
        return Vec::new();
    };
    let plain = url::form_urlencoded::parse(format!("p={}", password.replace('+', "%2B")).as_bytes())
        .next()
        .map(|(_, plain)| plain.into_owned());
    let mut found = vec![format!("{account}@"), password.to_owned()];
    found.extend(plain);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_of_the_database_is_known_in_both_spellings() {
        let found = of_address(&Secret::new("postgres://app:hunter2%21long-enough@db:5432/x?a=@"));
        assert_eq!(
            found,
            [
                "app:hunter2%21long-enough@",
                "hunter2%21long-enough",
                "hunter2!long-enough"
            ]
        );
        assert!(of_address(&Secret::new("postgres://app@db/x")).is_empty());
        assert!(of_address(&Secret::new("sqlite:/data/hermes.db")).is_empty());
        // A short password is no word to be masked on its own.
        let known = Known::new(
            of_address(&Secret::new("postgres://postgres:postgres@db/x"))
                .iter()
                .map(String::as_str),
        );
        assert_eq!(
            known.mask("postgres is up at postgres:postgres@db"),
            "postgres is up at ***db"
        );
    }
}
