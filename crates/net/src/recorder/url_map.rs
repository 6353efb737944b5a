//! Between a server's own URLs and those that lead through the recorder. Pure text, no I/O.
//!
//! The upstream's origin becomes the recorder's with an equal path. Another origin (an authorization server's) becomes
//! a path prefix, `/.mcpace/https/auth.example.com/…`. The part after the origin is kept byte for byte, so that
//! identifiers which are compared as strings (an issuer, a resource) survive the way there and back.
//!
//! RFC 8414 §3.1 puts `/.well-known/<name>` *between* host and path of an issuer, hence in front of our prefix:
//! `/.well-known/<name>/.mcpace/https/auth.example.com/tenant` means `/.well-known/<name>/tenant` there.

use std::net::IpAddr;

use url::Url;

use crate::Origin;

/// Prefix of the path of a URL on another origin than the upstream's.
const PREFIX: &str = "/.mcpace/";

const WELL_KNOWN: &str = "/.well-known/";

/// The two sides of one recorder.
#[derive(Clone, Debug)]
pub(super) struct UrlMap<'a> {
    /// The recorder's origin as this client names it, `http://127.0.0.1:4321`.
    pub(super) front: &'a str,
    /// The recorder's port, whatever name stands before it.
    pub(super) port: u16,
    /// Where everything goes that has no prefix.
    pub(super) upstream: &'a Origin,
}

/// A place at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UpstreamPlace {
    /// Which server.
    pub(super) origin: Origin,
    /// The origin as it was written, without a slash at its end.
    written: String,
    /// Path and query; may be empty.
    pub(super) rest: String,
}

impl UpstreamPlace {
    /// As a URL.
    pub(super) fn to_url(&self) -> String {
        format!("{}{}", self.written, self.rest)
    }

    /// As it stands in a request line (RFC 9112 §3.2.1): never empty.
    pub(super) fn request_target(&self) -> String {
        let rest = self.rest.split('#').next().unwrap_or_default();
        if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") }
    }
}

impl UrlMap<'_> {
    /// The URL through the recorder, for a URL at the upstream or at an origin that `known` accepts.
    pub(super) fn map_url(&self, url: &str, known: impl Fn(&Origin) -> bool) -> Option<String> {
        let (scheme, authority, rest) = split_url(url)?;
        let origin = parse_origin(&scheme, authority)?;
        // A path of the upstream that looks like our prefix takes the long way, so that the way back is unambiguous.
        if origin == *self.upstream && split_prefix(rest).is_none() {
            return Some(format!("{}{rest}", self.front));
        }
        if origin != *self.upstream && !known(&origin) {
            return None;
        }
        let authority = authority.replace('[', "%5B").replace(']', "%5D");
        Some(format!("{}{PREFIX}{scheme}/{authority}{rest}", self.front))
    }

    /// The server's own URL for one that leads through the recorder; `None` where it doesn't.
    pub(super) fn unmap_url(&self, url: &str) -> Option<String> {
        let (scheme, authority, rest) = split_url(url)?;
        if scheme != "http" || !is_ours(authority, self.port) {
            return None;
        }
        Some(self.target_place(rest)?.to_url())
    }

    /// Where a request target of the recorder leads. `None` where the prefix is there and names no server.
    pub(super) fn target_place(&self, target: &str) -> Option<UpstreamPlace> {
        let upstream = |rest: &str| UpstreamPlace {
            origin: self.upstream.clone(),
            written: self.upstream.to_url(),
            rest: rest.to_owned(),
        };
        match split_prefix(target) {
            None => Some(upstream(target)),
            Some((well_known, after)) => {
                let (scheme, after) = after.split_once('/')?;
                let end = after.find(['/', '?', '#']).unwrap_or(after.len());
                let authority = after[..end].replace("%5B", "[").replace("%5b", "[");
                let authority = authority.replace("%5D", "]").replace("%5d", "]");
                let origin = parse_origin(scheme, &authority)?;
                let written = format!("{scheme}://{authority}");
                Some(UpstreamPlace { origin, written, rest: format!("{well_known}{}", &after[end..]) })
            }
        }
    }
}

/// Parts of the path before our prefix (nothing, or `/.well-known/<name>`) and after it.
fn split_prefix(target: &str) -> Option<(&str, &str)> {
    if let Some(after) = target.strip_prefix(PREFIX) {
        return Some(("", after));
    }
    let name = target.strip_prefix(WELL_KNOWN)?;
    let end = WELL_KNOWN.len() + name.find(['/', '?', '#'])?;
    Some((&target[..end], target[end..].strip_prefix(PREFIX)?))
}

/// Whether `authority` is the recorder: an address or `localhost`, never another name, at the recorder's own port.
///
/// A name that an attacker's DNS points at this machine (DNS rebinding) is thereby refused.
pub(super) fn is_ours(authority: &str, port: u16) -> bool {
    let (host, given) = match authority.rsplit_once(':') {
        Some((host, digits)) if !digits.contains(']') => (host, digits.parse().ok()),
        _ => (authority, Some(80)),
    };
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    given == Some(port) && (host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok())
}

