//! Options of TCP sockets.

use std::time::Duration;

use tokio::net::TcpStream;

/// Acknowledges the bytes that have arrived at once. The kernel takes the option back by itself (tcp(7)).
/// Only Linux has the option; elsewhere, and where the socket is dying, nothing changes.
pub(crate) fn acknowledge_now(socket: &TcpStream) {
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_quickack(socket, true);
    #[cfg(not(target_os = "linux"))]
    let _ = socket;
}

/// Lets the close of the socket be a reset. Where that fails, the close is an orderly one.
pub(crate) fn reset_on_close(socket: &TcpStream) {
    let _ = rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}
