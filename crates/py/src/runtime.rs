//! The one tokio runtime of the process, and waiting that Ctrl-C can end.

use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::problem::EnvironmentProblem;

/// How long a wait goes on before Python's signals are looked at: what Ctrl-C takes at most.
pub(crate) const SIGNAL_PERIOD: Duration = Duration::from_millis(50);

/// The runtime; its threads start with the first instrument and live as long as the process. A forked child, which has none of
/// them, has one of its own.
pub(crate) fn shared_runtime() -> PyResult<&'static Runtime> {
    static RUNTIME: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);
    // Held for a moment, and only by who has the interpreter, as has who forks.
    let mut made = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, runtime)) = made.filter(|(of, _)| *of == process) {
        return Ok(runtime);
    }
    let built = tokio::runtime::Builder::new_multi_thread().thread_name("mcpace").enable_all().build();
    let built = built.map_err(|error| EnvironmentProblem::new_err(format!("could not start threads: {error}")))?;
    // For good: ending the parent's would wait for threads that are not here.
    let runtime: &'static Runtime = Box::leak(Box::new(built));
    *made = Some((process, runtime));
    Ok(runtime)
}

/// Runs `work` on a thread of its own, without the interpreter's lock. A signal's exception leaves it behind: the process is
/// about to end, and nothing waits for that thread.
pub(crate) fn run_detached<T, W>(py: Python<'_>, work: W) -> PyResult<T>
where
    T: Send + 'static,
    W: FnOnce() -> PyResult<T> + Send + 'static,
{
    let ended = wait_detached(py, shared_runtime()?.spawn_blocking(work))?;
    ended.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()))
}

/// Runs `future` as a task of the runtime. A task is woken on the thread that read its answer; the thread of Python would have to
/// be woken by another one, which adds 50 to 100 µs to each stdio call. A signal's exception (KeyboardInterrupt) aborts the task.
pub(crate) fn run_as_task<F>(py: Python<'_>, future: F) -> PyResult<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let mut task = AbortOnDrop(shared_runtime()?.spawn(future));
    let ended = wait_detached(py, &mut task.0)?;
    Ok(ended.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic())))
}

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs `future` to its end without the interpreter's lock. A signal's exception (KeyboardInterrupt) drops it.
pub(crate) fn wait_detached<F>(py: Python<'_>, future: F) -> PyResult<F::Output>
where
    F: Future + Send,
    F::Output: Send,
{
    let runtime = shared_runtime()?;
    let mut future = pin!(future);
    loop {
        let waited =
            py.detach(|| runtime.block_on(async { tokio::time::timeout(SIGNAL_PERIOD, future.as_mut()).await }));
        match waited {
            Ok(output) => return Ok(output),
            Err(_) => py.check_signals()?,
        }
    }
}
