//! Writes recordings by hand: what was sent when, in milliseconds; both sides of the recorder follow from it.

pub(crate) mod asides;

use std::collections::HashMap;

use mcpace_record::{
    CallId, CallOutcome, Closer, ConnectionId, Digest, Event, EventKind, ExchangeId, Header, Instrument, LineFrom,
    MessageKind, MessageNote, Nanos, Recording, RecordingHead, ReplyEnding, ServerTiming, Side, digest_bytes,
};

/// The recorder needs this long to pass anything on.
pub(crate) const PASS: f64 = 0.05;

pub(crate) fn ms(millis: f64) -> Nanos {
    Nanos((millis * 1e6).round() as u64)
}

/// A request by POST and its reply.
#[derive(Clone)]
pub(crate) struct Post {
    /// Its first byte at the client's side.
    pub(crate) at: f64,
    /// How long sending takes.
    pub(crate) sending: f64,
    /// The client's connection; the recorder's own one behind it is this plus 100.
    pub(crate) conn: u64,
    /// JSON-RPC id; of a notification the id of the request that it is about, if it is about one.
    pub(crate) id: Option<u64>,
    pub(crate) method: &'static str,
    pub(crate) name: Option<&'static str>,
    pub(crate) session: Option<&'static str>,
    pub(crate) token: Option<&'static str>,
    pub(crate) status: u16,
    pub(crate) reply: Reply,
    /// The JSON-RPC outcome is an error.
    pub(crate) error: bool,
    pub(crate) timing: Option<ServerTiming>,
    /// The path that is asked.
    pub(crate) target: &'static str,
    /// Identity of the parameters.
    pub(crate) content: Option<u64>,
    /// Content encoding of the reply.
    pub(crate) encoding: Option<&'static str>,
    /// Identity of a tool call's arguments.
    pub(crate) arguments: Option<u64>,
    /// Identity of the result.
    pub(crate) result: Option<u64>,
    /// Tools in the result.
    pub(crate) tools: Option<u32>,
    /// Bytes of the reply, where they matter.
    pub(crate) bytes: Option<u64>,
    /// The request says `connection: close`.
    pub(crate) asks_to_close: bool,
    /// `_meta.traceparent` of the request.
    pub(crate) traceparent: Option<String>,
}

impl Post {
    fn is_notification(&self) -> bool {
        self.id.is_none() || self.method.starts_with("notifications/")
    }
}

/// Times at the server's side.
#[derive(Clone, Copy)]
pub(crate) enum Reply {
    /// JSON: head and first byte, last byte.
    Json(f64, f64),
    /// Server-sent events: head, result complete, end of the stream where it ended.
    Sse(f64, f64, Option<f64>),
    /// Server-sent events: head, result complete; then the client goes away.
    Left(f64, f64, f64),
    /// No body: head and end.
    Empty(f64),
    /// A head, then the server breaks off.
    Broken(f64, f64),
    /// Nothing at all.
    Silence,
}

pub(crate) fn call_tool(at: f64, id: u64, reply: Reply) -> Post {
    Post { name: Some("greet"), ..request(at, id, "tools/call", reply) }
}

pub(crate) fn request(at: f64, id: u64, method: &'static str, reply: Reply) -> Post {
    Post {
        at,
        sending: 0.1,
        conn: 1,
        id: Some(id),
        method,
        name: None,
        session: None,
        token: None,
        status: 200,
        reply,
        error: false,
        timing: None,
        traceparent: None,
        target: "/mcp",
        content: None,
        encoding: None,
        arguments: None,
        result: None,
        tools: None,
        bytes: None,
        asks_to_close: false,
    }
}

pub(crate) fn notification(at: f64, method: &'static str, reply_at: f64) -> Post {
    Post { id: None, status: 202, ..request(at, 0, method, Reply::Empty(reply_at)) }
}

