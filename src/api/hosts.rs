//! Which names a request may call this server by. A page of a foreign site that
//! makes its own name point here (DNS rebinding) is stopped by it.
//!
//! The rule: localhost, 127.0.0.1, [::1], the address that is listened on and
//! `server.allowed_hosts`, at any port. A server that listens beyond this machine
//! is called by names it cannot know: without `allowed_hosts` it takes any, but
//! only where a key or token is configured.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::HOST;
use http::uri::{Authority, Uri};

use crate::model::problem::ProblemCode;

use super::failure::Failure;
use super::state::ApiState;

/// The names that are answered to.
#[derive(Clone, Debug)]
pub enum Hosts {
    Any,
    Listed(Vec<String>),
}

impl Hosts {
    /// `is_guarded`: a key or token other than the one of the first start is
    /// configured.
    pub fn new(listen: SocketAddr, allowed: &[String], is_guarded: bool) -> Self {
        if !listen.ip().is_loopback() && allowed.is_empty() && is_guarded {
            return Self::Any;
        }
        let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
        if !listen.ip().is_unspecified() {
            names.push(listen.ip().to_string());
        }
        names.extend(allowed.iter().map(|name| plain(name)));
        Self::Listed(names)
    }

    fn allow(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Listed(names) => names.contains(&plain(name)),
        }
    }
}

/// A name as it is compared: lower case, no brackets, no final dot, addresses in
/// their canonical form.
fn plain(name: &str) -> String {
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name.parse::<IpAddr>()
        .map_or(name, |address| address.to_canonical().to_string())
}

/// What the request calls this server: the one `Host` header, or the authority
/// of HTTP/2.
pub fn authority(headers: &HeaderMap, uri: &Uri) -> Option<Authority> {
    let mut given = headers.get_all(HOST).iter();
    match (given.next(), given.next()) {
        (Some(host), None) => Authority::try_from(host.as_bytes()).ok(),
        (None, None) => uri.authority().cloned(),
        _ => None,
    }
}

/// Refuses requests by other names.
pub async fn layer(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let called = authority(request.headers(), request.uri());
    // An absolute target may name another host than the header.
    let mut names = called.iter().chain(request.uri().authority()).map(Authority::host);
    if called.is_some() && names.all(|name| state.hosts.allow(name)) {
        next.run(request).await
    } else {
        Failure::new(
            ProblemCode::HostNotAllowed,
            "the `Host` header does not name this server; add the name to `server.allowed_hosts`",
        )
        .into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(listen: &str, allowed: &[&str]) -> Hosts {
        let allowed: Vec<String> = allowed.iter().map(|&name| name.to_owned()).collect();
        Hosts::new(listen.parse().unwrap(), &allowed, true)
    }

    #[test]
    fn this_machine_and_listed_names_are_answered_to() {
        let hosts = listed("127.0.0.1:8642", &["App.Example.com", "[fd00::1]"]);
        for name in [
            "localhost",
            "LOCALHOST.",
            "127.0.0.1",
            "[::1]",
            "[0:0::1]",
            "app.example.com",
            "[fd00::1]",
        ] {
            assert!(hosts.allow(name), "{name}");
        }
        for name in ["example.com", "127.0.0.2", "localhost.evil.example", ""] {
            assert!(!hosts.allow(name), "{name}");
        }
    }

    #[test]
    fn beyond_this_machine_any_name_will_do_until_some_are_listed() {
        assert!(listed("0.0.0.0:80", &[]).allow("anything.example"));
        let hosts = listed("10.1.2.3:80", &["a.example"]);
        assert!(hosts.allow("10.1.2.3") && hosts.allow("a.example") && !hosts.allow("b.example"));
        let unguarded = Hosts::new("0.0.0.0:80".parse().unwrap(), &[], false);
        assert!(!unguarded.allow("anything.example") && !unguarded.allow("0.0.0.0"));
    }

    #[test]
    fn a_request_has_one_name() {
        let uri = Uri::from_static("/v1/sessions");
        let mut headers = HeaderMap::new();
        assert_eq!(authority(&headers, &uri), None);
        assert_eq!(authority(&headers, &Uri::from_static("http://h:1/")).unwrap(), "h:1");
        headers.insert(HOST, "a.example:8642".parse().unwrap());
        assert_eq!(authority(&headers, &uri).unwrap().host(), "a.example");
        headers.append(HOST, "b.example".parse().unwrap());
        assert_eq!(authority(&headers, &uri), None);
    }
}
