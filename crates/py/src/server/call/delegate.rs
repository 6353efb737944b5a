//! A Python server behind the registry, for adopted servers. It receives whole requests as `Exchange`s, on its own event loop.
//!
//! Constraint: `submit(exchange)` runs on the I/O thread and must not wait. `Exchange.reply` and `Exchange.fail` answer from any
//! thread. A request without an answer ends with its client.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mcpace_serve::guard::ComponentKind;
use mcpace_serve::{AskError, Context, Delegate, DelegateError, Delegated, Headers};
use mcpace_wire::jsonrpc::{Id, code};
use mcpace_wire::mcp::{Json, Method};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::problem::UsageProblem;
use crate::server::auth::token_object::principal_of;
use crate::server::call::exceptions;
use crate::server::call::output::text_of;
use crate::server::http::connection_ends;

/// Python server that answers some methods itself.
pub(crate) struct PythonDelegate {
    submit: Py<PyAny>,
    methods: Vec<Method>,
}

impl PythonDelegate {
    pub(crate) fn new(submit: Py<PyAny>, methods: &[String]) -> PyResult<Self> {
        let unknown = |name: &String| UsageProblem::new_err(format!("there is no method {name:?}"));
        let methods = methods.iter().map(|name| Method::parse(name).ok_or_else(|| unknown(name)));
        Ok(Self { submit, methods: methods.collect::<PyResult<_>>()? })
    }
}

impl Delegate for PythonDelegate {
    fn takes(&self, method: Method) -> bool {
        self.methods.contains(&method)
    }

    fn call(&self, context: Context) -> Delegated {
        let (answer, answered) = oneshot::channel();
        let waiting = WaitingSide { answer: Some(answer), on_cancel: None };
        let submitted = Python::attach(|py| {
            let exchange = Exchange { context, runtime: Handle::current(), waiting: Mutex::new(waiting) };
            let exchange = Py::new(py, exchange)?;
            match self.submit.bind(py).call1((exchange.clone_ref(py),)) {
                Ok(_) => Ok(exchange),
                Err(error) => {
                    exceptions::log_failure(py, "handing a request over", &error);
                    Err(error)
                }
            }
        });
        Box::pin(async move {
            let Ok(exchange) = submitted else { return Err(internal_error()) };
            // Dropped with this future: then Python learns that nobody wants the answer.
            let _guard = EndGuard(exchange);
            answered.await.unwrap_or_else(|_| Err(internal_error()))
        })
    }
}

fn internal_error() -> DelegateError {
    DelegateError { code: code::INTERNAL_ERROR, message: "internal error".to_owned(), data: None }
}

/// One request that Python answers.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Exchange {
    context: Context,
    runtime: Handle,
    waiting: Mutex<WaitingSide>,
}

/// The waiting side of an exchange.
struct WaitingSide {
    answer: Option<oneshot::Sender<Result<Bytes, DelegateError>>>,
    on_cancel: Option<Py<PyAny>>,
}

/// Python object that a session keeps.
struct SessionObject(Py<PyAny>);

impl Exchange {
    /// Whether a list that it asks for would show these.
    pub(crate) fn may_see(
        &self,
        kind: ComponentKind,
        names: Vec<String>,
    ) -> impl Future<Output = Vec<bool>> + Send + 'static {
        self.context.may_see(kind, names)
    }
}

