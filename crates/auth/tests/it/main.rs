//! Verifiers against a real issuer over HTTP, in this process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod introspection;
mod issuer;
mod jwt;
mod serving;
mod signing;
mod strangers;
