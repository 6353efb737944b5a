//! `costly-library`: much of a tool's processor time is spent in a library for which a quicker one with the same use is known.
//!
//! The table of alternatives has the factor that was measured for one use of the library. The use at hand may differ, so
//! confidence is medium. Libraries that the server's own code does not call by itself are left out: its author cannot
//! replace them.

use std::rc::Rc;

use mcpace_record::Nanos;

use super::alternatives::AlternativeLibrary;
use super::stack_times::{calls_below_own, running_stack, stack_times, stretches_of};
use super::tool_finding::make_finding;
use super::{CallTimes, CostlyLibrary};
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason};
use crate::inside::frames::own_call;
use crate::inside::{Stretch, WarmCalls, is_share, sum_times};
use crate::view::SampledStack;

/// Percent of a tool's processor time that a library takes at least.
const LEAST_PERCENT: u64 = 30;

/// Percent of a library's time in which its use is seen at least.
const LEAST_PERCENT_OF_USE: u64 = 10;

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tool in Rc::clone(&scene.warm_calls).iter() {
        let processor = tool.processor_time();
        let times = stack_times(scene, &tool.calls, used_library);
        let candidates = times.into_iter().filter(|(_, time)| is_share(time.sum, LEAST_PERCENT, processor));
        let known = candidates.filter_map(|(library, time)| Some((library, time, seen_use(tool, library)?)));
        let Some((library, time, entry)) = known.max_by(|a, b| a.1.sum.cmp(&b.1.sum).then_with(|| b.0.cmp(a.0))) else {
            continue;
        };
        let gain = Nanos((time.sum.0 as f64 * (1.0 - 1.0 / entry.factor)) as u64);
        let Some((line, callee)) = time.longest_line().filter(|_| tool.is_notable(gain)) else { continue };
        let context = CostlyLibrary {
            tool: tool.tool.to_owned(),
            library: library.to_owned(),
            alternative: entry.alternative.clone(),
            factor: entry.factor,
            measured_use: entry.measured_use.clone(),
            measured_versions: format!(
                "{library} {}, {} {}, {}",
                entry.version, entry.alternative, entry.alternative_version, entry.runtime
            ),
            measured: entry.measured.clone(),
            line,
            callee,
            processor: tool.mean(processor),
            times: CallTimes::of_calls(tool, time.sum, gain),
        };
        let proof = (Level::Medium, Reason::AlternativeMeasured);
        let cause = Cause::CostlyLibrary(context);
        findings.push(make_finding(scene, &tool.calls, cause, proof, Disproof::UseAlternative, |call| {
            stretches_of(call, |stretch| used_library(stretch).is_some_and(|(name, _)| name == library))
        }));
    }
    findings
}

/// The library of the table that a running thread works for, called by the server's own code.
fn used_library<'a>(stretch: &Stretch<'_, 'a>) -> Option<(&'static str, SampledStack<'a>)> {
    let stack = running_stack(stretch)?;
    own_call(stack)?;
    Some((AlternativeLibrary::library_in(calls_below_own(stack))?, stack))
}

/// The use of `library` that most of its time shows.
fn seen_use(tool: &WarmCalls<'_, '_>, library: &str) -> Option<&'static AlternativeLibrary> {
    let stretches = || {
        let stretches = tool.calls.iter().flat_map(|call| &call.stretches);
        stretches.filter_map(|stretch| {
            let (name, stack) = used_library(stretch)?;
            (name == library).then_some((stretch.time(), calls_below_own(stack)))
        })
    };
    let all = sum_times(stretches().map(|(time, _)| time));
    let seen = |entry: &AlternativeLibrary| {
        sum_times(stretches().filter(|(_, calls)| entry.is_seen_in(calls)).map(|(time, _)| time))
    };
    let uses = AlternativeLibrary::all().iter().filter(|entry| entry.library == library);
    let most = uses.map(|entry| (seen(entry), entry)).max_by_key(|(time, _)| *time);
    most.filter(|(time, _)| is_share(*time, LEAST_PERCENT_OF_USE, all)).map(|(_, entry)| entry)
}
