//! A histogram as it goes into a result: the figures that people read, and the cells, so that results can be merged again.

use serde::{Deserialize, Serialize};

use crate::Histogram;

/// The figures of a histogram. Times in seconds; all 0 when nothing was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistogramSummary {
    /// How many times.
    pub count: u64,
    /// Their mean.
    pub mean_s: f64,
    /// The shortest.
    pub min_s: f64,
    /// The median.
    pub p50_s: f64,
    /// 9 of 10 are not longer.
    pub p90_s: f64,
    /// 99 of 100 are not longer.
    pub p99_s: f64,
    /// 999 of 1,000 are not longer.
    pub p999_s: f64,
    /// The longest.
    pub max_s: f64,
    /// The cells that have something in them: highest time in nanoseconds, count.
    pub buckets: Vec<(u64, u64)>,
}

impl From<&Histogram> for HistogramSummary {
    fn from(histogram: &Histogram) -> Self {
        let at = |q| to_seconds(histogram.quantile(q));
        Self {
            count: histogram.count(),
            mean_s: histogram.mean() / 1e9,
            min_s: to_seconds(histogram.min()),
            p50_s: at(0.5),
            p90_s: at(0.9),
            p99_s: at(0.99),
            p999_s: at(0.999),
            max_s: to_seconds(histogram.max()),
            buckets: histogram.buckets().collect(),
        }
    }
}

fn to_seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::HistogramSummary;
    use crate::Histogram;

    #[test]
    fn it_tells_the_figures_in_seconds_and_reads_back() {
        let mut histogram = Histogram::new();
        (1..=1000).for_each(|ms| histogram.record(ms * 1_000_000));
        let summary = HistogramSummary::from(&histogram);
        assert_eq!(summary.count, 1000);
        assert!((summary.p50_s - 0.5).abs() < 0.001 && (summary.p999_s - 0.999).abs() < 0.002);
        let text = serde_json::to_string(&summary).unwrap();
        assert_eq!(serde_json::from_str::<HistogramSummary>(&text).unwrap(), summary);
    }
}
