//! The HTTP transport: Streamable HTTP of all revisions on one endpoint, and as an option the HTTP+SSE of 2024-11-05.
//!
//! Constraints: threads that share nothing on the way of a request, each with a runtime of its own; no timer, lock or copy
//! for a request that is answered at once; a reply that is known whole is one write. Everything that a peer can make the
//! server keep or wait for is in [`Limits`].
//!
//! The way of a request: `listen` → `worker` → `connection` → `http_server` (host, origin, path, token) → `post` (body, era,
//! session, dispatch) → `reply` (JSON or events) → `http_response` (headers). A stream is an `event_log`, read by an
//! `event_stream`. `session_streams` has the streams of one session, an `http_session`; `sessions` has all sessions, within
//! the bounds of `session_capacity`.
//!
//! Deliberately absent: what methods mean (dispatch), who may call what (the verifier and the handlers), CORS headers for
//! pages of other origins (a proxy's business), compression.

mod access_log;
mod auth;
mod connection;
mod connection_ends;
mod connection_state;
mod embedded;
mod error;
mod event_log;
mod event_stream;
mod fast_path;
mod fields;
mod get_stream;
mod held_results;
mod host_origin_check;
mod http_response;
mod http_server;
mod http_session;
mod in_flight;
mod legacy;
mod listen;
mod lock;
mod mounted_service;
mod options;
mod pending_messages;
mod post;
mod reply;
mod reply_body;
mod request_body;
mod server_handle;
mod session_affinity;
mod session_capacity;
mod session_end;
mod session_key;
mod session_lookup;
mod session_streams;
mod sessions;
mod shared_sessions;
mod tls;
mod tracked_stream;
mod transfer;
mod worker;
mod worker_socket;

pub use access_log::{Access, AccessLog};
pub use auth::{Authorization, Development, TokenError, TokenVerifier};
pub use embedded::{Endpoint, EndpointBody};
pub use error::ServeError;
pub use mounted_service::{BrokenOff, Fallback, MountedService, Responding, Upload};
pub use options::{Around, Limits, Options, ResponseMode};
pub use server_handle::{ServerHandle, serve};
pub use session_affinity::WorkerGroup;
pub use tls::Tls;
