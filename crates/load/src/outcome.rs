//! Outcome of a run, as JSON.

use std::collections::BTreeMap;

use mcpace_stats::HistogramSummary;
use serde::{Deserialize, Serialize};

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadOutcome {
    /// How it ended.
    pub ended: RunEnd,
    /// Why it failed, in one sentence.
    pub failure: Option<String>,
    /// When it began: `CLOCK_MONOTONIC`.
    pub started_ns: u64,
    /// From the start to the end of the last call.
    pub elapsed_s: f64,
    /// The part that the figures are of: without warm-up and drain.
    pub measured_s: f64,
    /// Calls that were due.
    pub intended: u64,
    /// Calls that began. Each of them ended in `operations` or is unfinished.
    pub begun: u64,
    /// Those that never began: all of `max_in_flight` were taken until the end.
    pub dropped: u64,
    /// Those that began late for the same reason.
    pub late: u64,
    /// Those that had no reply when the run ended.
    pub unfinished: u64,
    /// The plan's operations in its order, then `initialize`, `initialized` and `delete` where there were any.
    pub operations: Vec<OperationOutcome>,
    /// Counts of connections; over stdio, of processes.
    pub connections: Connections,
    /// Each second from the start, the warm-up's too.
    pub seconds: Vec<Second>,
    /// Figures of the engine itself.
    pub engine: Engine,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// As planned.
    Done,
    /// Earlier, on request.
    Stopped,
    /// The engine couldn't do its work.
    Failed,
}

/// One kind of call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationOutcome {
    /// As in the plan.
    pub name: String,
    /// Kind of operation.
    pub kind: OutcomeKind,
    /// Calls that ended: `ok` and all of `errors`.
    pub count: u64,
    /// Those that were answered as they should be.
    pub ok: u64,
    /// Those that were not. All kinds are named.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// The first error's details; the target's words are shortened and made printable.
    pub first_error: Option<String>,
    /// Latency of good calls, measured from the time at which they were due.
    pub latency: HistogramSummary,
    /// Service time of good calls, measured from the time at which they were sent.
    pub service: HistogramSummary,
    /// Latency of failed calls, measured from the time at which they were due.
    pub failed: HistogramSummary,
    /// Bytes of requests, heads included.
    pub sent_bytes: u64,
    /// Bytes of replies, heads included.
    pub received_bytes: u64,
    /// Replies that were JSON.
    pub json_replies: u64,
    /// Replies that were event streams.
    pub sse_replies: u64,
}

/// Kinds of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// `tools/call`.
    Call,
    /// `tools/list`.
    List,
    /// `ping`.
    Ping,
    /// Any other request.
    Raw,
    /// A session's `initialize`.
    Initialize,
    /// The notification after it.
    Initialized,
    /// The session's end.
    Delete,
}

/// Reason why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No connection: refused, unreachable, or TLS failed.
    Connect,
    /// The connection was reset, or closed before any of the reply.
    Reset,
    /// No reply in time.
    Timeout,
    /// The target sent the request elsewhere. Following would make two requests of one, and measure both as one.
    Redirect,
    /// Another status than the one that belongs there.
    HttpStatus,
    /// Rubbish, or half a reply.
    NotMcp,
    /// A reply to another id.
    WrongId,
    /// A JSON-RPC error.
    JsonrpcError,
    /// A tool's result with `isError`.
    ToolError,
    /// The server doesn't know the session any more.
    SessionLost,
    /// A reply past the limit.
    TooLarge,
    /// This machine has no more ports or descriptors.
    Exhausted,
    /// The program over stdio ended, or couldn't be started.
    ProcessExit,
    /// The reply lacks what the operation's `assert` asks for.
    Assertion,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [Self; 14] = [
        Self::Connect,
        Self::Reset,
        Self::Timeout,
        Self::Redirect,
        Self::HttpStatus,
        Self::NotMcp,
        Self::WrongId,
        Self::JsonrpcError,
        Self::ToolError,
        Self::SessionLost,
        Self::TooLarge,
        Self::Exhausted,
        Self::ProcessExit,
        Self::Assertion,
    ];
}

/// Counts of connections from the start to the end, warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// Established.
    pub opened: u64,
    /// Requests on a connection that had one before.
    pub reused_requests: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Closed by the target.
    pub closed_by_peer: u64,
}

/// One second. Calls count where they ended, arrivals where they were due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Second {
    /// Its beginning, from the start of the run.
    pub at_s: f64,
    /// Whether it began in the warm-up.
    pub warm_up: bool,
    /// Users at its end; in the open model, calls under way.
    pub users: u64,
    /// Calls that were due.
    pub intended: u64,
    /// Calls that ended well.
    pub ok: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Latency of good calls.
    pub latency: Quantiles,
    /// The share of the second in which the engine's threads were busy.
    pub engine_busy: f64,
}

/// Everything that an engine counted in one second, where it is one of several. The operations of all seconds add up to
/// those of the outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecondDelta {
    /// When the run began: `CLOCK_MONOTONIC`.
    pub started_ns: u64,
    /// The second.
    pub second: Second,
    /// Latency of the good calls that ended in it, the warm-up's too.
    pub latency: HistogramSummary,
    /// Calls of the measured part that ended in it. Operations without any are left out.
    pub operations: Vec<OperationOutcome>,
    /// Calls that were due from the start to the end of this second.
    pub intended: u64,
    /// Those that began.
    pub begun: u64,
    /// Those that began late because all of `max_in_flight` were taken.
    pub late: u64,
    /// Those that had no reply when the run ended.
    pub unfinished: u64,
    /// Connections from the start to the end of this second.
    pub connections: Connections,
}

/// A second's latencies; all 0 when there were none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantiles {
    /// The median.
    pub p50_s: f64,
    /// 9 of 10 are not longer.
    pub p90_s: f64,
    /// 99 of 100 are not longer.
    pub p99_s: f64,
    /// The longest.
    pub max_s: f64,
}

/// Figures of the engine itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Its threads.
    pub threads: usize,
    /// Processor time of its threads, whole run.
    pub cpu_s: f64,
    /// The share of the measured time in which its threads were busy; the busiest one's.
    pub busy: f64,
    /// How late calls began for the engine's own reasons: 99 of 100 were not later.
    pub late_p99_s: f64,
    /// Whether the engine, not the target, was the limit.
    pub saturated: bool,
    /// By what that was seen.
    pub reason: Option<Saturation>,
}

/// By what it was seen that the engine was the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Saturation {
    /// Calls that were due, and had a free user, began more than 1 ms late.
    LateStarts,
    /// The threads had no time left: replies waited unread.
    ThreadsBusy,
}
