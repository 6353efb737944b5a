//! The median of times.

use mcpace_record::Nanos;

/// Sorts the times, and returns the shorter one of two in the middle.
pub(crate) fn lower_median(times: &mut [Nanos]) -> Option<Nanos> {
    times.sort_unstable();
    times.get(times.len().checked_sub(1)? / 2).copied()
}
