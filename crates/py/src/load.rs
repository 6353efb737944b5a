//! `Load`: the load engine's runs.

use std::time::Instant;

use mcpace_load::{Plan, Run};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

use crate::problem::Problem;
use crate::runtime::SIGNAL_PERIOD;

/// A load under way, on threads of its own. Dropped, it ends.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Load {
    run: Run,
}

#[pymethods]
impl Load {
    #[new]
    fn new(py: Python<'_>, plan: &str) -> PyResult<Self> {
        py.detach(|| mcpace_load::start_run(Plan::parse(plan)?))
            .map(|run| Self { run })
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Waits for the end, so long at most; whether it is there. A signal's exception leaves the load under way.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let longest = crate::seconds::parse_seconds("wait", seconds)?;
        let begun = Instant::now();
        loop {
            let left = longest.saturating_sub(begun.elapsed());
            if py.detach(|| self.run.wait(left.min(SIGNAL_PERIOD))) {
                return Ok(true);
            }
            py.check_signals()?;
            if left.is_zero() {
                return Ok(false);
            }
        }
    }

    /// The seconds that have ended since this was asked last, as JSON.
    fn progress(&self, py: Python<'_>) -> PyResult<String> {
        json_text(&py.detach(|| self.run.progress()))
    }

    /// The counts of each second that has ended since this was asked last, as JSON. Empty where the plan has no share.
    fn deltas(&self, py: Python<'_>) -> PyResult<String> {
        json_text(&py.detach(|| self.run.take_deltas()))
    }

    /// Ends it early; what was measured is kept.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.run.stop());
    }

    /// The outcome as JSON, once it is over.
    fn result(&self, py: Python<'_>) -> PyResult<String> {
        match py.detach(|| self.run.result()) {
            Some(outcome) => json_text(&outcome),
            None => Err(Problem::new_err("the load is not over yet")),
        }
    }
}

fn json_text<T: Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| Problem::new_err(error.to_string()))
}
