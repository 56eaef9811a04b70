//! Where an address may lead: schemes, names that never may be asked, and the
//! addresses behind a name. Whoever connects does so only to an address that was
//! checked here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url, form_urlencoded};

/// Why an address is not asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Blocked {
    #[error("only http and https addresses are fetched")]
    Scheme,
    #[error("the address has no host that can be asked")]
    Host,
    #[error("`{0}` serves credentials of the machine and is never asked")]
    Metadata(String),
    #[error("`{0}` is an address of an internal network")]
    Private(String),
    #[error("the name cannot be resolved")]
    Unresolved,
}

impl Blocked {
    /// No setting lifts it.
    pub fn is_always(&self) -> bool {
        matches!(self, Self::Metadata(_))
    }
}

/// Names of metadata services.
const METADATA_NAMES: [&str; 5] = [
    "metadata.google.internal",
    "metadata.goog",
    "metadata",
    "instance-data",
    "instance-data.ec2.internal",
];
/// Metadata services outside the link-local range.
const METADATA_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192)];
const METADATA_V6: [Ipv6Addr; 1] = [Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254)];

/// An address as text: its scheme and its host may be asked, as far as they tell.
/// A host that is a number is judged whole; what stands behind a name has to be
/// checked by [`check_address`] when it is resolved.
pub fn check(text: &str, allow_private: bool) -> Result<Url, Blocked> {
    let url = Url::parse(text.trim()).map_err(|_| match text.contains("://") {
        true if text.starts_with("http") => Blocked::Host,
        _ => Blocked::Scheme,
    })?;
    check_url(&url, allow_private)?;
    // Browsers take the first name after any number of slashes for the host; that
    // is not what was written.
    let host = text.split_once("://").map_or("", |(_, rest)| rest);
    if host.is_empty() || host.starts_with(['/', '\\', '?', '#']) {
        return Err(Blocked::Host);
    }
    // To some a backslash ends the host, to others it is a part of it.
    let authority = host.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('\\') {
        return Err(Blocked::Host);
    }
    Ok(url)
}

/// As [`check`], for one that was read already: of every hop of a redirect.
pub fn check_url(url: &Url, allow_private: bool) -> Result<(), Blocked> {
    if !["http", "https"].contains(&url.scheme()) {
        return Err(Blocked::Scheme);
    }
    match url.host() {
        None => Err(Blocked::Host),
        Some(Host::Domain(name)) => check_name(name),
        Some(Host::Ipv4(address)) => check_address(IpAddr::V4(address), allow_private),
        Some(Host::Ipv6(address)) => check_address(IpAddr::V6(address), allow_private),
    }
}

pub fn check_name(name: &str) -> Result<(), Blocked> {
    let name = name.trim_end_matches('.').to_lowercase();
    match name.as_str() {
        "" => Err(Blocked::Host),
        name if METADATA_NAMES.contains(&name) => Err(Blocked::Metadata(name.to_owned())),
        _ => Ok(()),
    }
}

/// The addresses behind a name: one that may not be asked forbids them all, since
/// nobody knows which would be taken next time.
pub fn check_addresses(addresses: &[IpAddr], allow_private: bool) -> Result<(), Blocked> {
    if addresses.is_empty() {
        return Err(Blocked::Unresolved);
    }
    let checked = addresses.iter().map(|address| check_address(*address, allow_private));
    let mut worst = Ok(());
    for result in checked {
        match result {
            Err(blocked) if blocked.is_always() => return Err(blocked),
            Err(blocked) => worst = Err(blocked),
            Ok(()) => {}
        }
    }
    worst
}

/// What a resolver returned, as text; a zone is left out.
pub fn address(text: &str) -> Result<IpAddr, Blocked> {
    let bare = text.split('%').next().unwrap_or(text);
    bare.parse().map_err(|_| Blocked::Unresolved)
}

