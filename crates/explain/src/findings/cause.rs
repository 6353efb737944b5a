//! The closed list of causes, each with the facts that a reader needs to act on it.

use mcpace_record::{Closer, Nanos};
use serde::Serialize;

/// What is wrong. Serialises as `"code"` and `"context"`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "code", content = "context", rename_all = "kebab-case")]
pub enum Cause {
    /// A request is sent again though the first sending succeeded; the server executes it twice.
    DuplicateRequest(DuplicateRequest),
    /// A `tools/list` between a call's result and the call's return.
    HiddenListing(HiddenListing),
    /// The result was complete at the client long before the call returned.
    LateDelivery(LateDelivery),
    /// A new connection for each request though an open one was free.
    ConnectionPerRequest(ConnectionPerRequest),
    /// Each call begins a session of its own.
    SessionPerCall(SessionPerCall),
    /// OAuth metadata fetched again though nothing had changed.
    DiscoveryRepeated(DiscoveryRepeated),
    /// No request leaves until the server's own stream has its reply head.
    WaitsForGet(WaitsForGet),
    /// A server process takes long until it first answers.
    SlowStart(SlowStart),
}

impl Cause {
    /// All codes, as they are serialised.
    pub const CODES: [&'static str; 8] = [
        "duplicate-request",
        "hidden-listing",
        "late-delivery",
        "connection-per-request",
        "session-per-call",
        "discovery-repeated",
        "waits-for-get",
        "slow-start",
    ];

    /// This cause's code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Cause::DuplicateRequest(_) => "duplicate-request",
            Cause::HiddenListing(_) => "hidden-listing",
            Cause::LateDelivery(_) => "late-delivery",
            Cause::ConnectionPerRequest(_) => "connection-per-request",
            Cause::SessionPerCall(_) => "session-per-call",
            Cause::DiscoveryRepeated(_) => "discovery-repeated",
            Cause::WaitsForGet(_) => "waits-for-get",
            Cause::SlowStart(_) => "slow-start",
        }
    }
}

/// See [`Cause::DuplicateRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DuplicateRequest {
    /// JSON-RPC methods that were repeated, each once, sorted.
    pub methods: Vec<String>,
    /// Repeated requests.
    pub repeats: u64,
    /// Of these, executions of a tool (`tools/call`).
    pub executions: u64,
    /// Of these, such that left only after the whole of the first reply: the reply was drained and thrown away.
    pub after_reply_end: u64,
    /// GETs for the server's own stream that were repeated likewise; counted among `total.requests`.
    pub streams: u64,
    /// Whether the repeated requests carried an `authorization` header.
    pub authenticated: bool,
}

/// See [`Cause::HiddenListing`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HiddenListing {
    /// Calls with one.
    pub calls: u64,
    /// Calls of the same operation.
    pub of_calls: u64,
    /// Listings (their pages included).
    pub listings: u64,
}

/// See [`Cause::LateDelivery`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LateDelivery {
    /// Calls with it.
    pub calls: u64,
    /// Calls of the same operation.
    pub of_calls: u64,
    /// What the client seems to have waited for.
    pub released_by: Released,
    /// The longest time between the result and the client's next act that nothing else explains.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// What a client that held a result waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Released {
    /// The end of the reply's stream.
    ReplyEnd,
    /// The close of the connection.
    ConnectionClose,
    /// Nothing that is on the wire.
    NothingSeen,
}

/// See [`Cause::ConnectionPerRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConnectionPerRequest {
    /// Requests of the sessions concerned.
    pub requests: u64,
    /// Connections that they used.
    pub connections: u64,
    /// Of these, opened though an earlier one of the session was free.
    pub needless: u64,
    /// Replies that the client broke off, which spoils their connections; it may have had to.
    pub left_early: u64,
    /// What the replies were.
    pub replies: ReplyKind,
    /// Who closed the connections that could have been used again; `None` where they stayed open, unused.
    pub closed_by: Option<Closer>,
}

/// What kind of reply bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyKind {
    /// JSON only.
    Json,
    /// Server-sent events only.
    Sse,
    /// Both.
    Mixed,
}

/// See [`Cause::SessionPerCall`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionPerCall {
    /// Tool calls.
    pub tool_calls: u64,
    /// Sessions begun for them.
    pub sessions: u64,
    /// Server processes spawned for them.
    pub processes: u64,
}

/// See [`Cause::DiscoveryRepeated`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DiscoveryRepeated {
    /// The documents' paths, each once, sorted.
    pub targets: Vec<String>,
    /// Needless fetches.
    pub repeats: u64,
}

/// See [`Cause::WaitsForGet`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitsForGet {
    /// Times that requests were held.
    pub occurrences: u64,
    /// Which of the two known reasons fits.
    pub gate: Gate,
    /// The longest wait.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// Why a client holds its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// Authentication is on: a lock in the authentication code is held across the GET.
    AuthorizationLock,
    /// No authentication: the client opens the stream before anything else, by design.
    StreamFirst,
}

/// See [`Cause::SlowStart`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlowStart {
    /// The program's name.
    pub program: String,
    /// Whether that is a package runner, which may fetch from the network before the server starts.
    pub package_runner: bool,
    /// Starts that were slow.
    pub starts: u64,
    /// The longest time from spawn or `initialize`, whichever was later, to the answer.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
    /// The median time of later answers of the same processes, where there were any.
    #[serde(rename = "typical_answer_ns")]
    pub typical_answer: Option<Nanos>,
}
