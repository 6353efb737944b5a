//! The one tokio runtime of the process, and waiting that Ctrl-C can end.

use std::future::Future;
use std::pin::pin;
use std::sync::OnceLock;
use std::time::Duration;

use pyo3::prelude::*;
use tokio::runtime::Runtime;

use crate::problem::EnvironmentProblem;

/// How long a wait goes on before Python's signals are looked at: what Ctrl-C takes at most.
pub(crate) const SIGNAL_PERIOD: Duration = Duration::from_millis(50);

/// The runtime; its threads start with the first instrument and live as long as the process.
pub(crate) fn runtime() -> PyResult<&'static Runtime> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .thread_name("mcpace")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())
    });
    made.as_ref().map_err(|reason| EnvironmentProblem::new_err(format!("could not start threads: {reason}")))
}

/// Runs `future` to its end without the interpreter's lock. A signal's exception (KeyboardInterrupt) drops it.
pub(crate) fn wait<F>(py: Python<'_>, future: F) -> PyResult<F::Output>
where
    F: Future + Send,
    F::Output: Send,
{
    let runtime = runtime()?;
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
