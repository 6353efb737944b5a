//! The runtime for Python: a registry of Python functions that `crates/serve` serves.
//!
//! Design constraints: an I/O thread attaches to the interpreter only for a function that has shown itself to be quick;
//! everything else goes to threads of Python's own (`pool`) or to the one event loop (`looping`). No lock of ours is held
//! while a thread waits for the interpreter. What Python raises ends one call, never a thread.
//!
//! The way of a call: `tool` (inline, pool or loop; `pace` decides) → `handler` (arguments, context, the call itself) →
//! `output` or `failing` → the reply.

mod delegate;
mod failing;
mod handler;
mod options;
mod output;
mod pace;
mod registry;
mod running;
mod tool;

pub(crate) use delegate::Exchange;
pub(crate) use handler::Handler;
pub(crate) use options::HttpOptions;
pub(crate) use registry::Server;
pub(crate) use running::Running;
