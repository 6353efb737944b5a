//! Processor time, memory, and the start of processes. Here are the facts that each finding tells its reader.

pub(super) mod slow_start;

use mcpace_record::Nanos;
use serde::Serialize;

/// See [`Cause::SlowStart`](crate::Cause::SlowStart).
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
