//! Verifiers against a real issuer over HTTP, in this process.

mod introspection;
mod issuer;
mod jwt;
mod serving;
mod signing;
