//! The end of the process: what serves is stopped before the interpreter goes, so that no thread of ours meets it half gone.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use pyo3::prelude::*;

use super::looping::Looping;
use super::pool::WeakThreads;
use super::running::Serving;

/// For what threads still do.
const PATIENCE: Duration = Duration::from_secs(2);

static KNOWN: AtomicBool = AtomicBool::new(false);
static PROCESS: AtomicU32 = AtomicU32::new(0);
static SERVING: Mutex<Vec<Weak<Serving>>> = Mutex::new(Vec::new());
static THREADS: Mutex<Vec<WeakThreads>> = Mutex::new(Vec::new());

/// Has [`end_all`] called at the process's end.
pub(super) fn at_exit(py: Python<'_>) -> PyResult<()> {
    if KNOWN.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    let end = pyo3::wrap_pyfunction!(end_all, py)?;
    py.import("atexit")?.call_method1("register", (end,)).map(drop)
}

/// Remembers something that serves.
pub(super) fn remember(serving: Weak<Serving>) {
    let mut known = lock(&SERVING);
    known.retain(|serving| serving.strong_count() > 0);
    known.push(serving);
}

/// Remembers a pool's threads.
pub(super) fn remember_threads(threads: WeakThreads) {
    let mut known = lock(&THREADS);
    known.retain(|threads| threads.strong_count() > 0);
    known.push(threads);
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks can panic half way.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops everything.
#[pyfunction]
fn end_all(py: Python<'_>) -> PyResult<()> {
    if PROCESS.load(Ordering::Relaxed) != std::process::id() {
        // A forked child has none of the threads.
        return Ok(());
    }
    let serving = std::mem::take(&mut *lock(&SERVING));
    let threads = std::mem::take(&mut *lock(&THREADS));
    py.detach(|| {
        for serving in serving.iter().filter_map(Weak::upgrade) {
            let _ = serving.stop();
        }
        let threads: Vec<_> = threads.iter().filter_map(WeakThreads::upgrade).collect();
        threads.iter().for_each(|threads| threads.end());
        // A function that blocks for longer is left to the system: its thread has no frame of ours.
        threads.iter().for_each(|threads| threads.wait_for_end(PATIENCE));
    });
    if let Some(looping) = Looping::running(py)
        && !looping.end(py, PATIENCE)
    {
        // Going on would end in a crash: its thread has frames of ours.
        eprintln!("mcpace: a coroutine blocks the event loop; ended without waiting for it");
        let _ = py.import("sys")?.getattr("stdout")?.call_method0("flush");
        py.import("os")?.call_method1("_exit", (1,))?;
    }
    Ok(())
}
