//! The wire core, tested from outside: what goes in and what comes out.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod http_checks;
mod http_values;
mod jsonrpc;
mod lines;
mod mcp;
mod revision;
mod sse;
