//! The runtime's client for Python: `crates/client`, polled on the thread of whoever awaits.
//!
//! Design constraint: a call on a warm connection starts no task and hands nothing to another thread: the request is
//! written where it was made, and the loop is woken once, when the reply is there. Messages from other threads reach a
//! loop through its `bridge`, in batches. No Python code is called while a lock of this module is held.

mod authorization;
mod bridge;
mod client;
mod inbox;
mod pending;
mod problem;
mod server_requests;
mod settings;

pub(crate) use authorization::{admit, may_see};
pub(crate) use client::{Caller, Listening};
pub(crate) use pending::Pending;
pub(crate) use server_requests::Question;