pub(crate) struct Script {
    instrument: Instrument,
    events: Vec<Event>,
    exchanges: u64,
    calls: u64,
    /// When each connection stood.
    ready: HashMap<u64, f64>,
    /// How long the other side takes nothing of each line.
    pub(crate) blocked: Nanos,
}

impl Script {
    /// Between a client and an HTTP server: two sides.
    pub(crate) fn recorder() -> Self {
        Self::new(Instrument::Recorder)
    }

    /// Our own client: the back side only.
    pub(crate) fn client() -> Self {
        Self::new(Instrument::Client)
    }

    /// Between a client and a server process.
    pub(crate) fn stdio() -> Self {
        Self::new(Instrument::StdioRecorder)
    }

    fn new(instrument: Instrument) -> Self {
        Self { instrument, events: Vec::new(), exchanges: 0, calls: 0, ready: HashMap::new(), blocked: Nanos::ZERO }
    }

    pub(crate) fn recording(self) -> Recording {
        let head = RecordingHead {
            instrument: self.instrument,
            started: "2026-11-01T12:00:00Z".to_owned(),
            started_at: None,
            mcpace: "0.1.0".to_owned(),
            upstream: "http://127.0.0.1:1".to_owned(),
        };
        Recording::new(head, self.events)
    }

    pub(crate) fn event(&mut self, at: f64, kind: EventKind) {
        self.events.push(Event { at: ms(at), kind });
    }

    /// An operation of the client's program, from `from` to `to`.
    pub(crate) fn call(&mut self, operation: &str, from: f64, to: f64) -> CallId {
        self.calls += 1;
        let call = CallId(self.calls);
        let operation = operation.to_owned();
        let tool = (operation == "call").then(|| "greet".to_owned());
        let start = EventKind::CallStart { call, operation, tool };
        self.event(from, start);
        let outcome = CallOutcome::Ok;
        self.event(to, EventKind::CallEnd { call, outcome });
        call
    }

    /// The client opens a connection; in the recorder this is what it accepts.
    pub(crate) fn accept(&mut self, conn: u64, at: f64) {
        self.opened(Side::Front, conn, at, None);
    }

    /// A connection to the server is opened; `serves` is the front connection that it is for, in the recorder.
    pub(crate) fn connect(&mut self, conn: u64, from: f64, to: f64, serves: Option<u64>) {
        let (id, address) = (ConnectionId(conn), address());
        self.event(from, EventKind::ConnectStart { conn: id, address });
        self.opened(Side::Back, conn, to, serves);
    }

    pub(crate) fn connect_fails(&mut self, conn: u64, from: f64, to: f64) {
        let (id, address) = (ConnectionId(conn), "[::1]:1".to_owned());
        let reason = "connection refused".to_owned();
        let start = EventKind::ConnectStart { conn: id, address: address.clone() };
        self.event(from, start);
        let failed = EventKind::ConnectFailed { conn: id, address, reason };
        self.event(to, failed);
    }

    fn opened(&mut self, side: Side, conn: u64, at: f64, serves: Option<u64>) {
        self.ready.insert(conn, at);
        let opened = EventKind::ConnectionOpened {
            side,
            conn: ConnectionId(conn),
            address: address(),
            serves: serves.map(ConnectionId),
        };
        self.event(at, opened);
    }

    pub(crate) fn close(&mut self, side: Side, conn: u64, at: f64, by: Closer) {
        let closed = EventKind::ConnectionClosed { side, conn: ConnectionId(conn), by, reason: None };
        self.event(at, closed);
    }

    /// The client closes with bytes unread, which a kernel tells by a reset.
    pub(crate) fn reset(&mut self, conn: u64, at: f64) {
        let reason = Some("Connection reset by peer (os error 104)".to_owned());
        let (side, conn, by) = (Side::Front, ConnectionId(conn), Closer::Client);
        self.event(at, EventKind::ConnectionClosed { side, conn, by, reason });
    }

