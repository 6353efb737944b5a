//! Futures of Rust's as futures of asyncio's.
//!
//! Constraint: a future is only touched on its own loop's thread. The process's loop is told through its queue, any other by
//! `call_soon_threadsafe`.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::attaching::with_interpreter;
use crate::event_loop::running_loop;
use crate::server::call::exceptions;
use crate::server::threads::event_loop_thread::EventLoopThread;

/// Output of a Rust future: a function that makes the Python object, called with the interpreter.
pub(crate) type Given = Box<dyn for<'py> FnOnce(Python<'py>) -> PyResult<Py<PyAny>> + Send>;

/// Runs `work` on `runtime`; gives an awaitable of the running event loop. Cancelling that drops the work.
pub(crate) fn spawn_awaitable<'py>(
    py: Python<'py>,
    runtime: &Handle,
    work: impl Future<Output = Given> + Send + 'static,
) -> PyResult<Bound<'py, PyAny>> {
    let event_loop = running_loop(py)?;
    let future = event_loop.call_method0(intern!(py, "create_future"))?;
    let event_loop_thread = EventLoopThread::if_running(py)
        .filter(|event_loop_thread| event_loop_thread.event_loop().bind(py).is(&event_loop));
    let waiting = PendingFuture { future: Some((event_loop.unbind(), future.clone().unbind())), event_loop_thread };
    let task = runtime.spawn(async move { waiting.resolve_future(work.await) });
    future.call_method1(intern!(py, "add_done_callback"), (Abort { task: task.abort_handle() },))?;
    Ok(future)
}

/// An awaitable of `None` that is there already.
pub(crate) fn ready_awaitable(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let future = running_loop(py)?.call_method0(intern!(py, "create_future"))?;
    future.call_method1(intern!(py, "set_result"), (py.None(),))?;
    Ok(future)
}

/// A future that waits for its value. Dropped without one, it is cancelled.
struct PendingFuture {
    future: Option<(Py<PyAny>, Py<PyAny>)>,
    event_loop_thread: Option<Arc<EventLoopThread>>,
}

impl PendingFuture {
    fn resolve_future(mut self, given: Given) {
        self.settle_future(Some(given));
    }

    fn settle_future(&mut self, given: Option<Given>) {
        let Some((event_loop, future)) = self.future.take() else { return };
        match &self.event_loop_thread {
            Some(event_loop_thread) => event_loop_thread.run_soon(move |py| settle_future(future.bind(py), given)),
            // Where the interpreter is ending nobody waits.
            None => {
                let _ = with_interpreter(|py| {
                    let settling = Settling { future, given: Mutex::new(given) };
                    // A loop that is closed has nobody waiting on it.
                    let _ = event_loop.bind(py).call_method1(intern!(py, "call_soon_threadsafe"), (settling,));
                });
            }
        }
    }
}

impl Drop for PendingFuture {
    fn drop(&mut self) {
        self.settle_future(None);
    }
}

fn settle_future(future: &Bound<'_, PyAny>, given: Option<Given>) {
    let py = future.py();
    let settled = || -> PyResult<()> {
        if future.call_method0(intern!(py, "done"))?.is_truthy()? {
            return Ok(());
        }
        match given.map(|given| given(py)) {
            Some(Ok(value)) => future.call_method1(intern!(py, "set_result"), (value,)),
            Some(Err(error)) => future.call_method1(intern!(py, "set_exception"), (error.value(py),)),
            None => future.call_method0(intern!(py, "cancel")),
        }
        .map(drop)
    };
    if let Err(error) = settled() {
        exceptions::log_failure(py, "telling an awaited future its result", &error);
    }
}

/// A future's end, called on its loop.
#[pyclass(frozen)]
struct Settling {
    future: Py<PyAny>,
    given: Mutex<Option<Given>>,
}

#[pymethods]
impl Settling {
    fn __call__(&self, py: Python<'_>) {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner).take();
        settle_future(self.future.bind(py), given);
    }
}

/// Ends the work of a future that is done: cancelled, that is.
#[pyclass(frozen)]
struct Abort {
    task: AbortHandle,
}

#[pymethods]
impl Abort {
    fn __call__(&self, _future: &Bound<'_, PyAny>) {
        self.task.abort();
    }
}
