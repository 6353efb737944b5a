//! The authorization server of the `notion` profile: OAuth 2.1 as MCP asks for it.
//!
//! Metadata (RFC 9728, RFC 8414), dynamic registration (RFC 7591), the authorization code grant with
//! PKCE S256 (RFC 7636), `iss` (RFC 9207), `resource` (RFC 8707), refresh with rotation. Consent is
//! given by itself. No I/O and no clock in here: the time is a parameter, so tests move it.
//!
//! Deliberately absent: scopes of its own (asked ones are granted as asked), client-id metadata
//! documents (the target would have to fetch from the network), persistence.

mod client;
mod grant;
mod metadata;
mod resource;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bounded::Bounded;
use crate::secret::random_text;
use client::RegisteredClient;
use grant::{Code, Grant};
use resource::Resource;

/// How many clients, codes and tokens are remembered at most, each.
const CAPACITY: usize = 10_000;
/// RFC 6749 §4.1.2: a code is short-lived. Ours have no person to wait for.
const CODE_LIFETIME: Duration = Duration::from_secs(60);

/// Decisions of one authorization server.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) token_lifetime: Duration,
    pub(crate) refuses_consent: bool,
}

/// One authorization server and the tokens it gave out.
#[derive(Debug)]
pub(crate) struct AuthorizationServer {
    /// The issuer, without a slash at its end.
    origin: String,
    resource: Resource,
    policy: Policy,
    state: Mutex<OAuthState>,
}

#[derive(Debug)]
struct OAuthState {
    clients: Bounded<String, RegisteredClient>,
    codes: Bounded<String, Code>,
    access_tokens: Bounded<String, AccessToken>,
    refresh_tokens: Bounded<String, Grant>,
}

#[derive(Debug)]
struct AccessToken {
    /// There is no audience to keep: no token is given out for another resource than ours.
    expires: Instant,
}

/// Answer of an endpoint.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum EndpointAnswer {
    /// A JSON document.
    Document(Value),
    /// A registered client (201).
    Registered(Value),
    /// A token response; must not be stored by anybody on the way.
    Tokens(Value),
    /// Back to the client with a code.
    Consent(String),
    /// Back to the client with an error.
    Refusal(String),
    /// An OAuth error body (RFC 6749 §5.2) with 400, or 401 where the client's own authentication
    /// failed.
    Error(OAuthError),
}

/// An OAuth error: a code out of the RFCs' registry and a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OAuthError {
    pub(crate) code: &'static str,
    pub(crate) description: &'static str,
}

impl OAuthError {
    fn new(code: &'static str, description: &'static str) -> Self {
        Self { code, description }
    }
}

/// Why an access token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenRefused {
    Unknown,
    Expired,
}

impl AuthorizationServer {
    /// A server whose issuer is `origin` and which guards `origin` + `path`. `public_origins` are
    /// other origins under which the resource is known, for example that of a proxy in front.
    pub(crate) fn new(origin: &str, path: &str, public_origins: &[String], policy: Policy) -> Self {
        Self {
            origin: origin.to_owned(),
            resource: Resource::new(origin, path, public_origins),
            policy,
            state: Mutex::new(OAuthState {
                clients: Bounded::new(CAPACITY),
                codes: Bounded::new(CAPACITY),
                access_tokens: Bounded::new(CAPACITY),
                refresh_tokens: Bounded::new(CAPACITY),
            }),
        }
    }

    /// Checks a bearer token of a request to the resource.
    pub(crate) fn check_token(&self, token: &str, now: Instant) -> Result<(), TokenRefused> {
        let state = self.lock_state();
        let token = state.access_tokens.find(token).ok_or(TokenRefused::Unknown)?;
        if now >= token.expires { Err(TokenRefused::Expired) } else { Ok(()) }
    }

