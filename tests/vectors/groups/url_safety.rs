//! `url_safety`: where an address may lead, how it is sent, what it gives away.

use std::net::IpAddr;

use hermes_server::guard::url::{Blocked, address, check, check_addresses, normalised, sensitive_parameter};
use serde_json::{Value, json};
use url::Host;

use crate::case::{Case, Relation};

pub fn judge(case: &Case) -> Result<(), String> {
    if let Some(text) = case.input["normalize"].as_str() {
        return case.check(normalised(text));
    }
    if let Some(text) = case.input["sensitive_query"].as_str() {
        return case.check(json!(sensitive_parameter(text)));
    }
    let verdict = asked(
        case.text("url"),
        &case.input["resolves_to"],
        case.input["allow_private"] == true,
    );
    let blocked = verdict.err();
    let got = json!({
        "allowed": blocked.is_none(),
        "always_blocked": blocked.is_some_and(|blocked| blocked.is_always()),
    });
    case.check_by(got, |_, got| match got["allowed"] == false {
        true => Relation::Stricter,
        false => Relation::Looser,
    })
}

/// As a client asks: the text, then what its name resolves to.
fn asked(text: &str, resolved: &Value, allow_private: bool) -> Result<(), Blocked> {
    let url = check(text, allow_private)?;
    if !matches!(url.host(), Some(Host::Domain(_))) {
        return Ok(());
    }
    let addresses: Result<Vec<IpAddr>, Blocked> = match resolved {
        Value::Array(texts) => texts.iter().map(|text| address(text.as_str().unwrap())).collect(),
        Value::String(_) => Ok(Vec::new()),
        _ => Ok(vec![IpAddr::from([93, 184, 216, 34])]),
    };
    check_addresses(&addresses?, allow_private)
}
