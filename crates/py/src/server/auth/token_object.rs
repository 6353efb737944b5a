//! Token objects: an authenticated caller as Python functions see it.

use mcpace_auth::Access;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// Makes an access token of keyword arguments.
static ACCESS_TOKEN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Return value of a Python token verifier, kept in the principal's details.
pub(crate) struct Verified(pub(crate) Py<PyAny>);

/// The token verifier's knowledge of a caller, as functions see it; `None` without any.
pub(crate) fn principal_of(py: Python<'_>, principal: &mcpace_serve::Principal) -> PyResult<Option<Py<PyAny>>> {
    let Some(details) = &principal.details else { return Ok(None) };
    match details.downcast_ref::<Verified>() {
        Some(verified) => Ok(Some(verified.0.clone_ref(py))),
        None => details.downcast_ref().map(|access| token_object(py, access)).transpose(),
    }
}

/// Sets the factory of the token objects that functions see. Its keywords are `token`, `client_id`, `scopes`, `expires_at`,
/// `resource`, `subject`, `claims` (JSON), `caller` and `good_until`. The first call of a process counts.
#[pyfunction]
pub(crate) fn set_access_token(py: Python<'_>, make: Py<PyAny>) {
    // A second call changes nothing.
    let _ = ACCESS_TOKEN.set(py, make);
}

/// Makes the token object that functions see. A failure is an error and never `None`, because functions read `None` as a local caller
/// without a token.
fn token_object(py: Python<'_>, access: &Access) -> PyResult<Py<PyAny>> {
    let Access { token, grant } = access;
    let keywords = PyDict::new(py);
    keywords.set_item(intern!(py, "token"), token.reveal())?;
    keywords.set_item(intern!(py, "client_id"), &grant.client_id)?;
    keywords.set_item(intern!(py, "scopes"), &*grant.scopes)?;
    keywords.set_item(intern!(py, "expires_at"), grant.expires.map(|end| end.as_secs()))?;
    let resource = match grant.audiences.as_slice() {
        [only] => Some(only),
        _ => None,
    };
    keywords.set_item(intern!(py, "resource"), resource)?;
    keywords.set_item(intern!(py, "subject"), grant.subject.as_deref())?;
    keywords.set_item(intern!(py, "claims"), &*grant.claims)?;
    // `token_verifier` reads these two when a verifier of the author returns the object.
    keywords.set_item(intern!(py, "caller"), &*grant.principal)?;
    keywords.set_item(intern!(py, "good_until"), grant.good_until.map(|end| end.as_secs_f64()))?;
    let make = ACCESS_TOKEN
        .get_or_try_init(py, || Ok::<_, PyErr>(py.import("types")?.getattr("SimpleNamespace")?.unbind()))?;
    make.call(py, (), Some(&keywords))
}
