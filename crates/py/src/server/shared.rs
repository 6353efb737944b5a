//! What all functions of one server share: threads, the event loop, and the context variables of whoever serves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use pyo3::intern;
use pyo3::prelude::*;

use super::ending;
use super::looping::Looping;
use super::pool::Pool;

/// See the module.
pub(super) struct Shared {
    pub(super) pool: Pool,
    /// The `contextvars.Context` that was current where serving began.
    base: OnceLock<Py<PyAny>>,
    looping: OnceLock<Arc<Looping>>,
    wants_loop: AtomicBool,
}

impl Shared {
    pub(super) fn new(threads: usize) -> Self {
        Self { pool: Pool::new(threads), base: OnceLock::new(), looping: OnceLock::new(), wants_loop: false.into() }
    }

    /// Serving begins here: the caller's context variables are those that functions see.
    pub(super) fn begin(&self, py: Python<'_>) -> PyResult<()> {
        // Calls start threads, which have to be gone before the interpreter is.
        ending::at_exit(py)?;
        let current = py.import("contextvars")?.call_method0("copy_context")?;
        // Whoever served first has set it.
        let _ = self.base.set(current.unbind());
        if self.wants_loop.load(Ordering::Relaxed) {
            self.start_loop(py)?;
        }
        Ok(())
    }

    /// Something was registered that runs on the event loop.
    pub(super) fn want_loop(&self, py: Python<'_>) -> PyResult<()> {
        self.wants_loop.store(true, Ordering::Relaxed);
        if self.base.get().is_some() {
            self.start_loop(py)?;
        }
        Ok(())
    }

    pub(super) fn start_loop(&self, py: Python<'_>) -> PyResult<Arc<Looping>> {
        if let Some(looping) = self.looping.get() {
            return Ok(Arc::clone(looping));
        }
        let looping = Looping::current(py)?;
        Ok(Arc::clone(self.looping.get_or_init(|| looping)))
    }

    /// The event loop; `None` before anything asked for it.
    pub(super) fn looping(&self) -> Option<&Arc<Looping>> {
        self.looping.get()
    }

    /// Context variables for one call: what it sets is its own.
    pub(super) fn variables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.base.get() {
            Some(base) => base.bind(py).call_method0(intern!(py, "copy")),
            None => py.import("contextvars")?.call_method0("copy_context"),
        }
    }
}
