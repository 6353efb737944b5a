//! Everything that the functions of one server share: threads, the event loop, and the context variables of the serving code.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use pyo3::intern;
use pyo3::prelude::*;

use crate::server::shutdown;
use crate::server::threads::event_loop_thread::EventLoopThread;
use crate::server::threads::pool::Pool;

/// Threads, event loop and context variables of one server's functions.
pub(crate) struct FunctionHost {
    pub(crate) pool: Pool,
    /// The `contextvars.Context` that was current where serving began.
    base: OnceLock<Py<PyAny>>,
    event_loop_thread: OnceLock<Arc<EventLoopThread>>,
    wants_loop: AtomicBool,
}

impl FunctionHost {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            pool: Pool::new(threads),
            base: OnceLock::new(),
            event_loop_thread: OnceLock::new(),
            wants_loop: false.into(),
        }
    }

    /// Captures the caller's context variables for the functions. Called when serving begins.
    pub(crate) fn begin(&self, py: Python<'_>) -> PyResult<()> {
        // Calls start threads, which must end before the interpreter does.
        shutdown::at_exit(py)?;
        let current = py.import("contextvars")?.call_method0("copy_context")?;
        // The first server of the process sets it.
        let _ = self.base.set(current.unbind());
        if self.wants_loop.load(Ordering::Relaxed) {
            self.start_loop(py)?;
        }
        Ok(())
    }

    /// Requires the event loop: a function was registered that runs there.
    pub(crate) fn want_loop(&self, py: Python<'_>) -> PyResult<()> {
        self.wants_loop.store(true, Ordering::Relaxed);
        if self.base.get().is_some() {
            self.start_loop(py)?;
        }
        Ok(())
    }

    pub(crate) fn start_loop(&self, py: Python<'_>) -> PyResult<Arc<EventLoopThread>> {
        if let Some(event_loop_thread) = self.event_loop_thread.get() {
            return Ok(Arc::clone(event_loop_thread));
        }
        let event_loop_thread = EventLoopThread::current(py)?;
        Ok(Arc::clone(self.event_loop_thread.get_or_init(|| event_loop_thread)))
    }

    /// Event loop, or `None` while no function requires it.
    pub(crate) fn event_loop_thread(&self) -> Option<&Arc<EventLoopThread>> {
        self.event_loop_thread.get()
    }

    /// Copies the context variables for one call, so that its changes stay its own.
    pub(crate) fn variables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.base.get() {
            Some(base) => base.bind(py).call_method0(intern!(py, "copy")),
            None => py.import("contextvars")?.call_method0("copy_context"),
        }
    }
}
