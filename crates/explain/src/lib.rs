//! From a Recording to the time of each call by layer, and to the causes that the events prove.
//!
//! Design constraint: pure functions. No I/O, no clock, no randomness, no text for people: what a cause means is said at
//! the edge. Recordings may come from hostile peers or be damaged; every function takes any list of events without panic,
//! in O(n log n). Deliberately absent: comparison of runs and statistics.
//!
//! ```text
//! Recording ── exchanges() ──▶ View ── ledgers() ──▶ Ledger ── findings() ──▶ Finding
//!                               └───── waterfall() ─▶ Waterfall (a picture of one call)
//! ```
//!
//! # The JSON
//!
//! Ledgers, findings and waterfalls serialise; times and spans are integers in nanoseconds and their keys end in `_ns`, codes are kebab-case.
//!
//! A [`Ledger`]; `parts` add up to `end_ns - start_ns`, exactly:
//!
//! ```json
//! {"call": 3, "operation": "call", "tool": "greet", "start_ns": 0, "end_ns": 10000000, "outcome": "ok",
//!  "parts": {"client.send": 1, "connect": 0, "request": 1, "server": 1, "response": 1, "client.receive": 1,
//!            "unaccounted": 0},
//!  "server_timing": {"transport_ns": 1, "dispatch_ns": 1, "service_ns": 1},
//!  "split": {"transport_ns": 1, "dispatch_ns": 0, "service_ns": 0, "rest_ns": 0},
//!  "segments": [{"part": "client.send", "from_ns": 0, "to_ns": 1, "exchange": 7}],
//!  "exchanges": [7], "in_flight": []}
//! ```
//!
//! `outcome` is `"ok"`, `"tool-error"`, `{"failed": "…"}` or, where the call never returned, `null`.
//!
//! A [`Finding`]; `context` depends on `code`, see [`Cause`] for each:
//!
//! ```json
//! {"code": "duplicate-request", "context": {"methods": ["tools/call"], "repeats": 1, "executions": 1, "…": 0},
//!  "severity": "high", "confidence": {"level": "high", "reason": "identical-bytes-and-id"}, "operation": "call",
//!  "calls": [{"call": 3, "time_ns": 3000000000, "requests": 1, "bytes": 420}],
//!  "total": {"time_ns": 3000000000, "requests": 1, "bytes": 420},
//!  "evidence": [{"event": 17, "at_ns": 120, "role": "first-request"}], "disproof": "count-executions-at-server",
//!  "alternatives": [{"code": "retried-execution", "decided_by": "count-executions-at-server"}]}
//! ```
//!
//! `calls` names only calls with a cost; `total` also counts what happened outside any call. A stretch of a call's time is
//! charged to one finding only. `evidence[].event` is an index into the recording's events.
//!
//! A [`Waterfall`] is described at its type; its times are relative to the call's start and may be negative.

mod accounts;
mod closed;
mod duplicates;
mod explained;
mod findings;
mod inside;
mod ledger;
mod median;
mod methods;
mod name;
mod parts;
mod process_exits;
mod serial_calls;
mod server_split;
mod view;
mod waterfall;

pub use accounts::{Account, AccountSum, Accounts};
pub use explained::{Explained, explain_recording, explain_spans, explain_with_spans, explained_file};
pub use findings::*;
pub use inside::{
    CodeOrigin, DependencyKind, DependencyTime, FlameFrame, FlameGraph, FlameNode, InsideSums, Language, LineTime,
    PackageTime, SourceLine, ToolTime, inside_sums,
};
pub use ledger::{Ledger, call_ledgers};
pub use methods::Method;
pub use name::Name;
pub use parts::{Part, Parts, Segment};
pub use process_exits::ProcessExit;
pub use serial_calls::SerialCalls;
pub use server_split::{Doubt, ServerSplit};
pub use view::{
    Call, Connection, EventIndex, Exchange, Late, Leg, Look, Note, PackedOutcome, Process, ReplyShape, SpanClock,
    SpanFacts, Stamp, StreamEvent, TakeSpan, TcpSample, Texts, Transport, Usage, View, exchanges_of_file, join_events,
};
pub use waterfall::{
    ConnectionRow, DependencyLane, DependencySpan, ExchangeRow, Moment, Phase, PhaseRow, Waterfall, call_waterfall,
};
