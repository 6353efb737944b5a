//! What makes a bearer token good: its signature ([`JwtVerifier`]), its issuer's word ([`IntrospectionVerifier`], RFC 7662),
//! or, for development alone, a list ([`StaticTokens`]) and nothing at all ([`AllowAny`]).
//!
//! Constraints: the parts that decide are pure and take the time as a parameter (`claims`, `key_set`, `rotation`, `cache`);
//! HTTP is in `provider` alone. Whatever an issuer or a caller controls has a limit in size, number and time. A token is a
//! secret: neither kept by the caches, which know its SHA-256, nor shown. An issuer that is away is no verdict.
//!
//! Requests to issuers run on one thread of this crate's own, so that they outlive whoever began them: a caller that goes
//! away ends nobody else's wait, and a server that stops leaves no half-read reply on its threads. A forked child, which has no
//! such thread, begins anew.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use mcpace_auth::{JwtOptions, JwtVerifier, Keys};
//! use mcpace_serve::Server;
//! use mcpace_serve::http::{self, Authorization, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut tokens = JwtOptions::new(Keys::Url("https://id.example/jwks".to_owned()));
//! tokens.demands.issuers = vec!["https://id.example".to_owned()];
//! tokens.demands.audiences = vec!["https://mcp.example/mcp".to_owned()];
//! let authorization = Authorization {
//!     verifier: Arc::new(JwtVerifier::new(tokens)?),
//!     resource: "https://mcp.example/mcp".to_owned(),
//!     authorization_servers: vec!["https://id.example".to_owned()],
//!     scopes: vec!["mcp".to_owned()],
//! };
//! let server = Server::builder("private", "1.0").build()?;
//! http::serve(server, Options { authorization: Some(authorization), ..Options::default() })?.wait();
//! # Ok(())
//! # }
//! ```
//!
//! Deliberately absent: issuing tokens; encrypted tokens (JWE); keys that a token brings along (`jwk`, `jku`, `x5c`).

mod access;
mod algorithm;
mod answer;
mod bound;
mod cache;
mod claims;
mod clock;
mod credentials;
mod development;
mod digest;
mod error;
mod gate;
mod introspection;
mod jws;
mod jwt;
mod key;
mod key_ring;
mod key_set;
mod provider;
mod rotation;
mod ticket;

pub use access::{Access, Grant};
pub use algorithm::Algorithm;
pub use answer::judge_answer;
pub use bound::Bound;
pub use claims::Demands;
pub use clock::{Clock, Moment, SystemClock};
pub use credentials::ClientAuth;
pub use development::{AllowAny, StaticToken, StaticTokens};
pub use error::{AuthError, Failure, Outage, Refusal, Report};
pub use introspection::{IntrospectionOptions, IntrospectionVerifier};
pub use jwt::{JwtOptions, JwtVerifier, Keys};
pub use mcpace_oauth::Secret;
pub use provider::Reach;

/// What all verifiers take of a token: longer ones are refused unread.
pub const MOST_TOKEN_BYTES: usize = 16 << 10;
