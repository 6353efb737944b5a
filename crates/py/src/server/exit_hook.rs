//! Registration of the process's end with Python's `atexit`, once for a process.

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;

/// Process that registered, 0 for none. A forked child has none of the threads.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Has `_core._stop_all` called at the end of the process, unless it is registered already.
pub(crate) fn register_hook(py: Python<'_>) -> PyResult<()> {
    if PROCESS.compare_exchange(0, std::process::id(), Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return Ok(());
    }
    let stop_all = py.import("mcpace._core")?.getattr("_stop_all")?;
    py.import("atexit")?.call_method1("register", (stop_all,)).map(drop)
}

/// Whether this process registered.
pub(crate) fn is_registered() -> bool {
    PROCESS.load(Ordering::Relaxed) == std::process::id()
}
