//! Errors by origin: wrong configuration ([`AuthError`]), the caller's fault ([`TokenRefusal`]), the issuer's or the
//! network's fault ([`Outage`]). None of them shows a token or a credential.

use std::sync::Arc;
use std::time::Duration;

use mcpace_serve::http::TokenError;
use mcpace_trust::NotTrusted;

/// Our user's misuse, told when a verifier is made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// A URL that isn't asked.
    #[error("{what} can't be {url:?}: {reason}")]
    Url {
        /// Which.
        what: &'static str,
        /// As it was given, credentials aside.
        url: String,
        /// Why not, and what would do.
        reason: &'static str,
    },
    /// A key that can't be used.
    #[error("the key can't be used: {0}")]
    Key(&'static str),
    /// Certificates to trust that can't be used.
    #[error("the extra root can't be used: {0}")]
    Root(#[from] NotTrusted),
    /// An option that makes no sense.
    #[error("{option} can't be {value}: {reason}")]
    Option {
        /// Which.
        option: &'static str,
        /// As it was given.
        value: String,
        /// Requirement that the value does not meet.
        reason: &'static str,
    },
}

/// Why there is no good token: for logs, and for [`TokenError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It isn't good.
    #[error("a token was refused: {0}")]
    Refused(#[from] TokenRefusal),
    /// Nobody can tell.
    #[error("tokens can't be checked: {0}")]
    Unavailable(#[from] Outage),
}

impl From<Failure> for TokenError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(_) => Self::Invalid,
            Failure::Unavailable(_) => Self::Unavailable,
        }
    }
}

/// Why a token isn't good. The caller's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// Not read at all.
    #[error("it is longer than {limit} bytes")]
    TooLong {
        /// The most that is read.
        limit: usize,
    },
    /// The token has a character that no bearer token may have (RFC 6750 §2.1).
    #[error("it holds characters that no token may")]
    Characters,
    /// Not three parts, or not what should be in them.
    #[error("it is no signed JWT with an algorithm that is known")]
    Malformed,
    /// A token of another use: RFC 8725 §3.11.
    #[error("its type is not an access token's")]
    Type,
    /// A token for whoever proves to have a key (RFC 7800 §3.1): taken without that proof, it would serve a thief.
    #[error("it is bound to a key of its sender's (cnf), and no proof of that is looked at here")]
    KeyBound,
    /// More than anybody means.
    #[error("its claims nest more than {limit} deep")]
    Nesting {
        /// How deep they may.
        limit: usize,
    },
    /// Extensions that must be understood (RFC 7515 §4.1.11), and aren't.
    #[error("it has critical extensions")]
    Critical,
    /// Signed in a way that was not agreed upon.
    #[error("it is signed with {0}, which is not accepted here")]
    Algorithm(super::Algorithm),
    /// The issuer has no such key.
    #[error("the issuer has no key for it")]
    UnknownKey,
    /// Forged, or cut.
    #[error("its signature is wrong")]
    Signature,
    /// A claim that is missing or of another type.
    #[error("its claim {0} is missing or of the wrong type")]
    Claim(&'static str),
    /// `exp` is past.
    #[error("it has expired")]
    Expired,
    /// `nbf` is still to come.
    #[error("it is not valid yet")]
    NotYet,
    /// `iss` is another.
    #[error("its issuer is not the one expected")]
    Issuer,
    /// `aud` doesn't name us.
    #[error("it was issued for another audience")]
    Audience,
    /// The issuer says so (RFC 7662 §2.2).
    #[error("its issuer says that it is not active")]
    Inactive,
    /// None of a development's.
    #[error("it is none of those that are known")]
    Unknown,
}

/// Why nobody can tell whether a token is good. The issuer's fault, or the way's there; never the caller's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Outage {
    /// No reply: name, connection, TLS, or broken off.
    #[error("{what} can't be reached: {reason}")]
    Unreachable {
        /// Name of the endpoint.
        what: &'static str,
        /// In the system's words.
        reason: String,
    },
    /// No reply in time.
    #[error("{what} gave no answer within {limit:?}")]
    TimeLimit {
        /// Name of the endpoint.
        what: &'static str,
        /// How long was waited.
        limit: Duration,
    },
    /// Another status than 200. Redirects are among them: they are not followed.
    #[error("{what} answered with status {status}{}", status_hint(*.status))]
    Status {
        /// Name of the endpoint.
        what: &'static str,
        /// The status.
        status: u16,
    },
    /// A reply past the limit.
    #[error("{what} answered with more than {limit} bytes")]
    TooLarge {
        /// Name of the endpoint.
        what: &'static str,
        /// The most that is read.
        limit: usize,
    },
    /// A reply that is not what it should be.
    #[error("{what} answered with something else: {reason}")]
    Unreadable {
        /// Name of the endpoint.
        what: &'static str,
        /// Reason why the answer can't be read.
        reason: &'static str,
    },
    /// It was asked a moment ago, and failed.
    #[error("{what} failed a moment ago, and is asked again in a while")]
    Resting {
        /// Name of the endpoint that is not asked now.
        what: &'static str,
    },
    /// More tokens wait for their verdict than may.
    #[error("more than {limit} tokens wait for {what}")]
    Busy {
        /// Name of the endpoint that the tokens wait for.
        what: &'static str,
        /// How many may.
        limit: usize,
    },
    /// The environment: the thread that asks can't be started, or the work on it broke off.
    #[error("{what} can't be asked: its thread ended or could not be started")]
    Thread {
        /// Name of the endpoint that is not asked.
        what: &'static str,
    },
}

impl Failure {
    /// Whether whoever asked the issuer has told of it: once, however many wait for the answer.
    pub(crate) fn is_told(&self) -> bool {
        match self {
            Failure::Refused(_) | Failure::Unavailable(Outage::Busy { .. } | Outage::Thread { .. }) => false,
            Failure::Unavailable(_) => true,
        }
    }
}

fn status_hint(status: u16) -> &'static str {
    match status {
        300..=399 => " (redirects are not followed: give the URL that it leads to)",
        401 | 403 => " (does it know the client, and may that one ask?)",
        _ => "",
    }
}

/// Hears of each failure, on the thread where it is found: it must be quick. Without one they go to `tracing`.
pub type Report = Arc<dyn Fn(&Failure) + Send + Sync>;

/// Tells of a failure.
pub(crate) fn report_failure(report: Option<&Report>, failure: &Failure) {
    match (report, failure) {
        (Some(report), failure) => report(failure),
        (None, Failure::Refused(_)) => tracing::info!("{failure}"),
        (None, Failure::Unavailable(_)) => tracing::warn!("{failure}"),
    }
}
