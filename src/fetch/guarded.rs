//! A client for addresses that somebody else chose: tenants, models, tools. It
//! connects to the very address that was checked, on every hop of a redirect, so
//! that a name which resolves anew to another place leads nowhere.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, ClientBuilder, redirect};

use crate::guard::url::{Blocked, check_addresses, check_name, check_url};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// As browsers do, roughly.
const MOST_REDIRECTS: usize = 10;

/// A client that asks nothing inside. Whoever uses it checks the first address
/// with `guard::url::check`, which also judges hosts that are numbers; the rest is
/// checked here. With `allow_private` internal networks may be asked, metadata
/// services never.
pub fn client(allow_private: bool) -> reqwest::Result<Client> {
    builder(allow_private).build()
}

/// The same, for whoever has more to say about it.
pub fn builder(allow_private: bool) -> ClientBuilder {
    let follow = move |attempt: redirect::Attempt<'_>| {
        if MOST_REDIRECTS <= attempt.previous().len() {
            return attempt.error("too many redirects");
        }
        match check_url(attempt.url(), allow_private) {
            Ok(()) => attempt.follow(),
            Err(blocked) => attempt.error(blocked),
        }
    };
    Client::builder()
        .dns_resolver(Arc::new(Checked { allow_private }))
        .redirect(redirect::Policy::custom(follow))
        // A proxy would resolve the name by itself.
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("hermes-server/", env!("CARGO_PKG_VERSION")))
}

/// Why the guard refused a request, if it was the guard.
pub fn blocked(error: &reqwest::Error) -> Option<&Blocked> {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(inner) = cause {
        if let Some(blocked) = inner.downcast_ref::<Blocked>() {
            return Some(blocked);
        }
        cause = inner.source();
    }
    None
}

/// Resolves names to addresses that may be asked, or to none.
struct Checked {
    allow_private: bool,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            check_name(name.as_str())?;
            let found = tokio::net::lookup_host((name.as_str(), 0)).await;
            let found: Vec<SocketAddr> = found.map_err(|_| Blocked::Unresolved)?.collect();
            let addresses: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
            check_addresses(&addresses, allow_private)?;
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A server that answers every request with this head; its port.
    async fn answering(head: &'static str) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut asked = [0; 1024];
                let _read = socket.read(&mut asked).await;
                let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        port
    }

    async fn refused(allow_private: bool, address: &str) -> Option<Blocked> {
        let error = client(allow_private).unwrap().get(address).send().await.err()?;
        Some(blocked(&error).unwrap_or_else(|| panic!("{error:?}")).clone())
    }

    #[tokio::test]
    async fn a_name_that_leads_inside_is_not_connected_to() {
        let port = answering("204 No Content").await;
        let address = format!("http://localhost:{port}/");
        assert!(matches!(refused(false, &address).await, Some(Blocked::Private(_))));
        assert_eq!(refused(true, &address).await, None);
    }

    #[tokio::test]
    async fn a_redirect_is_checked_like_the_first_address() {
        for (head, always) in [
            ("302 Found\r\nlocation: http://169.254.169.254/latest", true),
            ("302 Found\r\nlocation: http://metadata.google.internal/", true),
            ("302 Found\r\nlocation: http://[fd00:ec2::254]/", true),
        ] {
            let port = answering(head).await;
            let blocked = refused(true, &format!("http://localhost:{port}/")).await.unwrap();
            assert_eq!(blocked.is_always(), always, "{head}: {blocked}");
        }
    }
}
