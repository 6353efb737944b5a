//! A whole recording in memory.

use serde::{Deserialize, Serialize};

use crate::numbers::Numbers;
use crate::{Event, EventKind, Nanos};

/// Which instrument made a recording; says what its sides mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Instrument {
    /// The proxy between any client and an HTTP server: front and back side.
    Recorder,
    /// Between a client and a server process: front and back side.
    StdioRecorder,
    /// Our own client: back side only.
    Client,
}

/// The first line of a recording: what was recorded, how and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingHead {
    /// Which instrument.
    pub instrument: Instrument,
    /// Wall-clock start, RFC 3339; every other time is on the monotonic clock.
    pub started: String,
    /// Start on the recording's own clock. Recordings of older releases have none.
    #[serde(rename = "started_ns", default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Nanos>,
    /// The release of mcpace that recorded.
    pub mcpace: String,
    /// Recorded server: a redacted URL or a program's name.
    pub upstream: String,
}

impl RecordingHead {
    /// Head of a recording that was made by hand with `instrument`. All other fields are empty.
    #[must_use]
    pub fn bare(instrument: Instrument) -> Self {
        Self { instrument, started: String::new(), started_at: None, mcpace: String::new(), upstream: String::new() }
    }
}

/// Events of one recording, in the order of their time.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Instrument, start and server of the recording.
    pub head: RecordingHead,
    events: Vec<Event>,
    /// Whether the end is missing: the file was cut off, or the recorder was killed.
    pub partial: bool,
}

impl Recording {
    /// Sorts `events` by time; equal times keep their order.
    #[must_use]
    pub fn new(head: RecordingHead, mut events: Vec<Event>) -> Self {
        // Two threads may append a few microseconds out of order, and a client program's stamps arrive after the fact.
        sort_events(&mut events);
        Self { head, events, partial: false }
    }

    /// Adds events that were stamped elsewhere on the same clock, such as a client program's own.
    pub fn add(&mut self, events: Vec<Event>) {
        self.events.extend(events);
        sort_events(&mut self.events);
    }

    /// Adds another recording of the same machine's clock, its connections, exchanges and operations under numbers of their
    /// own. The head stays this one's.
    pub fn beside(&mut self, other: Recording) {
        let past = Numbers::past_all(&mut self.events);
        self.partial |= other.partial;
        let renumbered = other.events.into_iter().map(|mut event| {
            past.shift_event(&mut event.kind);
            event
        });
        self.add(renumbered.collect());
    }

    /// All events, earliest first.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// How many events the instrument could not keep.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let lost = |event: &Event| match event.kind {
            EventKind::EventsLost { count } => count,
            _ => 0,
        };
        self.events.iter().map(lost).fold(0, u64::saturating_add)
    }
}

/// Stable sort. Events of a file are mostly in order already, and sorting would take half as much memory again.
fn sort_events(events: &mut [Event]) {
    if !events.is_sorted_by_key(|event| event.at) {
        events.sort_by_key(|event| event.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallId, CallOutcome, Nanos};

    fn recording(at: u64, calls: std::ops::Range<u64>) -> Recording {
        let head = RecordingHead::bare(Instrument::Recorder);
        let end =
            |call| Event { at: Nanos(at), kind: EventKind::CallEnd { call: CallId(call), outcome: CallOutcome::Ok } };
        Recording::new(head, calls.map(end).collect())
    }

    fn calls(recording: &Recording) -> Vec<u64> {
        let ends = recording.events().iter().filter_map(|event| match event.kind {
            EventKind::CallEnd { call, .. } => Some(call.0),
            _ => None,
        });
        ends.collect()
    }

    #[test]
    fn two_recordings_side_by_side_keep_their_numbers_apart() {
        let mut first = recording(5, 0..3);
        first.beside(recording(1, 0..2));
        assert_eq!(calls(&first), [3, 4, 0, 1, 2]);
        assert!(!first.partial);
        first.beside(Recording { partial: true, ..recording(9, 0..1) });
        assert_eq!(calls(&first), [3, 4, 0, 1, 2, 5]);
        assert!(first.partial);
    }

    #[test]
    fn numbers_at_their_end_are_no_reason_to_panic() {
        let mut first = recording(1, u64::MAX - 1..u64::MAX);
        first.beside(recording(2, u64::MAX - 1..u64::MAX));
        assert_eq!(calls(&first).len(), 2);
    }
}
