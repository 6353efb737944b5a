//! When a fact was, and which event says it.

use std::num::NonZeroU32;

use mcpace_record::Nanos;
use serde::{Serialize, Serializer};

/// One fact's time and the event that says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stamp {
    /// When, on the recording's clock.
    #[serde(rename = "at_ns")]
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

impl Serialize for EventIndex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.index() as u64)
    }
}
