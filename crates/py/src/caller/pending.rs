//! A future of Rust's that Python awaits, or waits for: polled on the thread of whoever does.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use mcpace_client::{Progress, Raw};
use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::bridge::{Bridge, BridgeMessage, Resume};
use super::inbox::{self, BoundedInbox};
use crate::event_loop::running_loop;
use crate::problem::CallProblem;
use crate::runtime::{SIGNAL_PERIOD, shared_runtime};

/// Output of the future: it becomes a Python object once the interpreter is attached.
pub(super) enum Given {
    Nothing,
    Raw(Raw),
    Text(String),
    Object(Make),
}

type Make = Box<dyn for<'py> FnOnce(Python<'py>) -> PyResult<Py<PyAny>> + Send>;

type PendingWork = Pin<Box<dyn Future<Output = PyResult<Given>> + Send>>;

/// Awaitable of a Rust future. Dropping it, or throwing into it, cancels the work.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Pending {
    state: Mutex<PollState>,
    progress: Option<Arc<ProgressInbox>>,
}

struct PollState {
    work: Option<PendingWork>,
    waking: Option<Arc<Waking>>,
}

/// Progress that arrived while the work was polled, and the callback for it.
pub(super) struct ProgressInbox {
    hear: Py<PyAny>,
    came: Mutex<(BoundedInbox<Progress>, Option<Waker>)>,
}

impl ProgressInbox {
    pub(super) fn new(hear: Py<PyAny>) -> Self {
        Self { hear, came: Mutex::default() }
    }

    pub(super) fn put_progress(&self, progress: Progress) {
        let waker = {
            let mut came = self.came.lock().unwrap_or_else(PoisonError::into_inner);
            let bytes = size_of::<Progress>() + progress.message.as_ref().map_or(0, |message| message.len());
            came.0.put_value(progress, bytes, true);
            came.1.clone()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn deliver_progress(&self, py: Python<'_>) -> PyResult<()> {
        let (came, has_dropped) = self.came.lock().unwrap_or_else(PoisonError::into_inner).0.take_values();
        if has_dropped {
            inbox::say_dropped(py, "news of a call's progress")?;
        }
        for progress in came {
            self.hear.call1(py, (progress.progress, progress.total, progress.message))?;
        }
        Ok(())
    }
}

impl Pending {
    pub(super) fn new(
        work: impl Future<Output = PyResult<Given>> + Send + 'static,
        progress: Option<Arc<ProgressInbox>>,
    ) -> Self {
        Self { state: Mutex::new(PollState { work: Some(Box::pin(work)), waking: None }), progress }
    }

    fn lock_state(&self) -> MutexGuard<'_, PollState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls once, and again for whoever woke it meanwhile. The work is out of the lock while it is polled: it may call
    /// Python.
    fn poll_work(&self, py: Python<'_>, work: &mut PendingWork, waker: &Waker) -> PyResult<Poll<PyResult<Given>>> {
        let polled = {
            let _inside = shared_runtime()?.enter();
            work.as_mut().poll(&mut Context::from_waker(waker))
        };
        if let Some(inbox) = &self.progress {
            inbox.came.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(waker.clone());
            inbox.deliver_progress(py)?;
        }
        Ok(polled)
    }
}

#[pymethods]
impl Pending {
    fn __await__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Goes on: gives the loop a future to wait for, or ends with the value.
    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (work, waking) = {
            let mut state = self.lock_state();
            (state.work.take(), state.waking.take())
        };
        let mut work = work.ok_or_else(|| PyRuntimeError::new_err("it was awaited already"))?;
        let waking = match waking {
            Some(waking) => waking,
            None => {
                let event_loop = running_loop(py)?;
                let bridge = Bridge::of_loop(&event_loop)?;
                Arc::new(Waking {
                    bridge,
                    event_loop: event_loop.unbind(),
                    state: AtomicU8::new(POLLED),
                    future: Mutex::default(),
                })
            }
        };
        let waker = Waker::from(Arc::clone(&waking));
        loop {
            waking.state.store(POLLED, Ordering::Release);
            match self.poll_work(py, &mut work, &waker)? {
                Poll::Ready(given) => return Err(PyStopIteration::new_err((into_python(py, given?)?,))),
                Poll::Pending => {
                    if let Some(future) = waking.wait_future(py)? {
                        let mut state = self.lock_state();
                        state.work = Some(work);
                        state.waking = Some(waking);
                        return Ok(future);
                    }
                }
            }
        }
    }

    fn send(&self, py: Python<'_>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.__next__(py)
    }

    /// Gives the work up: the task that awaits was cancelled.
    #[pyo3(signature = (error, value=None, _traceback=None))]
    fn throw(
        &self,
        error: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        self.close();
        Err(PyErr::from_value(value.unwrap_or(error)))
    }

    fn close(&self) {
        let given_up = self.lock_state().work.take();
        if let (Some(given_up), Ok(runtime)) = (given_up, shared_runtime()) {
            let _inside = runtime.enter();
            drop(given_up);
        }
    }

    /// Waits for the value without the interpreter's lock; a signal's exception (KeyboardInterrupt) gives the work up, and
    /// so does the limit.
    #[pyo3(signature = (limit_s=None))]
    fn wait(&self, py: Python<'_>, limit_s: Option<f64>) -> PyResult<Py<PyAny>> {
        let limit = limit_s.and_then(|limit_s| Duration::try_from_secs_f64(limit_s).ok());
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let work = self.lock_state().work.take();
        let mut work = work.ok_or_else(|| PyRuntimeError::new_err("it was waited for already"))?;
        let parked = Arc::new(Parked { thread: thread::current(), woken: false.into() });
        let waker = Waker::from(Arc::clone(&parked));
        loop {
            match self.poll_work(py, &mut work, &waker)? {
                Poll::Ready(given) => return into_python(py, given?),
                Poll::Pending => {
                    while !parked.woken.swap(false, Ordering::AcqRel) {
                        py.detach(|| thread::park_timeout(SIGNAL_PERIOD));
                        py.check_signals()?;
                        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                            let _inside = shared_runtime()?.enter();
                            drop(work);
                            let text = "it did not end in time";
                            return Err(CallProblem::new_err((
                                "time-limit",
                                text,
                                None::<(i64, String, Option<String>)>,
                            )));
                        }
                    }
                }
            }
        }
    }
}

