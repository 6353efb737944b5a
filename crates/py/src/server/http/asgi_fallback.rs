//! An ASGI 3 application beside the endpoint: requests for other paths go to it, on the event loop.
//!
//! Constraint: one piece of a body each way is under way at a time, so a slow side holds back the other. No lifespan (the
//! server has its own), no WebSockets.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version};
use mcpace_serve::Ends;
use mcpace_serve::http::{BrokenOff, Fallback, Responding, Upload};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use crate::server::call::exceptions;
use crate::server::http::connection_ends;
use crate::server::threads::awaitable::{self, Given};
use crate::server::threads::coroutine_call::{self, CoroutineCall};
use crate::server::threads::event_loop_thread::EventLoopThread;

/// Name of the application in the log.
const WHAT: &str = "the ASGI application beside the endpoint";

/// ASGI application that answers the requests for other paths.
pub(crate) struct Application {
    pub(crate) app: Arc<Py<PyAny>>,
    pub(crate) event_loop_thread: Arc<EventLoopThread>,
    pub(crate) is_tls: bool,
}

impl Fallback for Application {
    fn call_service(&self, request: Request<Upload>) -> Responding {
        let (app, event_loop_thread, is_tls) =
            (Arc::clone(&self.app), Arc::clone(&self.event_loop_thread), self.is_tls);
        Box::pin(async move {
            let (head, upload) = request.into_parts();
            let (began, beginning) = oneshot::channel();
            let flight = Arc::new(CoroutineCall::default());
            let traffic = Arc::new(Traffic {
                runtime: Handle::current(),
                upload: Arc::new(tokio::sync::Mutex::new(Some(upload))),
                sending: Mutex::new(Sending::Nothing { began: Some(began) }),
                turns: watch::Sender::new(()),
            });
            let its = Arc::clone(&flight);
            let event_loop = event_loop_thread.event_loop_shared();
            event_loop_thread
                .run_soon(move |py| begin_call(py, &app, event_loop.bind(py), &head, is_tls, traffic, &its));
            let guard = Cancelling { event_loop_thread, flight: Some(flight) };
            match beginning.await {
                Ok(response) => {
                    guard.disarm_guard();
                    response
                }
                Err(_) => {
                    let mut response = Response::new(mpsc::channel(1).1);
                    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                    response
                }
            }
        })
    }
}

/// Cancels the application's task when the client goes before the response has begun.
struct Cancelling {
    event_loop_thread: Arc<EventLoopThread>,
    flight: Option<Arc<CoroutineCall>>,
}

impl Cancelling {
    fn disarm_guard(mut self) {
        self.flight = None;
    }
}

impl Drop for Cancelling {
    fn drop(&mut self) {
        if let Some(flight) = &self.flight {
            flight.cancel_call(&self.event_loop_thread);
        }
    }
}

fn begin_call(
    py: Python<'_>,
    app: &Py<PyAny>,
    event_loop: &Bound<'_, PyAny>,
    head: &Parts,
    is_tls: bool,
    traffic: Arc<Traffic>,
    flight: &Arc<CoroutineCall>,
) {
    let begun = || -> PyResult<()> {
        let scope = asgi_scope(py, head, is_tls)?;
        let receive = Bound::new(py, Receive { traffic: Arc::clone(&traffic) })?;
        let send = Bound::new(py, Send { traffic: Arc::clone(&traffic) })?;
        let running = app.bind(py).call1((scope, receive, send))?;
        coroutine_call::begin_alone(event_loop, &running, flight, WHAT, move || traffic.end_traffic())
    };
    if let Err(error) = begun() {
        exceptions::log_failure(py, WHAT, &error);
    }
}