/// Scheme in lower case, authority, and all the rest as it stands. User information is refused: it would carry a secret.
fn split_url(url: &str) -> Option<(String, &str, &str)> {
    let (scheme, after) = url.split_once("://")?;
    let end = after.find(['/', '?', '#']).unwrap_or(after.len());
    let (authority, rest) = after.split_at(end);
    (!authority.is_empty() && !authority.contains('@')).then(|| (scheme.to_ascii_lowercase(), authority, rest))
}

fn parse_origin(scheme: &str, authority: &str) -> Option<Origin> {
    if authority.contains('@') || authority.is_empty() {
        return None;
    }
    Origin::from_url(&Url::parse(&format!("{scheme}://{authority}")).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn upstream() -> Origin {
        Origin { tls: true, host: "api.example.com".to_owned(), port: 443 }
    }

    fn map_of(upstream: &Origin) -> UrlMap<'_> {
        UrlMap { front: "http://127.0.0.1:4321", port: 4321, upstream }
    }

    #[test]
    fn the_upstream_keeps_its_path() {
        let upstream = upstream();
        let map = map_of(&upstream);
        let mapped = map.map_url("https://API.example.com:443/mcp?x=1", |_| false);
        assert_eq!(mapped.as_deref(), Some("http://127.0.0.1:4321/mcp?x=1"));
        assert_eq!(map.unmap_url("http://localhost:4321/mcp").as_deref(), Some("https://api.example.com/mcp"));
        assert_eq!(map.unmap_url("http://127.0.0.1:4322/mcp"), None);
        assert_eq!(map.unmap_url("http://evil.example:4321/mcp"), None);
    }

    #[test]
    fn another_origin_becomes_a_prefix_only_where_it_is_known() {
        let upstream = upstream();
        let map = map_of(&upstream);
        assert_eq!(map.map_url("https://auth.example.com/t", |_| false), None);
        let mapped = map.map_url("https://auth.example.com/t", |o| o.host == "auth.example.com").unwrap();
        assert_eq!(mapped, "http://127.0.0.1:4321/.mcpace/https/auth.example.com/t");
        assert_eq!(map.unmap_url(&mapped).as_deref(), Some("https://auth.example.com/t"));
        assert_eq!(map.map_url("https://user:word@auth.example.com/", |_| true), None);
    }

    #[test]
    fn well_known_paths_are_inserted_before_the_prefix() {
        let upstream = upstream();
        let map = map_of(&upstream);
        let target = |text: &str| map.target_place(text).map(|place| place.to_url());
        let at = |rest: &str| Some(format!("https://auth.example.com{rest}"));
        let inserted = "/.well-known/oauth-authorization-server/.mcpace/https/auth.example.com/tenant";
        assert_eq!(target(inserted), at("/.well-known/oauth-authorization-server/tenant"));
        let rootless = "/.well-known/oauth-authorization-server/.mcpace/https/auth.example.com";
        assert_eq!(target(rootless), at("/.well-known/oauth-authorization-server"));
        let oidc = "/.mcpace/https/auth.example.com/tenant/.well-known/openid-configuration";
        assert_eq!(target(oidc), at("/tenant/.well-known/openid-configuration"));
        let own = "/.well-known/oauth-protected-resource/mcp";
        assert_eq!(target(own).as_deref(), Some("https://api.example.com/.well-known/oauth-protected-resource/mcp"));
        assert_eq!(target("/.mcpace/file/x"), None);
        assert_eq!(target("/.mcpace/https"), None);
    }

    #[test]
    fn only_addresses_and_localhost_at_our_port_are_ours() {
        for ours in ["127.0.0.1:4321", "LOCALHOST:4321", "[::1]:4321", "192.168.0.7:4321"] {
            assert!(is_ours(ours, 4321), "{ours}");
        }
        for other in ["127.0.0.1", "127.0.0.1:80", "evil.example:4321", "localhost.evil.example:4321", "[::1]", ""] {
            assert!(!is_ours(other, 4321), "{other}");
        }
        assert!(is_ours("localhost", 80) && is_ours("[::1]", 80));
    }

    proptest! {
        #[test]
        fn there_and_back_is_the_same_text(
            tls: bool,
            authority in "([a-z][a-z0-9]{0,9}(\\.[a-z]{2,5})?|127\\.0\\.0\\.1|\\[::1\\])(:[1-9][0-9]{3})?",
            rest in "((/\\.mcpace)?(/\\.well-known)?(/[!-~&&[^?#]]{0,8}){0,4}(\\?[!-~&&[^#]]{0,20})?)?",
        ) {
            let url = format!("{}://{authority}{rest}", if tls { "https" } else { "http" });
            let upstream = upstream();
            let map = map_of(&upstream);
            let mapped = map.map_url(&url, |_| true).unwrap();
            prop_assert!(Url::parse(&mapped).is_ok());
            prop_assert_eq!(map.unmap_url(&mapped), Some(url));
        }

        #[test]
        fn the_upstreams_own_urls_survive_too(rest in "(/[!-~&&[^#]]{0,30})?") {
            let url = format!("https://api.example.com{rest}");
            let upstream = upstream();
            let map = map_of(&upstream);
            prop_assert_eq!(map.unmap_url(&map.map_url(&url, |_| false).unwrap()), Some(url));
        }

        #[test]
        fn no_target_panics(target in "\\PC{0,60}") {
            let upstream = upstream();
            let _ = map_of(&upstream).target_place(&target);
        }
    }
}
