//! Which hosts and web pages are served: the protection against DNS rebinding (2025-11-25, basic/transports, "Security
//! Warning").

use std::net::SocketAddr;

use mcpace_wire::http::Field;

/// The names that a browser on this machine may know the server by.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The hosts and origins that requests may name.
pub(super) struct Admission {
    any_host: bool,
    /// The `Host` values of most requests: the bound port on a loopback name, or the bound address.
    usual: Vec<String>,
    hosts: Vec<HostName>,
    any_origin: bool,
    origins: Vec<String>,
}

/// A host, with a port where only that one is meant.
struct HostName {
    host: String,
    port: Option<String>,
}

impl Admission {
    pub(super) fn new(bound: SocketAddr, hosts: &[String], origins: &[String]) -> Self {
        let own = match bound {
            SocketAddr::V4(v4) => v4.ip().to_string(),
            SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
        };
        let names = LOOPBACK.into_iter().chain([own.as_str()]).chain(hosts.iter().map(String::as_str));
        Self {
            any_host: hosts.iter().any(|host| host == "*"),
            usual: LOOPBACK.into_iter().chain([own.as_str()]).map(|host| format!("{host}:{}", bound.port())).collect(),
            hosts: names.map(HostName::parse_name).collect(),
            any_origin: origins.iter().any(|origin| origin == "*"),
            origins: origins.iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase()).collect(),
        }
    }

    /// Whether a request to this host is for us.
    pub(super) fn admits_host(&self, host: &[u8]) -> bool {
        if self.any_host || self.usual.iter().any(|usual| usual.as_bytes() == host) {
            return true;
        }
        let Ok(host) = std::str::from_utf8(host) else { return false };
        let (host, port) = split_port(host);
        port.is_none_or(is_port) && self.hosts.iter().any(|name| name.admits(host, port))
    }

    /// Whether a page of this origin may call. A request without one comes from no page.
    pub(super) fn admits_origin(&self, origin: Field<'_>) -> bool {
        let origin = match origin {
            Field::Absent => return true,
            Field::Repeated => return false,
            Field::Value(_) => match origin.ascii() {
                Some(origin) => origin,
                None => return false,
            },
        };
        self.any_origin
            || self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
            || is_loopback_origin(origin)
    }
}

impl HostName {
    fn parse_name(text: &str) -> Self {
        let (host, port) = split_port(text);
        Self { host: host.to_ascii_lowercase(), port: port.map(str::to_owned) }
    }

    fn admits(&self, host: &str, port: Option<&str>) -> bool {
        self.host.eq_ignore_ascii_case(host) && (self.port.is_none() || self.port.as_deref() == port)
    }
}

fn is_loopback_origin(origin: &str) -> bool {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let Some(rest) = rest else { return false };
    let (host, port) = split_port(rest);
    port.is_none_or(is_port) && LOOPBACK.iter().any(|name| name.eq_ignore_ascii_case(host))
}

/// Whether it is a port in its one usual spelling: digits without a sign or leading zeros, up to 65535. No program spells it otherwise,
/// and authors make URLs of what stands in `Host`.
fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
        && text.starts_with(|first: char| first.is_ascii_digit() && (first != '0' || text == "0"))
}

/// Host and port; the brackets of an IPv6 address stay.
fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_PORTS: [&str; 10] = ["80@evil.example", "abc", "", "+80", "080", "-1", "65536", "8 0", "80/", "8\u{0660}"];

    fn admission(hosts: &[&str], origins: &[&str]) -> Admission {
        let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        Admission::new(([192, 0, 2, 7], 8000).into(), &owned(hosts), &owned(origins))
    }

    #[test]
    fn loopback_and_the_bound_address_are_hosts_on_any_port() {
        let admission = admission(&[], &[]);
        for host in ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "[::1]", "192.0.2.7:8000"] {
            assert!(admission.admits_host(host.as_bytes()), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", ":80", "::1", "\u{e9}"]
        {
            assert!(!admission.admits_host(host.as_bytes()), "{host}");
        }
        for port in NO_PORTS {
            for host in ["localhost", "[::1]", "192.0.2.7"] {
                assert!(!admission.admits_host(format!("{host}:{port}").as_bytes()), "{host}:{port}");
            }
        }
    }

    #[test]
    fn a_host_with_a_port_is_that_port_only() {
        let admission = admission(&["mcp.example:443", "other.example"], &[]);
        assert!(admission.admits_host(b"mcp.example:443"));
        assert!(!admission.admits_host(b"mcp.example:444"));
        assert!(!admission.admits_host(b"mcp.example"));
        assert!(admission.admits_host(b"other.example:99"));
    }

    #[test]
    fn origins_are_loopback_and_those_named() {
        let admission = admission(&[], &["https://app.example/"]);
        for origin in ["http://localhost:3000", "https://[::1]", "http://127.0.0.1", "https://app.example"] {
            assert!(admission.admits_origin(Field::Value(origin.as_bytes())), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil.example",
            "http://localhost.evil.example",
            "http://localhost:80@evil.example",
            "file://localhost",
            "http://app.example",
            "https://app.example:444",
            "http://localhost:3000/path",
        ] {
            assert!(!admission.admits_origin(Field::Value(origin.as_bytes())), "{origin}");
        }
        for port in NO_PORTS {
            let origin = format!("http://localhost:{port}");
            assert!(!admission.admits_origin(Field::Value(origin.as_bytes())), "{origin}");
        }
        assert!(admission.admits_origin(Field::Absent));
        assert!(!admission.admits_origin(Field::Repeated));
    }
}
