//! Attachment of the extension's own threads to the interpreter for short work, such as settling a future. No thread is
//! attached when the interpreter ends.
//!
//! Constraint: until Python 3.13 a thread that waits for the interpreter while it ends is unwound by the system through
//! Rust frames, which aborts the process. Therefore the process's end waits until all threads have detached, and no
//! thread may attach after that.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;

/// Time that other threads have to detach from the interpreter. A thread that takes longer runs Python code of another
/// library.
const PATIENCE: Duration = Duration::from_secs(2);

struct Inside {
    threads: usize,
    over: bool,
    /// Process that the threads belong to: a forked child has none of them.
    process: u32,
}

static INSIDE: Mutex<Inside> = Mutex::new(Inside { threads: 0, over: false, process: 0 });
static LEFT: Condvar = Condvar::new();

/// With the interpreter, from a thread of ours. `None` where it is ending, or gone.
pub(crate) fn with_interpreter<R>(work: impl for<'py> FnOnce(Python<'py>) -> R) -> Option<R> {
    let _inside = Guest::enter_interpreter()?;
    Python::try_attach(work)
}

struct Guest;

impl Guest {
    fn enter_interpreter() -> Option<Self> {
        let mut inside = lock_inside();
        if inside.over {
            return None;
        }
        inside.threads += 1;
        Some(Self)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut inside = lock_inside();
        inside.threads = inside.threads.saturating_sub(1);
        if inside.over {
            LEFT.notify_all();
        }
    }
}

/// Count of this process: a forked child has a copy of the count but not the threads.
fn lock_inside() -> MutexGuard<'static, Inside> {
    // Nothing under this lock can panic half way.
    let mut inside = INSIDE.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if inside.process != process {
        *inside = Inside { threads: 0, over: false, process };
    }
    inside
}

/// Has the process's end wait.
pub(crate) fn at_exit(py: Python<'_>) -> PyResult<()> {
    let end = pyo3::wrap_pyfunction!(close, py)?;
    py.import("atexit")?.call_method1("register", (end,)).map(drop)
}

#[pyfunction]
fn close(py: Python<'_>) {
    py.detach(|| {
        let mut inside = lock_inside();
        inside.over = true;
        drop(LEFT.wait_timeout_while(inside, PATIENCE, |inside| inside.threads > 0));
    });
}
