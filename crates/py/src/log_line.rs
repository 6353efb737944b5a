//! Lines for Python's loggers.

use pyo3::prelude::*;

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Info,
    Warning,
    Error,
}

/// Writes a line, as it stands, to one of Python's loggers.
pub(crate) fn log_line(py: Python<'_>, logger: &str, level: Level, line: &str) -> PyResult<()> {
    let method = match level {
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    let logger = py.import("logging")?.call_method1("getLogger", (logger,))?;
    logger.call_method1(method, ("%s", line)).map(drop)
}