/// ASGI's description of a request (asgiref 3, "HTTP & WebSocket", "HTTP Connection Scope").
fn asgi_scope<'py>(py: Python<'py>, head: &Parts, is_tls: bool) -> PyResult<Bound<'py, PyDict>> {
    let scope = PyDict::new(py);
    let asgi = PyDict::new(py);
    asgi.set_item("version", "3.0")?;
    asgi.set_item("spec_version", "2.3")?;
    scope.set_item("type", "http")?;
    scope.set_item("asgi", asgi)?;
    scope.set_item("http_version", if head.version == Version::HTTP_2 { "2" } else { "1.1" })?;
    scope.set_item("method", head.method.as_str())?;
    scope.set_item("scheme", connection_ends::url_scheme(is_tls))?;
    scope.set_item("path", percent_decoded(head.uri.path()))?;
    scope.set_item("raw_path", PyBytes::new(py, head.uri.path().as_bytes()))?;
    scope.set_item("query_string", PyBytes::new(py, head.uri.query().unwrap_or_default().as_bytes()))?;
    scope.set_item("root_path", "")?;
    let headers = PyList::empty(py);
    if let (None, Some(authority)) = (head.headers.get(http::header::HOST), head.uri.authority()) {
        headers.append((PyBytes::new(py, b"host"), PyBytes::new(py, authority.as_str().as_bytes())))?;
    }
    for (name, value) in &head.headers {
        headers.append((PyBytes::new(py, name.as_str().as_bytes()), PyBytes::new(py, value.as_bytes())))?;
    }
    scope.set_item("headers", headers)?;
    let ends = head.extensions.get::<Ends>().copied().unwrap_or_default();
    scope.set_item("client", connection_ends::python_address(ends.client))?;
    scope.set_item("server", connection_ends::python_address(ends.server))?;
    scope.set_item("state", PyDict::new(py))?;
    Ok(scope)
}

fn percent_decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// One request's bodies.
struct Traffic {
    runtime: Handle,
    /// `None` once it is read to its end.
    upload: Arc<tokio::sync::Mutex<Option<Upload>>>,
    sending: Mutex<Sending>,
    /// Told when the response's body begins, and when the response is over.
    turns: watch::Sender<()>,
}

type Began = oneshot::Sender<Response<mpsc::Receiver<Bytes>>>;

/// How far the response is.
enum Sending {
    Nothing {
        began: Option<Began>,
    },
    /// The head was said; it goes out with the first piece of the body.
    Head {
        began: Began,
        head: Response<()>,
    },
    Body {
        pieces: mpsc::Sender<Bytes>,
    },
    Over,
}

impl Traffic {
    fn lock_sending(&self) -> MutexGuard<'_, Sending> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The application has returned. A response that it left open is cut off, one that it never began is an error.
    fn end_traffic(&self) {
        *self.lock_sending() = Sending::Over;
        self.turns.send_replace(());
    }

    fn start_response(&self, message: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = message.py();
        let status: u16 = message.as_any().get_item(intern!(py, "status"))?.extract()?;
        let mut head = Response::new(());
        *head.status_mut() = StatusCode::from_u16(status).map_err(|error| PyValueError::new_err(error.to_string()))?;
        *head.headers_mut() = match message.get_item(intern!(py, "headers"))? {
            Some(headers) => read_headers(&headers)?,
            None => HeaderMap::new(),
        };
        let mut sending = self.lock_sending();
        match &mut *sending {
            Sending::Nothing { began } => match began.take() {
                Some(began) => {
                    *sending = Sending::Head { began, head };
                    Ok(())
                }
                None => Err(PyRuntimeError::new_err("the response can't begin any more")),
            },
            _ => Err(PyRuntimeError::new_err("the response has begun already")),
        }
    }

    /// Sends a piece; gives it back where the client reads slower than that.
    fn send_body(&self, piece: Bytes, is_last: bool) -> PyResult<Option<(mpsc::Sender<Bytes>, Bytes)>> {
        let mut sending = self.lock_sending();
        let has_begun = matches!(*sending, Sending::Head { .. });
        let pieces = match std::mem::replace(&mut *sending, Sending::Over) {
            Sending::Head { began, head } => {
                let (pieces, reader) = mpsc::channel(4);
                // A client that has gone is noticed with the first piece.
                let _ = began.send(head.map(|()| reader));
                pieces
            }
            Sending::Body { pieces } => pieces,
            before @ Sending::Nothing { .. } => {
                *sending = before;
                return Err(PyRuntimeError::new_err("the response has not begun"));
            }
            Sending::Over => return Err(PyRuntimeError::new_err("the response is over")),
        };
        let refused = if piece.is_empty() { Ok(()) } else { pieces.try_send(piece) };
        if !is_last {
            *sending = Sending::Body { pieces: pieces.clone() };
        }
        if has_begun || is_last {
            self.turns.send_replace(());
        }
        match refused {
            Ok(()) => Ok(None),
            Err(mpsc::error::TrySendError::Full(piece)) => Ok(Some((pieces, piece))),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(PyOSError::new_err("the client has gone away")),
        }
    }
}

