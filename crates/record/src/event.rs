//! The events of a recording: one closed enum, each with the ids that tie it to others.
//!
//! Two sides: [`Side::Front`] faces the client, [`Side::Back`] faces the server. The recorder sees both; our own
//! instrumented client has only a back side. Each fact is written once, on the side where it is first seen: a request's
//! body and messages on the front (or only) side, a reply's on the back; the other side carries stamps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::{
    MessageNote, Nanos, ServerTiming, SocketCloser, SocketId, SocketTraffic, Span, StackFrame, StackId, TcpInfo,
    ThreadLock,
};

/// One thing that was seen, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, on the recording's clock.
    pub at: Nanos,
    /// Kind of the event, with its facts.
    #[serde(rename = "event")]
    pub kind: EventKind,
}

impl Event {
    /// Bytes of memory that it takes, nearly: for whoever keeps many and must know when to stop.
    #[must_use]
    pub fn size(&self) -> usize {
        let (headers, messages, body) = match &self.kind {
            EventKind::RequestHead { headers, .. } | EventKind::ReplyHead { headers, .. } => {
                (headers.as_slice(), &[][..], None)
            }
            EventKind::RequestEnd { messages, body, .. }
            | EventKind::ReplyEvent { messages, body, .. }
            | EventKind::ReplyEnd { messages, body, .. }
            | EventKind::StdioLine { messages, body, .. } => (&[][..], messages.as_slice(), body.as_ref()),
            EventKind::Span(span) => return size_of::<Self>() + span.memory_size(),
            EventKind::SocketOpened { address, .. } => return size_of::<Self>() + address.len(),
            EventKind::PoolWork { work, .. } => return size_of::<Self>() + work.len(),
            EventKind::ProcessRan { ancestors, program, .. } => {
                return size_of::<Self>() + program.len() + size_of_val(ancestors.as_slice());
            }
            EventKind::StackSeen { frames, .. } => {
                return size_of::<Self>() + frames.iter().map(StackFrame::memory_size).sum::<usize>();
            }
            _ => (&[][..], &[][..], None),
        };
        let headers: usize =
            headers.iter().map(|Header(name, value)| size_of::<Header>() + name.len() + value.len()).sum();
        let messages: usize = messages.iter().map(MessageNote::memory_size).sum();
        size_of::<Self>() + headers + messages + body.map_or(0, |body| body.text.len())
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);
    };
}

id!(
    /// One transport connection of one side. Unique in its recording, both sides together.
    ConnectionId
);
id!(
    /// One HTTP request with its reply. Both sides of the recorder use one id.
    ExchangeId
);
id!(
    /// One operation of the client's program (`connect`, `list`, `call`, …), from its start to its return.
    CallId
);

/// Which side of the instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Between the client and the recorder.
    Front,
    /// Between the instrument (recorder or our client) and the server.
    Back,
}

/// Side that ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Closer {
    /// The MCP client.
    Client,
    /// The MCP server.
    Server,
    /// The instrument itself: a limit, a shutdown, or passing on the other side's close.
    Instrument,
}

/// How a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyEnding {
    /// The body came whole.
    Complete,
    /// The client went away before the end.
    ClientLeft,
    /// The server broke off before the end.
    ServerBroke,
    /// No reply: the server could not be reached or spoke no HTTP. The client got a 502 from the recorder.
    NoReply,
    /// The recording stopped while the reply was still open.
    Cut,
}

/// Where a line of stdio came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineFrom {
    /// The client's line, on the server's stdin.
    Client,
    /// The server's line, on its stdout.
    Server,
    /// The server's stderr: free text.
    ServerStderr,
}

/// A party to the traffic, where its process is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Peer {
    /// The MCP client's program.
    Client,
    /// The MCP server's.
    Server,
}

/// A source of evidence about the inside of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceSource {
    /// Spans that the program reports.
    Spans,
    /// Stacks of its threads.
    Stacks,
    /// Pauses of its runtime.
    Pauses,
    /// Its connections, by the kernel's account.
    Sockets,
    /// Other programs that it started.
    Processes,
}

/// A reason for which a language's runtime stops a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PauseCause {
    /// The collection of garbage.
    GarbageCollection,
}

/// How an operation of the client's program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallOutcome {
    /// It returned a result.
    Ok,
    /// It returned a tool's own error (`isError`).
    ToolError,
    /// It failed; the text is the program's, cut at 500 characters: see [`CallOutcome::failed`].
    Failed(String),
}

impl CallOutcome {
    /// [`CallOutcome::Failed`] with as much of `text` as is kept.
    #[must_use]
    pub fn failed(text: &str) -> Self {
        CallOutcome::Failed(text.chars().take(500).collect())
    }
}

/// One HTTP header as recorded: secrets already redacted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header(pub String, pub String);

