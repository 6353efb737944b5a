//! A coroutine on the event loop, as one task whose end is ours: its result goes to the reply at the moment that it is
//! there, without a callback or another turn of the loop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mcpace_serve::HandlerError;
use pyo3::exceptions::PyStopIteration;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::iterator::PySendResult;
use pyo3::types::{PyDict, PyIterator, PyType};

use crate::server::call::handler::Callable;
use crate::server::call::job::{self, CallCompletion, Job, Prepared};
use crate::server::threads::event_loop_thread::EventLoopThread;

/// A call from its way to the loop to its end: what it takes to cancel it.
#[derive(Default)]
pub(crate) struct CoroutineCall {
    is_cancelled: AtomicBool,
    task: Mutex<Option<Py<PyAny>>>,
}

impl CoroutineCall {
    /// Ends the call wherever it is; from any thread.
    pub(crate) fn cancel_call(self: &Arc<Self>, event_loop_thread: &EventLoopThread) {
        self.is_cancelled.store(true, Ordering::Release);
        let flight = Arc::clone(self);
        event_loop_thread.run_soon(move |py| {
            let task = flight.task.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(task) = task {
                // A task that has ended is not cancelled any more.
                let _ = task.bind(py).call_method0("cancel");
            }
        });
    }

    fn set_task(&self, task: Option<Py<PyAny>>) {
        let before = std::mem::replace(&mut *self.task.lock().unwrap_or_else(PoisonError::into_inner), task);
        drop(before);
    }
}

/// Begins a call on the loop's thread.
pub(crate) fn submit_job(event_loop_thread: &EventLoopThread, job: Job, flight: &Arc<CoroutineCall>) {
    let (event_loop, flight) = (event_loop_thread.event_loop_shared(), Arc::clone(flight));
    event_loop_thread.run_soon(move |py| begin_call(event_loop.bind(py), job, &flight));
}

fn begin_call(event_loop: &Bound<'_, PyAny>, job: Job, flight: &Arc<CoroutineCall>) {
    if flight.is_cancelled.load(Ordering::Acquire) || job.end.is_given_up() {
        return;
    }
    let py = event_loop.py();
    let Job { callable, variables, arguments, context, end, .. } = job;
    let begun = || -> PyResult<(Bound<'_, PyIterator>, Bound<'_, PyAny>)> {
        let Prepared { keywords, variables } =
            job::prepare_call(py, &callable, &variables, &arguments, context, end.observed_request())?;
        // A coroutine function runs nothing yet; any other function has its variables all the same.
        let awaitable = variables.call_method(intern!(py, "run"), (callable.function(),), Some(&keywords))?;
        Ok((awaitable.call_method0(intern!(py, "__await__"))?.try_iter()?, variables))
    };
    let (iterator, variables) = match begun() {
        Ok(begun) => begun,
        Err(error) => return end.deliver_outcome(py, &callable, Err(error)),
    };
    let started = start_coroutine(event_loop, iterator, &variables, EndReceiver::Call(callable, end), flight);
    if let Err(error) = started {
        crate::server::call::exceptions::log_failure(py, "a handler", &error);
    }
}

/// Runs a coroutine that has no result, and is called `what` where it fails; `ended` is called at its end. On the loop's thread.
pub(crate) fn begin_alone(
    event_loop: &Bound<'_, PyAny>,
    awaitable: &Bound<'_, PyAny>,
    flight: &Arc<CoroutineCall>,
    what: &'static str,
    ended: impl FnOnce() + Send + 'static,
) -> PyResult<()> {
    let py = event_loop.py();
    let iterator = awaitable.call_method0(intern!(py, "__await__"))?.try_iter()?;
    let variables = py.import("contextvars")?.call_method0("copy_context")?;
    start_coroutine(event_loop, iterator, &variables, EndReceiver::Alone(what, Box::new(ended)), flight)
}

fn start_coroutine(
    event_loop: &Bound<'_, PyAny>,
    iterator: Bound<'_, PyIterator>,
    variables: &Bound<'_, PyAny>,
    open: EndReceiver,
    flight: &Arc<CoroutineCall>,
) -> PyResult<()> {
    let step = CoroutineStep { iterator: iterator.unbind(), open: Mutex::new(Some(open)), flight: Arc::clone(flight) };
    let step = Bound::new(event_loop.py(), step)?;
    let task = make_task(event_loop, &step, variables)?;
    let is_open = step.get().open.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    if is_open {
        flight.set_task(Some(task.unbind()));
    }
    Ok(())
}

