//! Systems without the socket diagnostics of Linux.

use mcpace_record::TcpInfo;
use tokio::net::TcpStream;

/// A channel to statistics that this system does not have.
pub(crate) struct SocketDiagnostics;

/// Query for one socket's statistics.
pub(crate) struct SocketQuery;

impl SocketDiagnostics {
    pub(crate) fn open_channel() -> Option<Self> {
        None
    }

    pub(crate) fn read_statistics(&self, _: &SocketQuery) -> Option<TcpInfo> {
        None
    }
}

impl SocketQuery {
    pub(crate) fn for_socket(_: &TcpStream) -> Option<Self> {
        None
    }
}
