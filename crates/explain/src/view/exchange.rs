//! One request with its reply, on the side of the client and on that of the server.

use mcpace_record::{CallId, Digest, ExchangeId, MessageKind, Nanos, ReplyEnding, ServerTiming, Side};

use super::head::{ReplyHead, RequestHead};
use super::leg::{Fact, Leg, PackedLeg};
use super::stamp::PackedStamp;
use super::{Note, Stamp};

/// Transport of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// HTTP: one request, one reply.
    Http,
    /// stdio: the client's line, and the server's line that answers it.
    Stdio,
}

/// Shape of a reply's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyShape {
    /// None seen.
    Empty,
    /// One text: JSON mostly.
    Whole,
    /// Server-sent events.
    Events,
}

/// One server-sent event.
#[derive(Debug)]
pub struct StreamEvent<'a> {
    /// Position in the stream.
    pub seq: u32,
    /// Its first byte from the server.
    pub began: Nanos,
    pub(super) read: PackedStamp,
    pub(super) passed: PackedStamp,
    /// Size on the wire.
    pub bytes: u64,
    /// Its type where it isn't `message`.
    pub event: Option<&'a str>,
    /// JSON-RPC messages in it.
    pub messages: &'a [Note<'a>],
}

impl StreamEvent<'_> {
    pub(super) fn new(seq: u32, began: Nanos, bytes: u64) -> Self {
        let none = PackedStamp::default();
        Self { seq, began, read: none, passed: none, bytes, event: None, messages: &[] }
    }

    /// When it was complete from the server.
    #[must_use]
    pub fn read(&self) -> Option<Stamp> {
        self.read.to_stamp()
    }

    /// When it was handed to the client, in the recorder.
    #[must_use]
    pub fn passed(&self) -> Option<Stamp> {
        self.passed.to_stamp()
    }
}

