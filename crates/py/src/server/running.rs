//! `Running`: a server that serves, and its end.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mcpace_serve::http;
use pyo3::prelude::*;

use crate::problem::UsageProblem;

/// How long a wait goes on before Python's signals are looked at.
const SIGNAL_PERIOD: Duration = Duration::from_millis(50);

/// See the module.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Running {
    inner: Mutex<Option<http::Running>>,
    #[pyo3(get)]
    address: String,
    #[pyo3(get)]
    port: u16,
}

impl Running {
    pub(super) fn new(running: http::Running) -> Self {
        let address = running.address();
        Self { inner: Mutex::new(Some(running)), address: address.to_string(), port: address.port() }
    }

    fn take(&self) -> Option<http::Running> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymethods]
impl Running {
    /// Waits until it has stopped, or a signal's handler raises.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        loop {
            py.check_signals()?;
            if self.inner.lock().map_err(|_| UsageProblem::new_err("the server is broken"))?.is_none() {
                return Ok(());
            }
            py.detach(|| std::thread::sleep(SIGNAL_PERIOD));
        }
    }

    /// Takes nothing new, finishes what is in flight, ends the rest: how many connections it cut off. Does nothing the
    /// second time.
    fn stop(&self, py: Python<'_>) -> usize {
        py.detach(|| self.take().map_or(0, http::Running::stop))
    }
}

/// Runs an I/O thread with a thread state of Python's that lasts as long, so that each attaching costs no new one.
pub(super) fn within_python(work: Box<dyn FnOnce() + Send>) {
    Python::attach(|py| py.detach(work));
}
