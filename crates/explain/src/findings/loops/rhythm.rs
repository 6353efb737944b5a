//! Whether moments follow each other at a fixed period.

use mcpace_record::Nanos;

/// How far the intervals' middle eighty percent may spread, as a part of their median.
const SPREAD: (u64, u64) = (1, 4);

/// The median interval where nearly all intervals are like it; `None` of moments without a period. `moments` are sorted.
pub(super) fn steady_period(moments: &[Nanos]) -> Option<Nanos> {
    let mut intervals: Vec<Nanos> = moments.windows(2).map(|two| two[1].since(two[0])).collect();
    intervals.sort_unstable();
    let median = *intervals.get(intervals.len() / 2)?;
    let edge = intervals.len() / 10;
    let spread = intervals[intervals.len() - 1 - edge].since(intervals[edge]);
    let steady = spread.0.saturating_mul(SPREAD.1) <= median.0.saturating_mul(SPREAD.0);
    (steady && median > Nanos::ZERO).then_some(median)
}

/// The value in the middle; zero of none.
pub(super) fn median_span(mut spans: Vec<Nanos>) -> Nanos {
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied().unwrap_or(Nanos::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(millis: &[u64]) -> Vec<Nanos> {
        millis.iter().map(|at| Nanos::from_millis(*at)).collect()
    }

    #[test]
    fn a_beat_has_a_period_and_a_backoff_has_none() {
        assert_eq!(steady_period(&moments(&[0, 1000, 2010, 3000, 4005])), Some(Nanos::from_millis(1005)));
        assert_eq!(steady_period(&moments(&[0, 1000, 3000, 7000, 15000])), None);
        assert_eq!(steady_period(&moments(&[5])), None);
        assert_eq!(steady_period(&moments(&[5, 5, 5])), None);
    }

    #[test]
    fn one_pause_among_many_beats_is_no_reason() {
        let mut beats: Vec<u64> = (0..20).map(|beat| beat * 100).collect();
        beats.push(9_000);
        assert_eq!(steady_period(&moments(&beats)), Some(Nanos::from_millis(100)));
    }
}
