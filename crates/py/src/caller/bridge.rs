//! Passes messages from any thread to a Python event loop.
//!
//! Constraint: a sender wakes the loop only when no wake-up is on its way, and sending needs no interpreter. One bridge is made for each
//! loop, and lives as long as the loop.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::loop_waker::LoopWaker;

/// Queue of messages for one event loop.
pub(super) struct Bridge {
    queue: Mutex<BridgeQueue>,
    waker: LoopWaker,
}

#[derive(Default)]
struct BridgeQueue {
    messages: Vec<BridgeMessage>,
    /// A wake-up is on its way.
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
        let bridge = Arc::new(Self { queue: Mutex::default(), waker: LoopWaker::new()? });
        let drain = Bound::new(py, Drain { bridge: Arc::clone(&bridge) })?;
        bridge.waker.attach_loop(event_loop, &drain)?;
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
            self.waker.wake_loop();
        }
    }

    fn lock_queue(&self) -> MutexGuard<'_, BridgeQueue> {
        // Nothing under the lock can panic half way.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_messages(&self) -> Vec<BridgeMessage> {
        self.waker.clear();
        let mut queue = self.lock_queue();
        queue.is_awake = false;
        std::mem::take(&mut queue.messages)
    }
}

/// Called by the loop when the bridge was written to.
#[pyclass(frozen, weakref)]
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
