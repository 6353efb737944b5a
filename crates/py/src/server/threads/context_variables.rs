//! Context variables (`contextvars`) of the code that serves, which each call of a function gets a copy of.

use std::sync::OnceLock;

use pyo3::intern;
use pyo3::prelude::*;

/// The `contextvars.Context` that was current when serving began.
#[derive(Default)]
pub(crate) struct ContextVariables(OnceLock<Py<PyAny>>);

impl ContextVariables {
    /// Captures the caller's variables. The first server of the process sets them.
    pub(crate) fn capture_current(&self, py: Python<'_>) -> PyResult<()> {
        let current = py.import("contextvars")?.call_method0("copy_context")?;
        let _ = self.0.set(current.unbind());
        Ok(())
    }

    pub(crate) fn is_captured(&self) -> bool {
        self.0.get().is_some()
    }

    /// Copies the variables for one call, so that its changes stay its own.
    pub(crate) fn copy_for_call<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0.get() {
            Some(base) => base.bind(py).call_method0(intern!(py, "copy")),
            None => py.import("contextvars")?.call_method0("copy_context"),
        }
    }
}
