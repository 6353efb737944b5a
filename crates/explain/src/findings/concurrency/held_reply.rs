//! A reply that was ready and had to wait, by the facts that both rules of `head-of-line` find.

use mcpace_record::{ExchangeId, Nanos};

use crate::view::Stamp;

/// Held replies required before the cause is no chance.
pub(super) const FEWEST_HELD: usize = 2;

/// Time that a reply must have waited to count as held.
pub(super) const SHORTEST_HOLD: Nanos = Nanos::from_millis(50);

/// A reply that was held.
pub(super) struct HeldReply {
    pub(super) exchange: ExchangeId,
    pub(super) asked: Stamp,
    /// Time at which the reply was ready, as far as known.
    pub(super) ready: Nanos,
    pub(super) released: Stamp,
    pub(super) answered: Stamp,
}
