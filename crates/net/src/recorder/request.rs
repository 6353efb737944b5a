//! A request's body on its way to the server: passed on chunk by chunk, looked at after it has left.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use mcpace_record::{ConnectionId, EventKind, ExchangeId, Header, Nanos, Side};

use super::meter::{Handover, Meter};
use super::source::BodySource;
use crate::lock::lock_mutex;
use crate::{RequestObserver, Sink, monotonic_now};

/// State of one request while it passes, shared by its body and the back connection that it is written to.
pub(super) struct PassingRequest {
    sink: Arc<Sink>,
    ex: ExchangeId,
    state: Mutex<OutgoingState>,
}

struct OutgoingState {
    /// Facts to note once the head is written to the back side.
    head: Option<BackHead>,
    observer: Option<RequestObserver>,
    waiting: Vec<Bytes>,
    /// When the last byte was read from the client.
    ended: Option<Nanos>,
}

/// A request's head as it goes to the server.
pub(super) struct BackHead {
    pub(super) conn: ConnectionId,
    pub(super) method: String,
    pub(super) target: String,
    /// Headers that the recorder added, as they are recorded.
    pub(super) added: Vec<Header>,
}

impl PassingRequest {
    pub(super) fn new(sink: &Arc<Sink>, ex: ExchangeId, content_type: &str) -> Arc<Self> {
        let observer = RequestObserver::new(Arc::clone(sink), ex, Side::Front, content_type);
        let state = OutgoingState { head: None, observer: Some(observer), waiting: Vec::new(), ended: None };
        Arc::new(Self { sink: Arc::clone(sink), ex, state: Mutex::new(state) })
    }

    /// The request is about to be written to `head.conn`.
    pub(super) fn leaves_on(&self, head: BackHead) {
        lock_mutex(&self.state).head = Some(head);
    }

    /// The next piece was read from the client.
    pub(super) fn take_chunk(&self, chunk: Bytes) {
        lock_mutex(&self.state).waiting.push(chunk);
    }

    /// The client's last byte was read at `at`.
    pub(super) fn end_body(&self, at: Nanos) {
        lock_mutex(&self.state).ended.get_or_insert(at);
    }

    /// Nothing more will be passed on: notes what was read, where that was not done yet.
    pub(super) fn finish_passing(&self, at: Nanos) {
        let mut state = lock_mutex(&self.state);
        let at = state.ended.unwrap_or(at);
        state.catch_up();
        if let Some(observer) = state.observer.take() {
            observer.end_body(at, None);
        }
    }
}

impl OutgoingState {
    fn catch_up(&mut self) {
        if let Some(observer) = &mut self.observer {
            self.waiting.drain(..).for_each(|chunk| observer.read_chunk(&chunk));
        }
    }
}

impl Handover for PassingRequest {
    fn bytes_flushed(&self, first: Nanos, last: Nanos) -> bool {
        let mut state = lock_mutex(&self.state);
        if let Some(BackHead { conn, method, target, added: headers }) = state.head.take() {
            let (side, ex) = (Side::Back, self.ex);
            self.sink.note_at(first, EventKind::RequestHead { side, conn, ex, method, target, headers });
        }
        state.catch_up();
        let Some(ended) = state.ended else {
            return false;
        };
        if let Some(observer) = state.observer.take() {
            observer.end_body(ended, Some(last));
        }
        true
    }

    fn connection_ended(&self) {
        // Where nothing was written yet, the exchange may still send it on another connection.
        if lock_mutex(&self.state).head.is_none() {
            self.finish_passing(monotonic_now());
        }
    }
}

/// A request's body as the back connection sends it.
pub(super) struct RequestBody {
    source: BodySource,
    outgoing: Arc<PassingRequest>,
    /// Bytes that may still pass.
    room: u64,
}

impl RequestBody {
    /// The client's body, passed on as it comes, at most `limit` bytes of it.
    pub(super) fn from_stream(body: Incoming, front: Arc<Meter>, outgoing: Arc<PassingRequest>, limit: u64) -> Self {
        let empty = body.is_end_stream();
        let body = Self { source: BodySource::Streamed { body, meter: front }, outgoing, room: limit };
        if empty {
            body.end_body();
        }
        body
    }

    /// A body that was read before; its observer has seen it.
    pub(super) fn from_bytes(bytes: Bytes, outgoing: Arc<PassingRequest>) -> Self {
        let room = bytes.len() as u64;
        Self { source: BodySource::from_bytes(bytes), outgoing, room }
    }

    fn end_body(&self) {
        if let BodySource::Streamed { meter: front, .. } = &self.source {
            self.outgoing.end_body(front.last_read());
            front.await_head();
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        let body = match &mut this.source {
            BodySource::Streamed { body, .. } => body,
            BodySource::Whole(bytes) => {
                return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))));
            }
        };
        let frame = match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(io::Error::other(error)))),
            None => {
                this.end_body();
                return Poll::Ready(None);
            }
        };
        let ended = body.is_end_stream();
        if let Some(chunk) = frame.data_ref() {
            let Some(room) = this.room.checked_sub(chunk.len() as u64) else {
                return Poll::Ready(Some(Err(io::Error::other(
                    "the request's body is larger than the recorder's limit",
                ))));
            };
            this.room = room;
            this.outgoing.take_chunk(chunk.clone());
        }
        if ended {
            this.end_body();
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.source.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.source.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let ended = lock_mutex(&self.outgoing.state).ended.is_some();
        if !ended {
            self.outgoing.finish_passing(monotonic_now());
        }
    }
}
