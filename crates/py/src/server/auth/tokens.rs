//! Verifiers of tokens that need no Python: `crates/auth`'s, as Python makes them and as `HttpOptions` takes them.
//!
//! Constraint: reading a request's token takes no interpreter lock. Its claims become a Python object only where a
//! function asks for it, as [`super::token_object`] makes it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mcpace_auth::{
    AllowAny, AuthError, ClientAuth, Demands, Failure, IntrospectionOptions, JwtOptions, Keys, Reach, Report, Secret,
    StaticToken, StaticTokens, TokenRefusal,
};
use mcpace_serve::http::{TokenError, TokenVerifier};
use pyo3::prelude::*;

use crate::attaching::with_interpreter;
use crate::log_line::{Level, log_line};
use crate::problem::{EnvironmentProblem, UsageProblem};
use crate::runtime::shared_runtime;
use crate::seconds::parse_seconds;
use crate::server::auth::token_object::principal_of;
use crate::server::threads::awaitable::{self, Given};

/// A verifier that needs no Python. Base of those that can be made.
#[pyclass(module = "mcpace._core", frozen, subclass)]
pub(crate) struct NativeVerifier {
    pub(crate) inner: Arc<dyn TokenVerifier>,
    pub(crate) report: Report,
}

#[pymethods]
impl NativeVerifier {
    /// Looks at a token: an awaitable of what it says, or of `None`. Raises where nobody can tell.
    fn verify<'py>(&self, py: Python<'py>, token: String) -> PyResult<Bound<'py, PyAny>> {
        let verifier = Arc::clone(&self.inner);
        awaitable::spawn_awaitable(py, shared_runtime()?.handle(), async move {
            let verified = verifier.verify(&token).await;
            Box::new(move |py: Python<'_>| match verified {
                Ok(principal) => Ok(principal_of(py, &principal)?.unwrap_or_else(|| py.None())),
                Err(TokenError::Invalid | TokenError::InsufficientScope) => Ok(py.None()),
                Err(error @ TokenError::Unavailable) => Err(EnvironmentProblem::new_err(error.to_string())),
            }) as Given
        })
    }
}

fn native_verifier(inner: Arc<dyn TokenVerifier>, report: Report) -> PyClassInitializer<NativeVerifier> {
    PyClassInitializer::from(NativeVerifier { inner, report })
}

/// Signed tokens.
#[pyclass(module = "mcpace._core", frozen, extends = NativeVerifier)]
pub(crate) struct JwtVerifier {}

#[pymethods]
impl JwtVerifier {
    #[new]
    #[pyo3(signature = (
        *, jwks_uri=None, public_key=None, jwks=None, secret=None, algorithms=vec![], issuers=vec![], audiences=vec![], leeway_s=10.0,
        needs_expiry=true, key_lifetime_s=3600.0, keys_kept_s=86400.0, key_interval_s=30.0, timeout_s=10.0, extra_root=None,
        without_tls=false,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        jwks_uri: Option<String>,
        public_key: Option<String>,
        jwks: Option<String>,
        secret: Option<String>,
        algorithms: Vec<String>,
        issuers: Vec<String>,
        audiences: Vec<String>,
        leeway_s: f64,
        needs_expiry: bool,
        key_lifetime_s: f64,
        keys_kept_s: f64,
        key_interval_s: f64,
        timeout_s: f64,
        extra_root: Option<String>,
        without_tls: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let keys = match (jwks_uri, public_key, jwks, secret) {
            (Some(url), None, None, None) => Keys::Url(url),
            (None, Some(pem), None, None) => Keys::Pem(pem),
            (None, None, Some(set), None) => Keys::Set(set),
            (None, None, None, Some(secret)) => Keys::Shared(Secret::new(secret)),
            _ => return Err(UsageProblem::new_err("keys come from one place: jwks_uri, public_key, jwks or secret")),
        };
        let report = failure_report();
        let verifier = mcpace_auth::JwtVerifier::new(JwtOptions {
            algorithms: algorithms
                .iter()
                .map(|name| name.parse())
                .collect::<Result<_, _>>()
                .map_err(unusable_setting)?,
            demands: Demands { issuers, audiences, leeway: parse_seconds("leeway_s", leeway_s)?, needs_expiry },
            key_lifetime: parse_seconds("key_lifetime_s", key_lifetime_s)?,
            keys_kept: parse_seconds("keys_kept_s", keys_kept_s)?,
            key_interval: parse_seconds("key_interval_s", key_interval_s)?,
            reach: provider_reach(timeout_s, extra_root, without_tls)?,
            report: Some(Arc::clone(&report)),
            ..JwtOptions::new(keys)
        });
        Ok(native_verifier(Arc::new(verifier.map_err(unusable_setting)?), report).add_subclass(Self {}))
    }
}

/// Tokens that their issuer is asked about.
#[pyclass(module = "mcpace._core", frozen, extends = NativeVerifier)]
pub(crate) struct IntrospectionVerifier {}

