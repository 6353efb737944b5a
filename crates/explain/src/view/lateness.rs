//! When the instrument itself was late.

use mcpace_record::{EventKind, Nanos, Recording};
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

pub(super) fn lateness(recording: &Recording) -> Vec<Late> {
    let late = recording.events().iter().enumerate().filter_map(|(event, seen)| match seen.kind {
        EventKind::InstrumentLate { by, busy } => Some(Late { at: Stamp { at: seen.at, event }, by, busy }),
        _ => None,
    });
    late.collect()
}
