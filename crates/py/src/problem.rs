//! Python's exceptions, all of them: whose fault it was decides the class, and the class the exit code.

use mcpace_net::NetError;
use mcpace_record::RecordError;
use mcpace_serve::http::ServeError;
use mcpace_serve::{BuildError, NotifyError};
use mcpace_target::{Blame, TargetError};
use pyo3::exceptions::{PyBaseException, PyConnectionError, PyException, PyLookupError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(_core, Problem, PyException, "Base of what can go wrong in the instruments.");
pyo3::create_exception!(_core, UsageProblem, Problem, "The caller's fault: the options make no sense.");
pyo3::create_exception!(
    _core,
    EnvironmentProblem,
    Problem,
    "The environment's fault: a port, a file, a server that can't be reached."
);
pyo3::create_exception!(
    _core,
    ClientProblem,
    Problem,
    "An operation of our own client failed; the server's or the way's fault."
);

pyo3::create_exception!(_core, RegistrationProblem, UsageProblem, "Something that can't be registered with a server.");

pyo3::create_exception!(_core, CallProblem, Problem, "A client's request failed: code, sentence, JSON-RPC error.");

pyo3::create_exception!(_core, AskProblem, Problem, "A question to a server's client that has no answer.");
pyo3::create_exception!(
    _core,
    InputRequired,
    PyBaseException,
    "Ends a handler's round: it runs again when the client has answered. Not to be caught."
);

/// Turns an error of one of our crates into Python's.
pub(crate) trait IntoPython {
    /// The exception to raise.
    fn into_python(self) -> PyErr;
}

impl IntoPython for NetError {
    fn into_python(self) -> PyErr {
        let text = self.to_string();
        match self {
            NetError::BadUrl { .. } => UsageProblem::new_err(text),
            _ => EnvironmentProblem::new_err(text),
        }
    }
}

impl IntoPython for TargetError {
    fn into_python(self) -> PyErr {
        match self.blame() {
            Blame::Caller => UsageProblem::new_err(self.to_string()),
            Blame::Environment => EnvironmentProblem::new_err(self.to_string()),
        }
    }
}

impl IntoPython for RecordError {
    fn into_python(self) -> PyErr {
        match self {
            RecordError::Io(_) => EnvironmentProblem::new_err(self.to_string()),
            _ => UsageProblem::new_err(self.to_string()),
        }
    }
}

impl IntoPython for BuildError {
    fn into_python(self) -> PyErr {
        RegistrationProblem::new_err(self.to_string())
    }
}

impl IntoPython for ServeError {
    fn into_python(self) -> PyErr {
        match self {
            ServeError::Option { .. } | ServeError::Certificate(_) => UsageProblem::new_err(self.to_string()),
            ServeError::Listen { .. } | ServeError::WorkerSocket { .. } | ServeError::Worker(_) => {
                EnvironmentProblem::new_err(self.to_string())
            }
        }
    }
}

impl IntoPython for NotifyError {
    fn into_python(self) -> PyErr {
        let text = self.to_string();
        match self {
            NotifyError::Unknown => PyLookupError::new_err(text),
            NotifyError::Unread | NotifyError::StoreDown | NotifyError::Refused => PyConnectionError::new_err(text),
            NotifyError::Unwritable(_) => PyValueError::new_err(text),
        }
    }
}

/// Shorthand for results.
pub(crate) trait OrRaise<T> {
    /// The value, or the error as an exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: IntoPython> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(IntoPython::into_python)
    }
}
