//! asyncio's event loops, as far as both halves of the face need them.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The loop that runs on this thread.
///
/// # Errors
/// `RuntimeError` where none does.
pub(crate) fn running_loop(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    RUNNING.import(py, "asyncio", "get_running_loop")?.call0()
}
