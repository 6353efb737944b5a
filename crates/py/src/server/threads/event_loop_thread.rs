//! The one event loop of the process. Coroutines run there, whichever thread received their request.
//!
//! Constraints: a sender wakes the loop only when it is asleep, and sending needs no interpreter. The lock is never held while a
//! thread waits for the interpreter.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::sync::MutexExt as _;

use crate::loop_waker::LoopWaker;
use crate::server::call::exceptions;
use crate::server::exit_hook;

/// The event loop and its thread.
pub(crate) struct EventLoopThread {
    event_loop: Arc<Py<PyAny>>,
    process: u32,
    queue: Mutex<JobQueue>,
    waker: LoopWaker,
    /// Whether its thread is done with the interpreter.
    ended: (Mutex<bool>, Condvar),
}

#[derive(Default)]
struct JobQueue {
    work: Vec<LoopWork>,
    /// A wake-up is on its way.
    is_awake: bool,
    over: bool,
}

type LoopWork = Box<dyn for<'py> FnOnce(Python<'py>) + Send>;

static CURRENT: Mutex<Option<Arc<EventLoopThread>>> = Mutex::new(None);

impl EventLoopThread {
    /// The process's loop; started by the first who asks.
    pub(crate) fn current_or_start(py: Python<'_>) -> PyResult<Arc<Self>> {
        // Waiting for the lock lets go of the interpreter: its holder needs it.
        let mut current = CURRENT.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        if let Some(event_loop_thread) = current.as_ref().filter(|event_loop_thread| event_loop_thread.is_usable()) {
            return Ok(Arc::clone(event_loop_thread));
        }
        let event_loop_thread = Self::start_thread(py)?;
        *current = Some(Arc::clone(&event_loop_thread));
        Ok(event_loop_thread)
    }

    /// The loop, where it runs.
    pub(crate) fn if_running(py: Python<'_>) -> Option<Arc<Self>> {
        let current = CURRENT.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|event_loop_thread| event_loop_thread.is_usable()).cloned()
    }

    /// A forked child has the loop, but not its thread.
    fn is_usable(&self) -> bool {
        self.process == std::process::id() && !self.lock_queue().over
    }

    fn start_thread(py: Python<'_>) -> PyResult<Arc<Self>> {
        let event_loop = match py.import("uvloop") {
            Ok(uvloop) => uvloop.call_method0("new_event_loop")?,
            Err(_) => py.import("asyncio")?.call_method0("new_event_loop")?,
        };
        let event_loop_thread = Arc::new(Self {
            event_loop: Arc::new(event_loop.clone().unbind()),
            process: std::process::id(),
            queue: Mutex::default(),
            waker: LoopWaker::new()?,
            ended: (Mutex::new(false), Condvar::new()),
        });
        let drain = Bound::new(py, Drain { event_loop_thread: Arc::clone(&event_loop_thread) })?;
        event_loop_thread.waker.attach_loop(&event_loop, &drain)?;
        let its = Arc::clone(&event_loop_thread);
        std::thread::Builder::new().name("mcpace-loop".to_owned()).spawn(move || its.run_loop())?;
        exit_hook::register_hook(py)?;
        Ok(event_loop_thread)
    }

    fn run_loop(&self) {
        // Nothing to do where the interpreter is ending already.
        let _ = Python::try_attach(|py| {
            let event_loop = self.event_loop.bind(py);
            let ran = py
                .import("asyncio")
                .and_then(|asyncio| asyncio.call_method1("set_event_loop", (event_loop,)))
                .and_then(|_| event_loop.call_method0("run_forever"));
            if let Err(error) = ran {
                exceptions::log_failure(py, "the event loop", &error);
            }
            let left = {
                let mut queue = self.lock_queue();
                queue.over = true;
                std::mem::take(&mut queue.work)
            };
            drop(left);
            if let Err(error) = close_loop(event_loop) {
                exceptions::log_failure(py, "closing the event loop", &error);
            }
        });
        *self.has_ended() = true;
        self.ended.1.notify_all();
    }

    pub(crate) fn event_loop(&self) -> &Py<PyAny> {
        &self.event_loop
    }

    /// Returns the event loop for threads without the interpreter.
    pub(crate) fn event_loop_shared(&self) -> Arc<Py<PyAny>> {
        Arc::clone(&self.event_loop)
    }

    /// Runs work on the loop's thread. Work for a loop that has ended is dropped, which its waiting side notices.
    pub(crate) fn run_soon(&self, work: impl for<'py> FnOnce(Python<'py>) + Send + 'static) {
        let work: LoopWork = Box::new(work);
        let mut queue = self.lock_queue();
        if queue.over {
            drop(queue);
            drop(work);
            return;
        }
        queue.work.push(work);
        let wakes = !std::mem::replace(&mut queue.is_awake, true);
        drop(queue);
        if wakes {
            self.waker.wake_loop();
        }
    }

    fn lock_queue(&self) -> MutexGuard<'_, JobQueue> {
        // Nothing under the lock can panic half way.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drain_queue(&self, py: Python<'_>) {
        self.waker.clear();
        let work = {
            let mut queue = self.lock_queue();
            queue.is_awake = false;
            std::mem::take(&mut queue.work)
        };
        work.into_iter().for_each(|work| work(py));
    }

    /// Ends the loop, and waits for its thread, for so long; whether it has ended.
    pub(crate) fn end_loop(&self, py: Python<'_>, limit: Duration) -> bool {
        if self.process != std::process::id() {
            return true;
        }
        let event_loop = self.event_loop.bind(py);
        let stopped =
            event_loop.getattr("stop").and_then(|stop| event_loop.call_method1("call_soon_threadsafe", (stop,)));
        if stopped.is_err() {
            // It is closed already.
            return true;
        }
        py.detach(|| {
            let running = |has_ended: &mut bool| !*has_ended;
            let waited = self.ended.1.wait_timeout_while(self.has_ended(), limit, running);
            *waited.unwrap_or_else(PoisonError::into_inner).0
        })
    }

    fn has_ended(&self) -> MutexGuard<'_, bool> {
        self.ended.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As `asyncio.run` ends: tasks are cancelled, generators closed.
fn close_loop(event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = event_loop.py();
    let asyncio = py.import("asyncio")?;
    let tasks: Vec<Bound<'_, PyAny>> =
        asyncio.call_method1("all_tasks", (event_loop,))?.try_iter()?.collect::<PyResult<_>>()?;
    if !tasks.is_empty() {
        for task in &tasks {
            task.call_method0("cancel")?;
        }
        // With a limit: what doesn't let itself be cancelled can't hold up the end.
        let waiting = asyncio.call_method(
            "wait",
            (tasks,),
            Some(&{
                let limit = pyo3::types::PyDict::new(py);
                limit.set_item("timeout", 2.0)?;
                limit
            }),
        )?;
        event_loop.call_method1("run_until_complete", (waiting,))?;
    }
    event_loop.call_method1("run_until_complete", (event_loop.call_method0("shutdown_asyncgens")?,))?;
    event_loop.call_method0("close").map(drop)
}

/// Callback of the loop's wake-up.
#[pyclass(frozen, weakref)]
struct Drain {
    event_loop_thread: Arc<EventLoopThread>,
}

#[pymethods]
impl Drain {
    fn __call__(&self, py: Python<'_>) {
        self.event_loop_thread.drain_queue(py);
    }
}
