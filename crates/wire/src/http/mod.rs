//! MCP's rules for HTTP, as data and pure functions.
//!
//! Constraint: no HTTP library. Headers come in as name and value, checks go out as a [`Rejection`] that knows its status,
//! code and body. The owner of the socket does the rest.
//!
//! - [`RequestHeaders`]: the headers that the protocol uses, collected in one pass. A duplicate of a header that must be
//!   single is never reduced to one of its values, because a proxy might have used the other one.
//! - [`Era::of`]: does a request belong to the stateless revisions or to a legacy session?
//! - [`check_modern`], [`check_meta`], [`check_legacy`], [`check_params`]: the server's checks, in the order that the protocol sets.
//! - [`client_headers`], [`mirrored_headers`]: headers that a client must send with a message.
//! - [`encode_value`], [`ParamHeader`]: header values that mirror a request's body.
//! - [`MediaType`]: the kind of body that a `Content-Type` announces.
//! - [`Challenge`][]: reads and writes `WWW-Authenticate`.
//!
//! Deliberately absent: rules for acceptable origins, hosts and tokens, which are policy.

mod accept;
mod challenge;
mod check;
mod client;
mod era;
mod headers;
mod media_type;
mod param;
mod rejection;
mod session;
mod value;

pub use accept::Accept;
pub use challenge::{Challenge, ChallengeError};
pub use check::{check_legacy, check_meta, check_modern, check_params};
pub use client::{Outgoing, client_headers, mirrored_headers};
pub use era::Era;
pub use headers::{Field, RequestHeaders, name};
pub use media_type::MediaType;
pub use param::{AnnotationError, ParamHeader, ParamKind};
pub use rejection::Rejection;
pub use session::{InvalidSessionId, SessionId};
pub use value::{ValueError, decode_value, encode_value};
