//! Turns Python exceptions into answers.
//!
//! A handler's `fail(exception)` decides. It returns the JSON of a whole result (`input_required` included), or
//! `(code, message, data)` of a JSON-RPC error. Without `fail`, the client receives the text of pydantic's `ValidationError` and of
//! exceptions with an attribute `__mcpace_told__`. Any other exception goes to the log.

use mcpace_serve::{HandlerError, InputRequired};
use mcpace_wire::mcp::{CallToolResult, InputRequiredResult, Json, ResultType};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

use crate::server::call::client_question;
use crate::server::call::output::text_of;

/// Turns an exception into the error that ends the call.
pub(crate) fn to_handler_error(py: Python<'_>, error: PyErr, fail: Option<&Py<PyAny>>) -> HandlerError {
    if let Some(unanswered) = client_question::question_failure(py, &error) {
        return unanswered;
    }
    let Some(fail) = fail else { return default_error(py, &error) };
    match fail.bind(py).call1((error.value(py),)).and_then(|answer| parse_fail_answer(&answer)) {
        Ok(answer) => answer,
        Err(second) => {
            log_failure(py, "what makes an answer of a failure", &second);
            default_error(py, &error)
        }
    }
}

/// Parses the return value of `fail`.
fn parse_fail_answer(answer: &Bound<'_, PyAny>) -> PyResult<HandlerError> {
    if let Ok(error) = answer.cast::<PyTuple>() {
        let (code, message, data): (i64, String, Option<String>) = error.extract()?;
        let data = data.map(Json::from_text).transpose().map_err(to_value_error)?;
        return Ok(HandlerError::protocol(code, message, data));
    }
    let text = text_of(answer)?;
    if let Ok(asks) = serde_json::from_str::<ClientQuestions>(text) {
        return Ok(InputRequired::from(asks.0).into());
    }
    let result: CallToolResult = serde_json::from_str(text).map_err(to_value_error)?;
    Ok(HandlerError::result(result))
}

/// Questions to the client.
struct ClientQuestions(InputRequiredResult);

impl<'de> serde::Deserialize<'de> for ClientQuestions {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let result = InputRequiredResult::deserialize(deserializer)?;
        match result.result_type {
            ResultType::InputRequired => Ok(ClientQuestions(result)),
            _ => Err(serde::de::Error::custom("no question")),
        }
    }
}

fn to_value_error(error: serde_json::Error) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(error.to_string())
}

fn default_error(py: Python<'_>, error: &PyErr) -> HandlerError {
    if is_for_the_client(py, error) {
        return HandlerError::new(error.value(py).to_string());
    }
    log_failure(py, "a handler", error);
    HandlerError::internal(error.value(py).to_string())
}

/// Whether the client may read an exception's text.
fn is_for_the_client(py: Python<'_>, error: &PyErr) -> bool {
    is_validation(py, error) || error.value(py).hasattr("__mcpace_told__").unwrap_or(false)
}

/// Whether it is pydantic's, for a value that isn't what it should be.
pub(crate) fn is_validation(py: Python<'_>, error: &PyErr) -> bool {
    static VALIDATION: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    VALIDATION.import(py, "pydantic_core", "ValidationError").is_ok_and(|kind| error.is_instance(py, kind))
}

/// Logs the failure of `what`, with the traceback, to Python's logger `mcpace.server`.
pub(crate) fn log_failure(py: Python<'_>, what: &str, error: &PyErr) {
    let logged = || -> PyResult<()> {
        let logger = py.import("logging")?.call_method1("getLogger", ("mcpace.server",))?;
        let details = pyo3::types::PyDict::new(py);
        details.set_item("exc_info", error.value(py))?;
        logger.call_method("error", ("%s failed", what), Some(&details)).map(drop)
    };
    // A logger that fails has nobody left to tell.
    if logged().is_err() {
        error.display(py);
    }
}