/// A body's text as recorded: redacted, UTF-8, possibly cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// The text.
    pub text: String,
    /// Whether the text is less than the body was: cut at the instrument's limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// Kinds of events. Times are in [`Event::at`] unless a field says otherwise; sizes are bytes of the decoded HTTP body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EventKind {
    /// A connection is being opened by the instrument (back side only).
    ConnectStart {
        /// The new connection.
        conn: ConnectionId,
        /// Socket address or process that is being reached.
        address: String,
    },
    /// A connection stands: accepted (front) or TCP established (back).
    ConnectionOpened {
        /// Front or back.
        side: Side,
        /// The connection.
        conn: ConnectionId,
        /// The peer's socket address.
        address: String,
        /// On the back side of the recorder: the front connection that this one serves.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        serves: Option<ConnectionId>,
    },
    /// The TLS handshake is done (back side).
    TlsReady {
        /// The connection.
        conn: ConnectionId,
        /// Protocol version as rustls names it, e.g. `TLSv1_3`.
        protocol: String,
    },
    /// Connecting failed (back side).
    ConnectFailed {
        /// The connection that never was.
        conn: ConnectionId,
        /// Whom it was to reach.
        address: String,
        /// The system's words.
        reason: String,
    },
    /// A connection ended.
    ConnectionClosed {
        /// Front or back.
        side: Side,
        /// The connection.
        conn: ConnectionId,
        /// Side that closed the connection.
        by: Closer,
        /// The system's words where it was no orderly close (reset, time-out, …).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A request's head: read (front) or written (back).
    RequestHead {
        /// Front or back.
        side: Side,
        /// The connection it travels on.
        conn: ConnectionId,
        /// The exchange.
        ex: ExchangeId,
        /// HTTP method.
        method: String,
        /// Request target: path and redacted query.
        target: String,
        /// Redacted headers, in order; left out on the back side of the recorder.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        headers: Vec<Header>,
    },
    /// A request's last byte: read (front) or written (back).
    RequestEnd {
        /// Front or back.
        side: Side,
        /// The exchange.
        ex: ExchangeId,
        /// Body size.
        bytes: u64,
        /// Identity of the body as it was sent, before redaction.
        digest: Digest,
        /// JSON-RPC messages in it; where first seen.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        messages: Vec<MessageNote>,
        /// The body; where first seen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Body>,
    },
    /// A reply's head: read (back) or handed to the socket (front).
    ReplyHead {
        /// Front or back.
        side: Side,
        /// The exchange.
        ex: ExchangeId,
        /// HTTP status code.
        status: u16,
        /// Redacted headers, in order; left out on the front side of the recorder.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        headers: Vec<Header>,
    },
    /// The first byte of a reply's body.
    ReplyBodyStart {
        /// Front or back.
        side: Side,
        /// The exchange.
        ex: ExchangeId,
    },
    /// One server-sent event, complete: read (back) or handed to the socket (front).
    ReplyEvent {
        /// Front or back.
        side: Side,
        /// The exchange.
        ex: ExchangeId,
        /// Position in the stream, from 0.
        seq: u32,
        /// When its first byte was there; equals `at` where it came in one read.
        began: Nanos,
        /// Size on the wire, framing included.
        bytes: u64,
        /// The event's type where it isn't `message`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<String>,
        /// The event id, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// JSON-RPC messages in its data; back side.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        messages: Vec<MessageNote>,
        /// Its data; back side.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Body>,
    },
    /// A reply's end.
    ReplyEnd {
        /// Front or back.
        side: Side,
        /// The exchange.
        ex: ExchangeId,
        /// Body size.
        bytes: u64,
        /// Identity of the body as it was sent, before redaction.
        digest: Digest,
        /// Whole, or who broke it off.
        ending: ReplyEnding,
        /// JSON-RPC messages of a JSON body; back side.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        messages: Vec<MessageNote>,
        /// A JSON or other text body; back side.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Body>,
    },
    /// One line of stdio, complete.
    StdioLine {
        /// Front or back: the recorder stamps when a line was read (the sender's side) and when it was passed on.
        side: Side,
        /// Side that wrote the line.
        from: LineFrom,
        /// When its first byte was there.
        began: Nanos,
        /// Size without the line end.
        bytes: u64,
        /// Identity of the line as it was sent, before redaction.
        digest: Digest,
        /// JSON-RPC messages in it; where first seen.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        messages: Vec<MessageNote>,
        /// The line; where first seen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Body>,
        /// On the side that it was passed on to: how long that side took no more of it.
        #[serde(default, skip_serializing_if = "Nanos::is_zero")]
        blocked: Nanos,
    },
    /// A server process was spawned.
    ProcessStarted {
        /// Its process id.
        pid: u32,
        /// The program's name; its arguments may hold secrets and are left out.
        program: String,
    },
    /// A server process ended.
    ProcessExited {
        /// Its process id.
        pid: u32,
        /// Exit code, where it exited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// Signal number, where one ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
    },
    /// Resource use of a process and its descendants up to now, sampled from outside.
    ProcessSample {
        /// Whose process.
        of: Peer,
        /// Its process id.
        pid: u32,
        /// Processor time since its start, all threads.
        cpu: Nanos,
        /// Resident memory in bytes.
        resident: u64,
        /// Threads that it has.
        threads: u32,
    },
    /// Processor time of a process and its descendants up to now, read as a request went to it or as its reply came.
    ProcessorTime {
        /// Whose process.
        of: Peer,
        /// Its process id.
        pid: u32,
        /// Processor time since its start, all threads.
        cpu: Nanos,
    },
    /// A span that a program reported ended now.
    Span(Box<Span>),
    /// A stack that samples name; it comes before the first of them.
    StackSeen {
        /// Its number, unique in its recording.
        stack: StackId,
        /// Its frames, the innermost first.
        frames: Vec<StackFrame>,
    },
    /// The stack of one thread now, sampled from outside.
    StackSample {
        /// The process.
        pid: u32,
        /// The thread, as its interpreter names it.
        thread: u64,
        /// The stack.
        stack: StackId,
        /// Whether the thread was running, not waiting.
        running: bool,
        /// The lock that the thread held or waited for, where the interpreter or the system tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lock: Option<ThreadLock>,
    },
    /// A program's connection was seen for the first time.
    SocketOpened {
        /// Its number.
        socket: SocketId,
        /// The process. Absent for a connection that was too short to be seen with its process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        /// Address of the other end: `10.0.0.5:5432`, or the path of a UNIX socket.
        address: String,
        /// When it was not there yet. Absent for a connection that is older than the watching.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        absent: Option<Nanos>,
    },
    /// Data went over a program's connection.
    SocketTraffic {
        /// The connection.
        socket: SocketId,
        /// The data up to now.
        traffic: SocketTraffic,
    },
    /// A program's connection ended.
    SocketClosed {
        /// The connection.
        socket: SocketId,
        /// Whether it was ever established: if not, it was refused or given up.
        established: bool,
        /// The end that closed it first, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<SocketCloser>,
        /// The kernel's statistics at its end, where they were read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        info: Option<TcpInfo>,
    },
    /// A descendant of a server's process computed until now, seen from outside.
    ProcessRan {
        /// The process.
        pid: u32,
        /// Its ancestors among the watched processes, its parent first.
        ancestors: Vec<u32>,
        /// Name of its program: `git`, `chromium`.
        program: String,
        /// When it was seen to begin.
        began: Nanos,
    },
    /// Work that the runtime of a program's language did on threads of its own ended now.
    PoolWork {
        /// The process.
        pid: u32,
        /// Its name: `files`.
        work: String,
        /// When it began.
        began: Nanos,
    },
    /// A timer that a program's code waited for went off now.
    TimerFired {
        /// The process.
        pid: u32,
        /// The stack that set it, seen before.
        stack: StackId,
        /// When it was set.
        began: Nanos,
    },
    /// The runtime of a program's language let the program go on after a pause.
    RuntimePause {
        /// The process.
        pid: u32,
        /// The reason for the pause.
        cause: PauseCause,
        /// When the pause began.
        began: Nanos,
    },
    /// A source of evidence about the inside of a program gives none.
    SourceMissing {
        /// The source.
        source: EvidenceSource,
        /// The process that it is about, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        /// The reason: the words of the system or of the library.
        reason: String,
    },
    /// The client's program starts an operation; its own stamp.
    CallStart {
        /// The operation's id.
        call: CallId,
        /// `provider`, `connect`, `list`, `call`, `disconnect`.
        operation: String,
        /// The tool, for `call`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
    },
    /// The operation returned; the client program's own stamp.
    CallEnd {
        /// The operation's id.
        call: CallId,
        /// How.
        outcome: CallOutcome,
    },
    /// The server told how long its layers took.
    ServerTiming {
        /// The exchange, over HTTP.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ex: Option<ExchangeId>,
        /// The JSON-RPC id that it is about (JSON token), where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The layers.
        timing: ServerTiming,
    },
    /// The kernel's statistics of a connection, sampled after parts of a reply were handed to the client and when the
    /// instrument closes its end.
    TcpInfo {
        /// Front or back.
        side: Side,
        /// The connection.
        conn: ConnectionId,
        /// The statistics.
        info: TcpInfo,
    },
    /// A thread of the instrument came to run later than it was due: what it stamped meanwhile may be late by as much.
    InstrumentLate {
        /// By how much.
        by: Nanos,
        /// Processor time that it used itself since it was last on time: it was busy where this is most of it, and was
        /// kept from running where it isn't.
        busy: Nanos,
    },
    /// Events that the instrument could not keep. An analysis of this recording must say so.
    EventsLost {
        /// How many.
        count: u64,
    },
}