    pub(crate) fn post(&mut self, post: Post) -> ExchangeId {
        let ex = self.exchange();
        let headers = headers(&[
            ("accept", Some("application/json, text/event-stream")),
            ("mcp-session-id", post.session),
            ("authorization", post.token),
            ("connection", post.asks_to_close.then_some("close")),
        ]);
        let sent = Sent { ex, conn: post.conn, method: "POST", target: post.target };
        self.request(&sent, (post.at, post.at + post.sending), headers, vec![asked(&post)], &body(&post));
        self.reply(ex, &post);
        ex
    }

    /// The standalone GET: its head and its end, at the server's side.
    pub(crate) fn get(&mut self, conn: u64, at: f64, head: Option<f64>, end: Option<f64>) -> ExchangeId {
        self.get_with(conn, at, head, end, None, 200)
    }

    pub(crate) fn get_with(
        &mut self,
        conn: u64,
        at: f64,
        head: Option<f64>,
        end: Option<f64>,
        token: Option<&str>,
        status: u16,
    ) -> ExchangeId {
        let ex = self.exchange();
        let accept = headers(&[("accept", Some("text/event-stream")), ("authorization", token)]);
        let (method, target) = ("GET", "/mcp");
        let sent = Sent { ex, conn, method, target };
        self.request(&sent, (at, at), accept, Vec::new(), "");
        if let Some(head) = head {
            self.head(ex, head, status, Some("text/event-stream"));
        }
        if let Some(end) = end {
            self.reply_end(ex, end, ReplyEnding::Complete, "", Vec::new());
        }
        ex
    }

    /// The standalone GET of a session, with its head.
    pub(crate) fn session_get(&mut self, conn: u64, at: f64, head: f64, session: Option<&str>) -> ExchangeId {
        let ex = self.exchange();
        let accept = headers(&[("accept", Some("text/event-stream")), ("mcp-session-id", session)]);
        let sent = Sent { ex, conn, method: "GET", target: "/mcp" };
        self.request(&sent, (at, at), accept, Vec::new(), "");
        self.head(ex, head, 200, Some("text/event-stream"));
        ex
    }

    /// A plain GET of a document.
    pub(crate) fn fetch(&mut self, conn: u64, at: f64, target: &str, done: f64, status: u16) {
        let ex = self.exchange();
        let (method, accept) = ("GET", headers(&[("accept", Some("*/*"))]));
        let sent = Sent { ex, conn, method, target };
        self.request(&sent, (at, at), accept, Vec::new(), "");
        self.head(ex, done, status, Some("application/json"));
        self.both(done, |side| EventKind::ReplyBodyStart { side, ex });
        self.reply_end(ex, done, ReplyEnding::Complete, target, Vec::new());
    }

    pub(crate) fn spawn(&mut self, at: f64, pid: u32, program: &str) {
        let program = program.to_owned();
        self.event(at, EventKind::ProcessStarted { pid, program });
    }

    pub(crate) fn line(&mut self, at: f64, from: LineFrom, message: Option<Post>) {
        let bytes = message.as_ref().map_or(3, |post| body(post).len() as u64);
        self.sized_line(at, from, message, bytes);
    }

    /// A line of so many bytes.
    pub(crate) fn sized_line(&mut self, at: f64, from: LineFrom, message: Option<Post>, bytes: u64) {
        let text = message.as_ref().map_or_else(|| "log".to_owned(), body);
        let (first, second) = match from {
            LineFrom::Client => (Side::Front, Side::Back),
            LineFrom::Server | LineFrom::ServerStderr => (Side::Back, Side::Front),
        };
        let messages: Vec<MessageNote> = match from {
            LineFrom::Client => message.iter().map(asked).collect(),
            _ => message.iter().map(|post| if post.is_notification() { asked(post) } else { answered(post) }).collect(),
        };
        // A reply is another text than its request.
        let digest = digest_bytes(format!("{from:?} {text}").as_bytes());
        let passed = match from {
            LineFrom::ServerStderr => None,
            _ => Some((at + PASS, second, Vec::new())),
        };
        for (at, side, messages) in [Some((at, first, messages)), passed].into_iter().flatten() {
            let line = EventKind::StdioLine {
                side,
                from,
                began: ms(at),
                bytes,
                digest,
                messages,
                body: None,
                blocked: self.blocked,
            };
            self.event(at, line);
        }
    }

