//! Outcome of a good token: the principal that sessions are bound to, and the details that handlers may ask for.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use mcpace_oauth::Secret;
use mcpace_serve::http::TokenError;
use mcpace_serve::{Identity, Principal};

use crate::claims::{Claims, Demands};
use crate::digest::Digest;
use crate::error::report_failure;
use crate::{Failure, Report, TokenRefusal};

/// A good token; the `details` of a [`Principal`] that one of this crate's verifiers found.
pub struct Access {
    /// The token itself, for handlers that pass it to an exchange.
    pub token: Secret,
    /// Claims of the token.
    pub grant: Arc<Grant>,
}

/// Claims of a token. `Debug` shows only a part, because claims are personal data.
#[derive(PartialEq)]
pub struct Grant {
    /// Identity of the caller, for sessions and limits: see [`Identity`].
    pub principal: Arc<str>,
    /// The client, of `client_id`, else `azp`, else `sub`; `unknown` where the token names none.
    pub client_id: String,
    /// Subject (`sub`) that the token stands for.
    pub subject: Option<String>,
    /// Scopes that the token grants.
    pub scopes: Arc<[String]>,
    /// Since 1970, as the token says.
    pub expires: Option<Duration>,
    /// When it is no longer taken: the same, and as far as clocks may differ.
    pub good_until: Option<Duration>,
    /// Whom it is meant for.
    pub audiences: Vec<String>,
    /// Issuer (`iss`), where the token names one.
    pub issuer: Option<String>,
    /// All claims, as JSON.
    pub claims: Box<str>,
}

/// Approximate memory of a grant beside its claims, in bytes.
const OVERHEAD: usize = 512;

impl Grant {
    /// Grant made of claims that `demands` accepted, and of their JSON text.
    pub(crate) fn from_claims(claims: &Claims, json: &str, token: &Digest, demands: &Demands) -> Self {
        let named = claims.client_id.as_ref().or(claims.azp.as_ref());
        let issuer = claims.iss.as_deref().filter(|_| demands.tells_issuers_apart());
        let bearer = token.short_name();
        let caller = match (claims.sub.as_deref(), named) {
            (Some(subject), _) => Identity::User { issuer, subject },
            (None, Some(id)) => Identity::Client { issuer, id },
            // Two callers without a name are not one.
            (None, None) => Identity::Token(&bearer),
        };
        Self {
            principal: caller.subject(),
            client_id: named.or(claims.sub.as_ref()).map_or_else(|| "unknown".to_owned(), Clone::clone),
            subject: claims.sub.clone(),
            scopes: claims.scope_list().into(),
            expires: claims.expiry_time(),
            good_until: demands.good_until(claims),
            audiences: claims.audience_list().to_vec(),
            issuer: claims.iss.clone(),
            claims: json.into(),
        }
    }

    /// Approximate memory of a cached grant, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        self.claims.len() * 2 + OVERHEAD
    }

    /// The caller that presents `token`.
    pub(crate) fn grant_principal(grant: &Arc<Self>, token: &str) -> Principal {
        let access = Access { token: Secret::new(token), grant: Arc::clone(grant) };
        Principal {
            subject: Arc::clone(&grant.principal),
            scopes: Arc::clone(&grant.scopes),
            details: Some(Arc::new(access)),
            expires: grant.good_until.and_then(|since| UNIX_EPOCH.checked_add(since)),
        }
    }
}

/// Turns a verifier's result into the server's answer. Failures that have not been reported yet are reported.
pub(crate) async fn server_answer(
    checked: impl Future<Output = Result<Arc<Grant>, Failure>>,
    report: Option<&Report>,
    token: &str,
) -> Result<Principal, TokenError> {
    match checked.await {
        Ok(grant) => Ok(Grant::grant_principal(&grant, token)),
        Err(failure) => {
            if !failure.is_told() {
                report_failure(report, &failure);
            }
            Err(failure.into())
        }
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("token", &self.token).field("grant", &self.grant).finish()
    }
}

/// Whether a text may be a token at all (`b64token`, RFC 6750 §2.1): what isn't costs nobody a request.
pub(crate) fn check_shape(token: &str) -> Result<(), TokenRefusal> {
    if token.len() > crate::MOST_TOKEN_BYTES {
        return Err(TokenRefusal::TooLong { limit: crate::MOST_TOKEN_BYTES });
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    let body = token.trim_end_matches('=');
    if body.is_empty() || !body.bytes().all(is_allowed) {
        return Err(TokenRefusal::Characters);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(json: &str, many: bool) -> Grant {
        Grant::from_claims(&Claims::read_claims(json).unwrap(), json, &Digest::of("t"), &of_issuers(many))
    }

    fn of_issuers(many: bool) -> Demands {
        let issuers = if many { vec![] } else { vec!["https://one".to_owned()] };
        Demands { issuers, leeway: Duration::from_secs(10), ..Demands::default() }
    }

    #[test]
    fn a_caller_is_one_for_as_long_as_his_token_is_taken() {
        let grant = Arc::new(grant(r#"{"sub":"ada","exp":1000}"#, false));
        assert_eq!(grant.expires, Some(Duration::from_secs(1000)), "what the token says is shown as it stands");
        let principal = Grant::grant_principal(&grant, "t");
        assert_eq!(principal.expires, UNIX_EPOCH.checked_add(Duration::from_secs(1010)));
    }

    #[test]
    fn callers_are_told_apart() {
        assert_eq!(&*grant(r#"{"sub":"ada","client_id":"app"}"#, false).principal, "ada");
        let (user, client) = (grant(r#"{"sub":"1"}"#, false), grant(r#"{"client_id":"1"}"#, false));
        assert_ne!(user.principal, client.principal, "a client that calls itself as a user is called");
        assert_eq!(client.principal, grant(r#"{"azp":"1"}"#, false).principal);
        let spaced = grant(r#"{"sub":"https://a b"}"#, true);
        assert_ne!(spaced.principal, grant(r#"{"iss":"https://a","sub":"b"}"#, true).principal);
        let named = grant(r#"{"sub":"ada","iss":"https://one"}"#, true);
        assert_ne!(named.principal, grant(r#"{"sub":"ada","iss":"https://two"}"#, true).principal);
        let nameless = Grant::from_claims(&Claims::default(), "{}", &Digest::of("other"), &of_issuers(false));
        assert_ne!(grant("{}", false).principal, nameless.principal);
        assert_eq!(nameless.client_id, "unknown");
    }

    #[test]
    fn neither_token_nor_claims_are_shown() {
        let grant = Arc::new(grant(r#"{"sub":"ada","email":"ada@example"}"#, false));
        let shown = format!("{:?}", Access { token: Secret::new("SECRET"), grant });
        assert!(!shown.contains("SECRET") && !shown.contains("example"), "{shown}");
    }

    #[test]
    fn what_no_token_may_hold_is_refused_unread() {
        for good in ["a", "a.b-c_d~e+f/g==", &"x".repeat(crate::MOST_TOKEN_BYTES)] {
            assert_eq!(check_shape(good), Ok(()), "{good}");
        }
        for bad in ["", "=", "a b", "a=b", "a\u{e9}", "a&token=b", "a\"", "a,b"] {
            assert_eq!(check_shape(bad), Err(TokenRefusal::Characters), "{bad}");
        }
        let long = "x".repeat(crate::MOST_TOKEN_BYTES + 1);
        assert!(matches!(check_shape(&long), Err(TokenRefusal::TooLong { .. })));
    }
}
