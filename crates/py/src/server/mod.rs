//! The runtime for Python: a registry of Python functions that `crates/serve` serves.
//!
//! Design constraints: an I/O thread attaches to the interpreter only for a function whose recent calls were short. All other
//! functions run on Python's own threads (`threads/pool`) or on the event loop (`threads/event_loop_thread`). No lock of this crate
//! is held while a thread waits for the interpreter. An exception of a Python function ends one call, never a thread.
//!
//! The path of a tool call: `auth/guards` decide first. `call/tool` runs the function inline where `threads/inline_policy` permits it.
//! Else `call/submission` hands a `call/job` to the pool or to the event loop, where `threads/coroutine_call` runs it. `call/handler`
//! makes the arguments and the context. `call/output` or `call/exceptions` writes the reply.

mod auth;
mod call;
mod exit_hook;
mod http;
mod process_key;
mod registry;
mod server_handle;
mod shutdown;
mod stdio_guard;
mod store;
mod telemetry;
mod threads;

pub(crate) use auth::access_request::AccessRequest;
pub(crate) use auth::guards::{Guard, RateLimit};
pub(crate) use auth::permission_callback::GuardAnswer;
pub(crate) use auth::rate_limiter::Limiter;
pub(crate) use auth::token_object::set_access_token;
pub(crate) use auth::token_verifier::on_behalf;
pub(crate) use auth::tokens::{IntrospectionVerifier, JwtVerifier, NativeVerifier, StaticVerifier};
pub(crate) use call::context::Context;
pub(crate) use call::delegate::Exchange;
pub(crate) use call::handler::Handler;
pub(crate) use http::endpoint::{Endpoint, Reply};
pub(crate) use http::options::HttpOptions;
pub(crate) use process_key::set_process_key;
pub(crate) use registry::Server;
pub(crate) use server_handle::{Running, open_connections};
pub(crate) use shutdown::stop_all;
pub(crate) use store::redis_limiter;
pub(crate) use telemetry::Observations;
