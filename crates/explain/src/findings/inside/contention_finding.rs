//! A finding about threads of one tool's calls that wait for each other.

use std::hash::Hash;

use mcpace_record::Nanos;

use super::CallTimes;
use super::tool_finding::make_finding_of_exchanges;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason};
use crate::inside::{Contention, FEWEST_CALLS, ThreadWait, ToolPeriods, is_notable, sum_times};
use crate::view::{SampledThread, View};

/// The longest waits of each tool, if they are worth a finding. `cause_of` makes the cause.
pub(super) fn find_contentions<'s, 'a, K: Copy + Eq + Hash + Ord>(
    scene: &mut Scene<'s, 'a>,
    wait_of: impl Fn(&View<'a>, &SampledThread, &[SampledThread]) -> Option<ThreadWait<'a, K>>,
    cause_of: impl Fn(&str, &Contention<'a, K>, CallTimes) -> Cause,
    disproof: Disproof,
) -> Vec<Finding> {
    let view = scene.view;
    let mut findings = Vec::new();
    for tool in ToolPeriods::of_view(view) {
        let calls = tool.calls().count() as u64;
        if calls < FEWEST_CALLS as u64 {
            continue;
        }
        let found = tool.contentions(view, |thread, threads| wait_of(view, thread, threads));
        let server = sum_times(tool.calls().map(|(_, from, to)| to.since(*from)));
        let Some(longest) = found.into_iter().next().filter(|found| is_notable(found.time, server, calls)) else {
            continue;
        };
        let mean = |sum: Nanos| Nanos(sum.0 / calls);
        let times = CallTimes { server: mean(server), cause: mean(longest.time), gain: mean(longest.gain) };
        let cause = cause_of(tool.tool, &longest, times);
        let within = |from: Nanos, to: Nanos| {
            let first = longest.stretches.partition_point(|stretch| stretch.1 <= from);
            let within = longest.stretches[first..].iter().take_while(move |stretch| stretch.0 < to);
            within.map(|stretch| (stretch.0.max(from), stretch.1.min(to))).collect()
        };
        let exchanges: Vec<_> = tool.calls().map(|(exchange, from, to)| (*exchange, within(*from, *to))).collect();
        let proof = (Level::Medium, Reason::StacksSampled);
        findings.push(make_finding_of_exchanges(scene, exchanges.into_iter(), cause, proof, disproof));
    }
    findings
}
