//! `repeated-dependency-call`: a tool sends the same statement, or the same request with other ids, many times within one call
//! ("N+1 queries").

use std::collections::HashMap;
use std::rc::Rc;

use mcpace_record::Nanos;

use super::tool_finding::make_finding;
use super::{CallTimes, RepeatedDependencyCall};
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason};
use crate::inside::{median_count, sum_times};
use crate::view::ProgramSpan;

/// Requests of one pattern in one call, from which on they are repeated.
pub(super) const FEWEST_REPEATS: u64 = 4;

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tool in Rc::clone(&scene.warm_calls).iter() {
        let mut patterns: HashMap<(&str, &str), Nanos> = HashMap::new();
        for span in tool.calls.iter().flat_map(|call| &call.spans) {
            let sum = patterns.entry((span.dependency, span.pattern)).or_default();
            *sum = *sum + span_time(span);
        }
        let is_pattern = |span: &ProgramSpan<'_>, (dependency, pattern): (&str, &str)| {
            span.dependency == dependency && span.pattern == pattern
        };
        let count = |pattern: (&str, &str)| {
            let counts =
                tool.calls.iter().map(|call| call.spans.iter().filter(|span| is_pattern(span, pattern)).count() as u64);
            median_count(counts)
        };
        let repeated = patterns.into_iter().filter(|(pattern, _)| count(*pattern) >= FEWEST_REPEATS);
        let most = repeated.max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
        let Some((pattern, cause)) = most.filter(|(_, cause)| tool.is_notable(*cause)) else { continue };
        let first = tool.calls.iter().flat_map(|call| &call.spans).find(|span| is_pattern(span, pattern));
        let Some(first) = first else { continue };
        let requests = count(pattern);
        // One request for all of them takes at least as long as one of them.
        let gain = Nanos(cause.0 - cause.0 / requests);
        let context = RepeatedDependencyCall {
            tool: tool.tool.to_owned(),
            kind: first.kind,
            dependency: pattern.0.to_owned(),
            pattern: pattern.1.to_owned(),
            requests,
            times: CallTimes::of_calls(tool, cause, gain),
        };
        let proof = (Level::High, Reason::RequestsReported);
        let cause = Cause::RepeatedDependencyCall(context);
        findings.push(make_finding(scene, &tool.calls, cause, proof, Disproof::AskOnceForAll, |call| {
            let spans = call.spans.iter().filter(|span| is_pattern(span, pattern));
            spans.map(|span| (span.began, span.ended.at.min(call.to))).collect()
        }));
    }
    findings
}

pub(super) fn span_time(span: &ProgramSpan<'_>) -> Nanos {
    span.ended.at.since(span.began)
}

/// Whether most requests of a call are repeats of one pattern, which another finding names.
pub(super) fn is_mostly_repeats(spans: &[&ProgramSpan<'_>]) -> bool {
    let mut patterns: HashMap<(&str, &str), (u64, Nanos)> = HashMap::new();
    for span in spans {
        let entry = patterns.entry((span.dependency, span.pattern)).or_default();
        *entry = (entry.0 + 1, entry.1 + span_time(span));
    }
    let all = sum_times(spans.iter().map(|span| span_time(span)));
    patterns.values().any(|(count, time)| *count >= FEWEST_REPEATS && time.0 * 2 >= all.0)
}
