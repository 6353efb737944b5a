//! Stops servers and threads before the interpreter ends, so that no thread uses a half-finalised interpreter.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use pyo3::prelude::*;

use crate::server::server_handle::Serving;
use crate::server::threads::event_loop_thread::EventLoopThread;
use crate::server::threads::pool::WeakThreads;

/// Time limit for the work that threads still have.
const PATIENCE: Duration = Duration::from_secs(2);

static KNOWN: AtomicBool = AtomicBool::new(false);
static PROCESS: AtomicU32 = AtomicU32::new(0);
static SERVING: Mutex<Vec<Weak<Serving>>> = Mutex::new(Vec::new());
static THREADS: Mutex<Vec<WeakThreads>> = Mutex::new(Vec::new());

/// Registers [`end_all`] for the end of the process.
pub(crate) fn at_exit(py: Python<'_>) -> PyResult<()> {
    if KNOWN.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    let end = pyo3::wrap_pyfunction!(end_all, py)?;
    py.import("atexit")?.call_method1("register", (end,)).map(drop)
}

/// Registers a server that the end of the process stops.
pub(crate) fn remember(serving: Weak<Serving>) {
    let mut known = lock(&SERVING);
    known.retain(|serving| serving.strong_count() > 0);
    known.push(serving);
}

/// Registers a pool whose threads the end of the process stops.
pub(crate) fn remember_threads(threads: WeakThreads) {
    let mut known = lock(&THREADS);
    known.retain(|threads| threads.strong_count() > 0);
    known.push(threads);
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks can panic half way.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops all servers and pools, then the event loop.
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
        // The system ends the thread of a function that blocks for longer: that thread has no Rust frame.
        threads.iter().for_each(|threads| threads.wait_for_end(PATIENCE));
    });
    if let Some(event_loop_thread) = EventLoopThread::running(py)
        && !event_loop_thread.end(py, PATIENCE)
    {
        // Continuing would crash: the loop's thread has Rust frames.
        eprintln!("mcpace: a coroutine blocks the event loop; ended without waiting for it");
        let _ = py.import("sys")?.getattr("stdout")?.call_method0("flush");
        py.import("os")?.call_method1("_exit", (1,))?;
    }
    Ok(())
}
