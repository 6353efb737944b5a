//! The client's side of OAuth 2.1 as MCP asks for it (specification: basic/authorization of each revision).
//!
//! Constraint: no sockets but the callback port of a browser's consent; HTTP is [`HttpExchange`], which the caller has. Split in
//! two: what is sent, read and believed is pure (`metadata`, `request`, `token`, `challenge`); `authorizer` and `consent`
//! only walk through it.
//!
//! `redirect` is here too: where an endpoint may send a client that carries a token; and `urls`: what may be shown of one.
//!
//! Tokens and registrations stay in memory and outlast a session; registrations are kept by issuer. Deliberately absent:
//! storage on disk, device grants.

mod assertion;
mod authorizer;
mod browser;
mod challenge;
mod consent;
mod dpop;
mod error;
mod exchange;
mod metadata;
mod options;
mod redirect;
mod request;
mod secret;
mod token;
mod urls;

pub use authorizer::Authorizer;
pub use challenge::{AuthKind, NONCE, RefusedRequest};
pub use error::OAuthError;
pub use exchange::{Fetch, Fetched, HttpExchange};
pub use options::{Asserted, Auth, BrowserConsent, Consent, IdentityProvider, OAuthOptions, RegisteredClient};
pub use redirect::{RefusedRedirect, redirect_target};
pub use secret::Secret;
pub use urls::{is_loopback, printable_url, reason_of};
