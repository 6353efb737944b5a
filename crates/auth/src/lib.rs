//! Verification of bearer tokens: by signature ([`JwtVerifier`]), by asking the issuer ([`IntrospectionVerifier`], RFC
//! 7662), and, for development alone, by a list ([`StaticTokens`]) or without any check ([`AllowAny`]).
//!
//! Constraints: the parts that decide are pure and take the time as a parameter (`claims`, `key_set`, `rotation`,
//! `cache`); HTTP is in `provider` alone. All input that an issuer or a caller controls is limited in size, number and
//! time. A token is a secret: caches keep only its SHA-256, and no message shows it. An issuer that can't be reached is
//! no verdict on a token.
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
mod jwt;
mod key;
mod key_ring;
mod key_set;
mod provider;
mod rotation;
mod ticket;
mod token_parts;

pub use access::{Access, Grant};
pub use algorithm::Algorithm;
pub use answer::judge_answer;
pub use bound::Bound;
pub use claims::Demands;
pub use clock::{Clock, Moment, SystemClock};
pub use credentials::ClientAuth;
pub use development::{AllowAny, StaticToken, StaticTokens};
pub use error::{AuthError, Failure, Outage, Report, TokenRefusal};
pub use introspection::{IntrospectionOptions, IntrospectionVerifier};
pub use jwt::{JwtOptions, JwtVerifier, Keys};
pub use mcpace_oauth::Secret;
pub use provider::Reach;

/// Length of the longest token that verifiers read. Longer tokens are refused unread.
pub const MOST_TOKEN_BYTES: usize = 16 << 10;
