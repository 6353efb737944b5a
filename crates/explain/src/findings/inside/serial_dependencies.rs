//! `serial-dependencies`: a tool sends several requests one after another, and none of them overlaps another.
//!
//! Whether a request needs an earlier answer cannot be seen from outside, so that the finding is of medium confidence. The
//! statements of one database are left out: a connection answers them one after another in any case.

use std::rc::Rc;

use mcpace_record::Nanos;

use super::repeated_dependency_call::is_mostly_repeats;
use super::tool_finding::make_finding;
use super::{CallTimes, SerialDependencies};
use crate::DependencyKind;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason};
use crate::inside::frames::language_of_calls;
use crate::inside::{ToolCall, median_count, sum_times};
use crate::view::ProgramSpan;

/// Requests in one call, from which on they are worth sending together.
const FEWEST_REQUESTS: usize = 3;

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tool in Rc::clone(&scene.warm_calls).iter() {
        let chains: Vec<(&ToolCall<'_, '_>, Vec<&ProgramSpan<'_>>)> =
            tool.calls.iter().filter_map(|call| Some((call, serial_requests(call)?))).collect();
        if chains.len() * 2 <= tool.calls.len() {
            continue;
        }
        let times = chains.iter().map(|(call, chain)| chain.iter().map(|span| call.span_time(span)));
        let cause = sum_times(times.clone().flatten());
        let all_longest = sum_times(times.map(|times| times.max().unwrap_or_default()));
        let gain = cause.since(all_longest);
        if !tool.is_notable(gain) {
            continue;
        }
        let mut dependencies: Vec<String> = Vec::new();
        for span in chains.iter().flat_map(|(_, chain)| chain) {
            if dependencies.iter().all(|known| known != span.dependency) && dependencies.len() < 8 {
                dependencies.push(span.dependency.to_owned());
            }
        }
        let context = SerialDependencies {
            tool: tool.tool.to_owned(),
            dependencies,
            requests: median_count(chains.iter().map(|(_, chain)| chain.len() as u64)),
            longest: Nanos(all_longest.0 / chains.len() as u64),
            language: language_of_calls(&tool.calls),
            times: CallTimes::of_calls(tool, cause, gain),
        };
        let proof = (Level::Medium, Reason::RequestsReported);
        let cause = Cause::SerialDependencies(context);
        findings.push(make_finding(scene, &tool.calls, cause, proof, Disproof::SendTogether, |call| {
            let chain = serial_requests(call).unwrap_or_default();
            chain.iter().map(|span| call.span_window(span)).collect()
        }));
    }
    findings
}

/// The requests of a call, where there are several and each begins after the one before it has ended.
fn serial_requests<'v, 'a>(call: &ToolCall<'v, 'a>) -> Option<Vec<&'v ProgramSpan<'a>>> {
    let mut chain: Vec<&'v ProgramSpan<'a>> = Vec::new();
    for span in call.spans.iter().filter(|span| span.kind != DependencyKind::Database) {
        match chain.last() {
            // A span within the one before it is a part of that request.
            Some(last) if span.ended.at <= last.ended.at => {}
            Some(last) if span.began < last.ended.at => return None,
            _ => chain.push(span),
        }
    }
    (chain.len() >= FEWEST_REQUESTS && !is_mostly_repeats(call, &chain)).then_some(chain)
}
