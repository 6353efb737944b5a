//! Spans that programs report about their own work, decoded from the formats in which they are sent and kept.
//!
//! Design constraint: pure. Bytes in, spans out; no I/O and no clock. Spans come from hostile programs: their number, their
//! texts and their attributes are bounded, and secrets are masked as a [`Span`] is made.

mod otlp;

use mcpace_record::{Nanos, Span};

pub use otlp::{Encoding, decode_otlp};

/// A span and the time of its end.
pub type TimedSpan = (Nanos, Span);

/// Maps times of the wall clock to the recording's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    /// A moment in nanoseconds since 1970-01-01 UTC.
    pub unix_ns: u64,
    /// This moment on the recording's clock.
    pub at: Nanos,
}

impl WallClock {
    /// A time on the recording's clock; `None` before the clock's zero.
    #[must_use]
    pub fn recording_time(&self, unix_ns: u64) -> Option<Nanos> {
        let time = i128::from(self.at.0) + i128::from(unix_ns) - i128::from(self.unix_ns);
        u64::try_from(time).ok().map(Nanos)
    }
}

/// Spans that cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum SpanError {
    /// Not a message of the OpenTelemetry protocol.
    #[error("the body is no ExportTraceServiceRequest of OTLP: {0}")]
    Malformed(String),
}