    fn request(
        &mut self,
        sent: &Sent<'_>,
        (at, end): (f64, f64),
        headers: Vec<Header>,
        messages: Vec<MessageNote>,
        body: &str,
    ) {
        let (ex, two_sides) = (sent.ex, self.two_sides());
        let first = if two_sides { Side::Front } else { Side::Back };
        self.event(at, sent.head(first, sent.conn, headers));
        self.event(end, request_end(first, ex, body, messages));
        if two_sides {
            // The recorder can't write to a connection before it stands.
            let back = end.max(self.back_ready(sent.conn + 100)) + PASS;
            let head = sent.head(Side::Back, sent.conn + 100, Vec::new());
            self.event(back, head);
            self.event(back, request_end(Side::Back, ex, body, Vec::new()));
        }
    }

    fn reply(&mut self, ex: ExchangeId, post: &Post) {
        let answers = || vec![answered(post)];
        match post.reply {
            Reply::Json(first, last) => {
                self.head(ex, first, post.status, Some("application/json"));
                self.both(first, |side| EventKind::ReplyBodyStart { side, ex });
                self.sized_reply_end(ex, last, ReplyEnding::Complete, &body(post), answers(), post.bytes);
            }
            Reply::Sse(head, result, end) => {
                self.packed_head(ex, head, post.status, Some("text/event-stream"), post.encoding);
                self.both(result, |side| EventKind::ReplyBodyStart { side, ex });
                self.sized_stream_event(ex, 0, result, answers(), post.bytes.unwrap_or(100));
                if let Some(end) = end {
                    self.sized_reply_end(ex, end, ReplyEnding::Complete, &body(post), Vec::new(), post.bytes);
                }
            }
            Reply::Left(head, result, left) => {
                self.head(ex, head, post.status, Some("text/event-stream"));
                self.stream_event(ex, 0, result, answers());
                self.reply_end(ex, left, ReplyEnding::ClientLeft, "", Vec::new());
            }
            Reply::Empty(at) => {
                self.head(ex, at, post.status, None);
                self.reply_end(ex, at, ReplyEnding::Complete, "", Vec::new());
            }
            Reply::Broken(head, end) => {
                self.head(ex, head, post.status, Some("text/event-stream"));
                self.reply_end(ex, end, ReplyEnding::ServerBroke, "", Vec::new());
            }
            Reply::Silence => {}
        }
    }

    pub(crate) fn stream_event(&mut self, ex: ExchangeId, seq: u32, at: f64, messages: Vec<MessageNote>) {
        self.sized_stream_event(ex, seq, at, messages, 100);
    }

    fn sized_stream_event(&mut self, ex: ExchangeId, seq: u32, at: f64, messages: Vec<MessageNote>, bytes: u64) {
        let mut messages = Some(messages);
        self.both(at, |side| EventKind::ReplyEvent {
            side,
            ex,
            seq,
            began: ms(at),
            bytes,
            event: None,
            id: None,
            messages: messages.take().unwrap_or_default(),
            body: None,
        });
    }

    pub(crate) fn head(&mut self, ex: ExchangeId, at: f64, status: u16, content_type: Option<&str>) {
        self.packed_head(ex, at, status, content_type, None);
    }

    fn packed_head(
        &mut self,
        ex: ExchangeId,
        at: f64,
        status: u16,
        content_type: Option<&str>,
        encoding: Option<&str>,
    ) {
        let mut headers = headers(&[("content-type", content_type), ("content-encoding", encoding)]);
        self.both(at, |side| EventKind::ReplyHead { side, ex, status, headers: std::mem::take(&mut headers) });
    }

