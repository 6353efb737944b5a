//! Files of spans, and the clock that they are read with.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::UNIX_EPOCH;

use mcpace_explain::TakeSpan;
use mcpace_record::{Nanos, Recording, Redactor};
use mcpace_spans::{FileBounds, SpanCounts, SpanError, WallClock, read_spans};
use pyo3::prelude::*;

use crate::problem::{EnvironmentProblem, UsageProblem};

/// Reads a file of spans.
pub(crate) fn read_span_file(path: &str, clock: WallClock, take: &mut TakeSpan<'_>) -> PyResult<SpanCounts> {
    let file = File::open(path).map_err(|error| UsageProblem::new_err(format!("cannot read {path}: {error}")))?;
    // The standard library's hasher is seeded at random.
    let redactor = Redactor::new(RandomState::new().build_hasher().finish());
    let read = read_spans(file, &redactor, clock, FileBounds::MOST, |(ended, span)| take(ended, &span));
    read.map_err(|error| match error {
        SpanError::Io(error) => EnvironmentProblem::new_err(format!("cannot read {path}: {error}")),
        other => UsageProblem::new_err(format!("{path} is {other}")),
    })
}

/// The wall clock of the machine that recorded, as of the start of the recording.
pub(crate) fn wall_clock(recording: &Recording) -> WallClock {
    let started = humantime::parse_rfc3339(&recording.head.started).unwrap_or(UNIX_EPOCH);
    let unix = started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let first = recording.events().first().map_or(Nanos::ZERO, |event| event.at);
    WallClock { unix_ns: u64::try_from(unix).unwrap_or(0), at: recording.head.started_at.unwrap_or(first) }
}
