//! The runtime, tested from outside: over real sockets and pipes in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod corpus;
mod dialogues;
mod fixture;
mod peer;
