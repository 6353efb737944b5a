//! Addresses of both ends of a request's connection, in ASGI's form.

use std::net::SocketAddr;

use mcpace_serve::Ends;

/// Host and port, or `None` where they are unknown.
pub(crate) type Address = Option<(String, u16)>;

/// Client, server, scheme.
pub(crate) type Connection = (Address, Address, &'static str);

pub(crate) fn connection(ends: Ends) -> Connection {
    (address(ends.client), address(ends.server), scheme(ends.is_tls))
}

pub(crate) fn scheme(is_tls: bool) -> &'static str {
    if is_tls { "https" } else { "http" }
}

pub(crate) fn address(address: Option<SocketAddr>) -> Address {
    // A dual-stack socket shows IPv4 addresses as IPv6.
    address.map(|address| (address.ip().to_canonical().to_string(), address.port()))
}

/// Parses an address of the host's server; `None` for a Unix socket, for example.
pub(crate) fn parsed(address: &Address) -> Option<SocketAddr> {
    let (host, port) = address.as_ref()?;
    Some(SocketAddr::new(host.parse().ok()?, *port))
}
