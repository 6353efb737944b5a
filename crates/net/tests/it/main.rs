//! The instruments over real sockets and processes.

// The lint's own exception for tests doesn't reach their helper functions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod client_http;
mod client_stdio;
mod client_support;
mod client_targets;
mod recorder_connections;
mod recorder_faults;
mod recorder_messages;
mod recorder_oauth;
mod recorder_streams;
mod recorder_support;
#[cfg(target_os = "linux")]
mod recorder_tcp_info;
mod stdio_recorder;
