//! Addresses of both ends of a request's connection, in ASGI's form.

use std::net::SocketAddr;

use mcpace_serve::Ends;

/// Host and port, or `None` where they are unknown.
pub(crate) type AddressTuple = Option<(String, u16)>;

/// Client, server, scheme.
pub(crate) type ConnectionTuple = (AddressTuple, AddressTuple, &'static str);

pub(crate) fn python_ends(ends: Ends) -> ConnectionTuple {
    (python_address(ends.client), python_address(ends.server), url_scheme(ends.is_tls))
}

pub(crate) fn url_scheme(is_tls: bool) -> &'static str {
    if is_tls { "https" } else { "http" }
}

pub(crate) fn python_address(address: Option<SocketAddr>) -> AddressTuple {
    // A dual-stack socket shows IPv4 addresses as IPv6.
    address.map(|address| (address.ip().to_canonical().to_string(), address.port()))
}

/// Parses an address of the host's server; `None` for a Unix socket, for example.
pub(crate) fn parse_address(address: &AddressTuple) -> Option<SocketAddr> {
    let (host, port) = address.as_ref()?;
    Some(SocketAddr::new(host.parse().ok()?, *port))
}