#[pymethods]
impl Exchange {
    #[getter]
    fn method(&self) -> &'static str {
        self.context.method().as_str()
    }

    /// The request's parameters, a JSON object; `None` where there are none.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.context.params().map(|params| PyBytes::new(py, params))
    }

    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.context.request_id() {
            Id::Integer(id) => Ok(id.into_pyobject(py)?.into_any()),
            Id::Number(text) => Ok(PyString::new(py, text).into_any()),
            Id::String(text) => Ok(PyString::new(py, text).into_any()),
        }
    }

    #[getter]
    fn revision(&self) -> &'static str {
        self.context.revision().as_str()
    }

    /// The HTTP headers in their order, names in lower case, as ASGI has them; `None` where the request came another way.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let Some(headers) = self.context.headers() else { return Ok(None) };
        let bytes = |name: &str, value: &[u8]| {
            (PyBytes::new(py, name.to_ascii_lowercase().as_bytes()), PyBytes::new(py, value))
        };
        let headers: Vec<_> = headers.iter().map(|(name, value)| bytes(name, value)).collect();
        PyList::new(py, headers).map(Some)
    }

    /// Path and query that the HTTP request is for; `None` where the request came another way.
    #[getter]
    fn target(&self) -> Option<&str> {
        self.context.headers().map(Headers::target)
    }

    /// The connection that the HTTP request came over, as ASGI describes it; `None` where the request came another way.
    #[getter]
    fn connection(&self) -> Option<connection_ends::ConnectionTuple> {
        self.context.headers().map(|headers| connection_ends::python_ends(headers.ends()))
    }

    /// Return value of the token verifier for the caller.
    #[getter]
    fn token(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.context.principal().map_or(Ok(None), |principal| principal_of(py, principal))
    }

    /// Whether there is a legacy session.
    #[getter]
    fn has_session(&self) -> bool {
        self.context.session().is_some()
    }

    /// Object that `keep` stored in this session.
    #[getter]
    fn kept(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let kept = self.context.session()?.attachment().get()?.downcast_ref::<SessionObject>()?;
        Some(kept.0.clone_ref(py))
    }

    /// Keeps a value for as long as the session lives; false where there is no session, or something is kept already.
    fn keep(&self, value: Py<PyAny>) -> bool {
        self.context.session().is_some_and(|session| session.attachment().set(Box::new(SessionObject(value))).is_ok())
    }

    /// Whether the client no longer wants the answer.
    #[getter]
    fn is_cancelled(&self) -> bool {
        self.context.is_cancelled()
    }

    /// Calls `callback()` when the client no longer wants the answer; at once, if that is so already.
    fn on_cancel(&self, py: Python<'_>, callback: Py<PyAny>) -> PyResult<()> {
        if self.context.is_cancelled() {
            return callback.bind(py).call0().map(drop);
        }
        self.lock_waiting().on_cancel = Some(callback);
        Ok(())
    }

    /// Answers with a result, a JSON object.
    fn reply(&self, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let result = text_of(result)?;
        if !result.starts_with('{') {
            return Err(PyValueError::new_err("a result is a JSON object"));
        }
        self.set_answer(Ok(Bytes::copy_from_slice(result.as_bytes())));
        Ok(())
    }

    /// Answers with a JSON-RPC error.
    #[pyo3(signature = (code, message, data=None))]
    fn fail(&self, code: i64, message: String, data: Option<String>) -> PyResult<()> {
        let data = data.map(parse_json).transpose()?;
        self.set_answer(Err(DelegateError { code, message, data }));
        Ok(())
    }

    /// Sends a notification ahead of the answer.
    #[pyo3(signature = (method, params=None))]
    fn notify(&self, py: Python<'_>, method: &str, params: Option<String>) -> PyResult<()> {
        let params = params.map(parse_json).transpose()?;
        py.detach(|| self.context.send_notification(method, params.as_ref()));
        Ok(())
    }

    /// Closes the stream of the request. The request goes on, and the client resumes the stream for its answer.
    fn release(&self, py: Python<'_>) {
        py.detach(|| self.context.release());
    }

    /// Asks the client; `done(result, error)` is called with the result's JSON or with `(code, message)`, from another
    /// thread.
    fn ask(&self, method: &str, params: Option<String>, done: Py<PyAny>) -> PyResult<()> {
        let method = Method::parse(method).ok_or_else(|| PyValueError::new_err("there is no such method"))?;
        let params = params.map(parse_json).transpose()?;
        let context = self.context.clone();
        self.runtime.spawn(async move {
            let asked = async {
                tokio::select! {
                    answer = context.send_request(method, params.as_ref()) => answer,
                    () = context.cancellation().cancelled() => Err(AskError::Unreachable),
                }
            };
            let answer = asked.await;
            Python::attach(|py| {
                let told = match &answer {
                    Ok(result) => done.bind(py).call1((PyBytes::new(py, result.as_bytes()), py.None())),
                    Err(error) => done.bind(py).call1((py.None(), refusal_of(error))),
                };
                if let Err(error) = told {
                    exceptions::log_failure(py, "the callback for a client's answer", &error);
                }
            });
        });
        Ok(())
    }
}

impl Exchange {
    fn set_answer(&self, answer: Result<Bytes, DelegateError>) {
        let mut waiting = self.lock_waiting();
        waiting.on_cancel = None;
        if let Some(sender) = waiting.answer.take() {
            // The receiver may be gone.
            let _ = sender.send(answer);
        }
    }

    fn lock_waiting(&self) -> MutexGuard<'_, WaitingSide> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parse_json(text: String) -> PyResult<Json> {
    Json::from_text(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn refusal_of(error: &AskError) -> (i64, String) {
    match error {
        AskError::Refused { code, message } => (*code, message.clone()),
        other => (code::INTERNAL_ERROR, other.to_string()),
    }
}

/// Tells Python that an exchange is over.
struct EndGuard(Py<Exchange>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        let cancelled = {
            let mut waiting = self.0.get().lock_waiting();
            waiting.answer.take().is_some().then(|| waiting.on_cancel.take()).flatten()
        };
        let Some(callback) = cancelled else { return };
        Python::attach(|py| {
            if let Err(error) = callback.bind(py).call0() {
                exceptions::log_failure(py, "the callback for a cancelled request", &error);
            }
        });
    }
}
