//! `slow-dependency`: most of a tool's time is the answer time of one dependency that it asks once or twice.

use std::collections::HashMap;
use std::rc::Rc;

use mcpace_record::Nanos;

use super::tool_finding::make_finding;
use super::{CallTimes, SlowDependency};
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason};
use crate::inside::{Doing, is_share, median_count};

/// Percent of a call that the dependency takes, and requests in a call up to which its own speed is the cause.
const LEAST_PERCENT: u64 = 50;
const MOST_REQUESTS: u64 = 2;

/// One request below this is not slow.
const SHORTEST_REQUEST: Nanos = Nanos::from_millis(10);

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tool in Rc::clone(&scene.warm_calls).iter() {
        let mut waits: HashMap<&str, Nanos> = HashMap::new();
        for stretch in tool.calls.iter().flat_map(|call| &call.stretches) {
            if let Doing::Dependency { span, .. } = stretch.doing {
                let wait = waits.entry(span.dependency).or_default();
                *wait = *wait + stretch.time();
            }
        }
        let most = waits.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(a.0)));
        let Some((dependency, cause)) = most else { continue };
        let times = CallTimes::of_calls(tool, cause, cause);
        let spans = tool.calls.iter().flat_map(|call| call.spans.iter().map(move |span| (call, span)));
        let spans = spans.filter(|(_, span)| span.dependency == dependency);
        let requests = median_count(
            tool.calls.iter().map(|call| call.spans.iter().filter(|span| span.dependency == dependency).count() as u64),
        );
        let is_most = is_share(times.cause, LEAST_PERCENT, times.server);
        let is_slow = times.cause.0 >= SHORTEST_REQUEST.0.saturating_mul(requests.max(1));
        let Some((_, slowest)) = spans.max_by_key(|(call, span)| call.span_time(span)) else { continue };
        if !is_most || !is_slow || !(1..=MOST_REQUESTS).contains(&requests) {
            continue;
        }
        let context = SlowDependency {
            tool: tool.tool.to_owned(),
            kind: slowest.kind,
            dependency: dependency.to_owned(),
            pattern: slowest.pattern.to_owned(),
            requests,
            times,
        };
        let proof = (Level::High, Reason::RequestsReported);
        let cause = Cause::SlowDependency(context);
        findings.push(make_finding(scene, &tool.calls, cause, proof, Disproof::AskDependencyDirectly, |call| {
            let waits = call.stretches.iter().filter(
                |stretch| matches!(stretch.doing, Doing::Dependency { span, .. } if span.dependency == dependency),
            );
            waits.map(|stretch| (stretch.from, stretch.to)).collect()
        }));
    }
    findings
}
