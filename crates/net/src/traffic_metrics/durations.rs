//! Histograms of requests' durations, with exemplars.

use std::collections::HashMap;
use std::time::Duration;

use mcpace_record::{Nanos, TraceContext};

use super::open_exchange::PendingRequest;
use super::snapshot::{DurationSeries, Exemplar};

/// Series that are kept. In further ones, names and errors are [`OTHER`].
pub(super) const MOST_SERIES: usize = 1_000;
const OTHER: &str = "other";

/// Durations of requests by method, tool, prompt and error.
#[derive(Debug)]
pub(super) struct Durations {
    bounds: Vec<Nanos>,
    series: HashMap<Labels, Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Labels {
    method: String,
    tool: String,
    prompt: String,
    error: String,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: Vec<Bucket>,
    sum: Nanos,
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    count: u64,
    exemplar: Option<TracedDuration>,
}

#[derive(Clone, Debug)]
struct TracedDuration {
    trace: TraceContext,
    took: Nanos,
    unix_time: Duration,
}

impl Durations {
    pub(super) fn new(bounds: Vec<Nanos>) -> Self {
        Self { bounds, series: HashMap::new() }
    }

    /// Counts a request that ended at `at`. `clock_offset` is Unix time less the clock of `at`.
    pub(super) fn record(&mut self, request: &PendingRequest, at: Nanos, error: &str, clock_offset: Duration) {
        let labels = Labels {
            method: request.method.clone(),
            tool: request.tool.clone(),
            prompt: request.prompt.clone(),
            error: error.to_owned(),
        };
        let has_room = self.series.len() < MOST_SERIES || self.series.contains_key(&labels);
        let histogram = self.series.entry(if has_room { labels } else { labels.without_names() }).or_default();
        histogram.buckets.resize(self.bounds.len() + 1, Bucket::default());
        let took = at.since(request.arrived);
        let bucket = &mut histogram.buckets[self.bounds.partition_point(|bound| *bound < took)];
        bucket.count += 1;
        histogram.sum = histogram.sum + took;
        if let Some(trace) = request.trace {
            bucket.exemplar =
                Some(TracedDuration { trace, took, unix_time: Duration::from_nanos(at.0) + clock_offset });
        }
    }

    pub(super) fn series(&self) -> Vec<DurationSeries> {
        let one = |(labels, histogram): (&Labels, &Histogram)| DurationSeries {
            method: labels.method.clone(),
            tool: labels.tool.clone(),
            prompt: labels.prompt.clone(),
            error: labels.error.clone(),
            buckets: histogram.buckets.iter().map(|bucket| bucket.count).collect(),
            exemplars: histogram.buckets.iter().map(|bucket| bucket.exemplar.as_ref().map(Exemplar::from)).collect(),
            sum: histogram.sum.as_secs_f64(),
        };
        self.series.iter().map(one).collect()
    }
}

impl Labels {
    fn without_names(mut self) -> Self {
        let texts = [&mut self.method, &mut self.tool, &mut self.prompt, &mut self.error];
        texts.into_iter().filter(|text| !text.is_empty()).for_each(|text| OTHER.clone_into(text));
        self
    }
}

impl From<&TracedDuration> for Exemplar {
    fn from(traced: &TracedDuration) -> Self {
        Self {
            trace_id: format!("{:032x}", traced.trace.trace),
            span_id: format!("{:016x}", traced.trace.span),
            value: traced.took.as_secs_f64(),
            timestamp: traced.unix_time.as_secs_f64(),
        }
    }
}