pub fn check_address(address: IpAddr, allow_private: bool) -> Result<(), Blocked> {
    let inner = embedded(address);
    let all = std::iter::once(address).chain(inner);
    for one in all {
        match kind(one) {
            Kind::Metadata => return Err(Blocked::Metadata(address.to_string())),
            Kind::Nowhere => return Err(Blocked::Private(address.to_string())),
            Kind::Private if !allow_private => return Err(Blocked::Private(address.to_string())),
            Kind::Private | Kind::Public => {}
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Public,
    /// Reached where the operator allows it.
    Private,
    Metadata,
    /// No host has it.
    Nowhere,
}

fn kind(address: IpAddr) -> Kind {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

/// RFC 6890 and its registry, as of 2025.
fn kind_v4(address: Ipv4Addr) -> Kind {
    let [a, b, c, _] = address.octets();
    if address.is_link_local() || METADATA_V4.contains(&address) {
        return Kind::Metadata;
    }
    match (a, b, c) {
        (10 | 127, _, _) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) | (198, 18 | 19, _) => Kind::Private,
        (0, _, _) | (192, 0, 0 | 2) | (192, 88, 99) | (198, 51, 100) | (203, 0, 113) | (224..=255, _, _) => {
            Kind::Nowhere
        }
        _ => Kind::Public,
    }
}

fn kind_v6(address: Ipv6Addr) -> Kind {
    if METADATA_V6.contains(&address) {
        return Kind::Metadata;
    }
    let [a, b, ..] = address.segments();
    match (a, b) {
        _ if address.is_loopback() => Kind::Private,
        // Mapped addresses are judged by the one inside.
        _ if address.to_ipv4_mapped().is_some() => Kind::Public,
        (0, _) | (0x0100, 0) | (0x2001, 0x0db8) | (0x3ff0..=0x3fff, _) | (0xff00..=0xffff, _) => Kind::Nowhere,
        // Protocols of their own: tunnels, tests, names that are no places.
        (0x2001, 0..0x0200) => Kind::Nowhere,
        (0xfc00..=0xfdff, _) | (0xfe80..=0xfeff, _) => Kind::Private,
        // Translated addresses are judged by the one inside.
        (0x2000..=0x3fff, _) | (0x64, 0xff9b) => Kind::Public,
        // Nothing else was ever given out.
        _ => Kind::Nowhere,
    }
}

/// The IPv4 address that an IPv6 one leads to: mapped, translated, 6to4.
fn embedded(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(address) = address else { return None };
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => of(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 1, _, _, _, high, low] => of(high, low),
        [0x2002, high, low, ..] => of(high, low),
        _ => None,
    }
}

/// The address as it is sent: names of other scripts in their ASCII form, other
/// characters escaped, what is escaped already left alone. Blanks around it, and
/// before the host, are slips of the pen.
pub fn normalised(text: &str) -> String {
    // Clients leave breaks of lines out, wherever they stand.
    let text = text.trim().replace(['\t', '\n', '\r'], "");
    let text = text.as_str();
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let rest = rest.trim_start();
    let scheme = scheme.to_ascii_lowercase();
    if !["http", "https"].contains(&scheme.as_str()) {
        return text.to_owned();
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut address = format!("{scheme}://{}{}", in_ascii(authority), escaped(path, b""));
    for (sign, part) in [('?', query), ('#', fragment)] {
        if !part.is_empty() {
            address.push(sign);
            address.push_str(&escaped(part, b"?"));
        }
    }
    address
}

fn in_ascii(authority: &str) -> String {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (format!("{user}@"), host),
        None => (String::new(), authority),
    };
    let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
    match Host::parse(name) {
        Ok(Host::Domain(ascii)) if !name.is_ascii() => format!("{user}{ascii}{port}"),
        _ => authority.to_owned(),
    }
}

/// Every character escaped that may not stand in a path, but for `more`.
fn escaped(part: &str, more: &[u8]) -> String {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/%:@!$&'()*+,;=".contains(&byte) || more.contains(&byte);
    let mut text = String::with_capacity(part.len());
    for byte in part.bytes() {
        match plain(byte) {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Names of parameters that usually carry a secret. Short common ones (`key`,
/// `code`, `session`) are left out: they name other things more often.
const SENSITIVE: [&str; 30] = [
    "token",
    "access_token",
    "refresh_token",
    "id_token",
    "auth_token",
    "authtoken",
    "api_key",
    "apikey",
    "api-key",
    "x-api-key",
    "client_secret",
    "credential",
    "credentials",
    "secret",
    "session_id",
    "password",
    "passwd",
    "pwd",
    "private_key",
    "secret_key",
    "signature",
    "jwt",
    "authorization",
    "awsaccesskeyid",
    "x-amz-signature",
    "x-amz-security-token",
    "x-goog-signature",
    "x_amz_signature",
    "x_amz_security_token",
    "x_goog_signature",
];

/// The first parameter of the query that usually carries a secret, and does. A
/// name may be escaped, even twice.
pub fn sensitive_parameter(text: &str) -> Option<String> {
    let query = text.trim().split('#').next()?.split_once('?')?.1;
    let named = |name: &str| form_urlencoded::parse(query.as_bytes()).any(|(other, _)| other == name);
    form_urlencoded::parse(query.as_bytes()).find_map(|(name, value)| {
        let plain = form_urlencoded::parse(name.as_bytes()).next()?.0.to_lowercase();
        // A signed link says until when it is valid.
        let known = SENSITIVE.contains(&plain.as_str()) || (plain == "sig" && named("se"));
        (known && !value.is_empty()).then(|| name.into_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str, allow_private: bool) -> Result<(), Blocked> {
        check(text, allow_private).map(drop)
    }

    #[test]
    fn numbers_are_read_as_they_are_connected_to() {
        for text in [
            "http://127.1/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://017700000001/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::1]/",
            "http://[64:ff9b::10.0.0.1]/",
            "http://[2002:7f00:1::]/",
        ] {
            assert!(matches!(verdict(text, false), Err(Blocked::Private(_))), "{text}");
        }
        assert_eq!(verdict("http://127.0.0.1/", true), Ok(()));
        assert_eq!(verdict("https:///x", false), Err(Blocked::Host));
        assert_eq!(verdict("https://8.8.8.8/x", false), Ok(()));
    }

    #[test]
    fn metadata_is_never_asked() {
        for text in [
            "http://169.254.169.254/latest",
            "http://[::ffff:169.254.169.254]/",
            "http://[fd00:ec2::254]/",
            "http://100.100.100.200/",
            "http://Metadata.Google.Internal./x",
            "http://0xa9fea9fe/",
        ] {
            assert!(verdict(text, true).unwrap_err().is_always(), "{text}");
        }
    }

    #[test]
    fn one_bad_address_among_several_forbids_them_all() {
        let addresses = |texts: &[&str]| texts.iter().map(|text| address(text).unwrap()).collect::<Vec<_>>();
        let check = |texts: &[&str]| check_addresses(&addresses(texts), false);
        assert!(check(&["93.184.216.34", "10.0.0.1"]).is_err());
        assert!(check(&["10.0.0.1", "169.254.1.1"]).unwrap_err().is_always());
        assert_eq!(check(&["93.184.216.34", "2606:4700::1111"]), Ok(()));
        assert_eq!(check(&[]), Err(Blocked::Unresolved));
        assert!(address("not-an-ip").is_err());
    }

    #[test]
    fn what_is_escaped_stays_and_the_rest_is_escaped() {
        for (text, expected) in [
            (
                "https://m\u{fc}nich.example/K\u{f6}ln",
                "https://xn--mnich-kva.example/K%C3%B6ln",
            ),
            ("https://m\u{fc}nich.example", "https://xn--mnich-kva.example"),
            ("https://EXAMPLE.com?a=%20", "https://EXAMPLE.com?a=%20"),
            ("https://example.com/?q=a b&c=%20", "https://example.com/?q=a%20b&c=%20"),
            (" https:// docs.example/x ", "https://docs.example/x"),
            (
                "HTTPS://a@m\u{fc}nich.example:8/[x]|y#\u{e9}",
                "https://a@xn--mnich-kva.example:8/%5Bx%5D%7Cy#%C3%A9",
            ),
            ("ftp://example.com/\u{e4} b", "ftp://example.com/\u{e4} b"),
            ("no address", "no address"),
        ] {
            assert_eq!(normalised(text), expected);
        }
    }

    #[test]
    fn a_name_of_a_secret_is_known_however_it_is_written() {
        for (text, name) in [
            ("https://a.example/?to%6ben=x", Some("token")),
            ("https://a.example/?%2574oken=x", Some("%74oken")),
            ("https://a.example/?a=1&AWSAccessKeyId=x", Some("AWSAccessKeyId")),
            ("https://a.example/?sig=x", None),
            ("https://a.example/?se=2030&sig=x", Some("sig")),
            ("https://a.example/?token=", None),
        ] {
            assert_eq!(sensitive_parameter(text).as_deref(), name, "{text}");
        }
    }

    #[test]
    fn addresses_that_were_never_given_out_are_not_asked() {
        for text in ["5f00::1", "abcd::1", "1::1", "2001:2::1", "2001:20::1"] {
            assert!(check_address(address(text).unwrap(), false).is_err(), "{text}");
        }
        for text in ["2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"] {
            assert_eq!(check_address(address(text).unwrap(), false), Ok(()), "{text}");
        }
        assert_eq!(verdict("https://a.example\\@10.0.0.1/", false), Err(Blocked::Host));
    }
}
