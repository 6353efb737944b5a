//! The end of the process: what serves is stopped before the interpreter goes, so that no thread meets it half gone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, Weak};

use pyo3::prelude::*;

use super::looping::Looping;
use super::running::Serving;

static KNOWN: AtomicBool = AtomicBool::new(false);
static SERVING: Mutex<Vec<Weak<Serving>>> = Mutex::new(Vec::new());

/// Has [`end_all`] called at the process's end.
pub(super) fn at_exit(py: Python<'_>) -> PyResult<()> {
    if KNOWN.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let end = pyo3::wrap_pyfunction!(end_all, py)?;
    py.import("atexit")?.call_method1("register", (end,)).map(drop)
}

/// Remembers something that serves.
pub(super) fn remember(serving: Weak<Serving>) {
    let mut known = SERVING.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|serving| serving.strong_count() > 0);
    known.push(serving);
}

/// Stops everything.
#[pyfunction]
fn end_all(py: Python<'_>) {
    let known = std::mem::take(&mut *SERVING.lock().unwrap_or_else(PoisonError::into_inner));
    py.detach(|| {
        known.iter().filter_map(Weak::upgrade).for_each(|serving| {
            let _ = serving.stop();
        })
    });
    if let Some(looping) = Looping::running(py) {
        looping.end(py);
    }
}