/// One request with its reply.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// Its id; those of stdio are made up and differ from every HTTP exchange's.
    pub id: ExchangeId,
    /// Transport of the exchange.
    pub transport: Transport,
    /// The first event of it.
    pub start: Stamp,
    /// The call in whose window it started.
    pub call: Option<CallId>,
    pub(super) request: &'a RequestHead<'a>,
    pub(super) reply: &'a ReplyHead<'a>,
    /// JSON-RPC messages in the request.
    pub messages: &'a [Note<'a>],
    /// Identity of the request's body.
    pub digest: Option<Digest>,
    /// Size of the request's body.
    pub request_bytes: u64,
    /// HTTP status.
    pub status: Option<u16>,
    /// Shape of the reply's body.
    pub shape: ReplyShape,
    /// Identity of the reply's body.
    pub reply_digest: Option<Digest>,
    /// Size of the reply's body.
    pub reply_bytes: u64,
    /// Over stdio, in the recorder: how long the client took no more of the answer.
    pub blocked: Nanos,
    /// How the reply ended.
    pub ending: Option<ReplyEnding>,
    /// The reply's server-sent events.
    pub events: Vec<StreamEvent<'a>>,
    /// The message that answers the (last) request in it.
    pub answer: Option<&'a Note<'a>>,
    pub(super) server_timing: Option<&'a ServerTiming>,
    pub(super) front: PackedLeg,
    pub(super) back: PackedLeg,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(id: ExchangeId, transport: Transport, start: Stamp) -> Self {
        Self {
            id,
            transport,
            start,
            call: None,
            request: RequestHead::NONE,
            reply: ReplyHead::NONE,
            messages: &[],
            digest: None,
            request_bytes: 0,
            status: None,
            shape: ReplyShape::Empty,
            reply_digest: None,
            reply_bytes: 0,
            blocked: Nanos::ZERO,
            ending: None,
            events: Vec::new(),
            answer: None,
            server_timing: None,
            front: PackedLeg::default(),
            back: PackedLeg::default(),
        }
    }

    /// HTTP method, empty on stdio.
    #[must_use]
    pub fn method(&self) -> &'a str {
        self.request.method
    }

    /// HTTP request target, empty on stdio.
    #[must_use]
    pub fn target(&self) -> &'a str {
        self.request.target
    }

    /// The (redacted) session id that the request carried.
    #[must_use]
    pub fn session_sent(&self) -> Option<&'a str> {
        self.request.session_sent
    }

    /// The (redacted) session id that the reply assigned.
    #[must_use]
    pub fn session_given(&self) -> Option<&'a str> {
        self.reply.session_given
    }

    /// The (redacted) `authorization` header.
    #[must_use]
    pub fn authorization(&self) -> Option<&'a str> {
        self.request.authorization
    }

    /// Whether the request asks for server-sent events.
    #[must_use]
    pub fn accepts_events(&self) -> bool {
        self.request.accepts_events
    }

    /// The event id after which the request asks a stream to go on.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&'a str> {
        self.request.last_event_id
    }

    /// Whether the request's body is a form: OAuth's endpoints take those, MCP's never.
    #[must_use]
    pub fn sends_form(&self) -> bool {
        self.request.sends_form
    }

    /// Content encoding of the reply's body, where the server declares one: `gzip`.
    #[must_use]
    pub fn content_encoding(&self) -> Option<&'a str> {
        self.reply.content_encoding
    }

    /// Whether the client's request said `connection: close`.
    #[must_use]
    pub fn asks_to_close(&self) -> bool {
        self.request.closes_connection
    }

    /// Whether the server's reply said `connection: close`.
    #[must_use]
    pub fn closes_connection(&self) -> bool {
        self.reply.closes_connection
    }

    /// Server's own timing, where it reported one.
    #[must_use]
    pub fn server_timing(&self) -> Option<ServerTiming> {
        self.server_timing.copied()
    }

    /// Between the client and the recorder.
    #[must_use]
    pub fn front(&self) -> Option<Leg> {
        self.front.stamped_leg()
    }

    /// Between the instrument and the server.
    #[must_use]
    pub fn back(&self) -> Option<Leg> {
        self.back.stamped_leg()
    }

    /// The side of the client: the front, or the only one.
    #[must_use]
    pub fn near(&self) -> Option<Leg> {
        self.near_leg().stamped_leg()
    }

    fn near_leg(&self) -> &PackedLeg {
        if self.front.is_seen() { &self.front } else { &self.back }
    }

    /// The leg of one side, which there is from now on.
    pub(super) fn leg_mut(&mut self, side: Side) -> &mut PackedLeg {
        match side {
            Side::Front => self.front.mark_seen(),
            Side::Back => self.back.mark_seen(),
        }
    }

    /// The result came in an event: its first byte from the server, its last, and when the client was handed it.
    pub(super) fn set_result(&mut self, began: Nanos, read: Option<Stamp>, passed: Option<Stamp>) {
        if self.front.is_seen() {
            self.front.set_result(passed, passed);
        }
        if let Some(read) = read.filter(|_| self.back.is_seen()) {
            self.back.set_result(Some(Stamp { at: began, ..read }), Some(read));
        }
    }

    /// The legs that there are.
    pub(super) fn legs_mut(&mut self) -> impl Iterator<Item = &mut PackedLeg> {
        [&mut self.front, &mut self.back].into_iter().filter(|leg| leg.is_seen())
    }

    /// The request's first byte at the client's side.
    #[must_use]
    pub fn sent(&self) -> Stamp {
        self.near_leg().fact_stamp(Fact::RequestStart).unwrap_or(self.start)
    }

    /// When what the client waits for was complete at its side: the result, or the reply's end where none is due.
    #[must_use]
    pub fn completed(&self) -> Option<Stamp> {
        let near = self.near_leg();
        near.fact_stamp(Fact::ResultEnd).or_else(|| near.fact_stamp(Fact::End))
    }

    /// The reply's end at the client's side.
    #[must_use]
    pub fn ended(&self) -> Option<Stamp> {
        self.near_leg().fact_stamp(Fact::End)
    }

    /// Whether the request holds a JSON-RPC request, so that an answer is due.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.messages.iter().any(|m| m.kind() == MessageKind::Request)
    }

    /// Whether the request holds a JSON-RPC request for `method`.
    #[must_use]
    pub fn requests(&self, method: &str) -> bool {
        self.messages.iter().any(|m| m.requests(method))
    }

    /// Whether the request holds the JSON-RPC notification `method`.
    #[must_use]
    pub fn notifies(&self, method: &str) -> bool {
        self.messages.iter().any(|m| m.notifies(method))
    }

    /// Whether the answer came and is a result, not an error.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.answer.is_some_and(|m| m.kind() == MessageKind::Result)
    }

    /// Whether this is the GET that opens the server's own stream (2025-03-26, transports: listening for messages).
    #[must_use]
    pub fn is_standalone_stream(&self) -> bool {
        self.method() == "GET" && (self.accepts_events() || self.shape == ReplyShape::Events)
    }

    /// Whether it carries JSON-RPC from the client.
    #[must_use]
    pub fn is_message(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Bytes of both bodies.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.request_bytes.saturating_add(self.reply_bytes)
    }

    /// The session that it belongs to, as the request or its reply names it.
    #[must_use]
    pub fn session(&self) -> Option<&'a str> {
        self.session_sent().or(self.session_given())
    }
}
