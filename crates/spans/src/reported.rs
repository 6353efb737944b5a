//! A span as any format tells it, and the span that is kept of it.

use mcpace_record::{Redactor, Span, SpanKind};

use crate::{TimedSpan, WallClock};

/// Characters of a name that are kept.
const LONGEST_NAME: usize = 200;

/// Digits of a trace's id, and of a span's.
const TRACE_DIGITS: usize = 32;
const SPAN_DIGITS: usize = 16;

/// A span as a program reported it.
#[derive(Debug, Default)]
pub(crate) struct ReportedSpan {
    pub(crate) trace: String,
    pub(crate) span: String,
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    /// Nanoseconds since 1970-01-01 UTC.
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) library: String,
    pub(crate) service: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) failed: bool,
}

/// Numbers of spans that were decoded, and of those that were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// Spans that were decoded.
    pub decoded: u64,
    /// Spans without an end: they had not ended when they were written.
    pub unended: u64,
    /// Spans that end before they begin, or before the recording's clock began.
    pub impossible: u64,
    /// Whether the file ends within a span.
    pub cut_off: bool,
}

impl SpanCounts {
    /// Number of all spans.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.decoded + self.unended + self.impossible
    }
}

impl ReportedSpan {
    /// The span that is kept; `None` where it has no place in time.
    pub(crate) fn into_timed(
        self,
        redactor: &Redactor,
        clock: WallClock,
        counts: &mut SpanCounts,
    ) -> Option<TimedSpan> {
        if self.ended == 0 {
            counts.unended += 1;
            return None;
        }
        let times = clock.recording_time(self.began).zip(clock.recording_time(self.ended));
        let Some((began, ended)) = times.filter(|(began, ended)| began <= ended) else {
            counts.impossible += 1;
            return None;
        };
        counts.decoded += 1;
        let mut span = Span {
            trace: normal_id(&self.trace, TRACE_DIGITS),
            span: normal_id(&self.span, SPAN_DIGITS),
            parent: Some(normal_id(&self.parent, SPAN_DIGITS)).filter(|id| !id.is_empty()),
            name: cut_name(&redactor.target(&self.name)),
            kind: self.kind,
            began,
            library: cut_name(&self.library),
            service: cut_name(&redactor.target(&self.service)),
            attributes: Vec::new(),
            failed: self.failed,
        };
        for (name, value) in &self.attributes {
            span.add_attribute((name, &redactor.attribute(name, value)));
        }
        Some((ended, span))
    }
}

fn cut_name(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

/// An id of `digits` hexadecimal digits; Jaeger leaves out the first zeros. Empty where it is none.
fn normal_id(id: &str, digits: usize) -> String {
    let is_id = !id.is_empty() && id.len() <= digits && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_id || id.bytes().all(|byte| byte == b'0') {
        return String::new();
    }
    format!("{:0>digits$}", id.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use mcpace_record::Nanos;

    use super::*;

    #[test]
    fn ids_are_padded_and_texts_that_are_no_ids_are_left_out() {
        assert_eq!(normal_id("ABC", 4), "0abc");
        for none in ["", "0000", "xyz", "12345", "-1", "é"] {
            assert_eq!(normal_id(none, 4), "", "{none}");
        }
    }

    #[test]
    fn a_span_without_a_place_in_time_is_counted() {
        let mut counts = SpanCounts::default();
        let clock = WallClock { unix_ns: 1_000, at: Nanos(500) };
        let redactor = Redactor::new(1);
        for (began, ended, kept) in
            [(1_000, 1_200, true), (1_000, 0, false), (1_200, 1_000, false), (100, 1_000, false)]
        {
            let span = ReportedSpan { began, ended, ..ReportedSpan::default() };
            assert_eq!(span.into_timed(&redactor, clock, &mut counts).is_some(), kept, "{began} {ended}");
        }
        assert_eq!(counts, SpanCounts { decoded: 1, unended: 1, impossible: 2, cut_off: false });
    }
}
