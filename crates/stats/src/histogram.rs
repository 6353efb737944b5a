//! A histogram of nanoseconds with three significant digits (Gil Tene's HdrHistogram).
//!
//! A mean and a few quantiles of each second can't be put together to those of a minute; histograms can. Two that were
//! recorded apart and merged are the same as one that recorded everything.

use std::fmt;

/// Times in nanoseconds, each known to 0.1 %.
///
/// Longer ones than [`Histogram::LONGEST_NS`] are kept as that: a run that waits longer for one reply has other problems.
#[derive(Clone, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

impl Histogram {
    /// The longest time that is told apart: one hour.
    pub const LONGEST_NS: u64 = 3_600_000_000_000;

    /// An empty one. Takes about 250 KB, whatever is recorded.
    #[must_use]
    pub fn new() -> Self {
        match hdrhistogram::Histogram::new_with_bounds(1, Self::LONGEST_NS, 3) {
            Ok(histogram) => Self(histogram),
            Err(_) => unreachable!("the bounds are constants that fit three digits"),
        }
    }

    /// Adds one time.
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Adds a time `count` times.
    #[cfg(test)]
    pub(crate) fn record_n(&mut self, ns: u64, count: u64) {
        self.0.saturating_record_n(ns, count);
    }

    /// Adds all that `other` has.
    pub fn merge(&mut self, other: &Self) {
        // Both have the same bounds, which is all that adding could fail of.
        let added = self.0.add(&other.0);
        debug_assert!(added.is_ok());
    }

    /// How many times were added.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Whether nothing was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The time that a share `q` (0 to 1) of all is not longer than. 0 when empty.
    #[must_use]
    pub fn quantile(&self, q: f64) -> u64 {
        self.0.value_at_quantile(q)
    }

    /// The mean, in nanoseconds. 0 when empty.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The shortest time. 0 when empty.
    #[must_use]
    pub fn min(&self) -> u64 {
        if self.is_empty() { 0 } else { self.0.min() }
    }

    /// The longest time. 0 when empty.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// The cells that have something in them: the highest time that falls into the cell, and how many did. In order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter_recorded().map(|cell| (cell.value_iterated_to(), cell.count_since_last_iteration()))
    }

    /// Takes everything out, keeping the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram").field("count", &self.count()).field("max", &self.max()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Histogram;

    fn of(times: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        times.iter().for_each(|ns| histogram.record(*ns));
        histogram
    }

    #[test]
    fn an_empty_one_answers_zero() {
        let empty = Histogram::new();
        assert_eq!((empty.quantile(0.99), empty.min(), empty.max(), empty.buckets().count()), (0, 0, 0, 0));
    }

    #[test]
    fn what_is_too_long_is_kept_as_the_longest() {
        let histogram = of(&[u64::MAX]);
        assert_eq!(histogram.count(), 1);
        assert!(histogram.max() >= Histogram::LONGEST_NS);
    }

    proptest! {
        #[test]
        fn merging_is_as_if_recorded_together(a in prop::collection::vec(0u64..10_000_000_000, 0..50),
                                              b in prop::collection::vec(0u64..10_000_000_000, 0..50)) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert!(merged == of(&[a, b].concat()));
        }

        #[test]
        fn quantiles_are_within_a_thousandth(mut times in prop::collection::vec(1u64..10_000_000_000, 1..200), q in 0.0f64..=1.0) {
            let histogram = of(&times);
            times.sort_unstable();
            let rank = ((q * times.len() as f64).ceil() as usize).clamp(1, times.len());
            let exact = times[rank - 1] as f64;
            let found = histogram.quantile(q) as f64;
            prop_assert!((found - exact).abs() <= exact * 0.001 + 1.0, "{found} {exact}");
        }

        #[test]
        fn buckets_bring_it_back(times in prop::collection::vec(0u64..10_000_000_000, 0..50)) {
            let histogram = of(&times);
            let mut again = Histogram::new();
            histogram.buckets().for_each(|(ns, count)| again.record_n(ns, count));
            prop_assert!(again.buckets().eq(histogram.buckets()));
        }
    }
}
