//! A recording in the formats of other tools: HAR for a browser's network panel, Chrome's trace format for Perfetto, OTLP
//! for any collector of spans.
//!
//! Design constraint: pure (`Write` only), written entry by entry, so that a recording of a million exchanges needs
//! little more memory than it has already. Only the recording is read, so redacted data stays redacted.
//!
//! Times of the wall clock are the recording's start plus the monotonic time since then; a recording that doesn't say when
//! that was on its own clock counts from its first event.

mod bodies;
mod har;
mod lanes;
mod otlp;
mod program_spans;
mod trace;

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use mcpace_record::{Nanos, Recording};

pub use har::write_har;
pub use otlp::write_otlp;
pub use trace::write_trace;

/// Why a recording can't be written in a format.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// HAR knows HTTP only.
    #[error("HAR is of HTTP, and this recording is of a process over stdio: export it as a trace or as spans")]
    NoHttp,
    /// The destination could not be written to.
    #[error("writing failed: {0}")]
    Write(#[from] io::Error),
    /// A part of it could not be written as JSON.
    #[error("writing failed: {0}")]
    Json(#[from] serde_json::Error),
}

/// From the recording's clock to the wall's.
#[derive(Clone, Copy)]
struct Wall {
    origin: Nanos,
    /// Nanoseconds since 1970 at the origin.
    unix: u64,
}

impl Wall {
    fn wall_clock(recording: &Recording) -> Self {
        let started = humantime::parse_rfc3339(&recording.head.started).unwrap_or(UNIX_EPOCH);
        let unix = started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let first = recording.events().first().map_or(Nanos::ZERO, |event| event.at);
        Self { origin: recording.head.started_at.unwrap_or(first), unix: u64::try_from(unix).unwrap_or(0) }
    }

    /// Nanoseconds since 1970.
    fn unix_ns(self, at: Nanos) -> u64 {
        if at >= self.origin {
            self.unix.saturating_add(at.since(self.origin).0)
        } else {
            self.unix.saturating_sub(self.origin.since(at).0)
        }
    }

    /// RFC 3339, to the microsecond.
    fn to_rfc3339(self, at: Nanos) -> String {
        // A hostile stamp past the year 9999 can't be written; it is as good as any other then.
        const LAST: u64 = 253_402_300_799;
        let ns = self.unix_ns(at).min(LAST.saturating_mul(1_000_000_000));
        let time: SystemTime = UNIX_EPOCH + std::time::Duration::from_nanos(ns);
        humantime::format_rfc3339_micros(time).to_string()
    }
}

/// Milliseconds, as HAR has them.
fn to_millis(span: Nanos) -> f64 {
    span.0 as f64 / 1e6
}
