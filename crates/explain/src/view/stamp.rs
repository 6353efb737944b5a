//! When a fact was, and which event says it.

use std::num::NonZeroU32;

use mcpace_record::Nanos;

/// One fact's time and the event that says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When, on the recording's clock.
    pub at: Nanos,
    /// Which event.
    pub event: EventIndex,
}

/// An index into [`Recording::events`](mcpace_record::Recording::events).
///
/// Counted from one inside, so that an absent stamp takes no room of its own: a view has a dozen for each exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventIndex(NonZeroU32);

impl EventIndex {
    /// The event at `index`. Past the fourth thousand million all are the same.
    #[must_use]
    pub fn new(index: usize) -> Self {
        let from_one = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
        Self(NonZeroU32::new(from_one).unwrap_or(NonZeroU32::MAX))
    }

    /// From zero, as lists are counted.
    #[must_use]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A stamp that may be absent, without the room that alignment takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PackedStamp {
    /// The time by halves.
    at: [u32; 2],
    event: Option<EventIndex>,
}

impl PackedStamp {
    pub(super) fn of(stamp: Option<Stamp>) -> Self {
        let at = stamp.map_or(0, |stamp| stamp.at.0);
        Self { at: [(at >> 32) as u32, at as u32], event: stamp.map(|stamp| stamp.event) }
    }

    pub(super) fn to_stamp(self) -> Option<Stamp> {
        let at = Nanos(u64::from(self.at[0]) << 32 | u64::from(self.at[1]));
        self.event.map(|event| Stamp { at, event })
    }
}