#[pymethods]
impl IntrospectionVerifier {
    #[new]
    #[pyo3(signature = (
        *, url, client_id, client_secret, client_auth="client_secret_basic", audiences=vec![], issuers=vec![], kept_s=60.0,
        grace_s=0.0, refusals_kept_s=5.0, most_kept=10_000, timeout_s=10.0, extra_root=None, without_tls=false,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        url: String,
        client_id: String,
        client_secret: String,
        client_auth: &str,
        audiences: Vec<String>,
        issuers: Vec<String>,
        kept_s: f64,
        grace_s: f64,
        refusals_kept_s: f64,
        most_kept: usize,
        timeout_s: f64,
        extra_root: Option<String>,
        without_tls: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let client_auth = match client_auth {
            "client_secret_basic" => ClientAuth::Basic,
            "client_secret_post" => ClientAuth::Post,
            other => {
                let said = format!("client_auth takes client_secret_basic or client_secret_post, not {other:?}");
                return Err(UsageProblem::new_err(said));
            }
        };
        let at_least_one = || UsageProblem::new_err("most_kept takes a number from 1 on; to keep nothing, kept_s=0");
        let report = failure_report();
        let verifier = mcpace_auth::IntrospectionVerifier::new(IntrospectionOptions {
            client_auth,
            demands: Demands { issuers, audiences, ..Demands::default() },
            kept: parse_seconds("kept_s", kept_s)?,
            grace: parse_seconds("grace_s", grace_s)?,
            refusals_kept: parse_seconds("refusals_kept_s", refusals_kept_s)?,
            most_kept: most_kept.try_into().map_err(|_| at_least_one())?,
            reach: provider_reach(timeout_s, extra_root, without_tls)?,
            report: Some(Arc::clone(&report)),
            ..IntrospectionOptions::new(url, client_id, Secret::new(client_secret))
        });
        Ok(native_verifier(Arc::new(verifier.map_err(unusable_setting)?), report).add_subclass(Self {}))
    }
}

/// Tokens for development: a list, or any at all.
#[pyclass(module = "mcpace._core", frozen, extends = NativeVerifier)]
pub(crate) struct StaticVerifier {}

/// Token, client, subject, scopes, end (since 1970), audiences, claims as JSON.
type TokenTuple = (String, String, Option<String>, Vec<String>, Option<f64>, Vec<String>, String);

#[pymethods]
impl StaticVerifier {
    #[new]
    #[pyo3(signature = (tokens=None, *, anyone=None, beyond_loopback=false))]
    fn new(
        tokens: Option<Vec<TokenTuple>>,
        anyone: Option<(String, Vec<String>)>,
        beyond_loopback: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let report = failure_report();
        let inner: Arc<dyn TokenVerifier> = match (tokens, anyone) {
            (Some(tokens), None) => {
                let known = tokens.into_iter().map(static_token).collect::<PyResult<Vec<_>>>()?;
                let tokens = StaticTokens::new(known).beyond_loopback(beyond_loopback).report(Arc::clone(&report));
                Arc::new(tokens)
            }
            (None, Some((client, scopes))) => Arc::new(AllowAny::new(client, scopes).beyond_loopback(beyond_loopback)),
            _ => return Err(UsageProblem::new_err("StaticVerifier takes tokens, or anyone")),
        };
        Ok(native_verifier(inner, report).add_subclass(Self {}))
    }
}

fn static_token(
    (token, client_id, subject, scopes, end, audiences, claims): TokenTuple,
) -> PyResult<(String, StaticToken)> {
    let expires = end.map(|end| parse_seconds("expires_at", end)).transpose()?;
    Ok((token, StaticToken { client_id, subject, scopes, expires, audiences, claims }))
}

fn provider_reach(timeout_s: f64, extra_root: Option<String>, without_tls: bool) -> PyResult<Reach> {
    let time = parse_seconds("timeout_s", timeout_s)?;
    Ok(Reach { time, extra_root, without_tls, ..Reach::default() })
}

fn unusable_setting(error: AuthError) -> PyErr {
    UsageProblem::new_err(error.to_string())
}

/// Failures for Python's log: one line a second of a kind, since anybody can make them.
fn failure_report() -> Report {
    let spoken = Mutex::new([Spoken::default(); 2]);
    Arc::new(move |failure: &Failure| {
        let is_warning = match failure {
            Failure::Unavailable(_) => true,
            // These refusals point to a wrong configuration; all others are ordinary faults of callers.
            Failure::Refused(refusal) => matches!(
                refusal,
                TokenRefusal::Algorithm(_)
                    | TokenRefusal::Audience
                    | TokenRefusal::Issuer
                    | TokenRefusal::Critical
                    | TokenRefusal::Type
                    | TokenRefusal::KeyBound
            ),
        };
        let unsaid = {
            let mut spoken = spoken.lock().unwrap_or_else(PoisonError::into_inner);
            spoken[usize::from(is_warning)].may_speak()
        };
        let Some(unsaid) = unsaid else { return };
        let rest = if unsaid == 0 { String::new() } else { format!(" ({unsaid} more since the last such line)") };
        let line = format!("{failure}{rest}");
        // Where the interpreter is ending nobody reads logs.
        let level = if is_warning { Level::Warning } else { Level::Info };
        let _ = with_interpreter(|py| {
            log_line(py, "mcpace.server.tokens", level, &line).unwrap_or_else(|error| error.print(py));
        });
    })
}

#[derive(Clone, Copy, Default)]
struct Spoken {
    last: Option<Instant>,
    unsaid: u64,
}

impl Spoken {
    /// How many were not told before this one; `None` where this one isn't either.
    fn may_speak(&mut self) -> Option<u64> {
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) < Duration::from_secs(1)) {
            self.unsaid += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.unsaid))
    }
}
