//! Spans that programs report about their own work, decoded from the formats in which they are sent and kept.
//!
//! Design constraint: pure. Bytes in, spans out; `Read` only, and no clock. Spans come from hostile programs and files: their
//! number, their texts and their attributes are bounded, and secrets are masked as a [`Span`] is made.

mod bounded;
mod file;
mod jaeger;
mod json;
mod json_parts;
mod otlp;
mod otlp_json;
mod reported;
mod scalar;

use mcpace_record::{Nanos, Span};

pub use bounded::unzip;
pub use file::{FileBounds, read_spans};
pub use otlp::{Encoding, decode_otlp, encode_partial_success};
pub use reported::SpanCounts;

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
    /// Clock of recordings whose times are those of the wall clock.
    pub const WALL: Self = Self { unix_ns: 0, at: Nanos::ZERO };

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
    /// A body that is no message of the OpenTelemetry protocol.
    #[error("the body is no ExportTraceServiceRequest of OTLP: {0}")]
    Malformed(String),
    /// A file that is no JSON.
    #[error("not a file of spans: {0}")]
    NotSpans(String),
    /// A file of JSON in another format.
    #[error("not a file of spans: its JSON has neither the \"resourceSpans\" of OTLP nor the \"data\" of Jaeger")]
    OtherFormat,
    /// A file of spans that has none.
    #[error("a file of spans that holds none")]
    Empty,
    /// More spans than are read.
    #[error("a file of more than {0} spans, which is the most that is read: export a shorter time, or fewer traces")]
    TooMany(u64),
    /// More text than is read.
    #[error("a file of more than {} MiB of text, which is the most that is read", .0 >> 20)]
    TooLarge(u64),
    /// One span with more text than is read.
    #[error("a file with a span of more than {} MiB, which is the most that is read", .0 >> 20)]
    LargeSpan(u64),
    /// The file could not be read.
    #[error("cannot be read: {0}")]
    Io(std::io::Error),
}
