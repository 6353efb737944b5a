//! The runtime, tested from outside: over real sockets and pipes in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod both_ways;
mod core_asking;
mod core_changes;
mod core_context;
mod core_delegate;
mod core_harness;
mod core_lifecycle;
mod core_on_demand;
mod core_raw;
mod core_resources;
mod core_rounds;
mod core_server;
mod core_tasks;
mod core_telemetry;
mod core_tools;
mod core_watching;
mod corpus;
mod dialogues;
mod fixture;
mod guard_admitting;
mod guard_bounds;
mod guard_limits;
mod guard_lists;
mod guard_permissions;

mod http2_flow;
mod http_access;
mod http_checks;
mod http_connections;
mod http_family;
mod http_fast_path;
mod http_harness;
mod http_hooks;
mod http_limits;
mod http_sessions;
mod http_streams;
mod http_unread;
mod http_virtual;
mod later;
mod peer;
mod stdio;
mod stdio_process;
