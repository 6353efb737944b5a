//! Findings about one operation that repeats without an end. The structs hold the facts of each finding.

pub(super) mod get_loop;
pub(super) mod resume_loop;
pub(super) mod retry_storm;
mod rhythm;

use mcpace_record::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

/// See [`Cause::GetLoop`](crate::Cause::GetLoop).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct GetLoop {
    /// Times that the stream was opened.
    pub streams: u64,
    /// Sessions that did so.
    pub sessions: u64,
    /// The time from one opening to the next, in the middle.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// How long a stream lived, in the middle.
    #[serde(rename = "life_ns")]
    pub life: Nanos,
    /// Whether the server's replies were no event streams at all.
    pub not_a_stream: bool,
}

/// See [`Cause::ResumeLoop`](crate::Cause::ResumeLoop).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ResumeLoop {
    /// Times that a stream was asked to go on after the same event.
    pub attempts: u64,
    /// Calls that never had their answer by it.
    pub calls: u64,
    /// The time from one attempt to the next, in the middle.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
}

/// See [`Cause::RetryStorm`](crate::Cause::RetryStorm).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct RetryStorm {
    /// Requests that were refused or failed.
    pub requests: u64,
    /// How they come.
    pub pattern: Storm,
    /// The HTTP status that they got; `None` where there was no reply.
    pub status: Option<u16>,
    /// Clients at once, or sessions that each did so.
    pub clients: u64,
    /// The time from one to the next, in the middle.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
}

/// How needless retries come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Storm {
    /// One client asks again at a steady pace, however often it is refused.
    Steady,
    /// Many clients try again at the same moments.
    InStep,
}
