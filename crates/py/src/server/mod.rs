//! The runtime for Python: a registry of Python functions that `crates/serve` serves.
//!
//! Design constraints: an I/O thread attaches to the interpreter only for a function that has shown itself to be quick;
//! everything else goes to threads of Python's own (`pool`) or to the one event loop (`looping`). No lock of ours is held
//! while a thread waits for the interpreter. What Python raises ends one call, never a thread.
//!
//! The way of a call: `tool` (inline where `pace` lets it; else `waiting` hands a `job` to the `pool` or to the loop, where
//! `step` runs it) → `handler` (arguments, context) → `output` or `failing` → the reply. `guarding` is asked before it.

mod access_lines;
mod asked;
mod asking;
mod beside;
mod bridge;
mod context;
mod delegate;
mod ending;
mod endpoint;
mod ends;
mod failing;
mod guarding;
mod handler;
mod held;
mod job;
mod limiting;
mod looping;
mod options;
mod output;
mod own_stdio;
mod pace;
mod plain;
mod pool;
mod process_key;
mod queue;
mod reading;
mod registry;
mod running;
mod shared;
mod step;
mod store;
mod telemetry;
mod tokens;
mod tool;
mod verify;
mod waiting;

pub(crate) use asked::Asked;
pub(crate) use context::Context;
pub(crate) use delegate::Exchange;
pub(crate) use endpoint::{Endpoint, Reply};
pub(crate) use guarding::{Guard, RateLimit};
pub(crate) use handler::Handler;
pub(crate) use limiting::Limiter;
pub(crate) use options::HttpOptions;
pub(crate) use process_key::set_process_key;
pub(crate) use registry::Server;
pub(crate) use running::Running;
pub(crate) use store::redis_limiter;
pub(crate) use telemetry::Observations;
pub(crate) use tokens::{IntrospectionVerifier, JwtVerifier, NativeVerifier, StaticVerifier, set_access_token};
pub(crate) use verify::on_behalf;
