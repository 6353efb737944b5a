//! Bearer challenge of a 401 or 403: the header `WWW-Authenticate` (RFC 9110 §11.6.1, RFC 6750 §3, RFC 9728 §5.1).

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderName};
use mcpace_wire::http as wire;
use url::Url;

use super::Secret;

/// The header with a server's nonce.
pub const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// Which kind of authorization a client was given, for advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as `Auth`, which has the words")]
pub enum AuthKind {
    None,
    Bearer,
    OAuth,
}

/// A refused request.
#[derive(Debug)]
pub struct RefusedRequest {
    pub(crate) status: u16,
    pub(crate) server: Url,
    pub(crate) challenge: BearerChallenge,
    /// The token that was refused.
    pub(crate) token: Option<Secret>,
    /// The nonce that the next proof has to carry (RFC 9449 §9).
    pub(crate) nonce: Option<String>,
}

/// The parameters of a bearer challenge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BearerChallenge {
    pub(crate) resource_metadata: Option<Url>,
    pub(crate) scope: Option<String>,
    pub(crate) error: Option<String>,
    description: Option<String>,
}

impl RefusedRequest {
    /// A reply with status 401 or 403 to a request that `server` was asked, with `token`.
    #[must_use]
    pub fn new(status: u16, headers: &HeaderMap, server: &Url, token: Option<Secret>) -> Self {
        let values = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let challenge = values.filter_map(BearerChallenge::of).next().unwrap_or_default();
        let nonce = headers.get(NONCE).and_then(|nonce| nonce.to_str().ok()).map(str::to_owned);
        Self { status, server: server.clone(), challenge, token, nonce }
    }

    /// 401 or 403.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The server's words in its challenge, cut.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let words = self.challenge.description.as_deref().or(self.challenge.error.as_deref());
        words.map(mcpace_wire::quote_printable)
    }

    /// Advice to the user when the client could not get a token by itself.
    #[must_use]
    pub fn advice(&self, kind: AuthKind) -> &'static str {
        match (self.status, kind) {
            (401, AuthKind::None) => "give a bearer token, or let the client authorize by OAuth",
            (401, AuthKind::Bearer) => "check that the token is right and has not expired",
            (401, AuthKind::OAuth) => "it refuses the token that its authorization server has just given",
            (_, AuthKind::None) => "it may want authorization, or refuse this machine's address",
            _ => "the token does not allow this; ask for more scopes",
        }
    }
}

impl BearerChallenge {
    /// The bearer or DPoP challenge of one header. Other schemes are passed over, and so is a header that can't be read: the
    /// well-known addresses are left to try.
    fn of(value: &str) -> Option<Self> {
        let challenges = wire::Challenge::parse_all(value).ok()?;
        let is_ours =
            |challenge: &&wire::Challenge| challenge.is_bearer() || challenge.scheme.eq_ignore_ascii_case("DPoP");
        let bearer = challenges.iter().find(is_ours)?;
        let scopes: Vec<&str> = bearer.scopes().collect();
        Some(Self {
            resource_metadata: bearer.resource_metadata().and_then(|url| Url::parse(url).ok()),
            scope: (!scopes.is_empty()).then(|| scopes.join(" ")),
            error: bearer.error().map(str::to_owned),
            description: bearer.param("error_description").map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_challenge_is_read_wherever_it_stands() {
        let read = BearerChallenge::of(
            r#"Basic realm="a, Bearer x", Bearer error="invalid_token", error_description="say no", resource_metadata="https://h/meta?a=b,c", scope="a b""#,
        )
        .unwrap();
        assert_eq!(read.error.as_deref(), Some("invalid_token"));
        assert_eq!(read.description.as_deref(), Some("say no"));
        assert_eq!(read.resource_metadata.unwrap().as_str(), "https://h/meta?a=b,c");
        assert_eq!(read.scope.as_deref(), Some("a b"));
    }

    #[test]
    fn what_is_no_bearer_challenge_or_no_url_is_passed_over() {
        assert_eq!(BearerChallenge::of("Basic realm=x"), None);
        assert_eq!(BearerChallenge::of("Bearer"), Some(BearerChallenge::default()));
        assert_eq!(BearerChallenge::of("Bearer resource_metadata=nonsense"), Some(BearerChallenge::default()));
    }
}
