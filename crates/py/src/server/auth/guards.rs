//! `Guard`, `RateLimit`: what must hold before a function of Python's is used, as Python puts it together.
//!
//! Constraint: scopes, limits and bounds are checked by the runtime and run no Python. An exception of a permission
//! function, unless it is `Denied`, is only logged, and the request is refused.

use std::sync::Arc;
use std::time::Duration;

use mcpace_serve::guard::{self, Algorithm, By};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::problem::UsageProblem;
use crate::seconds::parse_seconds;
use crate::server::auth::permission_callback::PermissionFunction;
use crate::server::threads::function_host::FunctionHost;

/// How long a permission may take, where nobody says otherwise.
const PATIENCE_S: f64 = 10.0;

/// All that guards one tool, resource or prompt.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Guard {
    scopes: Vec<String>,
    permissions: Vec<PermissionFunction>,
    limits: Vec<Limit>,
    max_result_bytes: Option<usize>,
    timeout: Option<Duration>,
    patience: Duration,
}

/// How often something may be used.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct RateLimit {
    limit: Limit,
}

#[derive(Clone)]
struct Limit {
    rule: guard::RateLimit,
    /// Function that returns the key under which uses are counted together.
    key: Option<PermissionFunction>,
}

#[pymethods]
impl Guard {
    #[new]
    #[pyo3(signature = (*, scopes=Vec::new(), permissions=Vec::new(), limits=Vec::new(), max_result_bytes=None,
                        timeout_s=None, permission_timeout_s=PATIENCE_S))]
    fn new(
        py: Python<'_>,
        scopes: Vec<String>,
        permissions: Vec<Bound<'_, PyAny>>,
        limits: Vec<Py<RateLimit>>,
        max_result_bytes: Option<usize>,
        timeout_s: Option<f64>,
        permission_timeout_s: f64,
    ) -> PyResult<Self> {
        Ok(Self {
            scopes,
            permissions: permissions.iter().map(PermissionFunction::for_permission).collect::<PyResult<_>>()?,
            limits: limits.iter().map(|limit| limit.bind(py).get().limit.clone()).collect(),
            max_result_bytes,
            timeout: timeout_s.map(|limit| parse_seconds("timeout_s", limit)).transpose()?,
            patience: parse_seconds("permission_timeout_s", permission_timeout_s)?,
        })
    }
}

#[pymethods]
impl RateLimit {
    #[new]
    #[pyo3(signature = (name, calls, per_s, *, by=None, algorithm="sliding-window", burst=None))]
    fn new(
        name: String,
        calls: u32,
        per_s: f64,
        by: Option<&Bound<'_, PyAny>>,
        algorithm: &str,
        burst: Option<u32>,
    ) -> PyResult<Self> {
        let algorithm = match algorithm {
            "fixed-window" => Algorithm::FixedWindow,
            "sliding-window" => Algorithm::SlidingWindow,
            "token-bucket" => Algorithm::TokenBucket { burst: burst.unwrap_or(calls) },
            other => return Err(UsageProblem::new_err(format!("there is no algorithm {other:?}"))),
        };
        let word = by.map(|by| by.cast::<PyString>().map(|word| word.to_string()));
        let (by, key) = match (word, by) {
            (None, _) | (_, None) => (By::Principal, None),
            (Some(Ok(word)), _) => match word.as_str() {
                "principal" => (By::Principal, None),
                "session" => (By::Session, None),
                "everyone" => (By::Everyone, None),
                other => return Err(UsageProblem::new_err(format!("nobody is counted by {other:?}"))),
            },
            // Replaced once it is known where functions run.
            (Some(Err(_)), Some(function)) => (By::Everyone, Some(PermissionFunction::for_key(function)?)),
        };
        let rule = guard::RateLimit::new(name, calls, parse_seconds("per_s", per_s)?).algorithm(algorithm).by(by);
        Ok(Self { limit: Limit { rule, key } })
    }
}

impl Guard {
    /// For the runtime; its functions run where those of `shared` do.
    pub(crate) fn resolve_guard(&self, py: Python<'_>, shared: &Arc<FunctionHost>) -> PyResult<guard::Guard> {
        let mut resolved = guard::Guard {
            scopes: self.scopes.iter().map(|scope| scope.as_str().into()).collect(),
            permissions: Vec::new(),
            limits: Vec::new(),
            max_result_bytes: self.max_result_bytes,
            timeout: self.timeout,
        };
        for asking in &self.permissions {
            resolved.permissions.push(Arc::new(asking.bind_to(py, shared, self.patience)?));
        }
        for Limit { rule, key } in &self.limits {
            let by = match key {
                Some(key) => By::Key(Arc::new(key.bind_to(py, shared, self.patience)?)),
                None => rule.by.clone(),
            };
            resolved.limits.push(rule.clone().by(by));
        }
        Ok(resolved)
    }
}
