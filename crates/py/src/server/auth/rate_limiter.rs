//! `Limiter`: the counter of uses, as a Python object.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use mcpace_serve::guard::{self, MemoryLimiter, OnLimiterDown};
use pyo3::prelude::*;

use crate::problem::UsageProblem;

/// Counts uses for rate limits.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Limiter {
    inner: Arc<dyn guard::Limiter>,
    /// Nanoseconds, of a clock that stands still.
    frozen: Option<Arc<AtomicU64>>,
}

#[pymethods]
impl Limiter {
    /// One of this process; bounded in keys. `frozen`: its clock stands still until `advance`, for tests.
    #[staticmethod]
    #[pyo3(signature = (*, keys=100_000, frozen=false))]
    fn memory(keys: usize, frozen: bool) -> Self {
        if !frozen {
            return Self { inner: Arc::new(MemoryLimiter::new(keys)), frozen: None };
        }
        let clock = Arc::new(AtomicU64::new(0));
        let its = Arc::clone(&clock);
        let limiter = MemoryLimiter::with_clock(keys, move || Duration::from_nanos(its.load(Relaxed)));
        Self { inner: Arc::new(limiter), frozen: Some(clock) }
    }

    /// Lets a frozen clock go on.
    fn advance(&self, seconds: f64) -> PyResult<()> {
        let Some(clock) = &self.frozen else {
            return Err(UsageProblem::new_err("only a frozen clock can be moved: Limiter.memory(frozen=True)"));
        };
        let passed = u64::try_from(crate::seconds::parse_seconds("seconds", seconds)?.as_nanos()).unwrap_or(u64::MAX);
        clock.fetch_add(passed, Relaxed);
        Ok(())
    }
}

impl Limiter {
    /// Any limiter.
    pub(crate) fn from_limiter(inner: Arc<dyn guard::Limiter>) -> Self {
        Self { inner, frozen: None }
    }

    pub(crate) fn inner(&self) -> Arc<dyn guard::Limiter> {
        Arc::clone(&self.inner)
    }
}

/// Parses the setting `on_limiter_down`.
pub(crate) fn on_limiter_down(word: &str) -> PyResult<OnLimiterDown> {
    match word {
        "refuse" => Ok(OnLimiterDown::Refuse),
        "allow" => Ok(OnLimiterDown::Allow),
        other => Err(UsageProblem::new_err(format!("on_limiter_down takes refuse or allow, not {other:?}"))),
    }
}
