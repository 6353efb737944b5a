//! `repeated-dependency-call`: a tool sends the same statement, or the same request with other ids, many times within one call
//! ("N+1 queries").

use std::collections::HashMap;
use std::rc::Rc;

use mcpace_record::Nanos;

use super::tool_finding::make_finding;
use super::{CallTimes, RepeatedDependencyCall};
use crate::DependencyKind;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason};
use crate::inside::{ToolCall, median_count, sum_times};
use crate::view::ProgramSpan;

/// Requests of one pattern in one call, from which on they are repeated.
pub(super) const FEWEST_REPEATS: u64 = 4;

/// A dependency and a request without the parts that differ.
type Pattern<'a> = (&'a str, &'a str);

/// The requests of one pattern in all calls.
struct Repeated {
    kind: DependencyKind,
    /// Number of requests in each call that has any.
    counts: Vec<u64>,
    /// Time in which at least one of the requests is under way.
    time: Nanos,
    /// The part of that time which one request for all would save: it takes at least as long as one of them.
    gain: Nanos,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tool in Rc::clone(&scene.warm_calls).iter() {
        let mut patterns: HashMap<Pattern<'_>, Repeated> = HashMap::new();
        for call in &tool.calls {
            for (pattern, spans) in spans_by_pattern(call) {
                let count = spans.len() as u64;
                let time = call.covered_time(spans.iter().copied());
                let mean = sum_times(spans.iter().map(|span| call.span_time(span))).0 / count.max(1);
                let entry = patterns.entry(pattern).or_insert_with(|| Repeated {
                    kind: spans.first().map_or(DependencyKind::Other, |span| span.kind),
                    counts: Vec::new(),
                    time: Nanos::ZERO,
                    gain: Nanos::ZERO,
                });
                entry.counts.push(count);
                entry.time = entry.time + time;
                entry.gain = entry.gain + time.since(Nanos(mean));
            }
        }
        let all_calls = tool.calls.len();
        let requests = |repeated: &Repeated| {
            let without = all_calls - repeated.counts.len();
            median_count(repeated.counts.iter().copied().chain(std::iter::repeat_n(0, without)))
        };
        let repeated = patterns.into_iter().filter(|(_, repeated)| requests(repeated) >= FEWEST_REPEATS);
        let most = repeated.max_by(|a, b| a.1.time.cmp(&b.1.time).then_with(|| b.0.cmp(&a.0)));
        let Some((pattern, repeated)) = most.filter(|(_, repeated)| tool.is_notable(repeated.gain)) else { continue };
        let context = RepeatedDependencyCall {
            tool: tool.tool.to_owned(),
            kind: repeated.kind,
            dependency: pattern.0.to_owned(),
            pattern: pattern.1.to_owned(),
            requests: requests(&repeated),
            times: CallTimes::of_calls(tool, repeated.time, repeated.gain),
        };
        let proof = (Level::High, Reason::RequestsReported);
        let cause = Cause::RepeatedDependencyCall(context);
        findings.push(make_finding(scene, &tool.calls, cause, proof, Disproof::AskOnceForAll, |call| {
            let spans = call.spans.iter().filter(|span| (span.dependency, span.pattern) == pattern);
            spans.map(|span| call.span_window(span)).collect()
        }));
    }
    findings
}

/// The spans of a call by their pattern, each in the order in which they begin.
fn spans_by_pattern<'v, 'a>(call: &ToolCall<'v, 'a>) -> HashMap<Pattern<'a>, Vec<&'v ProgramSpan<'a>>> {
    let mut patterns: HashMap<Pattern<'a>, Vec<&'v ProgramSpan<'a>>> = HashMap::new();
    for span in &call.spans {
        patterns.entry((span.dependency, span.pattern)).or_default().push(span);
    }
    patterns
}

/// Whether most requests of a call are repeats of one pattern, which another finding names.
pub(super) fn is_mostly_repeats<'a>(call: &ToolCall<'_, 'a>, spans: &[&ProgramSpan<'a>]) -> bool {
    let mut patterns: HashMap<Pattern<'a>, (u64, Nanos)> = HashMap::new();
    for span in spans {
        let entry = patterns.entry((span.dependency, span.pattern)).or_default();
        *entry = (entry.0 + 1, entry.1 + call.span_time(span));
    }
    let all = sum_times(spans.iter().map(|span| call.span_time(span)));
    patterns.values().any(|(count, time)| *count >= FEWEST_REPEATS && time.0 >= all.0 / 2)
}
