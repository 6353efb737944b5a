//! Looks for a mode: times that lie together where the ones around don't explain them.
//!
//! A stall of fixed length (a delayed ACK, a poll interval, a retry) shows as a hill in the histogram. That there are times in
//! its window says nothing, since a slow server has times everywhere; that there are many more than beside it says something.

use crate::Histogram;

/// A range of times, both ends in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The shortest, in nanoseconds.
    pub from_ns: u64,
    /// The longest, in nanoseconds.
    pub to_ns: u64,
}

impl Window {
    /// From and to whole milliseconds.
    #[must_use]
    pub const fn from_millis(from: u64, to: u64) -> Self {
        Self { from_ns: from * 1_000_000, to_ns: to * 1_000_000 }
    }
}

/// The share of all times (0 to 1) that lie in `window` beyond what the neighbourhood explains.
///
/// The neighbourhood is as wide as the window on either side. The denser side says how many times the window would have if
/// nothing were special about it: on a slope that is the higher side, so that a slope is no hill.
#[must_use]
pub fn excess_share(histogram: &Histogram, window: Window) -> f64 {
    let width = window.to_ns.saturating_sub(window.from_ns).saturating_add(1);
    let below = Window { from_ns: window.from_ns.saturating_sub(width), to_ns: window.from_ns.saturating_sub(1) };
    let above = Window { from_ns: window.to_ns.saturating_add(1), to_ns: window.to_ns.saturating_add(width) };
    let count = |range: Window| -> u64 {
        let inside = |ns: u64| (range.from_ns..=range.to_ns).contains(&ns);
        histogram.buckets().filter(|(ns, _)| inside(*ns)).map(|(_, count)| count).sum()
    };
    let excess = count(window).saturating_sub(count(below).max(count(above)));
    if histogram.is_empty() { 0.0 } else { excess as f64 / histogram.count() as f64 }
}

#[cfg(test)]
mod tests {
    use super::{Window, excess_share};
    use crate::Histogram;

    const STALL: Window = Window::from_millis(40, 44);

    #[test]
    fn a_hill_is_found_and_its_share_told() {
        let mut histogram = Histogram::new();
        (0..900).for_each(|i| histogram.record(1_000_000 + i * 1_000));
        (0..100).for_each(|i| histogram.record(41_000_000 + i * 10_000));
        assert!((excess_share(&histogram, STALL) - 0.1).abs() < 1e-9);
    }

    #[test]
    fn a_plateau_and_a_slope_are_no_hill() {
        let mut flat = Histogram::new();
        (0..1000).for_each(|i| flat.record(i * 100_000));
        assert!(excess_share(&flat, STALL) < 0.01);
        let mut slope = Histogram::new();
        (0..100u64).for_each(|ms| slope.record_n(ms * 1_000_000 + 500_000, 100 - ms));
        assert!(excess_share(&slope, STALL) < 0.001);
    }

    #[test]
    fn an_empty_histogram_has_none() {
        assert!(excess_share(&Histogram::new(), STALL).abs() < f64::EPSILON);
    }
}