    /// `/register`.
    pub(crate) fn register_client(&self, body: &[u8]) -> EndpointAnswer {
        match RegisteredClient::from_registration(body) {
            Ok((id, client)) => {
                let registered = client.registration_response(&id);
                self.lock_state().clients.insert(id, client);
                EndpointAnswer::Registered(registered)
            }
            Err(error) => EndpointAnswer::Error(error),
        }
    }

    /// `/authorize`, with the query as sent.
    pub(crate) fn authorize_client(&self, query: &str, now: Instant) -> EndpointAnswer {
        let request = match grant::AuthorizationRequest::parse(query) {
            Ok(request) => request,
            Err(error) => return EndpointAnswer::Error(error),
        };
        let mut state = self.lock_state();
        let Some(client) = state.clients.find(&request.client_id) else {
            return EndpointAnswer::Error(OAuthError::new("invalid_client", "this client is not registered"));
        };
        if !client.may_redirect_to(&request.redirect_uri) {
            return EndpointAnswer::Error(OAuthError::new(
                "invalid_request",
                "this redirect_uri is not registered for the client",
            ));
        }
        // From here on the redirect is trusted, so errors go there too (RFC 6749 §4.1.2.1).
        let refused =
            request.refusal(&self.resource).or_else(|| self.policy.refuses_consent.then_some("access_denied"));
        if let Some(error) = refused {
            return EndpointAnswer::Refusal(request.redirect_url("error", error, &self.origin));
        }
        let code = random_text();
        let location = request.redirect_url("code", &code, &self.origin);
        state.codes.insert(code, Code::new(request, now + CODE_LIFETIME));
        EndpointAnswer::Consent(location)
    }

    /// `/token`, with the form as sent and the `Authorization` header, if any.
    pub(crate) fn token_response(&self, form: &[u8], authorization: Option<&str>, now: Instant) -> EndpointAnswer {
        let granted =
            grant::TokenRequest::parse(form, authorization).and_then(|request| self.redeem_grant(&request, now));
        match granted {
            Ok(grant) => EndpointAnswer::Tokens(self.issue_tokens(grant, now)),
            Err(error) => EndpointAnswer::Error(error),
        }
    }

    fn redeem_grant(&self, request: &grant::TokenRequest, now: Instant) -> Result<Grant, OAuthError> {
        let mut state = self.lock_state();
        let client = state
            .clients
            .find(&request.client_id)
            .ok_or(OAuthError::new("invalid_client", "this client is not registered"))?;
        client.check_secret(request.client_secret.as_deref())?;
        match &request.kind {
            grant::GrantKind::Code { code, .. } => {
                // A code is good for one try, also for a wrong one.
                let code = state.codes.remove(code).ok_or(grant::UNKNOWN_CODE)?;
                code.redeem_code(request, &self.resource, now)
            }
            grant::GrantKind::Refresh { token } => {
                let held = state.refresh_tokens.find(token).ok_or(grant::UNKNOWN_REFRESH_TOKEN)?;
                held.check_refresh(request, &self.resource)?;
                // Rotation (OAuth 2.1 §4.3.1): the next one comes with the new access token.
                state.refresh_tokens.remove(token).ok_or(grant::UNKNOWN_REFRESH_TOKEN)
            }
        }
    }

    fn issue_tokens(&self, grant: Grant, now: Instant) -> Value {
        let (access, refresh) = (random_text(), random_text());
        let mut state = self.lock_state();
        state.access_tokens.insert(access.clone(), AccessToken { expires: now + self.policy.token_lifetime });
        let mut tokens = serde_json::json!({
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": self.policy.token_lifetime.as_secs(),
            "refresh_token": refresh,
        });
        if let Some(scope) = &grant.scope {
            tokens["scope"] = scope.as_str().into();
        }
        state.refresh_tokens.insert(refresh, grant);
        tokens
    }

    fn lock_state(&self) -> MutexGuard<'_, OAuthState> {
        // Each change is one insertion or removal, so a poisoned lock is sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
