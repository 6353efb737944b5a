//! A byte on a socket pair, whose reading end the loop watches.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;

use pyo3::intern;
use pyo3::prelude::*;

/// Wakes one event loop.
pub(crate) struct LoopWaker {
    waker: UnixStream,
    woken: UnixStream,
}

impl LoopWaker {
    pub(crate) fn new() -> io::Result<Self> {
        let (waker, woken) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        Ok(Self { waker, woken })
    }

    /// Lets the loop call `callback` after each wake-up. The loop keeps `callback` alive.
    pub(crate) fn attach_loop(&self, event_loop: &Bound<'_, PyAny>, callback: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = event_loop.py();
        event_loop.call_method1(intern!(py, "add_reader"), (self.woken.as_raw_fd(), callback)).map(drop)
    }

    /// Wakes the loop.
    pub(crate) fn wake_loop(&self) {
        // A full pipe means that the loop is woken already.
        let _ = (&self.waker).write(&[1]);
    }

    /// Takes the wake-up back; the callback does so first.
    pub(crate) fn clear(&self) {
        let mut bytes = [0; 64];
        let _ = (&self.woken).read(&mut bytes);
    }
}
