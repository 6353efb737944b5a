//! Bearer tokens: who may call, and how a client learns where to get a token (RFC 6750, RFC 9728).
//!
//! Deliberately absent: what makes a token good. A [`TokenVerifier`] knows, and caches if asking is dear.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use mcpace_wire::http::Challenge;

use super::ServeError;
use crate::principal::Principal;

/// Tells whose token it is.
pub trait TokenVerifier: Send + Sync {
    /// Looks at a token. It is a secret: never log it.
    fn verify<'a>(&'a self, token: &'a str)
    -> Pin<Box<dyn Future<Output = Result<Principal, TokenError>> + Send + 'a>>;

    /// A warning, where the verifier is for development only. `None`: the verifier is fit for production.
    fn development(&self) -> Option<Development> {
        None
    }

    /// Whether tokens are taken that were issued for other servers (RFC 8707 §2; MCP: "servers MUST validate that access tokens
    /// were issued specifically for them"). Logged when a server begins with it.
    fn takes_any_audience(&self) -> bool {
        false
    }
}

/// A verifier that no server beyond its author's machine should have. Said on stderr when a server begins with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Development {
    /// The weakness of the verifier, in one sentence.
    pub warning: &'static str,
    /// Whether it was told to serve other machines all the same; else it listens on loopback only.
    pub beyond_loopback: bool,
}

/// Why a token is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Unknown, expired, revoked, or meant for somebody else: 401.
    #[error("the token is not valid")]
    Invalid,
    /// Good, but not for this: 403.
    #[error("the token lacks a scope")]
    InsufficientScope,
    /// Nobody can tell at the moment: 503.
    #[error("tokens can't be checked at the moment")]
    Unavailable,
}

