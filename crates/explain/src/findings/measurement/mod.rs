//! The instrument was measured, not the target. Here are the facts that each finding tells its reader.
//!
//! Such a finding charges only time that no other explains, and names the events: it says how far the recording's other
//! times can be believed.

mod lateness;
pub(super) mod noisy_run;
pub(super) mod recorder_limited;

use mcpace_record::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

/// See [`Cause::RecorderLimited`](crate::Cause::RecorderLimited).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct RecorderLimited {
    /// Times that it was late while something was under way.
    pub times: u64,
    /// Total lateness.
    #[serde(rename = "late_ns")]
    pub late: Nanos,
    /// The time that was measured.
    #[serde(rename = "of_ns")]
    pub of: Nanos,
}

/// See [`Cause::NoisyRun`](crate::Cause::NoisyRun).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct NoisyRun {
    /// Times that the instrument was kept from running while something was under way.
    pub times: u64,
    /// Total lateness.
    #[serde(rename = "late_ns")]
    pub late: Nanos,
    /// The time that was measured.
    #[serde(rename = "of_ns")]
    pub of: Nanos,
}
