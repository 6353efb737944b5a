//! One HTTP/1.1 connection: hyper's client over a [`Tap`], and one exchange on it.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use mcpace_oauth::reason_of;
use mcpace_record::{Closer, ConnectionId, EventKind, ExchangeId, Header, Nanos, ReplyEnding, Side};
use mcpace_wire::http::MediaType;
use mcpace_wire::sse;

use super::super::task::BackgroundTask;
use super::stamps::Stamps;
use crate::headers::{header_text, recorded_headers};
use crate::observe::note_reply_head;
use crate::tap::Tap;
use crate::{Dialer, NetError, Origin, ReplyObserver, RequestObserver, Sink, monotonic_now};

/// A connection that may serve one exchange after another.
pub(super) struct HttpConnection {
    conn: ConnectionId,
    origin: Origin,
    sender: SendRequest<Full<Bytes>>,
    stamps: Arc<Stamps>,
    sink: Arc<Sink>,
    /// Runs hyper's side of the connection; ends with it.
    driver: BackgroundTask,
}

/// Why an exchange did not get as far as a reply's head.
#[derive(Debug)]
pub(super) struct SendError {
    /// In words.
    pub(super) reason: String,
    /// Whether the peer answered with something that is no HTTP.
    pub(super) not_http: bool,
    /// Whether nothing of the request reached the socket, so that it can be sent again without a risk.
    pub(super) unsent: bool,
}

impl HttpConnection {
    pub(super) async fn open_connection(dialer: &Dialer, sink: &Arc<Sink>, origin: &Origin) -> Result<Self, NetError> {
        let (stream, conn) = dialer.dial_origin(origin, None).await?;
        let stamps = Stamps::new(Arc::clone(sink), conn);
        let tap = Tap::new(stream, Arc::clone(&stamps));
        let refused =
            |error: hyper::Error| NetError::Connect { address: origin.authority(), reason: error.to_string() };
        let (sender, connection) = http1::handshake(TokioIo::new(tap)).await.map_err(refused)?;
        // Its outcome is seen by whoever uses the connection, and its end by the tap.
        let driver = BackgroundTask::spawn(async move { drop(connection.await) });
        Ok(Self { conn, origin: origin.clone(), sender, stamps, sink: Arc::clone(sink), driver })
    }

    pub(super) fn leads_to(&self, origin: &Origin) -> bool {
        self.origin == *origin
    }

    /// Waits until the last exchange is over. `false` where the connection is at its end.
    pub(super) async fn is_usable(&mut self) -> bool {
        !self.driver.is_finished() && self.sender.ready().await.is_ok()
    }

    /// Ends the connection and waits until its end is noted.
    pub(super) async fn close_connection(self, by: Closer) {
        self.stamps.set_closer(by);
        drop(self.sender);
        self.driver.abort_task().await;
    }

    /// Sends a request and waits for the reply's head.
    pub(super) async fn send_request(
        mut self,
        request: Request<Bytes>,
    ) -> Result<OpenReply, (SendError, Request<Bytes>)> {
        let (parts, body) = request.into_parts();
        let mut exchange = ExchangeObserver::new(&self, &parts, body.clone());
        self.stamps.expect_request();
        let again = Request::from_parts(parts.clone(), body.clone());
        match self.sender.try_send_request(Request::from_parts(parts, Full::new(body))).await {
            Ok(reply) => {
                let (head, body) = reply.into_parts();
                exchange.reply_began(&head.headers, head.status);
                Ok(OpenReply { status: head.status, headers: head.headers, body, exchange, connection: Some(self) })
            }
            Err(mut error) => {
                let unsent = error.take_message().is_some() && self.stamps.write_times().is_none();
                exchange.no_reply(ReplyEnding::NoReply);
                let error = error.into_error();
                let (reason, not_http) = (reason_of(&error), error.is_parse());
                Err((SendError { reason, not_http, unsent }, again))
            }
        }
    }
}

/// A reply whose body is still to be read.
pub(super) struct OpenReply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    body: Incoming,
    exchange: ExchangeObserver,
    connection: Option<HttpConnection>,
}

/// Result of one read of a reply's body.
pub(super) enum BodyPiece {
    /// Events that are complete now; empty where the body is no event stream.
    Events(Vec<sse::Event>),
    /// The end.
    End,
}

