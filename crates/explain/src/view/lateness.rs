//! When the instrument itself was late.

use mcpace_record::Nanos;
use serde::Serialize;

use super::Stamp;

/// A thread of the instrument that came to run later than it was due.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Late {
    /// When it came to run.
    pub at: Stamp,
    /// How much later than it was due.
    #[serde(rename = "by_ns")]
    pub by: Nanos,
    /// Processor time that it used itself meanwhile.
    #[serde(rename = "busy_ns")]
    pub busy: Nanos,
}
