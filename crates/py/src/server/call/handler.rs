//! `Handler`: one Python function and how it is called, from argument bytes to a reply.

use std::sync::Arc;

use mcpace_serve::{HandlerError, RawReply};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::server::auth::access_request::AccessRequest;
use crate::server::call::exceptions;
use crate::server::call::output::Output;

/// Whether a function is a coroutine function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FunctionKind {
    Sync,
    Async,
}

/// Python function with the settings of its calls.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Handler {
    pub(crate) inner: Arc<Callable>,
}

/// Contents of a [`Handler`], for threads without the interpreter.
pub(crate) struct Callable {
    function: Arc<Py<PyAny>>,
    pub(crate) kind: FunctionKind,
    validate: Validate,
    context: Option<ContextReceiver>,
    output: Output,
    fail: Option<Py<PyAny>>,
}

/// Source of the keyword arguments.
enum Validate {
    Nowhere,
    /// From a function of Python's.
    Function(Py<PyAny>),
    /// From pydantic's validator itself; what that refuses is the function's.
    FastPath(Py<PyAny>, Py<PyAny>),
    /// The arguments are a token.
    Token,
    /// The one argument is what is asked.
    AccessRequest(Box<AccessRequest>),
}

/// Receiver of the context: a keyword argument, or only the function that would wrap it.
struct ContextReceiver {
    keyword: Option<Py<PyString>>,
    wrap: Option<Py<PyAny>>,
}

#[pymethods]
impl Handler {
    #[new]
    #[pyo3(signature = (function, *, kind="sync", validate=None, fast_path=None, context=None, wrap_context=None,
                        output="custom", finish=None, plain=None, fail=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        function: Py<PyAny>,
        kind: &str,
        validate: Option<Py<PyAny>>,
        fast_path: Option<Py<PyAny>>,
        context: Option<Py<PyString>>,
        wrap_context: Option<Py<PyAny>>,
        output: &str,
        finish: Option<Py<PyAny>>,
        plain: Option<&str>,
        fail: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let kind = match kind {
            "sync" => FunctionKind::Sync,
            "async" => FunctionKind::Async,
            other => return Err(PyValueError::new_err(format!("kind takes sync or async, not {other:?}"))),
        };
        let output = Output::parse_output(output, finish, plain)?;
        let is_wanted = context.is_some() || wrap_context.is_some();
        let context = is_wanted.then_some(ContextReceiver { keyword: context, wrap: wrap_context });
        let validate = match (validate, fast_path) {
            (None, None) => Validate::Nowhere,
            (Some(validate), None) => Validate::Function(validate),
            (Some(validate), Some(fast_path)) => Validate::FastPath(fast_path, validate),
            (None, Some(_)) => return Err(PyValueError::new_err("fast_path needs validate, for what it refuses")),
        };
        let function = Arc::new(function);
        Ok(Self { inner: Arc::new(Callable { function, kind, validate, context, output, fail }) })
    }
}

impl Callable {
    /// A coroutine function that is asked whose token it is.
    pub(crate) fn token_verifier(function: Py<PyAny>) -> Self {
        let output = Output::no_output();
        let function = Arc::new(function);
        Self { function, kind: FunctionKind::Async, validate: Validate::Token, context: None, output, fail: None }
    }

    /// A function that is asked this one thing, and gives text.
    pub(crate) fn permission_question(function: Arc<Py<PyAny>>, kind: FunctionKind, asked: AccessRequest) -> Self {
        let validate = Validate::AccessRequest(Box::new(asked));
        Self { function, kind, validate, context: None, output: Output::no_output(), fail: None }
    }

    /// Whether the function wants a context.
    pub(crate) fn wants_context(&self) -> bool {
        self.context.is_some()
    }

    /// Arguments to keyword arguments, by the validator.
    pub(crate) fn keyword_arguments<'py>(&self, py: Python<'py>, arguments: &[u8]) -> PyResult<Bound<'py, PyDict>> {
        match &self.validate {
            Validate::Function(validate) => {
                let keywords = validate.bind(py).call1((PyBytes::new(py, arguments),))?;
                Ok(keywords.cast_into::<PyDict>()?)
            }
            Validate::FastPath(fast_path, validate) => {
                let arguments = PyBytes::new(py, arguments);
                let keywords = match fast_path.bind(py).call1((&arguments,)) {
                    Err(error) if exceptions::is_validation(py, &error) => validate.bind(py).call1((arguments,))?,
                    outcome => outcome?,
                };
                Ok(keywords.cast_into::<PyDict>()?)
            }
            Validate::Nowhere => Ok(PyDict::new(py)),
            Validate::Token => {
                let keywords = PyDict::new(py);
                keywords.set_item(intern!(py, "token"), String::from_utf8_lossy(arguments))?;
                Ok(keywords)
            }
            Validate::AccessRequest(asked) => {
                let keywords = PyDict::new(py);
                keywords.set_item(intern!(py, "asked"), Bound::new(py, AccessRequest::clone(asked))?)?;
                Ok(keywords)
            }
        }
    }

    /// Puts the context among the keyword arguments, wrapped within the call's context variables.
    pub(crate) fn put_context(
        &self,
        keywords: &Bound<'_, PyDict>,
        variables: &Bound<'_, PyAny>,
        made: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = keywords.py();
        let Some(ContextReceiver { keyword, wrap }) = &self.context else { return Ok(()) };
        let made = match wrap {
            Some(wrap) => variables.call_method1(intern!(py, "run"), (wrap, made))?,
            None => made,
        };
        match keyword {
            Some(keyword) => keywords.set_item(keyword.bind(py), made),
            None => Ok(()),
        }
    }

    /// The function itself.
    pub(crate) fn function(&self) -> &Py<PyAny> {
        &self.function
    }

    /// Writes the return value of a function that is no tool as JSON text.
    pub(crate) fn result_text(&self, value: &Bound<'_, PyAny>) -> PyResult<String> {
        self.output.value_text(value)
    }

    /// Writes the return value of a tool as a result.
    pub(crate) fn write_result(&self, value: &Bound<'_, PyAny>, reply: &mut RawReply) -> Result<(), HandlerError> {
        self.output.write_value(value, reply).map_err(|error| self.failure_result(value.py(), error))
    }

    /// Turns an exception of the function into an answer.
    pub(crate) fn failure_result(&self, py: Python<'_>, error: PyErr) -> HandlerError {
        exceptions::to_handler_error(py, error, self.fail.as_ref())
    }
}