fn read_headers(headers: &Bound<'_, PyAny>) -> PyResult<HeaderMap> {
    let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(format!("a header can't be sent: {error}"));
    let mut map = HeaderMap::new();
    for pair in headers.try_iter()? {
        let (name, value): (Vec<u8>, Vec<u8>) = pair?.extract()?;
        let name = HeaderName::from_bytes(&name).map_err(|error| wrong(&error))?;
        let value = HeaderValue::from_bytes(&value).map_err(|error| wrong(&error))?;
        // Framing is the transport's business.
        if !matches!(name.as_str(), "transfer-encoding" | "connection") {
            map.append(name, value);
        }
    }
    Ok(map)
}

/// ASGI's `receive`.
#[pyclass(frozen)]
struct Receive {
    traffic: Arc<Traffic>,
}

#[pymethods]
impl Receive {
    fn __call__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let upload = Arc::clone(&self.traffic.upload);
        let traffic = Arc::clone(&self.traffic);
        awaitable::spawn_awaitable(py, &self.traffic.runtime, async move {
            let mut slot = upload.lock().await;
            let piece = match &mut *slot {
                Some(upload) => upload.next().await,
                None => {
                    // All is read; what may still come is the client's end.
                    drop(slot);
                    traffic.response_over().await;
                    return Box::new(|py: Python<'_>| disconnect_message(py)) as Given;
                }
            };
            if !matches!(piece, Ok(Some(_))) {
                *slot = None;
            }
            Box::new(move |py: Python<'_>| match piece {
                Ok(piece) => receive_message(py, piece),
                Err(BrokenOff) => disconnect_message(py),
            }) as Given
        })
    }
}

impl Traffic {
    /// Returns when the response is over, or the client reads no more of it. Waiting for this does not keep the
    /// response open.
    async fn response_over(&self) {
        let mut turns = self.turns.subscribe();
        loop {
            let pieces = match &*self.lock_sending() {
                Sending::Body { pieces } => Some(pieces.clone()),
                Sending::Over => return,
                _ => None,
            };
            // Going away before the response has begun cancels the application itself.
            let closed = async {
                match &pieces {
                    Some(pieces) => pieces.closed().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = closed => return,
                // Its sender is ours.
                _ = turns.changed() => {}
            }
        }
    }
}

fn receive_message(py: Python<'_>, piece: Option<Bytes>) -> PyResult<Py<PyAny>> {
    let message = PyDict::new(py);
    message.set_item("type", "http.request")?;
    message.set_item("more_body", piece.is_some())?;
    message.set_item("body", PyBytes::new(py, &piece.unwrap_or_default()))?;
    Ok(message.into_any().unbind())
}

fn disconnect_message(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let message = PyDict::new(py);
    message.set_item("type", "http.disconnect")?;
    Ok(message.into_any().unbind())
}

/// ASGI's `send`.
#[pyclass(frozen)]
struct Send {
    traffic: Arc<Traffic>,
}

#[pymethods]
impl Send {
    fn __call__<'py>(&self, py: Python<'py>, message: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let kind = message.as_any().get_item(intern!(py, "type"))?;
        let left = match kind.extract::<&str>()? {
            "http.response.start" => self.traffic.start_response(message).map(|()| None)?,
            "http.response.body" => {
                let body = message.get_item(intern!(py, "body"))?;
                let body = body.map(|body| body.extract::<Vec<u8>>()).transpose()?.unwrap_or_default();
                let more = message.get_item(intern!(py, "more_body"))?;
                let is_last = !more.map_or(Ok(false), |more| more.is_truthy())?;
                self.traffic.send_body(body.into(), is_last)?
            }
            other => return Err(PyValueError::new_err(format!("there is no message {other:?} to send"))),
        };
        match left {
            None => awaitable::ready_awaitable(py),
            Some((pieces, piece)) => awaitable::spawn_awaitable(py, &self.traffic.runtime, async move {
                let sent = pieces.send(piece).await;
                Box::new(move |py: Python<'_>| match sent {
                    Ok(()) => Ok(py.None()),
                    Err(_) => Err(PyOSError::new_err("the client has gone away")),
                }) as Given
            }),
        }
    }
}