fn into_python(py: Python<'_>, given: Given) -> PyResult<Py<PyAny>> {
    match given {
        Given::Nothing => Ok(py.None()),
        Given::Raw(raw) => Ok(PyBytes::new(py, raw.as_bytes()).into_any().unbind()),
        Given::Text(text) => Ok(text.into_pyobject(py)?.into_any().unbind()),
        Given::Object(make) => make(py),
    }
}

struct Parked {
    thread: Thread,
    woken: std::sync::atomic::AtomicBool,
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// It is being polled.
const POLLED: u8 = 0;
/// It was woken while it was polled.
const WOKEN: u8 = 1;
/// Its task waits for `future`.
const WAITING: u8 = 2;
/// It is on its way to the loop.
const QUEUED: u8 = 3;

/// Wakes the task that awaits, on its loop.
struct Waking {
    bridge: Arc<Bridge>,
    event_loop: Py<PyAny>,
    state: AtomicU8,
    future: Mutex<Option<Py<PyAny>>>,
}

impl Waking {
    /// A future for the loop to wait for; `None` where it was woken already.
    fn wait_future(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        if self.state.load(Ordering::Acquire) == WOKEN {
            return Ok(None);
        }
        let future = self.event_loop.call_method0(py, intern!(py, "create_future"))?;
        // `asyncio.Future.__await__` sets this attribute for the task that drives it.
        future.setattr(py, intern!(py, "_asyncio_future_blocking"), true)?;
        *self.future.lock().unwrap_or_else(PoisonError::into_inner) = Some(future.clone_ref(py));
        let waits = self.state.compare_exchange(POLLED, WAITING, Ordering::AcqRel, Ordering::Acquire).is_ok();
        Ok(waits.then_some(future))
    }
}

impl Resume for Waking {
    /// Lets the task go on.
    fn resume_waiting(&self, py: Python<'_>) -> PyResult<()> {
        let future = self.future.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(future) = future else { return Ok(()) };
        if !future.call_method0(py, intern!(py, "done"))?.is_truthy(py)? {
            future.call_method1(py, intern!(py, "set_result"), (py.None(),))?;
        }
        Ok(())
    }
}

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        let told = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| match state {
            POLLED => Some(WOKEN),
            WAITING => Some(QUEUED),
            _ => None,
        });
        if told == Ok(WAITING) {
            let bridge = Arc::clone(&self.bridge);
            bridge.push_message(BridgeMessage::Wake(self));
        }
    }
}