impl OpenReply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(super) fn content_type(&self) -> &str {
        header_text(&self.headers, CONTENT_TYPE)
    }

    pub(super) fn is_event_stream(&self) -> bool {
        MediaType::of(self.content_type()) == MediaType::EventStream
    }

    /// Bytes of the body so far.
    pub(super) fn body_bytes(&self) -> usize {
        self.exchange.bytes
    }

    /// Reads on. The error is how the server broke off.
    pub(super) async fn next_piece(&mut self) -> Result<BodyPiece, String> {
        loop {
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Some(chunk) = frame.data_ref() {
                        let at = self.exchange.stamps.last_read();
                        return Ok(BodyPiece::Events(self.exchange.read_chunk(at, chunk)));
                    }
                }
                Some(Err(error)) => {
                    self.exchange.end_reply(ReplyEnding::ServerBroke);
                    return Err(reason_of(&error));
                }
                None => {
                    self.exchange.end_reply(ReplyEnding::Complete);
                    return Ok(BodyPiece::End);
                }
            }
        }
    }

    /// The body so far, where it is no event stream.
    pub(super) fn kept_text(&self) -> &[u8] {
        self.exchange.reply.as_ref().map(ReplyObserver::kept_text).unwrap_or_default()
    }

    /// The retry time that the event stream named, in milliseconds.
    pub(super) fn retry_ms(&self) -> Option<u64> {
        self.exchange.reply.as_ref().and_then(ReplyObserver::retry_ms)
    }

    /// The connection, to be used again; only after the end was read.
    pub(super) fn into_connection(mut self) -> Option<HttpConnection> {
        self.connection.take().filter(|_| self.exchange.ended)
    }

    /// Gives the rest of the reply up, which ends the connection.
    pub(super) async fn abandon_reply(mut self, by: Closer) {
        let connection = self.connection.take();
        drop(self);
        if let Some(connection) = connection {
            connection.close_connection(by).await;
        }
    }
}

/// Notes the events of one exchange, whatever becomes of it.
struct ExchangeObserver {
    sink: Arc<Sink>,
    stamps: Arc<Stamps>,
    conn: ConnectionId,
    ex: ExchangeId,
    request: Option<(String, String, Vec<Header>, String, Bytes)>,
    reply: Option<ReplyObserver>,
    bytes: usize,
    ended: bool,
}

impl ExchangeObserver {
    fn new(connection: &HttpConnection, parts: &Parts, body: Bytes) -> Self {
        let sink = &connection.sink;
        let headers = recorded_headers(&parts.headers, sink);
        let content_type = header_text(&parts.headers, CONTENT_TYPE);
        let target = sink.redactor().target(&parts.uri.to_string()).into_owned();
        Self {
            sink: Arc::clone(sink),
            stamps: Arc::clone(&connection.stamps),
            conn: connection.conn,
            ex: sink.exchange(),
            request: Some((parts.method.to_string(), target, headers, content_type.to_owned(), body)),
            reply: None,
            bytes: 0,
            ended: false,
        }
    }

    /// Notes the request, once, with the stamps of the socket. One that never reached it is not noted.
    fn note_request(&mut self) -> bool {
        let Some((method, target, headers, content_type, body)) = self.request.take() else { return true };
        let Some(written) = self.stamps.write_times() else { return false };
        let (side, conn, ex) = (Side::Back, self.conn, self.ex);
        self.sink.note_at(written.began, EventKind::RequestHead { side, conn, ex, method, target, headers });
        let mut observer = RequestObserver::new(Arc::clone(&self.sink), ex, side, &content_type);
        observer.read_chunk(&body);
        observer.end_body(written.ended, None);
        true
    }

    fn reply_began(&mut self, headers: &HeaderMap, status: StatusCode) {
        self.note_request();
        note_reply_head(&self.sink, self.stamps.head_end(), self.ex, status, headers);
        let content_type = header_text(headers, CONTENT_TYPE);
        self.reply = Some(ReplyObserver::new(Arc::clone(&self.sink), self.ex, content_type, false));
    }

    fn read_chunk(&mut self, at: Nanos, chunk: &[u8]) -> Vec<sse::Event> {
        self.bytes += chunk.len();
        self.reply.as_mut().map(|reply| reply.read_chunk(at, chunk)).unwrap_or_default()
    }

    fn end_reply(&mut self, ending: ReplyEnding) {
        self.ended = true;
        let at = self.stamps.last_read();
        if let Some(reply) = &mut self.reply {
            reply.end_reply(at, ending);
        }
    }

    fn no_reply(&mut self, ending: ReplyEnding) {
        if std::mem::replace(&mut self.ended, true) || !self.note_request() {
            return;
        }
        ReplyObserver::new(Arc::clone(&self.sink), self.ex, "", false).end_reply(monotonic_now(), ending);
    }
}

impl Drop for ExchangeObserver {
    /// Given up in the middle: by a time limit, or by the end of the client.
    fn drop(&mut self) {
        match &mut self.reply {
            Some(reply) => reply.end_reply(monotonic_now(), ReplyEnding::ClientLeft),
            None => self.no_reply(ReplyEnding::ClientLeft),
        }
    }
}
