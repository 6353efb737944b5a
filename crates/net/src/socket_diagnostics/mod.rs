//! The kernel's account of sockets and the statistics of TCP connections (`struct tcp_info`), through sock_diag(7).
//!
//! `getsockopt(TCP_INFO)` needs unsafe code, which the workspace forbids; a query over netlink returns the same structure
//! and needs none. Systems other than Linux, kernels without socket diagnostics, and kernels whose structure is shorter
//! give no statistics.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod none;

#[cfg(target_os = "linux")]
pub(crate) use linux::{DestroyedSockets, SocketDiagnostics, SocketQuery, TcpSocket, TcpState};
#[cfg(not(target_os = "linux"))]
pub(crate) use none::{SocketDiagnostics, SocketQuery};
