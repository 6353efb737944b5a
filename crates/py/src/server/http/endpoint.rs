//! `Endpoint`: the HTTP endpoint without a socket, for a host that has its own: an ASGI server, a test.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use mcpace_serve::Ends;
use mcpace_serve::http::{Endpoint as Inner, EndpointBody as Body};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use crate::server::http::connection_ends::{self, AddressTuple};
use crate::server::threads::awaitable::{self, Given};

/// HTTP endpoint that is called with whole requests.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Endpoint {
    inner: Inner,
    runtime: Handle,
}

impl Endpoint {
    pub(crate) fn new(inner: Inner, runtime: Handle) -> Self {
        Self { inner, runtime }
    }
}

#[pymethods]
impl Endpoint {
    /// Answers a request whose body is there; an awaitable of a `Reply`. `client`, `server` and `scheme` are what ASGI says
    /// of the connection.
    #[pyo3(signature = (method, target, headers, body, *, client=None, server=None, scheme="http"))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keywords")]
    fn call<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        target: &str,
        headers: Vec<(Vec<u8>, Vec<u8>)>,
        body: &[u8],
        client: AddressTuple,
        server: AddressTuple,
        scheme: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(format!("no request can be made: {error}"));
        let mut request = Request::new(Bytes::copy_from_slice(body));
        *request.method_mut() = Method::from_bytes(method.as_bytes()).map_err(|error| wrong(&error))?;
        *request.uri_mut() = target.parse::<Uri>().map_err(|error| wrong(&error))?;
        for (name, value) in headers {
            let name = HeaderName::from_bytes(&name).map_err(|error| wrong(&error))?;
            request.headers_mut().append(name, HeaderValue::from_bytes(&value).map_err(|error| wrong(&error))?);
        }
        request.extensions_mut().insert(Ends {
            client: connection_ends::parse_address(&client),
            server: connection_ends::parse_address(&server),
            is_tls: scheme == "https",
        });
        let (endpoint, runtime) = (self.inner.clone(), self.runtime.clone());
        awaitable::spawn_awaitable(py, &self.runtime, async move {
            let (head, body) = endpoint.call(request).await.into_parts();
            let reply = Reply {
                status: head.status.as_u16(),
                headers: head
                    .headers
                    .iter()
                    .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
                    .collect(),
                is_stream: body.is_stream(),
                body: Arc::new(Mutex::new(Some(body))),
                runtime,
            };
            Box::new(move |py: Python<'_>| Ok(Bound::new(py, reply)?.into_any().unbind())) as Given
        })
    }
}

/// An answer; its body comes piece by piece.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Reply {
    #[pyo3(get)]
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    #[pyo3(get)]
    is_stream: bool,
    body: Arc<Mutex<Option<Body>>>,
    runtime: Handle,
}

#[pymethods]
impl Reply {
    /// Pairs of bytes, as ASGI has them.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let pair = |(name, value): &(String, Vec<u8>)| (PyBytes::new(py, name.as_bytes()), PyBytes::new(py, value));
        self.headers.iter().map(pair).collect()
    }

    /// The next piece; an awaitable, of `None` at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let body = Arc::clone(&self.body);
        awaitable::spawn_awaitable(py, &self.runtime, async move {
            let mut body = body.lock().await;
            let piece = match &mut *body {
                Some(body) => body.next().await,
                None => None,
            };
            Box::new(move |py: Python<'_>| match piece {
                Some(piece) => Ok(PyBytes::new(py, &piece).into_any().unbind()),
                None => Ok(py.None()),
            }) as Given
        })
    }

    /// The client has gone away: what is still under way for it is cancelled. An awaitable.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let body = Arc::clone(&self.body);
        awaitable::spawn_awaitable(py, &self.runtime, async move {
            drop(body.lock().await.take());
            Box::new(|py: Python<'_>| Ok(py.None())) as Given
        })
    }
}
