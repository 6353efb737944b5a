//! `StackSampler`, `SocketWatcher`, `ProcessWatcher` and `SpanReceiver`: evidence about the inside of a server's programs, beside any
//! instrument's recording.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use crate::problem::{OrRaise, UsageProblem};
use crate::recording::Recording;
use crate::seconds::parse_seconds;

/// Samples the stacks of Python processes, of `root` and its descendants, until it is stopped.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct StackSampler {
    running: Mutex<Option<mcpace_net::StackSampler>>,
}

#[pymethods]
impl StackSampler {
    #[new]
    #[pyo3(signature = (root, *, period_s))]
    fn new(py: Python<'_>, root: u32, period_s: f64) -> PyResult<Self> {
        let period = parse_seconds("period_s", period_s)?;
        let running = py.detach(|| mcpace_net::StackSampler::start(root, period)).or_raise()?;
        Ok(Self { running: Mutex::new(Some(running)) })
    }

    /// Takes no samples until `resume`. Harmless once it is stopped.
    fn pause(&self) {
        if let Some(running) = &*lock_running(&self.running) {
            running.pause();
        }
    }

    /// Goes on sampling. Harmless once it is stopped.
    fn resume(&self) {
        if let Some(running) = &*lock_running(&self.running) {
            running.resume();
        }
    }

    /// Ends it; returns the samples as a recording. Raises UsageProblem the second time.
    fn stop(&self, py: Python<'_>) -> PyResult<Recording> {
        let running = take_running(&self.running)?;
        Ok(Recording::new(py.detach(|| running.stop())))
    }
}

/// Watches the connections of `root` and its descendants until it is stopped.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct SocketWatcher {
    running: Mutex<Option<mcpace_net::SocketWatcher>>,
}

#[pymethods]
impl SocketWatcher {
    #[new]
    #[pyo3(signature = (root, *, period_s, ignored = Vec::new()))]
    fn new(py: Python<'_>, root: u32, period_s: f64, ignored: Vec<String>) -> PyResult<Self> {
        let period = parse_seconds("period_s", period_s)?;
        let parse = |address: &String| {
            address.parse().map_err(|_| UsageProblem::new_err(format!("{address:?} is no IP address with a port")))
        };
        let ignored: Vec<SocketAddr> = ignored.iter().map(parse).collect::<PyResult<_>>()?;
        let running = py.detach(|| mcpace_net::SocketWatcher::start(root, period, ignored)).or_raise()?;
        Ok(Self { running: Mutex::new(Some(running)) })
    }

    /// Ends it; returns the connections as a recording. Raises UsageProblem the second time.
    fn stop(&self, py: Python<'_>) -> PyResult<Recording> {
        let running = take_running(&self.running)?;
        Ok(Recording::new(py.detach(|| running.stop())))
    }
}

/// Watches the programs that `root` and its descendants start until it is stopped.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct ProcessWatcher {
    running: Mutex<Option<mcpace_net::ProcessWatcher>>,
}

#[pymethods]
impl ProcessWatcher {
    #[new]
    #[pyo3(signature = (root, *, period_s))]
    fn new(py: Python<'_>, root: u32, period_s: f64) -> PyResult<Self> {
        let period = parse_seconds("period_s", period_s)?;
        let running = py.detach(|| mcpace_net::ProcessWatcher::start(root, period)).or_raise()?;
        Ok(Self { running: Mutex::new(Some(running)) })
    }

    /// Ends it; returns when the programs computed as a recording. Raises UsageProblem the second time.
    fn stop(&self, py: Python<'_>) -> PyResult<Recording> {
        let running = take_running(&self.running)?;
        Ok(Recording::new(py.detach(|| running.stop())))
    }
}

/// Receives the spans that programs report over OTLP/HTTP, until it is stopped.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct SpanReceiver {
    endpoint: String,
    running: Mutex<Option<mcpace_net::SpanReceiver>>,
}

#[pymethods]
impl SpanReceiver {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let running = py.detach(mcpace_net::SpanReceiver::start).or_raise()?;
        Ok(Self { endpoint: running.endpoint(), running: Mutex::new(Some(running)) })
    }

    /// Base URL for `OTEL_EXPORTER_OTLP_ENDPOINT`.
    #[getter]
    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Ends it; returns the spans as a recording. Raises UsageProblem the second time.
    fn stop(&self, py: Python<'_>) -> PyResult<Recording> {
        let running = take_running(&self.running)?;
        Ok(Recording::new(py.detach(|| running.stop())))
    }
}

fn lock_running<T>(running: &Mutex<Option<T>>) -> MutexGuard<'_, Option<T>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_running<T>(running: &Mutex<Option<T>>) -> PyResult<T> {
    let taken = lock_running(running).take();
    taken.ok_or_else(|| UsageProblem::new_err("it is stopped already"))
}
