//! Whose token it is, as a coroutine of Python's says.
//!
//! Constraint: asked on the event loop, within a limit; a verifier that fails is no verdict (503), and is logged.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use mcpace_serve::http::{TokenError, TokenVerifier};
use mcpace_serve::{Identity, Principal};
use pyo3::intern;
use pyo3::prelude::*;
use tokio::sync::oneshot;

use super::context::Verified;
use super::failing;
use super::handler::Callable;
use super::job::End;
use super::shared::Shared;
use super::waiting::Target;
use crate::problem::UsageProblem;

/// See the module.
pub(super) struct PythonVerifier {
    target: Target,
}

impl PythonVerifier {
    pub(super) fn new(verify: Py<PyAny>, shared: Arc<Shared>, limit: Duration) -> Self {
        let callable = Arc::new(Callable::verifier(verify));
        Self { target: Target { callable, shared, pace: None, limit: Some(limit) } }
    }
}

impl TokenVerifier for PythonVerifier {
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Principal, TokenError>> + Send + 'a>> {
        Box::pin(async move {
            let (sender, receiver) = oneshot::channel();
            let token = Bytes::copy_from_slice(token.as_bytes());
            let guard = self.target.hand_over(token, None, End::token(sender));
            self.target.wait(receiver, guard).await.unwrap_or(Err(TokenError::Unavailable))
        })
    }
}

/// What a verifier returned or raised, as a verdict.
pub(super) fn verdict(py: Python<'_>, returned: PyResult<Bound<'_, PyAny>>) -> Result<Principal, TokenError> {
    returned.and_then(|token| principal(&token)).unwrap_or_else(|error| {
        failing::log(py, "the token verifier", &error);
        Err(TokenError::Unavailable)
    })
}

/// On whose behalf somebody of this process asks: a token as a verifier would have returned it; `None` for nobody known.
pub(crate) fn on_behalf(token: &Bound<'_, PyAny>) -> PyResult<Option<Principal>> {
    if token.is_none() {
        return Ok(None);
    }
    match principal(token)? {
        Ok(principal) => Ok(Some(principal)),
        Err(_) => Err(UsageProblem::new_err("the principal's token has expired")),
    }
}

/// `None` is no token of ours. Else an object with `client_id`, and as far as known `subject`, `scopes`, `expires_at`.
fn principal(token: &Bound<'_, PyAny>) -> PyResult<Result<Principal, TokenError>> {
    let py = token.py();
    if token.is_none() {
        return Ok(Err(TokenError::Invalid));
    }
    let optional = |name| token.getattr_opt(name).map(|found| found.filter(|value| !value.is_none()));
    let mut expires = None;
    if let Some(expires_at) = optional(intern!(py, "expires_at"))? {
        // A calendar before 1970 is wrong, and can't tell what has expired: everything has.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(f64::INFINITY, |now| now.as_secs_f64());
        let expires_at: f64 = expires_at.extract()?;
        if expires_at < now {
            return Ok(Err(TokenError::Invalid));
        }
        // One that is no time has no end.
        expires = Duration::try_from_secs_f64(expires_at).ok().and_then(|since| UNIX_EPOCH.checked_add(since));
    }
    let subject = match optional(intern!(py, "subject"))? {
        Some(subject) => Identity::User { issuer: None, subject: &subject.extract::<String>()? }.subject(),
        None => {
            let id: String = token.getattr(intern!(py, "client_id"))?.extract()?;
            Identity::Client { issuer: None, id: &id }.subject()
        }
    };
    let scopes: Vec<String> = match optional(intern!(py, "scopes"))? {
        Some(scopes) => scopes.extract()?,
        None => Vec::new(),
    };
    let details = Arc::new(Verified(token.clone().unbind()));
    Ok(Ok(Principal { subject, scopes: scopes.into(), details: Some(details), expires }))
}
