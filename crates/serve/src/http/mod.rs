//! The HTTP transport: Streamable HTTP of all revisions on one endpoint, and as an option the HTTP+SSE of 2024-11-05.
//!
//! Constraints: threads that share nothing on the way of a request, each with a runtime of its own; no timer, lock or copy
//! for a request that is answered at once; a reply that is known whole is one write. Everything that a peer can make the
//! server keep or wait for is in [`Limits`].
//!
//! The way of a request: `listen` → `worker` → `connection` → `site` (host, origin, path, token) → `post` (body,
//! era, session, dispatch) → `reply` (JSON or events) → `answer` (headers). Streams are `log`s, which
//! `event_stream`s read; `streams` has those of one session, which is `live`; `sessions` has all of them, as many as there are
//! `session_places`.
//!
//! Deliberately absent: what methods mean (dispatch), who may call what (the verifier and the handlers), CORS headers for
//! pages of other origins (a proxy's business), compression.

mod access;
mod admission;
mod answer;
mod auth;
mod calls;
mod connection;
mod direct;
mod endpoint;
mod error;
mod event_stream;
mod fallback;
mod family;
mod fields;
mod get;
mod guarded;
mod legacy;
mod listen;
mod live;
mod lock;
mod log;
mod options;
mod origin;
mod post;
mod pulse;
mod reply;
mod reply_body;
mod request_body;
mod running;
mod session_key;
mod session_places;
mod sessions;
mod sharing;
mod site;
mod streams;
mod tls;
mod transfer;
mod unheard;
mod unsent;
mod worker;

pub use access::{Access, AccessLog};
pub use auth::{Authorization, Development, TokenError, TokenVerifier};
pub use endpoint::{Endpoint, Reply};
pub use error::ServeError;
pub use fallback::{Beside, BrokenOff, Fallback, Responding, Upload};
pub use family::Family;
pub use options::{Around, Limits, Options, ResponseMode};
pub use running::{Running, serve};
pub use tls::Tls;
