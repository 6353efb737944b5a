//! One HTTP/1.1 connection, driven by whoever uses it: no task of its own, so a call wakes no other thread.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use mcpace_oauth::reason_of;
use mcpace_wire::http::MediaType;

use super::dial::Origin;
use crate::Socket;

type Io = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// A connection that may serve one exchange after another.
pub(super) struct HttpConnection {
    origin: Origin,
    sender: SendRequest<Full<Bytes>>,
    /// Hyper's side of it; `None` once it is at its end.
    io: Option<Io>,
    pub(super) idle_since: Instant,
}

/// Why an exchange did not get as far as a reply's head.
#[derive(Debug)]
pub(super) struct SendError {
    /// In words.
    pub(super) reason: String,
    /// Whether the peer answered with something that is no HTTP.
    pub(super) not_http: bool,
    /// The request again, where nothing of it was sent.
    pub(super) unsent: Option<Request<Full<Bytes>>>,
}

impl HttpConnection {
    pub(super) async fn handshake_over(socket: Box<dyn Socket>, origin: Origin) -> hyper::Result<Self> {
        let (sender, io) = http1::handshake(TokioIo::new(socket)).await?;
        Ok(Self { origin, sender, io: Some(Box::pin(io)), idle_since: Instant::now() })
    }

    pub(super) fn leads_to(&self, origin: &Origin) -> bool {
        self.origin == *origin
    }

    /// Sends a request and waits for the reply's head. A kept connection may have died unseen: then the request was not
    /// sent.
    pub(super) async fn send_request(mut self, request: Request<Full<Bytes>>) -> Result<OpenReply, SendError> {
        let sender = &mut self.sender;
        let ready = poll_fn(|cx| poll_driven(&mut self.io, cx, |cx| sender.poll_ready(cx))).await;
        if let Err(error) = ready {
            return Err(SendError { reason: reason_of(&error), not_http: false, unsent: Some(request) });
        }
        let mut sending = pin!(self.sender.try_send_request(request));
        let sent = poll_fn(|cx| poll_driven(&mut self.io, cx, |cx| sending.as_mut().poll(cx))).await;
        match sent {
            Ok(reply) => {
                let (head, body) = reply.into_parts();
                Ok(OpenReply { status: head.status, headers: head.headers, body, connection: self, ended: false })
            }
            Err(mut error) => {
                let unsent = error.take_message();
                let error = error.into_error();
                Err(SendError { reason: reason_of(&error), not_http: error.is_parse(), unsent })
            }
        }
    }
}

/// A reply whose body is still to be read. Dropped before its end, it closes the connection.
pub(super) struct OpenReply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    body: Incoming,
    connection: HttpConnection,
    ended: bool,
}

impl OpenReply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(super) fn content_type(&self) -> &str {
        self.header("content-type").unwrap_or_default()
    }

    pub(super) fn is_event_stream(&self) -> bool {
        MediaType::of(self.content_type()) == MediaType::EventStream
    }

    /// The next bytes; `None` at the end. The error is how the server broke off.
    pub(super) async fn next_chunk(&mut self) -> Option<Result<Bytes, String>> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, String>>> {
        loop {
            let body = &mut self.body;
            let frame = poll_driven(&mut self.connection.io, cx, |cx| pin!(body.frame()).poll(cx));
            return match frame {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => Poll::Ready(Some(Ok(data))),
                    Err(_) => continue,
                },
                Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(reason_of(&error)))),
                Poll::Ready(None) => {
                    self.ended = true;
                    Poll::Ready(None)
                }
                Poll::Pending => Poll::Pending,
            };
        }
    }

    /// Reads what is here already. Whether that was all there is.
    pub(super) fn has_ended(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(Ok(_))) = self.poll_chunk(&mut cx) {}
        self.ended
    }

    /// The connection, to be used again; only after the end was read.
    pub(super) fn into_connection(mut self) -> Option<HttpConnection> {
        self.connection.idle_since = Instant::now();
        (self.ended && self.connection.io.is_some()).then_some(self.connection)
    }
}

/// Polls `wanted`, and the connection where that is what it waits for.
fn poll_driven<T>(
    io: &mut Option<Io>,
    cx: &mut Context<'_>,
    mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    if let Poll::Ready(ready) = wanted(cx) {
        return Poll::Ready(ready);
    }
    if let Some(driven) = io {
        // How it ended is told to whoever waits for something on it.
        if driven.as_mut().poll(cx).is_ready() {
            *io = None;
        }
    }
    wanted(cx)
}
