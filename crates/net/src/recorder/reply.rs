//! A reply on its way to the client: passed on chunk by chunk, looked at after it has been handed over.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use mcpace_record::{EventKind, ExchangeId, Nanos, ReplyEnding, Side};

use super::ahead::{Ahead, BodyRead};
use super::meter::{Handover, Meter};
use super::source::BodySource;
use crate::lock::lock_mutex;
use crate::{ReplyObserver, Sink, monotonic_now};

/// State of one reply while it passes, shared by its body and the front connection that it is written to.
pub(super) struct Passing {
    sink: Arc<Sink>,
    ex: ExchangeId,
    /// Set when the whole recorder stops: what is open then is cut, not left by its client.
    stopping: Arc<AtomicBool>,
    /// Set to 0 at the end: the connection has no open exchange any more.
    open_since: Arc<AtomicU64>,
    /// The connection that the reply comes from; none where the recorder answers by itself.
    back: Option<Arc<Meter>>,
    state: Mutex<PassingState>,
}

struct PassingState {
    /// The status of a head that is not yet handed over.
    head: Option<u16>,
    observer: Option<ReplyObserver>,
    waiting: Vec<(Nanos, Bytes)>,
    ended: Option<(Nanos, ReplyEnding)>,
}

impl Passing {
    pub(super) fn new(
        sink: &Arc<Sink>,
        ex: ExchangeId,
        status: u16,
        content_type: &str,
        stopping: &Arc<AtomicBool>,
        open_since: &Arc<AtomicU64>,
        back: Option<Arc<Meter>>,
    ) -> Arc<Self> {
        let observer = ReplyObserver::new(Arc::clone(sink), ex, content_type, true);
        let state = PassingState { head: Some(status), observer: Some(observer), waiting: Vec::new(), ended: None };
        let (sink, stopping, open_since) = (Arc::clone(sink), Arc::clone(stopping), Arc::clone(open_since));
        Arc::new(Self { sink, ex, stopping, open_since, back, state: Mutex::new(state) })
    }

    /// A piece of the body was read from the server at `at`.
    pub(super) fn take_chunk(&self, at: Nanos, chunk: Bytes) {
        lock_mutex(&self.state).waiting.push((at, chunk));
    }

    /// The server's side of the reply ended at `at`.
    pub(super) fn end_upstream(&self, at: Nanos, ending: ReplyEnding) {
        lock_mutex(&self.state).ended.get_or_insert((at, ending));
    }

    /// Nothing more will be handed to the client.
    fn break_off(&self) {
        let mut state = lock_mutex(&self.state);
        let cut = self.stopping.load(Ordering::Relaxed);
        let left = if cut { ReplyEnding::Cut } else { ReplyEnding::ClientLeft };
        let (at, ending) = match state.ended {
            // The server had answered in full, but the client went before it got it.
            Some((at, ReplyEnding::Complete)) => (at, left),
            Some(ended) => ended,
            None => (monotonic_now(), left),
        };
        state.catch_up();
        self.open_since.store(0, Ordering::Relaxed);
        if let Some(mut observer) = state.observer.take() {
            observer.end_reply(at, ending);
        }
    }
}

impl PassingState {
    fn catch_up(&mut self) {
        if let Some(observer) = &mut self.observer {
            for (at, chunk) in self.waiting.drain(..) {
                observer.read_chunk(at, &chunk);
            }
        }
    }
}

impl Handover for Passing {
    fn bytes_flushed(&self, first: Nanos, last: Nanos) -> bool {
        let ended = self.note_flushed(first, last);
        if let Some(back) = &self.back {
            back.sample_socket(last);
        }
        ended
    }

    fn connection_ended(&self) {
        self.break_off();
    }
}

impl Passing {
    fn note_flushed(&self, first: Nanos, last: Nanos) -> bool {
        let mut state = lock_mutex(&self.state);
        if let Some(status) = state.head.take() {
            let (side, ex, headers) = (Side::Front, self.ex, Vec::new());
            self.sink.note_at(first, EventKind::ReplyHead { side, ex, status, headers });
        }
        state.catch_up();
        let Some(observer) = &mut state.observer else {
            return true;
        };
        observer.passed_at(last);
        let Some((at, ending)) = state.ended else {
            return false;
        };
        self.open_since.store(0, Ordering::Relaxed);
        if let Some(mut observer) = state.observer.take() {
            observer.end_passed(at, last, ending);
        }
        true
    }
}

/// A reply's body as the front connection sends it.
pub(super) struct ReplyBody {
    source: BodySource,
    ahead: Ahead,
    passing: Arc<Passing>,
    room: u64,
}

impl ReplyBody {
    /// The server's body, passed on as it comes, at most `limit` bytes of it.
    pub(super) async fn from_stream(mut body: Incoming, back: Arc<Meter>, passing: Arc<Passing>, limit: u64) -> Self {
        let mut ahead = Ahead::default();
        if body.is_end_stream() {
            passing.end_upstream(back.last_read(), ReplyEnding::Complete);
        } else if body.size_hint().exact().is_none() {
            ahead.read_available(&mut body, &back).await;
        }
        Self { source: BodySource::Streamed { body, meter: back }, ahead, passing, room: limit }
    }

    /// A body that was read, or made, before; its end was told to `passing`.
    pub(super) fn from_bytes(bytes: Bytes, passing: Arc<Passing>) -> Self {
        Self { source: BodySource::from_bytes(bytes), ahead: Ahead::default(), passing, room: 0 }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        let (body, back) = match &mut this.source {
            BodySource::Streamed { body, meter: back } => (body, back),
            BodySource::Whole(bytes) => {
                return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))));
            }
        };
        let (at, frame) = match ready!(this.ahead.poll_step(body, back, cx)) {
            BodyRead::Frame(at, frame) => (at, frame),
            BodyRead::Broke(error) => {
                this.passing.end_upstream(monotonic_now(), ReplyEnding::ServerBroke);
                return Poll::Ready(Some(Err(io::Error::other(error))));
            }
            BodyRead::End(at) => {
                this.passing.end_upstream(at, ReplyEnding::Complete);
                return Poll::Ready(None);
            }
        };
        if let Some(chunk) = frame.data_ref() {
            let Some(room) = this.room.checked_sub(chunk.len() as u64) else {
                this.passing.end_upstream(monotonic_now(), ReplyEnding::Cut);
                return Poll::Ready(Some(Err(io::Error::other(
                    "the reply's body is larger than the recorder's limit",
                ))));
            };
            this.room = room;
            this.passing.take_chunk(at, chunk.clone());
        }
        let ended = this.ahead.is_empty() && body.is_end_stream();
        if let Some(at) = this.ahead.end_time().or_else(|| ended.then(|| back.last_read())) {
            this.passing.end_upstream(at, ReplyEnding::Complete);
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.end_time().is_some() || (self.ahead.is_empty() && self.source.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.source.size_hint();
        // A body of known size is never read ahead.
        left.exact().map_or(left, |exact| SizeHint::with_exact(exact + self.ahead.unsent_bytes()))
    }
}

impl Drop for ReplyBody {
    fn drop(&mut self) {
        for (at, chunk) in self.ahead.take_unsent() {
            self.passing.take_chunk(at, chunk);
        }
        let ended = lock_mutex(&self.passing.state).ended.is_some();
        if !ended {
            self.passing.break_off();
        }
    }
}
