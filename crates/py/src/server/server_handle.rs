//! `Running`: a server that serves, and its end.

use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use mcpace_serve::{Server, http, stdio};
use pyo3::prelude::*;

use crate::problem::EnvironmentProblem;
use crate::runtime::SIGNAL_PERIOD;
use crate::server::exit_hook;
use crate::server::stdio_guard::OwnStdio;

/// Servers of this process, for its end.
static RUNNING: Mutex<Vec<Weak<Serving>>> = Mutex::new(Vec::new());

fn running_servers() -> MutexGuard<'static, Vec<Weak<Serving>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops all servers of this process.
pub(crate) fn stop_all() {
    let running = std::mem::take(&mut *running_servers());
    for serving in running.iter().filter_map(Weak::upgrade) {
        let _ = serving.stop_server();
    }
}

/// Open connections of clients to the HTTP servers of this process.
#[pyfunction]
pub(crate) fn open_connections() -> usize {
    let running = running_servers();
    let counts = running.iter().filter_map(Weak::upgrade).map(|serving| {
        let handle = serving.lock_handle();
        handle.as_ref().map_or(0, http::ServerHandle::connections)
    });
    counts.sum()
}

/// How long a client on stdio is still served after a signal.
const INTERRUPTED: Duration = Duration::from_secs(2);

/// A server that is serving.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Running {
    inner: Arc<Serving>,
    #[pyo3(get)]
    address: String,
    #[pyo3(get)]
    port: u16,
}

impl Running {
    pub(crate) fn new(py: Python<'_>, running: http::ServerHandle) -> PyResult<Self> {
        exit_hook::register_hook(py)?;
        let address = running.address();
        let inner = Arc::new(Serving { running: Mutex::new(Some(running)) });
        let mut running = running_servers();
        running.retain(|serving| serving.strong_count() > 0);
        running.push(Arc::downgrade(&inner));
        drop(running);
        Ok(Self { inner, address: address.to_string(), port: address.port() })
    }
}

/// State of [`Running`], which the end of the process stops, too.
struct Serving {
    running: Mutex<Option<http::ServerHandle>>,
}

impl Serving {
    fn lock_handle(&self) -> MutexGuard<'_, Option<http::ServerHandle>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks until all that was in flight is finished or cut off; how many connections were.
    fn stop_server(&self) -> usize {
        let running = self.lock_handle().take();
        running.map_or(0, http::ServerHandle::stop)
    }
}

#[pymethods]
impl Running {
    /// Waits until it has stopped, or a signal's handler raises.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        loop {
            py.check_signals()?;
            if self.inner.lock_handle().is_none() {
                return Ok(());
            }
            py.detach(|| std::thread::sleep(SIGNAL_PERIOD));
        }
    }

    /// Takes nothing new, finishes what is in flight, ends the rest: how many connections it cut off. Does nothing the
    /// second time.
    fn stop(&self, py: Python<'_>) -> usize {
        py.detach(|| self.inner.stop_server())
    }
}

/// Serves this process's stdin and stdout, on a thread of its own so that signals are seen; until the client leaves.
pub(crate) fn serve_stdio(py: Python<'_>, server: Server, options: stdio::Options) -> PyResult<()> {
    let stop = options.stop.clone();
    // Given back when this returns.
    let own = OwnStdio::take_stdio(py)?;
    let (input, output) = own.files()?;
    let (ended, end) = mpsc::channel();
    // Only so that it may be looked at while detached.
    let end = Mutex::new(end);
    let thread = thread::Builder::new().name("mcpace-stdio".to_owned()).spawn(move || {
        within_python(Box::new(move || {
            // The receiver is gone if its wait was interrupted.
            let _ = ended.send(stdio::run_files(server, options, input, output));
        }));
    })?;
    let ended = loop {
        match py.detach(|| end.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(SIGNAL_PERIOD)) {
            Ok(ended) => break Some(ended),
            Err(mpsc::RecvTimeoutError::Disconnected) => break None,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if let Err(interrupted) = py.check_signals() {
                    stop.cancel();
                    // Calls under way have a moment. A thread that is still there when the interpreter ends meets it half gone.
                    let wait = || end.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(INTERRUPTED);
                    if !matches!(py.detach(wait), Err(mpsc::RecvTimeoutError::Timeout)) {
                        let _ = py.detach(|| thread.join());
                    }
                    return Err(interrupted);
                }
            }
        }
    };
    py.detach(|| {
        // It has ended, or panicked and said so.
        let _ = thread.join();
    });
    match ended {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(EnvironmentProblem::new_err(error.to_string())),
        None => Err(EnvironmentProblem::new_err("the thread that served ended early")),
    }
}

/// Runs an I/O thread with a thread state of Python's that lasts as long, so that each attaching costs no new one.
pub(crate) fn within_python(work: Box<dyn FnOnce() + Send>) {
    // Where the interpreter is ending already, nothing is served.
    let _ = Python::try_attach(|py| py.detach(work));
}
