//! The instruments over real sockets and processes.

mod recorder_connections;
mod recorder_faults;
mod recorder_messages;
mod recorder_oauth;
mod recorder_streams;
mod recorder_support;
mod stdio_recorder;
