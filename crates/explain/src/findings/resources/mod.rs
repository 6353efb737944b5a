//! Processor time, memory, and the start of processes. Here are the facts that each finding tells its reader.

mod growth;
pub(super) mod large_listing;
pub(super) mod rebuilt_per_request;
pub(super) mod session_leak;
pub(super) mod slow_start;
pub(super) mod superlinear_line;
pub(super) mod task_leak;

use mcpace_record::{Nanos, Peer};
use schemars::JsonSchema;
use serde::Serialize;

/// See [`Cause::SlowStart`](crate::Cause::SlowStart).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct SlowStart {
    /// The program's name.
    pub program: String,
    /// Whether that is a package runner, which may fetch from the network before the server starts.
    pub package_runner: bool,
    /// Starts that were slow.
    pub starts: u64,
    /// All starts that were answered.
    pub of_starts: u64,
    /// The longest time from spawn or `initialize`, whichever was later, to the answer.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
    /// The median time of later answers of the same processes, where there were any.
    #[serde(rename = "typical_answer_ns")]
    pub typical_answer: Option<Nanos>,
}

/// See [`Cause::SessionLeak`](crate::Cause::SessionLeak).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct SessionLeak {
    /// Sessions that were begun.
    pub begun: u64,
    /// Sessions that the client ended.
    pub ended: u64,
    /// Bytes of memory for each that was left.
    pub bytes_each: u64,
    /// The least that the interval of the slope allows for each.
    pub least_bytes_each: u64,
    /// The most that the interval of the slope allows for each.
    pub most_bytes_each: u64,
    /// The server's memory at the beginning.
    pub bytes_before: u64,
    /// The server's memory afterwards.
    pub bytes_after: u64,
}

/// See [`Cause::TaskLeak`](crate::Cause::TaskLeak).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct TaskLeak {
    /// Requests that memory rose with.
    pub requests: u64,
    /// Bytes of memory for each.
    pub bytes_each: u64,
    /// The least that the interval of the slope allows for each.
    pub least_bytes_each: u64,
    /// The most that the interval of the slope allows for each.
    pub most_bytes_each: u64,
    /// The server's memory at the beginning.
    pub bytes_before: u64,
    /// The server's memory afterwards.
    pub bytes_after: u64,
    /// Threads that came in the meantime.
    pub threads: u32,
}

/// See [`Cause::RebuiltPerRequest`](crate::Cause::RebuiltPerRequest).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct RebuiltPerRequest {
    /// The process whose processor time was measured.
    pub of: Peer,
    /// Tools, where there were few.
    pub few_tools: u64,
    /// Tools where there were many.
    pub many_tools: u64,
    /// Requests with many.
    pub requests: u64,
    /// Processor time of a request with few tools.
    #[serde(rename = "each_with_few_ns")]
    pub each_with_few: Nanos,
    /// Processor time of a request with many tools.
    #[serde(rename = "each_with_many_ns")]
    pub each_with_many: Nanos,
}

/// See [`Cause::LargeListing`](crate::Cause::LargeListing).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct LargeListing {
    /// Tools in it, where that was counted.
    pub tools: Option<u64>,
    /// Replies that it came in.
    pub pages: u64,
    /// Bytes of one whole listing.
    pub bytes: u64,
    /// Tokens of it, estimated.
    pub tokens: u64,
    /// Bytes of all listings of the recording.
    pub bytes_in_all: u64,
    /// Bytes of all bodies of the recording.
    pub of_bytes: u64,
}

/// See [`Cause::SuperlinearLine`](crate::Cause::SuperlinearLine).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct SuperlinearLine {
    /// Answers that were looked at.
    pub lines: u64,
    /// Bytes of the longest.
    pub largest: u64,
    /// How long the client took for it.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
    /// Time grows with this power of the size, to a tenth; 1 is in proportion.
    pub power: f64,
}