/// Receiver of the end of a coroutine.
enum EndReceiver {
    Call(Arc<Callable>, CallCompletion),
    /// With the words for it.
    Alone(&'static str, Box<dyn FnOnce() + Send>),
}

/// A task of it; begun at once, where the interpreter can.
fn make_task<'py>(
    event_loop: &Bound<'py, PyAny>,
    step: &Bound<'py, CoroutineStep>,
    variables: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    static TASK: PyOnceLock<(Py<PyType>, bool)> = PyOnceLock::new();
    let py = event_loop.py();
    let (kind, is_eager) = TASK.get_or_try_init(py, || {
        let kind = py.import("asyncio")?.getattr("Task")?.cast_into::<PyType>()?.unbind();
        PyResult::Ok((kind, py.version_info() >= (3, 12)))
    })?;
    let options = PyDict::new(py);
    options.set_item(intern!(py, "loop"), event_loop)?;
    options.set_item(intern!(py, "context"), variables)?;
    if *is_eager {
        options.set_item(intern!(py, "eager_start"), true)?;
    }
    kind.bind(py).call((step,), Some(&options))
}

/// Object that an asyncio task steps in place of the coroutine.
#[pyclass(frozen)]
struct CoroutineStep {
    iterator: Py<PyIterator>,
    open: Mutex<Option<EndReceiver>>,
    flight: Arc<CoroutineCall>,
}

#[pymethods]
impl CoroutineStep {
    fn __await__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let sent = self.iterator.bind(py).send(py.None().bind(py));
        match sent {
            Ok(PySendResult::Next(waited_for)) => Ok(Some(waited_for.unbind())),
            Ok(PySendResult::Return(value)) => self.finish_call(py, Ok(value)).map(|()| None),
            Err(error) => self.finish_call(py, Err(error)).map(|()| None),
        }
    }

    fn send(&self, py: Python<'_>, _value: Py<PyAny>) -> PyResult<Py<PyAny>> {
        // A task sends nothing but None.
        self.__next__(py)?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    #[pyo3(signature = (*exception))]
    fn throw(&self, py: Python<'_>, exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<Py<PyAny>> {
        match self.iterator.bind(py).call_method1(intern!(py, "throw"), exception) {
            Ok(waited_for) => Ok(waited_for.unbind()),
            Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
                let value = error.value(py).getattr(intern!(py, "value"))?;
                self.finish_call(py, Ok(value))?;
                Err(PyStopIteration::new_err(()))
            }
            Err(error) => {
                self.finish_call(py, Err(error))?;
                Err(PyStopIteration::new_err(()))
            }
        }
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.flight.set_task(None);
        drop(self.take_open());
        self.iterator.bind(py).call_method0(intern!(py, "close")).map(drop)
    }
}

impl CoroutineStep {
    /// Hands the outcome over. A cancelled call is also cancelled for its task; any other failure concerns the call
    /// alone.
    fn finish_call(&self, py: Python<'_>, outcome: PyResult<Bound<'_, PyAny>>) -> PyResult<()> {
        self.flight.set_task(None);
        let cancelled =
            outcome.as_ref().err().filter(|error| is_cancellation(py, error)).map(|error| error.clone_ref(py));
        match self.take_open() {
            None => {}
            Some(EndReceiver::Alone(what, ended)) => {
                if let (Err(error), None) = (&outcome, &cancelled) {
                    crate::server::call::exceptions::log_failure(py, what, error);
                }
                ended();
            }
            Some(EndReceiver::Call(callable, end)) => {
                // Being cut off, by the client or by the server's end, is no failure of the function's: nothing is logged.
                match &cancelled {
                    Some(_) => end.refuse_call(HandlerError::new("the call was cancelled")),
                    None => end.deliver_outcome(py, &callable, outcome),
                }
            }
        }
        cancelled.map_or(Ok(()), Err)
    }

    fn take_open(&self) -> Option<EndReceiver> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn is_cancellation(py: Python<'_>, error: &PyErr) -> bool {
    static CANCELLED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CANCELLED.import(py, "asyncio", "CancelledError").is_ok_and(|kind| error.is_instance(py, kind))
}
