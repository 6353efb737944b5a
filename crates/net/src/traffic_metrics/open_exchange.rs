//! One exchange until the end of its reply, and the requests in it that have no answer yet.

use std::hash::{BuildHasher, RandomState};

use mcpace_record::{Header, MessageKind, MessageNote, Nanos, TraceContext};
use mcpace_wire::http::MediaType;

/// Characters of a name that are kept.
pub(super) const LONGEST_NAME: usize = 128;

/// Hash of a request's session and id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RequestKey(u64);

/// A request that has no answer yet.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) key: RequestKey,
    pub(super) method: String,
    /// The tool, for `tools/call`, and the prompt, for `prompts/get`; else empty.
    pub(super) tool: String,
    pub(super) prompt: String,
    /// When its last byte was read.
    pub(super) arrived: Nanos,
    pub(super) trace: Option<TraceContext>,
}

/// An exchange whose reply has not ended.
#[derive(Debug)]
pub(super) struct OpenExchange {
    /// Method of HTTP.
    pub(super) method: &'static str,
    /// 0 until the reply begins.
    pub(super) status: u16,
    pub(super) is_stream: bool,
    /// Whether a client could resume the stream: its events have ids.
    pub(super) is_resumable: bool,
    /// Bytes of the stream's events so far.
    pub(super) event_bytes: u64,
    pub(super) requests: Vec<PendingRequest>,
    /// Hash of the session's id, where the request names one.
    session: Option<u64>,
    trace: Option<TraceContext>,
}

impl OpenExchange {
    pub(super) fn new(method: &'static str, headers: &[Header], hasher: &RandomState) -> Self {
        let session = find_header(headers, "mcp-session-id").map(|session| hasher.hash_one(session));
        let mut exchange = Self {
            method,
            status: 0,
            is_stream: false,
            is_resumable: false,
            event_bytes: 0,
            requests: Vec::new(),
            session,
            trace: None,
        };
        exchange.add_trace(headers);
        exchange
    }

    /// Takes the trace in the headers, unless there is one already.
    pub(super) fn add_trace(&mut self, headers: &[Header]) {
        self.trace = self.trace.or_else(|| TraceContext::parse(find_header(headers, "traceparent")?));
    }

    /// Adds the requests among messages that ended at `at`. Returns their number, which is limited by `wire`.
    pub(super) fn add_requests(&mut self, at: Nanos, messages: &[MessageNote], hasher: &RandomState) -> usize {
        let before = self.requests.len();
        for message in messages.iter().filter(|message| is_request(message)) {
            let (Some(method), Some(key)) = (&message.method, self.key_of(message, hasher)) else { continue };
            let name_for = |subject| {
                let name = message.name.as_deref().filter(|_| method == subject);
                name.map(cut_name).unwrap_or_default()
            };
            let own_trace = message.traceparent.as_deref().and_then(TraceContext::parse);
            self.requests.push(PendingRequest {
                key,
                method: cut_name(method),
                tool: name_for("tools/call"),
                prompt: name_for("prompts/get"),
                arrived: at,
                trace: own_trace.or(self.trace),
            });
        }
        self.requests.len() - before
    }

    /// The requests that notifications cancel, in a session. Ids without a session may be those of any client.
    pub(super) fn cancelled_requests<'a>(
        &'a self,
        messages: &'a [MessageNote],
        hasher: &'a RandomState,
    ) -> impl Iterator<Item = RequestKey> + 'a {
        let cancels = |message: &&MessageNote| self.session.is_some() && message.notifies("notifications/cancelled");
        messages.iter().filter(cancels).filter_map(|message| self.key_of(message, hasher))
    }

    /// Takes the head of the reply. Returns whether an event stream begins.
    pub(super) fn begin_reply(&mut self, status: u16, headers: &[Header]) -> bool {
        self.status = status;
        let media = find_header(headers, "content-type").map(MediaType::of);
        let begins = !self.is_stream && media == Some(MediaType::EventStream);
        self.is_stream |= begins;
        begins
    }

    /// Whether it is a stream of the old HTTP+SSE transport, which names no session in headers, or of a client without one.
    pub(super) fn is_sessionless_stream(&self) -> bool {
        self.is_stream && self.method == "GET" && self.session.is_none()
    }

    pub(super) fn add_event(&mut self, bytes: u64, has_id: bool) {
        self.event_bytes += bytes;
        self.is_resumable |= has_id;
    }

    pub(super) fn key_of(&self, message: &MessageNote, hasher: &RandomState) -> Option<RequestKey> {
        let id = message.id.as_deref()?;
        Some(RequestKey(hasher.hash_one((self.session, id))))
    }

    /// Removes the request with this key.
    pub(super) fn take_request(&mut self, key: RequestKey) -> Option<PendingRequest> {
        let at = self.requests.iter().position(|request| request.key == key)?;
        Some(self.requests.swap_remove(at))
    }
}

pub(super) fn is_request(message: &MessageNote) -> bool {
    message.kind == MessageKind::Request
}

fn find_header<'a>(headers: &'a [Header], name: &str) -> Option<&'a str> {
    headers.iter().find(|header| header.0 == name).map(|header| header.1.as_str())
}

fn cut_name(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}
