//! A thread that calls `call_soon_threadsafe`.
//!
//! The thread keeps neither the loop nor its callback alive. It ends when the waker is dropped, and when the loop is gone or
//! closed.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;

/// Wakes one event loop.
pub(crate) struct LoopWaker {
    waker: SyncSender<()>,
    /// Until a loop is attached.
    wakes: Mutex<Option<Receiver<()>>>,
}

impl LoopWaker {
    pub(crate) fn new() -> io::Result<Self> {
        // One wake-up on its way is enough for all.
        let (waker, wakes) = sync_channel(1);
        Ok(Self { waker, wakes: Mutex::new(Some(wakes)) })
    }

    /// Lets the loop call `callback` after each wake-up. The loop keeps `callback` alive. Is called once.
    pub(crate) fn attach_loop(&self, event_loop: &Bound<'_, PyAny>, callback: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(wakes) = self.wakes.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(()) };
        let py = event_loop.py();
        let reference = py.import("weakref")?.getattr("ref")?;
        let weak_loop = reference.call1((event_loop,))?.unbind();
        let weak_callback = reference.call1((callback,))?.unbind();
        event_loop.setattr(intern!(py, "_mcpace_callbacks"), callbacks_with(event_loop, callback)?)?;
        std::thread::Builder::new().name("mcpace-waker".to_owned()).spawn(move || {
            for () in wakes {
                let called = Python::try_attach(|py| call_loop(py, &weak_loop, &weak_callback));
                if !matches!(called, Some(Ok(true))) {
                    break;
                }
            }
            // Without the interpreter, the references are dropped when it is there again, or never.
        })?;
        Ok(())
    }

    /// Wakes the loop.
    pub(crate) fn wake_loop(&self) {
        // A full channel means that the loop is woken already.
        let _ = self.waker.try_send(());
    }

    /// Nothing: the thread has taken the wake-up.
    #[expect(clippy::unused_self, reason = "the other waker takes a byte back")]
    pub(crate) fn clear(&self) {}
}

/// The callbacks that the loop keeps alive, and one more.
fn callbacks_with<'py>(
    event_loop: &Bound<'py, PyAny>,
    callback: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let known = event_loop.getattr_opt(intern!(event_loop.py(), "_mcpace_callbacks"))?;
    let mut callbacks: Vec<Bound<'py, PyAny>> = known.map(|known| known.extract()).transpose()?.unwrap_or_default();
    callbacks.push(callback.clone());
    Ok(callbacks)
}

/// Whether the loop is there and was called.
fn call_loop(py: Python<'_>, weak_loop: &Py<PyAny>, weak_callback: &Py<PyAny>) -> PyResult<bool> {
    let (event_loop, callback) = (weak_loop.bind(py).call0()?, weak_callback.bind(py).call0()?);
    if event_loop.is_none() || callback.is_none() {
        return Ok(false);
    }
    event_loop.call_method1(intern!(py, "call_soon_threadsafe"), (callback,))?;
    Ok(true)
}
