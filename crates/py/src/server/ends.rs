//! The ends of a request's connection, as ASGI has them.

use std::net::SocketAddr;

use mcpace_serve::Ends;

/// Host and port; `None` where nobody knows.
pub(super) type Address = Option<(String, u16)>;

/// Client, server, scheme.
pub(super) type Connection = (Address, Address, &'static str);

pub(super) fn connection(ends: Ends) -> Connection {
    (address(ends.client), address(ends.server), scheme(ends.is_tls))
}

pub(super) fn scheme(is_tls: bool) -> &'static str {
    if is_tls { "https" } else { "http" }
}

pub(super) fn address(address: Option<SocketAddr>) -> Address {
    // A socket of both families shows IPv4 as a part of IPv6.
    address.map(|address| (address.ip().to_canonical().to_string(), address.port()))
}

/// An address that a host's server names; `None` for one of a Unix socket, say.
pub(super) fn parsed(address: &Address) -> Option<SocketAddr> {
    let (host, port) = address.as_ref()?;
    Some(SocketAddr::new(host.parse().ok()?, *port))
}
