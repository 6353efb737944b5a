//! Why authorization did not lead to a token.

use thiserror::Error;

/// Closed list of what can go wrong between a 401 and a token.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum OAuthError {
    /// Our caller's fault: the token has characters that no header can carry.
    #[error("the access token has characters that no HTTP header can carry")]
    UnusableToken,
    /// Our caller's fault: the private key signs nothing.
    #[error("the private key is no P-256 key in PKCS #8 PEM (-----BEGIN PRIVATE KEY-----)")]
    UnusableKey,
    /// Our caller's fault: client credentials without a client.
    #[error("client credentials need a client id, with a secret or a private key")]
    NoCredentials,
    /// No metadata where the RFCs say it is.
    #[error("{what} was found neither at the address that the server named nor at the well-known ones of {origin}")]
    NoMetadata {
        /// Which document.
        what: &'static str,
        /// Where it was looked for.
        origin: String,
    },
    /// Metadata that doesn't hold what it must, or contradicts itself.
    #[error("the authorization metadata can't be trusted: {0}")]
    BadMetadata(String),
    /// PKCE with S256 is not announced (2025-11-25 and later demand it).
    #[error(
        "the authorization server does not announce PKCE with S256 (code_challenge_methods_supported), which MCP demands"
    )]
    NoPkce,
    /// Neither registered nor able to register.
    #[error("the authorization server has no dynamic registration: give a client id that is registered with it")]
    NoRegistration,
    /// An endpoint answered with an error (RFC 6749 §5.2, RFC 7591 §3.2.2).
    #[error("{what} was refused with status {status}: {reason}")]
    Refused {
        /// Registration, token, refresh.
        what: &'static str,
        /// HTTP status.
        status: u16,
        /// The server's error code and words, cut.
        reason: String,
    },
    /// The user, or the server for them, refused consent (RFC 6749 §4.1.2.1).
    #[error("consent was refused: {0}")]
    Denied(String),
    /// Consent needs a person, but there was to be none.
    #[error("the authorization server wants a person to consent (status {0}): use the browser")]
    NeedsPerson(u16),
    /// The redirect does not belong to our request.
    #[error("the redirect back from the authorization server can't be trusted: {0}")]
    BadRedirect(&'static str),
    /// The authorization redirects to an address that the client must not ask.
    #[error("the authorization server redirects to an address that is {0}")]
    Astray(&'static str),
    /// The callback port of this machine.
    #[error("could not listen for the redirect on this machine: {0}")]
    Callback(String),
    /// The user took too long.
    #[error("nobody consented within {0} s")]
    TimeLimit(u64),
    /// An answer that is no token response.
    #[error("the token endpoint's answer is not usable: {0}")]
    BadToken(&'static str),
}

impl OAuthError {
    /// Stable code, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            OAuthError::UnusableToken => "oauth-unusable-token",
            OAuthError::UnusableKey => "oauth-unusable-key",
            OAuthError::NoCredentials => "oauth-no-credentials",
            OAuthError::NoMetadata { .. } => "oauth-no-metadata",
            OAuthError::BadMetadata(_) => "oauth-bad-metadata",
            OAuthError::NoPkce => "oauth-no-pkce",
            OAuthError::NoRegistration => "oauth-no-registration",
            OAuthError::Refused { .. } => "oauth-refused",
            OAuthError::Denied(_) => "oauth-denied",
            OAuthError::NeedsPerson(_) => "oauth-needs-person",
            OAuthError::BadRedirect(_) | OAuthError::Astray(_) => "oauth-bad-redirect",
            OAuthError::Callback(_) => "oauth-callback",
            OAuthError::TimeLimit(_) => "oauth-time-limit",
            OAuthError::BadToken(_) => "oauth-bad-token",
        }
    }
}
