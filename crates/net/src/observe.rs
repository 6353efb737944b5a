//! Turns the bytes of one exchange's bodies into events. No I/O: whoever reads the bytes hands them in with their stamp.

use std::collections::VecDeque;
use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use mcpace_record::{Digester, EventKind, ExchangeId, Nanos, ReplyEnding, ServerTiming, Side};
use mcpace_wire::http::MediaType;
use mcpace_wire::sse;

use crate::headers::recorded_headers;
use crate::{Sink, monotonic_now};

/// Bodies and events past this size are counted and digested, but not read as messages.
const MESSAGE_LIMIT: usize = 16 * 1024 * 1024;

/// Watches a request's body.
pub(crate) struct RequestObserver {
    sink: Arc<Sink>,
    ex: ExchangeId,
    side: Side,
    content_type: String,
    digester: Digester,
    bytes: u64,
    text: Vec<u8>,
}

impl RequestObserver {
    /// `side` is where the request is first seen: front in the recorder, back in our client.
    #[must_use]
    pub(crate) fn new(sink: Arc<Sink>, ex: ExchangeId, side: Side, content_type: &str) -> Self {
        let content_type = content_type.to_owned();
        Self { sink, ex, side, content_type, digester: Digester::default(), bytes: 0, text: Vec::new() }
    }

    /// The next piece of the body.
    pub(crate) fn read_chunk(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        self.digester.update(chunk);
        append_bounded(&mut self.text, chunk);
    }

    /// The body ended at `at`; `passed` is when its last byte was handed on to the back side, in the recorder.
    pub(crate) fn end_body(self, at: Nanos, passed: Option<Nanos>) {
        let (sink, ex, bytes, digest) = (self.sink, self.ex, self.bytes, self.digester.finish());
        let messages = sink.redactor().messages(&self.text);
        let mut body = sink.redactor().body(&self.content_type, &self.text, sink.body_limit());
        mark_cut(&mut body, self.text.len(), bytes);
        sink.note_at(at, EventKind::RequestEnd { side: self.side, ex, bytes, digest, messages, body });
        if let Some(passed) = passed {
            let messages = Vec::new();
            let body = None;
            sink.note_at(passed, EventKind::RequestEnd { side: Side::Back, ex, bytes, digest, messages, body });
        }
    }
}

/// Notes a reply's head, read from the server at `at`, and what it tells of the server's own times.
pub(crate) fn note_reply_head(sink: &Sink, at: Nanos, ex: ExchangeId, status: StatusCode, headers: &HeaderMap) {
    let (side, status) = (Side::Back, status.as_u16());
    sink.note_at(at, EventKind::ReplyHead { side, ex, status, headers: recorded_headers(headers, sink) });
    let told = headers.get_all("server-timing").iter().filter_map(|value| value.to_str().ok());
    if let Some(timing) = ServerTiming::from_headers(told) {
        sink.note_at(at, EventKind::ServerTiming { ex: Some(ex), id: None, timing });
    }
}

/// Watches a reply's body: server-sent events one by one, anything else as a whole.
pub(crate) struct ReplyObserver {
    sink: Arc<Sink>,
    ex: ExchangeId,
    both_sides: bool,
    content_type: String,
    shape: BodyShape,
    digester: Digester,
    bytes: u64,
    /// The body has begun on the back side, but not yet on the front side.
    body_passes: bool,
    ended: bool,
}

enum BodyShape {
    /// Boxed: its decoder is large.
    Events(Box<EventStream>),
    Whole(Vec<u8>),
}

struct EventStream {
    decoder: sse::Decoder,
    seq: u32,
    /// When the first byte of the event in progress was there.
    began: Option<Nanos>,
    /// Complete on the back side, not yet handed to the front.
    waiting: VecDeque<(u32, u64)>,
    broken: bool,
}

impl ReplyObserver {
    /// `both_sides` in the recorder, where [`ReplyObserver::passed_at`] follows each read.
    #[must_use]
    pub(crate) fn new(sink: Arc<Sink>, ex: ExchangeId, content_type: &str, both_sides: bool) -> Self {
        let shape = if MediaType::of(content_type) == MediaType::EventStream {
            BodyShape::Events(Box::new(EventStream {
                decoder: sse::Decoder::new(MESSAGE_LIMIT),
                seq: 0,
                began: None,
                waiting: VecDeque::new(),
                broken: false,
            }))
        } else {
            BodyShape::Whole(Vec::new())
        };
        let content_type = content_type.to_owned();
        Self {
            sink,
            ex,
            both_sides,
            content_type,
            shape,
            digester: Digester::default(),
            bytes: 0,
            body_passes: false,
            ended: false,
        }
    }

