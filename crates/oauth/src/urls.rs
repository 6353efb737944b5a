//! Forms of URLs and of their errors that may be shown, and the test for URLs of this machine. Every crate that carries
//! tokens uses them. Pure.

use std::net::Ipv4Addr;

use url::{Host, Url};

/// A URL as it may stand in messages: without credentials, query and fragment.
#[must_use]
pub fn printable_url(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Both fail only for URLs that can't have credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

/// Whether a URL leads to this machine by its own word: what is sent there passes no wire.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Where a URL leads, by its own word: names aren't resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// This machine.
    Loopback,
    /// A link: clouds have services there that answer their own machines alone (169.254.169.254).
    Link,
    /// A private network.
    Private,
    /// Anywhere else.
    Public,
}

impl HostKind {
    pub(crate) fn of(url: &Url) -> Self {
        match url.host() {
            Some(Host::Ipv4(address)) => Self::of_v4(address),
            Some(Host::Ipv6(address)) => match address.to_ipv4_mapped() {
                Some(address) => Self::of_v4(address),
                None if address.is_loopback() || address.is_unspecified() => Self::Loopback,
                None if address.is_unicast_link_local() => Self::Link,
                None if address.is_unique_local() => Self::Private,
                None => Self::Public,
            },
            Some(Host::Domain(name)) => {
                let name = name.trim_end_matches('.');
                let is_below = |domain: &str| name.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
                if name == "localhost" || is_below("localhost") {
                    Self::Loopback
                } else if !name.contains('.') || ["local", "internal", "home.arpa"].into_iter().any(is_below) {
                    Self::Private
                } else {
                    Self::Public
                }
            }
            None => Self::Public,
        }
    }

    /// Whether a server at this place may send a client to `other`: nearer than itself only where it is here.
    pub(crate) fn may_name(self, other: Self) -> bool {
        self == Self::Loopback || other == Self::Public || self == other
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        // 100.64.0.0/10 is shared between providers and their customers (RFC 6598).
        let is_shared = matches!(address.octets(), [100, 64..128, ..]);
        match address {
            _ if address.is_loopback() || address.is_unspecified() => Self::Loopback,
            _ if address.is_link_local() => Self::Link,
            _ if address.is_private() || is_shared => Self::Private,
            _ => Self::Public,
        }
    }
}

/// An error with its causes, on one line: the outermost alone says little. Many libraries repeat the cause in their own words:
/// that is said once.
#[must_use]
pub fn reason_of(error: &dyn std::error::Error) -> String {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !reason.contains(&words) {
            reason = format!("{reason}: {words}");
        }
        source = cause.source();
    }
    reason.replace(['\r', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_url_are_not_shown() {
        let url = Url::parse("https://me:hunter2@id.example:8443/a/b?code=SECRET#SECRET").unwrap();
        assert_eq!(printable_url(&url), "https://id.example:8443/a/b");
        assert_eq!(printable_url(&Url::parse("mailto:a@b?x").unwrap()), "mailto:a@b");
    }

    #[test]
    fn only_this_machines_own_names_are_loopback() {
        for (url, is_it) in [
            ("http://localhost:1/", true),
            ("http://127.8.9.1/", true),
            ("http://[::1]/", true),
            ("http://localhost.evil/", false),
            ("http://128.0.0.1/", false),
            ("http://[::2]/", false),
            ("file:///etc/passwd", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), is_it, "{url}");
        }
    }

    #[test]
    fn a_server_sends_a_client_no_nearer_than_it_is_itself() {
        let place = |host: &str| HostKind::of(&Url::parse(&format!("http://{host}/")).unwrap());
        for (hosts, is_it) in [
            (
                &["localhost", "a.localhost", "LOCALHOST.", "127.1", "0.0.0.0", "[::1]", "[::]", "[::ffff:7f00:1]"],
                HostKind::Loopback,
            ),
            (
                &[
                    "10.1.2.3",
                    "172.31.0.1",
                    "192.168.0.1",
                    "100.64.0.1",
                    "[fd00::1]",
                    "nas.local",
                    "a.internal",
                    "intranet",
                ],
                HostKind::Private,
            ),
        ] {
            for host in hosts {
                assert_eq!(place(host), is_it, "{host}");
            }
        }
        assert_eq!([place("169.254.169.254"), place("[fe80::1]")], [HostKind::Link; 2]);
        assert_eq!([place("172.32.0.1"), place("example.org"), place("localhost.evil.org")], [HostKind::Public; 3]);
        let all = [HostKind::Loopback, HostKind::Link, HostKind::Private, HostKind::Public];
        assert!(all.iter().all(|other| HostKind::Loopback.may_name(*other)));
        for place in [HostKind::Link, HostKind::Private, HostKind::Public] {
            assert_eq!(
                all.map(|other| place.may_name(other)),
                all.map(|other| other == place || other == HostKind::Public)
            );
        }
    }

    #[test]
    fn an_error_says_what_it_comes_from_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("{said}")]
        struct Chained {
            said: &'static str,
            #[source]
            cause: Option<Box<Chained>>,
        }
        let of = |said, cause| Chained { said, cause: Option::map(cause, Box::new) };
        let deepest = of("no\r\nroute", None);
        let error = of("connecting", Some(of("connecting", Some(deepest))));
        assert_eq!(reason_of(&error), "connecting: no  route");
    }
}
