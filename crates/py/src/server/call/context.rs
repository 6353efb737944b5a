//! `Context`: what a Python function may know and ask of its request.

use std::borrow::Cow;
use std::future::Future;

use mcpace_serve::AskError;
use mcpace_wire::jsonrpc::Id;
use mcpace_wire::mcp::{CreateMessageParams, ElicitParams, Json, LoggingLevel, key};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::runtime::Handle;

use crate::server::auth::token_object::principal_of;
use crate::server::call::client_question::ask_exception;
use crate::server::call::header_dict::headers_by_name;
use crate::server::call::output::text_of;
use crate::server::http::connection_ends;
use crate::server::threads::awaitable::{self, Given};

/// Context of one call.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Context {
    inner: mcpace_serve::Context,
    /// Runtime on which questions to the client wait for answers.
    runtime: Handle,
}

impl Context {
    pub(crate) fn new(inner: mcpace_serve::Context, runtime: Handle) -> Self {
        Self { inner, runtime }
    }

    /// The request's `_meta`, as it came.
    fn raw_meta(&self) -> Option<Cow<'_, RawValue>> {
        #[derive(serde::Deserialize)]
        struct MetaParams<'a> {
            #[serde(rename = "_meta", borrow)]
            meta: Option<&'a RawValue>,
        }
        let params: MetaParams<'_> = serde_json::from_slice(self.inner.params()?).ok()?;
        params.meta.map(Cow::Borrowed)
    }

    fn ask_client<'py, P, R, F>(
        &self,
        py: Python<'py>,
        params: P,
        ask: impl FnOnce(mcpace_serve::Context, P) -> F,
    ) -> PyResult<Bound<'py, PyAny>>
    where
        R: Serialize,
        F: Future<Output = Result<R, AskError>> + Send + 'static,
    {
        let asked = ask(self.inner.clone(), params);
        awaitable::spawn_awaitable(py, &self.runtime, async move {
            let answer = asked.await.and_then(|answer| {
                serde_json::to_string(&answer).map_err(|error| AskError::BadAnswer(error.to_string()))
            });
            Box::new(move |py: Python<'_>| match answer {
                Ok(json) => Ok(PyBytes::new(py, json.as_bytes()).into_any().unbind()),
                Err(error) => Err(ask_exception(py, error)),
            }) as Given
        })
    }
}

#[pymethods]
impl Context {
    /// The request's id, as it came.
    #[getter]
    fn request_id<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.inner.request_id() {
            Id::Integer(id) => Ok(id.into_pyobject(py)?.into_any()),
            Id::Number(text) | Id::String(text) => Ok(PyString::new(py, text).into_any()),
        }
    }

    #[getter]
    fn revision(&self) -> &'static str {
        self.inner.revision().as_str()
    }

    #[getter]
    fn method(&self) -> &'static str {
        self.inner.method().as_str()
    }

    /// The request's parameters as JSON.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.inner.params().map(|params| PyBytes::new(py, params))
    }

    /// The session's id in HTTP.
    #[getter]
    fn session_id(&self) -> Option<String> {
        self.inner.session()?.id().map(str::to_owned)
    }

    /// Name and version that the client states, as JSON.
    #[getter]
    fn client_info<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        if let Some(session) = self.inner.session() {
            let json = serde_json::to_vec(session.client_info()).ok()?;
            return Some(PyBytes::new(py, &json));
        }
        let meta = self.raw_meta()?;
        let members: std::collections::HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(meta.get()).ok()?;
        members.get(key::CLIENT_INFO).map(|info| PyBytes::new(py, info.get().as_bytes()))
    }

    /// Capabilities that the client states, as JSON.
    #[getter]
    fn client_capabilities<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let json = serde_json::to_vec(&self.inner.client_capabilities()?).ok()?;
        Some(PyBytes::new(py, &json))
    }

    /// Return value of the token verifier.
    #[getter]
    fn principal(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.inner.principal().map_or(Ok(None), |principal| principal_of(py, principal))
    }

    /// The HTTP headers by lower-case name; of several values of a name, all, joined by commas.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match self.inner.headers() {
            Some(headers) => headers_by_name(py, headers),
            None => Ok(PyDict::new(py)),
        }
    }

    /// The connection that the HTTP request came over, as ASGI describes it; `None` where the request came another way.
    #[getter]
    fn connection(&self) -> Option<connection_ends::ConnectionTuple> {
        self.inner.headers().map(|headers| connection_ends::python_ends(headers.ends()))
    }

    /// The request's `_meta` as JSON.
    #[getter]
    fn meta<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.raw_meta().map(|meta| PyBytes::new(py, meta.get().as_bytes()))
    }

    /// The answers of the rounds before, as JSON; `None` in the first round.
    #[getter]
    fn input_responses<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let responses = self.inner.input_responses();
        if responses.is_empty() {
            return None;
        }
        serde_json::to_vec(responses).ok().map(|json| PyBytes::new(py, &json))
    }

    /// The state that the round before left.
    #[getter]
    fn request_state(&self) -> Option<String> {
        self.inner.request_state()
    }

    fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }

    #[pyo3(signature = (progress, total=None, message=None))]
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.inner.progress(progress, total, message);
    }

    /// Sends a log message; `data` is JSON.
    fn log(&self, level: &str, logger: Option<&str>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let level: LoggingLevel = parse_json(&format!("{level:?}"))?;
        if self.inner.wants(level) {
            let data: Json = parse_json(text_of(data)?)?;
            self.inner.log(level, logger, &data);
        }
        Ok(())
    }

    /// Lets the client's connection go, not the call.
    fn release(&self) {
        self.inner.release();
    }

    /// Tells that what the client was sent to by URL is done.
    fn elicitation_complete(&self, elicitation_id: String) {
        self.inner.elicitation_complete(elicitation_id);
    }

    /// Sends a notification ahead of the result; `params` is JSON.
    #[pyo3(signature = (method, params=None))]
    fn notify(&self, method: &str, params: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let params = params.map(|params| parse_json::<Json>(text_of(params)?)).transpose()?;
        self.inner.send_notification(method, params.as_ref());
        Ok(())
    }

    /// Asks the user; an awaitable of the result's JSON.
    fn elicit<'py>(&self, py: Python<'py>, params: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let params: ElicitParams = parse_json(text_of(params)?)?;
        self.ask_client(py, params, |context, params| async move { context.elicit(params).await })
    }

    /// Asks the client's model; an awaitable of the result's JSON.
    fn sample<'py>(&self, py: Python<'py>, params: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let params: CreateMessageParams = parse_json(text_of(params)?)?;
        self.ask_client(py, params, |context, params| async move { context.sample(params).await })
    }

    /// Asks for the client's roots; an awaitable of the result's JSON.
    fn list_roots<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ask_client(py, (), |context, ()| async move { context.list_roots().await })
    }

    /// The id of the task that the call runs as.
    #[getter]
    fn task_id(&self) -> Option<&str> {
        self.inner.task_id()
    }

    /// Makes the call a task; an awaitable.
    fn begin_task<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ask_client(py, (), |context, ()| async move { context.begin_task().await })
    }
}

fn parse_json<T: DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))
}