    /// A piece of the body was read at `at`. Returns the events that it completed, for whoever consumes the stream.
    pub(crate) fn read_chunk(&mut self, at: Nanos, chunk: &[u8]) -> Vec<sse::Event> {
        if chunk.is_empty() {
            return Vec::new();
        }
        if self.bytes == 0 {
            self.sink.note_at(at, EventKind::ReplyBodyStart { side: Side::Back, ex: self.ex });
            self.body_passes = self.both_sides;
        }
        self.bytes += chunk.len() as u64;
        self.digester.update(chunk);
        match &mut self.shape {
            BodyShape::Whole(text) => {
                append_bounded(text, chunk);
                Vec::new()
            }
            BodyShape::Events(stream) => {
                let complete = stream.read_events(&self.sink, self.ex, at, chunk);
                if !self.both_sides {
                    stream.waiting.clear();
                }
                complete
            }
        }
    }

    /// Notes that the bytes read so far were handed to the front side's socket at `at`.
    pub(crate) fn passed_at(&mut self, at: Nanos) {
        if std::mem::take(&mut self.body_passes) {
            self.sink.note_at(at, EventKind::ReplyBodyStart { side: Side::Front, ex: self.ex });
        }
        let BodyShape::Events(stream) = &mut self.shape else {
            return;
        };
        for (seq, bytes) in stream.waiting.drain(..) {
            let kind = EventKind::ReplyEvent {
                side: Side::Front,
                ex: self.ex,
                seq,
                began: at,
                bytes,
                event: None,
                id: None,
                messages: Vec::new(),
                body: None,
            };
            self.sink.note_at(at, kind);
        }
    }

    /// The reply ended at `at`. Later calls are ignored, so that a dropped body can't overrule an orderly end.
    pub(crate) fn end_reply(&mut self, at: Nanos, ending: ReplyEnding) {
        self.end_passed(at, monotonic_now(), ending);
    }

    /// The reply ended at `at` on the back side, and at `passed` on the front side.
    pub(crate) fn end_passed(&mut self, at: Nanos, passed: Nanos, ending: ReplyEnding) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let (ex, bytes, digest) = (self.ex, self.bytes, self.digester.finish());
        let (messages, body) = match &self.shape {
            BodyShape::Events(_) => (Vec::new(), None),
            BodyShape::Whole(text) => {
                let mut body = self.sink.redactor().body(&self.content_type, text, self.sink.body_limit());
                mark_cut(&mut body, text.len(), bytes);
                (self.sink.redactor().messages(text), body)
            }
        };
        self.sink.note_at(at, EventKind::ReplyEnd { side: Side::Back, ex, bytes, digest, ending, messages, body });
        if self.both_sides {
            let (side, messages, body) = (Side::Front, Vec::new(), None);
            self.sink.note_at(passed, EventKind::ReplyEnd { side, ex, bytes, digest, ending, messages, body });
        }
    }

    /// The retry time that the event stream named last, in milliseconds.
    #[must_use]
    pub(crate) fn retry_ms(&self) -> Option<u64> {
        match &self.shape {
            BodyShape::Events(stream) => stream.decoder.retry(),
            BodyShape::Whole(_) => None,
        }
    }

    /// The whole body of a reply that is no event stream, as far as it was kept.
    #[must_use]
    pub(crate) fn kept_text(&self) -> &[u8] {
        match &self.shape {
            BodyShape::Whole(text) => text,
            BodyShape::Events(_) => &[],
        }
    }
}

impl EventStream {
    fn read_events(&mut self, sink: &Sink, ex: ExchangeId, at: Nanos, chunk: &[u8]) -> Vec<sse::Event> {
        let mut complete = Vec::new();
        if self.broken {
            return complete;
        }
        self.decoder.feed(chunk);
        loop {
            match self.decoder.next_event() {
                Ok(Some(event)) => {
                    let began = self.began.take().unwrap_or(at);
                    self.note_event(sink, ex, at, began, &event);
                    complete.push(event);
                }
                Ok(None) => break,
                // Past the limit the bytes still pass; only their meaning is lost, and the reply's end tells their size.
                Err(_) => {
                    self.broken = true;
                    break;
                }
            }
        }
        self.began = self.decoder.is_mid_event().then(|| self.began.unwrap_or(at));
        complete
    }

    fn note_event(&mut self, sink: &Sink, ex: ExchangeId, at: Nanos, began: Nanos, event: &sse::Event) {
        let bytes = self.decoder.last_event_bytes() as u64;
        let seq = self.seq;
        self.seq += 1;
        self.waiting.push_back((seq, bytes));
        let kind = EventKind::ReplyEvent {
            side: Side::Back,
            ex,
            seq,
            began,
            bytes,
            event: event.event.clone(),
            id: event.id.clone(),
            messages: sink.redactor().messages(event.data.as_bytes()),
            body: sink.redactor().body("application/json", event.data.as_bytes(), sink.body_limit()),
        };
        sink.note_at(at, kind);
    }
}

fn append_bounded(text: &mut Vec<u8>, chunk: &[u8]) {
    let room = MESSAGE_LIMIT.saturating_sub(text.len());
    text.extend_from_slice(&chunk[..chunk.len().min(room)]);
}

fn mark_cut(body: &mut Option<mcpace_record::Body>, kept: usize, bytes: u64) {
    if let Some(body) = body {
        body.cut |= (kept as u64) < bytes;
    }
}
