//! Stops servers and threads before the interpreter ends, so that no thread uses a half-finalised interpreter.

use std::time::Duration;

use pyo3::prelude::*;

use crate::server::exit_hook;
use crate::server::server_handle;
use crate::server::threads::event_loop_thread::EventLoopThread;
use crate::server::threads::pool;

/// Time limit for the work that threads still have.
const PATIENCE: Duration = Duration::from_secs(2);

/// Stops all servers and pools, then the event loop.
#[pyfunction]
#[pyo3(name = "_stop_all")]
pub(crate) fn stop_all(py: Python<'_>) -> PyResult<()> {
    if !exit_hook::is_registered() {
        return Ok(());
    }
    py.detach(|| {
        server_handle::stop_all();
        // The system ends the thread of a function that blocks for longer: that thread has no Rust frame.
        pool::end_all(PATIENCE);
    });
    if let Some(event_loop_thread) = EventLoopThread::if_running(py)
        && !event_loop_thread.end_loop(py, PATIENCE)
    {
        // Continuing would crash: the loop's thread has Rust frames.
        eprintln!("mcpace: a coroutine blocks the event loop; ended without waiting for it");
        let _ = py.import("sys")?.getattr("stdout")?.call_method0("flush");
        py.import("os")?.call_method1("_exit", (1,))?;
    }
    Ok(())
}