/// That each request needs a token, and from whom.
#[derive(Clone)]
pub struct Authorization {
    /// Looks at tokens.
    pub verifier: Arc<dyn TokenVerifier>,
    /// The resource's identifier (RFC 8707): the endpoint's URL as clients see it, such as `https://mcp.example/mcp`.
    pub resource: String,
    /// The issuers of tokens for it.
    pub authorization_servers: Vec<String>,
    /// Scopes that a token must have, all of them.
    pub scopes: Vec<String>,
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorization")
            .field("resource", &self.resource)
            .field("authorization_servers", &self.authorization_servers)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// Where the metadata is, beside the path of the resource itself.
pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Refuses to listen where a verifier for development would let strangers in.
pub(super) fn check_reach(authorization: &Authorization, bound: SocketAddr) -> Result<(), ServeError> {
    match authorization.verifier.development() {
        Some(development) if !development.beyond_loopback && !bound.ip().is_loopback() => Err(ServeError::Option {
            option: "address",
            value: bound.to_string(),
            reason: "its tokens are for development, which is served on loopback only, such as 127.0.0.1",
        }),
        _ => Ok(()),
    }
}

const ANY_AUDIENCE: &str = "tokens are taken whatever server they were issued for, so that any other service of the issuer's can \
                            use its callers' tokens here: name an audience";

/// [`Authorization`], with everything worked out that doesn't depend on the request.
pub(super) struct TokenGuard {
    verifier: Arc<dyn TokenVerifier>,
    scopes: Vec<String>,
    metadata_url: String,
    /// Where clients look for the metadata (RFC 9728 §3.1): not the endpoint's own path where a proxy has another in front.
    metadata_path: String,
    /// The metadata document (RFC 9728 §2).
    pub(super) metadata: Bytes,
}

impl TokenGuard {
    pub(super) fn new(authorization: &Authorization) -> Result<Self, ServeError> {
        let resource = &authorization.resource;
        let misused = |reason| ServeError::Option { option: "authorization.resource", value: resource.clone(), reason };
        let uri: http::Uri = resource.parse().map_err(|_| misused("an absolute URL"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(misused("an absolute URL"));
        };
        if let Some(development) = authorization.verifier.development() {
            tracing::warn!("{}", development.warning);
            // Loud, whether or not anybody has set logging up.
            eprintln!("mcpace: warning: {}", development.warning);
        }
        if authorization.verifier.takes_any_audience() {
            tracing::warn!("{ANY_AUDIENCE}");
        }
        let path = uri.path().trim_end_matches('/');
        let mut document = serde_json::json!({
            "resource": resource,
            "authorization_servers": authorization.authorization_servers,
            "bearer_methods_supported": ["header"],
        });
        if !authorization.scopes.is_empty() {
            document["scopes_supported"] = authorization.scopes.clone().into();
        }
        Ok(Self {
            verifier: Arc::clone(&authorization.verifier),
            scopes: authorization.scopes.clone(),
            metadata_url: format!("{scheme}://{authority}{WELL_KNOWN}{path}"),
            metadata_path: format!("{WELL_KNOWN}{path}"),
            metadata: Bytes::from(document.to_string()),
        })
    }

    /// Whether the metadata is asked for.
    pub(super) fn is_metadata(&self, path: &str) -> bool {
        path == self.metadata_path || path == WELL_KNOWN
    }

    /// Verifies the `Authorization` header and returns the principal that it names.
    pub(super) async fn verify_header(&self, header: Option<&[u8]>) -> Result<Principal, Denied> {
        let Some(token) = header.and_then(bearer_token) else {
            return Err(Denied::Unauthorized(self.challenge_header(None)));
        };
        let principal = self.verifier.verify(token).await.map_err(|error| match error {
            TokenError::Invalid => Denied::Unauthorized(self.challenge_header(Some("invalid_token"))),
            TokenError::InsufficientScope => Denied::Forbidden(self.challenge_header(Some(INSUFFICIENT_SCOPE))),
            TokenError::Unavailable => Denied::Unavailable,
        })?;
        if self.scopes.iter().all(|scope| principal.scopes.contains(scope)) {
            Ok(principal)
        } else {
            Err(Denied::Forbidden(self.challenge_header(Some(INSUFFICIENT_SCOPE))))
        }
    }

    fn challenge_header(&self, error: Option<&str>) -> String {
        bearer_challenge(error, self.scopes.iter().map(String::as_str), Some(&self.metadata_url))
    }

    /// To a client whose token would do, had it these scopes, too: those that every request needs are told again, since it
    /// may ask for no more than it is told (2025-11-25, basic/authorization, "Scope Challenge Handling").
    pub(super) fn step_up<'s>(&'s self, scopes: impl Iterator<Item = &'s str>) -> String {
        let needed: Vec<&str> = self.scopes.iter().map(String::as_str).collect();
        let more = scopes.filter(|scope| !needed.contains(scope));
        let all = needed.iter().copied().chain(more).collect::<Vec<_>>();
        bearer_challenge(Some(INSUFFICIENT_SCOPE), all.into_iter(), Some(&self.metadata_url))
    }
}

pub(super) const INSUFFICIENT_SCOPE: &str = "insufficient_scope";

/// A bearer challenge (RFC 6750 §3, RFC 9728 §5.1).
pub(super) fn bearer_challenge<'s>(
    error: Option<&str>,
    scopes: impl Iterator<Item = &'s str>,
    metadata_url: Option<&str>,
) -> String {
    let mut challenge = Challenge::bearer();
    if let Some(error) = error {
        challenge = challenge.with("error", error);
    }
    let scopes = scopes.collect::<Vec<_>>().join(" ");
    if !scopes.is_empty() {
        challenge = challenge.with("scope", &scopes);
    }
    if let Some(url) = metadata_url {
        challenge = challenge.with("resource_metadata", url);
    }
    challenge.to_string()
}

/// Why a request goes no further; with the challenge to send.
pub(super) enum Denied {
    /// 401.
    Unauthorized(String),
    /// 403.
    Forbidden(String),
    /// 503.
    Unavailable,
}

fn bearer_token(header: &[u8]) -> Option<&str> {
    let (scheme, token) = std::str::from_utf8(header).ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
