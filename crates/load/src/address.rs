//! Where an HTTP target is.

use std::net::{SocketAddr, ToSocketAddrs};

use url::{Host, Url};

use crate::plan::error::PlanError;

/// The parts of a target's URL that a client needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetAddress {
    /// Over TLS.
    pub(crate) secure: bool,
    /// The name or the number, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Value of the `Host` header.
    pub(crate) authority: String,
    /// Path and query.
    pub(crate) path: String,
}

impl TargetAddress {
    pub(crate) fn parse(text: &str) -> Result<Self, PlanError> {
        let impossible = |why: &str| PlanError::Impossible(format!("the target's URL {why}"));
        let url = Url::parse(text).map_err(|error| impossible(&format!("can't be read: {error}")))?;
        let secure = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(impossible(&format!("begins with {other}:// where http:// or https:// belongs"))),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(impossible("has a password in it: give it as a header"));
        }
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(number)) => number.to_string(),
            Some(Host::Ipv6(number)) => number.to_string(),
            None => return Err(impossible("names no host")),
        };
        let port = url.port_or_known_default().unwrap_or(if secure { 443 } else { 80 });
        let written = url.host_str().unwrap_or_default();
        let authority = url.port().map_or_else(|| written.to_owned(), |port| format!("{written}:{port}"));
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        Ok(Self { secure, host, port, authority, path: format!("{}{query}", url.path()) })
    }

    /// All its numbers. Blocks while the name is looked up.
    pub(crate) fn resolve(&self) -> std::io::Result<Vec<SocketAddr>> {
        Ok((self.host.as_str(), self.port).to_socket_addrs()?.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::TargetAddress;

    #[test]
    fn a_url_is_taken_apart() {
        let address = TargetAddress::parse("http://[::1]:8080/mcp?x=1").unwrap();
        assert_eq!((address.host.as_str(), address.port), ("::1", 8080));
        assert_eq!((address.authority.as_str(), address.path.as_str()), ("[::1]:8080", "/mcp?x=1"));
        assert_eq!(TargetAddress::parse("https://example.org").unwrap().authority, "example.org");
    }

    #[test]
    fn other_urls_are_refused_with_the_reason() {
        for (url, why) in [("ftp://a", "ftp://"), ("nonsense", "can't be read"), ("http://u:p@a/", "password")] {
            assert!(TargetAddress::parse(url).unwrap_err().to_string().contains(why), "{url}");
        }
    }
}
