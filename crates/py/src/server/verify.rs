//! Whose token it is, as a coroutine of Python's says.
//!
//! Constraints: asked on the event loop, within a limit; a verifier that fails is no verdict (503), and is logged. So is one that
//! names nobody: callers without a name would all be one, with each other's sessions and limits.

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
            let guard = self.target.hand_over(token, None, End::token(sender), 0);
            self.target.wait(receiver, guard).await.unwrap_or(Err(TokenError::Unavailable))
        })
    }
}

/// What a verifier returned or raised, as a verdict.
pub(super) fn verdict(py: Python<'_>, returned: PyResult<Bound<'_, PyAny>>) -> Result<Principal, TokenError> {
    let said = returned.and_then(|token| match told(&token)? {
        Told::Nobody => Err(UsageProblem::new_err(NOBODY)),
        Told::Principal(principal) => Ok(Ok(principal)),
        Told::Invalid => Ok(Err(TokenError::Invalid)),
    });
    said.unwrap_or_else(|error| {
        failing::log(py, "the token verifier", &error);
        Err(TokenError::Unavailable)
    })
}

/// On whose behalf somebody of this process asks: a token as a verifier would have returned it; `None` for nobody known, and
/// where the token names nobody.
pub(crate) fn on_behalf(token: &Bound<'_, PyAny>) -> PyResult<Option<Principal>> {
    if token.is_none() {
        return Ok(None);
    }
    match told(token)? {
        Told::Principal(principal) => Ok(Some(principal)),
        Told::Nobody => Ok(None),
        Told::Invalid => Err(UsageProblem::new_err("the principal's token has expired")),
    }
}

const NOBODY: &str = "what the verifier returned names nobody: give it a subject or a client_id";

/// What a verifier's object says.
enum Told {
    Principal(Principal),
    /// The token is good, and of nobody who could be told from others.
    Nobody,
    /// It is not good, or not any more.
    Invalid,
}

/// `None` is no token of ours. Else an object with `client_id`, and as far as known `subject`, `scopes`, `expires_at`. What a
/// verifier of ours found is in `__mcpace_verified__`, as far as it still holds: the caller's name, since of several issuers' subjects
/// that alone tells whose one is, and until when the token is taken, since clocks may differ.
fn told(token: &Bound<'_, PyAny>) -> PyResult<Told> {
    let py = token.py();
    if token.is_none() {
        return Ok(Told::Invalid);
    }
    let optional = |name| token.getattr_opt(name).map(|found| found.filter(|value| !value.is_none()));
    let (caller, good_until) = match optional(intern!(py, "__mcpace_verified__"))? {
        Some(verified) => verified.extract::<(Option<String>, Option<f64>)>()?,
        None => (None, None),
    };
    let says = || optional(intern!(py, "expires_at"))?.map(|end| end.extract::<f64>()).transpose();
    let mut expires = None;
    if let Some(expires_at) = good_until.map_or_else(says, |end| Ok(Some(end)))? {
        // A calendar before 1970 is wrong, and can't tell what has expired: everything has.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(f64::INFINITY, |now| now.as_secs_f64());
        if expires_at < now {
            return Ok(Told::Invalid);
        }
        // One that is no time has no end.
        expires = Duration::try_from_secs_f64(expires_at).ok().and_then(|since| UNIX_EPOCH.checked_add(since));
    }
    let text = |name| -> PyResult<Option<String>> {
        let text: Option<String> = optional(name)?.map(|text| text.extract()).transpose()?;
        Ok(text.filter(|text| !text.is_empty()))
    };
    let subject = match (caller, text(intern!(py, "subject"))?) {
        (Some(caller), _) => caller.into(),
        (None, Some(subject)) => Identity::User { issuer: None, subject: &subject }.subject(),
        (None, None) => match text(intern!(py, "client_id"))? {
            Some(id) => Identity::Client { issuer: None, id: &id }.subject(),
            None => return Ok(Told::Nobody),
        },
    };
    let scopes: Vec<String> = match optional(intern!(py, "scopes"))? {
        Some(scopes) => scopes.extract()?,
        None => Vec::new(),
    };
    let details = Arc::new(Verified(token.clone().unbind()));
    Ok(Told::Principal(Principal { subject, scopes: scopes.into(), details: Some(details), expires }))
}
