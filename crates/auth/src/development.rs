//! Tokens for development: a list, or any at all. Both say so when a server begins with them, and serve this machine only
//! unless told otherwise.

use std::collections::HashMap;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcpace_serve::http::{Development, TokenError, TokenVerifier};
use mcpace_serve::{Identity, Principal};

use crate::access::{Grant, check_shape};
use crate::digest::Digest;
use crate::error::report_failure;
use crate::{Clock, Failure, Report, SystemClock, TokenRefusal};

/// Identity and scopes of a listed token.
#[derive(Clone, Debug, Default)]
pub struct StaticToken {
    /// The client.
    pub client_id: String,
    /// Subject that the token stands for.
    pub subject: Option<String>,
    /// Scopes that the token grants.
    pub scopes: Vec<String>,
    /// Since 1970.
    pub expires: Option<Duration>,
    /// Whom it is meant for.
    pub audiences: Vec<String>,
    /// All of it, as JSON; empty: `{}`.
    pub claims: String,
}

/// A list of tokens. They lie in the program's text: for development and tests.
pub struct StaticTokens {
    known: HashMap<Digest, Arc<Grant>>,
    clock: Arc<dyn Clock>,
    report: Option<Report>,
    beyond_loopback: bool,
}

impl StaticTokens {
    /// Tokens, and what each stands for.
    #[must_use]
    pub fn new(tokens: impl IntoIterator<Item = (String, StaticToken)>) -> Self {
        let known = tokens.into_iter().map(|(token, known)| (Digest::of(&token), Arc::new(known.into())));
        Self { known: known.collect(), clock: Arc::new(SystemClock::default()), report: None, beyond_loopback: false }
    }

    /// Also serves other machines.
    #[must_use]
    pub fn beyond_loopback(mut self, allowed: bool) -> Self {
        self.beyond_loopback = allowed;
        self
    }

    /// Sets the function that receives refusals.
    #[must_use]
    pub fn report(mut self, report: Report) -> Self {
        self.report = Some(report);
        self
    }

    /// Tells the time in the place of the system's clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    fn check_token(&self, token: &str) -> Result<&Arc<Grant>, TokenRefusal> {
        check_shape(token)?;
        let grant = self.known.get(&Digest::of(token)).ok_or(TokenRefusal::Unknown)?;
        match grant.expires {
            Some(end) if self.clock.now().wall >= end => Err(TokenRefusal::Expired),
            _ => Ok(grant),
        }
    }
}

impl From<StaticToken> for Grant {
    fn from(known: StaticToken) -> Self {
        let caller = match &known.subject {
            Some(subject) => Identity::User { issuer: None, subject },
            None => Identity::Client { issuer: None, id: &known.client_id },
        };
        Self {
            principal: caller.subject(),
            client_id: known.client_id,
            subject: known.subject,
            scopes: known.scopes.into(),
            expires: known.expires,
            good_until: known.expires,
            audiences: known.audiences,
            issuer: None,
            claims: if known.claims.is_empty() { "{}".into() } else { known.claims.into() },
        }
    }
}

impl TokenVerifier for StaticTokens {
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Principal, TokenError>> + Send + 'a>> {
        let checked = match self.check_token(token) {
            Ok(grant) => Ok(Grant::grant_principal(grant, token)),
            Err(refusal) => {
                let failure = Failure::Refused(refusal);
                report_failure(self.report.as_ref(), &failure);
                Err(failure.into())
            }
        };
        Box::pin(ready(checked))
    }

    fn development(&self) -> Option<Development> {
        Some(Development {
            warning: "tokens are a list in the program's text: for development only",
            beyond_loopback: self.beyond_loopback,
        })
    }
}

/// Takes every token, as one and the same caller.
pub struct AllowAny {
    grant: Arc<Grant>,
    beyond_loopback: bool,
}

impl AllowAny {
    /// As whom, and with which scopes.
    #[must_use]
    pub fn new(client_id: impl Into<String>, scopes: impl IntoIterator<Item = String>) -> Self {
        let anybody =
            StaticToken { client_id: client_id.into(), scopes: scopes.into_iter().collect(), ..StaticToken::default() };
        Self { grant: Arc::new(anybody.into()), beyond_loopback: false }
    }

    /// Also serves other machines.
    #[must_use]
    pub fn beyond_loopback(mut self, allowed: bool) -> Self {
        self.beyond_loopback = allowed;
        self
    }
}

impl TokenVerifier for AllowAny {
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Principal, TokenError>> + Send + 'a>> {
        let checked = check_shape(token).map(|()| Grant::grant_principal(&self.grant, token));
        Box::pin(ready(checked.map_err(|_| TokenError::Invalid)))
    }

    fn development(&self) -> Option<Development> {
        Some(Development {
            warning: "every token is taken, whoever sends it: for development only",
            beyond_loopback: self.beyond_loopback,
        })
    }
}
