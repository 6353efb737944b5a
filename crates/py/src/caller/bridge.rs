//! Passes messages from any thread to a Python event loop.
//!
//! Constraint: a sender writes a byte only when none is on its way, and sending needs no interpreter. One bridge is made for each
//! loop, and lives as long as the loop.

use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Queue of messages for one event loop.
pub(super) struct Bridge {
    queue: Mutex<BridgeQueue>,
    waker: UnixStream,
    woken: UnixStream,
}

#[derive(Default)]
struct BridgeQueue {
    messages: Vec<BridgeMessage>,
    /// A byte is on its way.
    is_awake: bool,
}

/// Task that can go on, on its loop's thread.
pub(super) trait Resume: Send + Sync {
    fn resume_waiting(&self, py: Python<'_>) -> PyResult<()>;
}

pub(super) enum BridgeMessage {
    /// A task can go on.
    Wake(Arc<dyn Resume>),
    /// Work for the loop's thread.
    Run(Box<dyn for<'py> FnOnce(Python<'py>) -> PyResult<()> + Send>),
}

impl Bridge {
    /// The bridge of a loop; made when first asked for, on the loop's thread.
    pub(super) fn of_loop(event_loop: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        static BRIDGES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = event_loop.py();
        let make = || Ok::<_, PyErr>(py.import("weakref")?.call_method0("WeakKeyDictionary")?.unbind());
        let bridges = BRIDGES.get_or_try_init(py, make)?.bind(py);
        let known = bridges.call_method1(intern!(py, "get"), (event_loop,))?;
        if let Ok(drain) = known.cast::<Drain>() {
            return Ok(Arc::clone(&drain.get().bridge));
        }
        let (waker, woken) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let bridge = Arc::new(Self { queue: Mutex::default(), waker, woken });
        let drain = Bound::new(py, Drain { bridge: Arc::clone(&bridge) })?;
        event_loop.call_method1(intern!(py, "add_reader"), (bridge.woken.as_raw_fd(), &drain))?;
        bridges.set_item(event_loop, drain)?;
        Ok(bridge)
    }

    pub(super) fn push_message(&self, message: BridgeMessage) {
        let wakes = {
            let mut queue = self.lock_queue();
            queue.messages.push(message);
            !std::mem::replace(&mut queue.is_awake, true)
        };
        if wakes {
            // A full pipe means that the loop is woken already.
            let _ = (&self.waker).write(&[1]);
        }
    }

    fn lock_queue(&self) -> MutexGuard<'_, BridgeQueue> {
        // Nothing under the lock can panic half way.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_messages(&self) -> Vec<BridgeMessage> {
        let mut bytes = [0; 64];
        let _ = (&self.woken).read(&mut bytes);
        let mut queue = self.lock_queue();
        queue.is_awake = false;
        std::mem::take(&mut queue.messages)
    }
}

/// Called by the loop when the bridge was written to.
#[pyclass(frozen)]
struct Drain {
    bridge: Arc<Bridge>,
}

#[pymethods]
impl Drain {
    fn __call__(&self, py: Python<'_>) {
        for message in self.bridge.take_messages() {
            let done = match message {
                BridgeMessage::Wake(task) => task.resume_waiting(py),
                BridgeMessage::Run(work) => work(py),
            };
            if let Err(error) = done {
                // Nobody else can be told: the one that it was for did not ask for it here.
                error.write_unraisable(py, None);
            }
        }
    }
}
