//! Files of spans, and the clock that they are read with.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::UNIX_EPOCH;

use mcpace_explain::TakeSpan;
use mcpace_record::{Nanos, Recording, Redactor};
use mcpace_spans::{FileBounds, SpanCounts, SpanError, WallClock, read_spans};
use pyo3::prelude::*;

use crate::problem::{EnvironmentProblem, UsageProblem};

/// Reads a file of spans, whose times are those of the wall clock.
pub(crate) fn read_span_file(path: &str, take: &mut TakeSpan<'_>) -> PyResult<SpanCounts> {
    let file = File::open(path).map_err(|error| UsageProblem::new_err(format!("cannot read {path}: {error}")))?;
    // The standard library's hasher is seeded at random.
    let redactor = Redactor::new(RandomState::new().build_hasher().finish());
    let read = read_spans(file, &redactor, WallClock::WALL, FileBounds::MOST, |(ended, span)| take(ended, &span));
    read.map_err(|error| match error {
        SpanError::Io(error) => EnvironmentProblem::new_err(format!("cannot read {path}: {error}")),
        other => UsageProblem::new_err(format!("{path} is {other}")),
    })
}

/// Nanoseconds from the wall clock of the machine that recorded to the recording's clock, as of the start of the recording.
pub(crate) fn wall_clock_offset(recording: &Recording) -> i64 {
    let started = humantime::parse_rfc3339(&recording.head.started).unwrap_or(UNIX_EPOCH);
    let unix = started.duration_since(UNIX_EPOCH).map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(0));
    let first = recording.events().first().map_or(Nanos::ZERO, |event| event.at);
    let at = recording.head.started_at.unwrap_or(first);
    i64::try_from(i128::from(at.0) - unix).unwrap_or(0)
}