    pub(crate) fn reply_end(
        &mut self,
        ex: ExchangeId,
        at: f64,
        ending: ReplyEnding,
        body: &str,
        messages: Vec<MessageNote>,
    ) {
        self.sized_reply_end(ex, at, ending, body, messages, None);
    }

    fn sized_reply_end(
        &mut self,
        ex: ExchangeId,
        at: f64,
        ending: ReplyEnding,
        body: &str,
        messages: Vec<MessageNote>,
        bytes: Option<u64>,
    ) {
        let mut messages = Some(messages);
        self.both(at, |side| EventKind::ReplyEnd {
            side,
            ex,
            bytes: bytes.unwrap_or(body.len() as u64),
            digest: digest_bytes(body.as_bytes()),
            ending,
            messages: messages.take().unwrap_or_default(),
            body: None,
        });
    }

    /// On the back side, and a moment later on the front where there is one.
    fn both(&mut self, at: f64, mut kind: impl FnMut(Side) -> EventKind) {
        let back = kind(Side::Back);
        self.event(at, back);
        if self.two_sides() {
            let front = kind(Side::Front);
            self.event(at + PASS, front);
        }
    }

    fn back_ready(&self, back: u64) -> f64 {
        self.ready.get(&back).copied().unwrap_or(0.0)
    }

    fn two_sides(&self) -> bool {
        self.instrument == Instrument::Recorder
    }

    fn exchange(&mut self) -> ExchangeId {
        self.exchanges += 1;
        ExchangeId(self.exchanges)
    }
}

struct Sent<'s> {
    ex: ExchangeId,
    conn: u64,
    method: &'s str,
    target: &'s str,
}

impl Sent<'_> {
    fn head(&self, side: Side, conn: u64, headers: Vec<Header>) -> EventKind {
        EventKind::RequestHead {
            side,
            conn: ConnectionId(conn),
            ex: self.ex,
            method: self.method.to_owned(),
            target: self.target.to_owned(),
            headers,
        }
    }
}

fn request_end(side: Side, ex: ExchangeId, body: &str, messages: Vec<MessageNote>) -> EventKind {
    EventKind::RequestEnd {
        side,
        ex,
        bytes: body.len() as u64,
        digest: digest_bytes(body.as_bytes()),
        messages,
        body: None,
    }
}

fn body(post: &Post) -> String {
    let arguments = post.arguments.map(|arguments| format!(" {arguments}")).unwrap_or_default();
    format!("{:?} {} {:?}{arguments}", post.id, post.method, post.name)
}

pub(crate) fn asked(post: &Post) -> MessageNote {
    let kind = if post.is_notification() { MessageKind::Notification } else { MessageKind::Request };
    let (method, name) = (Some(post.method.to_owned()), post.name.map(str::to_owned));
    let arguments = post.arguments.map(Digest::new);
    let traceparent = post.traceparent.clone();
    MessageNote { method, name, content: post.content.map(Digest::new), arguments, traceparent, ..note(kind, post.id) }
}

pub(crate) fn answered(post: &Post) -> MessageNote {
    let kind = if post.error { MessageKind::Error } else { MessageKind::Result };
    MessageNote { timing: post.timing, content: post.result.map(Digest::new), tools: post.tools, ..note(kind, post.id) }
}

pub(crate) fn note(kind: MessageKind, id: Option<u64>) -> MessageNote {
    MessageNote {
        kind,
        id: id.map(|id| id.to_string()),
        method: None,
        name: None,
        content: None,
        arguments: None,
        tools: None,
        code: None,
        is_error: false,
        timing: None,
        traceparent: None,
    }
}

fn headers(named: &[(&str, Option<&str>)]) -> Vec<Header> {
    let present = named.iter().filter_map(|(name, value)| Some((name, (*value)?)));
    present.map(|(name, value)| Header((*name).to_owned(), value.to_owned())).collect()
}

fn address() -> String {
    "127.0.0.1:1".to_owned()
}
