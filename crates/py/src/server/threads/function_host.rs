//! Everything that the functions of one server share: threads, the event loop, and the context variables of the serving code.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;

use crate::server::exit_hook;
use crate::server::threads::context_variables::ContextVariables;
use crate::server::threads::event_loop_thread::EventLoopThread;
use crate::server::threads::pool::ThreadPool;

/// Threads, event loop and context variables of one server's functions.
pub(crate) struct FunctionHost {
    pub(crate) pool: ThreadPool,
    pub(crate) variables: Arc<ContextVariables>,
    event_loop_thread: OnceLock<Arc<EventLoopThread>>,
    wants_loop: AtomicBool,
}

impl FunctionHost {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            pool: ThreadPool::new(threads),
            variables: Arc::default(),
            event_loop_thread: OnceLock::new(),
            wants_loop: false.into(),
        }
    }

    /// Captures the caller's context variables for the functions. Called when serving begins.
    pub(crate) fn capture_context(&self, py: Python<'_>) -> PyResult<()> {
        // Calls start threads, which must end before the interpreter does.
        exit_hook::register_hook(py)?;
        self.variables.capture_current(py)?;
        if self.wants_loop.load(Ordering::Relaxed) {
            self.start_loop(py)?;
        }
        Ok(())
    }

    /// Requires the event loop: a function was registered that runs there.
    pub(crate) fn want_loop(&self, py: Python<'_>) -> PyResult<()> {
        self.wants_loop.store(true, Ordering::Relaxed);
        if self.variables.is_captured() {
            self.start_loop(py)?;
        }
        Ok(())
    }

    pub(crate) fn start_loop(&self, py: Python<'_>) -> PyResult<Arc<EventLoopThread>> {
        if let Some(event_loop_thread) = self.event_loop_thread.get() {
            return Ok(Arc::clone(event_loop_thread));
        }
        let event_loop_thread = EventLoopThread::current_or_start(py)?;
        Ok(Arc::clone(self.event_loop_thread.get_or_init(|| event_loop_thread)))
    }

    /// Event loop, or `None` while no function requires it.
    pub(crate) fn event_loop_thread(&self) -> Option<&Arc<EventLoopThread>> {
        self.event_loop_thread.get()
    }
}
