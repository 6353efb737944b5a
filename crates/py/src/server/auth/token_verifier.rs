//! Verifies tokens with a Python coroutine.
//!
//! Constraints: the coroutine runs on the event loop, within a time limit. A verifier that fails gives no verdict (status 503) and is
//! logged. A verifier that names nobody is logged, too: all callers without a name would share their sessions and limits.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use mcpace_serve::http::{TokenError, TokenVerifier};
use mcpace_serve::{HandlerError, Identity, Principal};
use pyo3::intern;
use pyo3::prelude::*;
use tokio::sync::oneshot;

use crate::problem::UsageProblem;
use crate::server::auth::token_object::Verified;
use crate::server::call::exceptions;
use crate::server::call::handler::Callable;
use crate::server::call::job::{CallCompletion, InternalRecipient};
use crate::server::call::submission::CallTarget;
use crate::server::threads::function_host::FunctionHost;

/// Token verifier that is a Python coroutine.
pub(crate) struct PythonVerifier {
    target: CallTarget,
}

impl PythonVerifier {
    pub(crate) fn new(verify: Py<PyAny>, shared: Arc<FunctionHost>, limit: Duration) -> Self {
        let callable = Arc::new(Callable::token_verifier(verify));
        Self { target: CallTarget { callable, shared, inline_policy: None, limit: Some(limit) } }
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
            let guard = self.target.submit_call(token, None, CallCompletion::for_internal(VerdictRecipient(sender)), 0);
            self.target.wait_outcome(receiver, guard).await.unwrap_or(Err(TokenError::Unavailable))
        })
    }
}

struct VerdictRecipient(oneshot::Sender<Result<Principal, TokenError>>);

impl InternalRecipient for VerdictRecipient {
    fn is_abandoned(&self) -> bool {
        self.0.is_closed()
    }

    fn deliver(self: Box<Self>, py: Python<'_>, returned: PyResult<Bound<'_, PyAny>>) {
        let _ = self.0.send(token_verdict(py, returned));
    }

    fn fail_unsent(self: Box<Self>, _: HandlerError) {
        let _ = self.0.send(Err(TokenError::Unavailable));
    }
}

/// Turns a verifier's return value or exception into a verdict.
fn token_verdict(py: Python<'_>, returned: PyResult<Bound<'_, PyAny>>) -> Result<Principal, TokenError> {
    let principal = returned.and_then(|token| match read_token(&token)? {
        TokenMeaning::Nobody => Err(UsageProblem::new_err(NOBODY)),
        TokenMeaning::Principal(principal) => Ok(Ok(principal)),
        TokenMeaning::Invalid => Ok(Err(TokenError::Invalid)),
    });
    principal.unwrap_or_else(|error| {
        exceptions::log_failure(py, "the token verifier", &error);
        Err(TokenError::Unavailable)
    })
}

/// Principal of a call within this process. `token` is an object as a verifier would return it. The result is `None` without a token,
/// and where the token names nobody.
pub(crate) fn on_behalf(token: &Bound<'_, PyAny>) -> PyResult<Option<Principal>> {
    if token.is_none() {
        return Ok(None);
    }
    match read_token(token)? {
        TokenMeaning::Principal(principal) => Ok(Some(principal)),
        TokenMeaning::Nobody => Ok(None),
        TokenMeaning::Invalid => Err(UsageProblem::new_err("the principal's token has expired")),
    }
}

const NOBODY: &str = "what the verifier returned names nobody: give it a subject or a client_id";

/// Meaning of the object that a verifier returned.
enum TokenMeaning {
    Principal(Principal),
    /// The token is valid and names neither a subject nor a client.
    Nobody,
    /// The token is invalid or has expired.
    Invalid,
}

/// Reads a verifier's return value. `None` is an invalid token. Any other object has `client_id` and may have `subject`, `scopes` and
/// `expires_at`. Our own verifiers add `__mcpace_verified__`: the caller's name, which is unique over several issuers, and the end of
/// the token's validity, which allows for different clocks.
fn read_token(token: &Bound<'_, PyAny>) -> PyResult<TokenMeaning> {
    let py = token.py();
    if token.is_none() {
        return Ok(TokenMeaning::Invalid);
    }
    let optional = |name| token.getattr_opt(name).map(|found| found.filter(|value| !value.is_none()));
    let (caller, good_until) = match optional(intern!(py, "__mcpace_verified__"))? {
        Some(verified) => verified.extract::<(Option<String>, Option<f64>)>()?,
        None => (None, None),
    };
    let says = || optional(intern!(py, "expires_at"))?.map(|end| end.extract::<f64>()).transpose();
    let mut expires = None;
    if let Some(expires_at) = good_until.map_or_else(says, |end| Ok(Some(end)))? {
        // A clock before 1970 is wrong and cannot decide: every token counts as expired.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(f64::INFINITY, |now| now.as_secs_f64());
        if expires_at < now {
            return Ok(TokenMeaning::Invalid);
        }
        // A value that is no point in time sets no end.
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
            None => return Ok(TokenMeaning::Nobody),
        },
    };
    let scopes: Vec<String> = match optional(intern!(py, "scopes"))? {
        Some(scopes) => scopes.extract()?,
        None => Vec::new(),
    };
    let details = Arc::new(Verified(token.clone().unbind()));
    Ok(TokenMeaning::Principal(Principal { subject, scopes: scopes.into(), details: Some(details), expires }))
}
