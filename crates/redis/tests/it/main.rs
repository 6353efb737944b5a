//! Several servers over one real Redis, spoken to over real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod away;
mod bounds;
mod events;
mod limits;
mod lost;
mod server;
mod sessions;
mod streams;

// The runtime's own fixture and client.
#[allow(dead_code, reason = "the runtime's tests use more of it")]
#[path = "../../../serve/tests/it/fixture.rs"]
mod fixture;
#[allow(dead_code, reason = "the runtime's tests use more of it")]
#[path = "../../../serve/tests/it/http_harness.rs"]
mod http_harness;
#[allow(dead_code, reason = "the runtime's tests use more of it")]
#[path = "../../../serve/tests/it/peer.rs"]
mod peer;
