//! Failures of questions to the client, as exceptions that handlers can catch or let through.

use mcpace_serve::{AskError, HandlerError};
use pyo3::prelude::*;

use crate::problem::{AskProblem, InputRequired};

/// Failure of a question, kept in its exception so that the original error returns with it.
#[pyclass(frozen)]
pub(crate) struct ClientQuestionError {
    error: AskError,
}

/// The exception of a failed question.
pub(crate) fn ask_exception(py: Python<'_>, error: AskError) -> PyErr {
    let text = error.to_string();
    let (kind, code) = match &error {
        AskError::InputRequired(_) => ("input-required", None),
        AskError::Undeclared { .. } => ("undeclared", None),
        AskError::Unreachable => ("unreachable", None),
        AskError::TooMany => ("too-many", None),
        AskError::TimedOut => ("timed-out", None),
        AskError::Refused { code, .. } => ("refused", Some(*code)),
        AskError::BadAnswer(_) => ("bad-answer", None),
        AskError::Unwritable(_) => ("unwritable", None),
    };
    let message = match &error {
        AskError::Refused { message, .. } => message.clone(),
        _ => text.clone(),
    };
    let raised = match &error {
        AskError::InputRequired(_) => InputRequired::new_err(text),
        _ => AskProblem::new_err(text),
    };
    let value = raised.value(py);
    // Attributes of an exception that was just made can be set.
    let _ = value.setattr("kind", kind);
    let _ = value.setattr("code", code);
    let _ = value.setattr("message", message);
    let _ = value.setattr("_asked", ClientQuestionError { error });
    raised
}

/// The failure of a question whose exception a handler let through, if the protocol has an answer of its own for it.
pub(crate) fn question_failure(py: Python<'_>, error: &PyErr) -> Option<HandlerError> {
    if !error.is_instance_of::<InputRequired>(py) && !error.is_instance_of::<AskProblem>(py) {
        return None;
    }
    let asked = error.value(py).getattr("_asked").ok()?;
    let asked = asked.cast::<ClientQuestionError>().ok()?.get();
    matches!(asked.error, AskError::InputRequired(_) | AskError::Undeclared { .. }).then(|| asked.error.clone().into())
}
