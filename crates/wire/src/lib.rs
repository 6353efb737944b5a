//! The Model Context Protocol on the wire, in all five revisions: bytes in, messages out.
//!
//! Constraint: no I/O, no clock, no environment, no async. Everything here is a function of its input, so it can be
//! fuzzed, replayed and tested without time passing. The owner of a socket feeds it.
//!
//! Everything that a peer sends is hostile until parsed: each decoder has a limit and runs in linear time.
//!
//! - [`revision`]: the revisions, and the features of each.
//! - [`jsonrpc`]: messages, borrowed from their text.
//! - [`mcp`]: the types of each method's parameters and results.
//! - [`sse`], [`lines`]: framing over HTTP and over stdio.
//! - [`quote_printable`]: quotes a peer's text in one of our messages.
//! - [`http`]: the rules of the protocol for HTTP: headers, checks, status codes, challenges.

pub mod http;
pub mod jsonrpc;
pub mod lines;
pub mod mcp;
mod quoted;
pub mod revision;
pub mod sse;

pub use quoted::quote_printable;
pub use revision::Revision;
