//! `validation-cost` and `serialization-cost`: much of a tool's processor time is spent on checking values, or on turning
//! values into text and back.
//!
//! Time that `costly-library` explains is left out. Validation by the server's framework counts as well: a tool with a large
//! result has it checked and written by its SDK.

use std::rc::Rc;

use mcpace_record::Nanos;

use super::data_work::{DataWork, data_work};
use super::stack_times::{StackTime, running_stack, stack_times, stretches_of};
use super::tool_finding::make_finding;
use super::{CallTimes, SerializationCost, ValidationCost};
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason};
use crate::inside::{Stretch, WarmCalls, is_share};
use crate::view::SampledStack;

/// Percent of a tool's processor time that the work takes at least.
const LEAST_PERCENT: u64 = 20;

/// Checks of values, with building what checks them.
pub(in crate::findings) fn find_validation(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let is_validation = |work: DataWork| matches!(work, DataWork::Validation | DataWork::Building);
    let mut findings = Vec::new();
    for tool in Rc::clone(&scene.warm_calls).iter() {
        let Some((library, time)) = largest_work(scene, tool, is_validation) else { continue };
        let built = stack_times(scene, &tool.calls, |stretch| {
            let (name, stack) = library_of(stretch, |work| work == DataWork::Building)?;
            (name == library).then_some(((), stack))
        });
        let built = built.get(&()).map_or(Nanos::ZERO, |time| time.sum);
        // Building can be done once; how many of the checks are needed is not seen.
        let gain = if is_share(built, 50, time.sum) { built } else { time.sum };
        let (line, callee) = time.longest_line().unzip();
        let context = ValidationCost {
            tool: tool.tool.to_owned(),
            library: library.to_owned(),
            line,
            callee: callee.flatten(),
            built: tool.mean(built),
            processor: tool.mean(tool.processor_time()),
            times: CallTimes::of_calls(tool, time.sum, gain),
        };
        let proof = (Level::High, Reason::StacksSampled);
        let cause = Cause::ValidationCost(context);
        findings.push(make_finding(scene, &tool.calls, cause, proof, Disproof::SkipChecks, |call| {
            stretches_of(call, |stretch| library_of(stretch, is_validation).is_some_and(|(name, _)| name == library))
        }));
    }
    findings
}

/// Values into text, and text into values.
pub(in crate::findings) fn find_serialization(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let is_serialization = |work: DataWork| work == DataWork::Serialization;
    let mut findings = Vec::new();
    for tool in Rc::clone(&scene.warm_calls).iter() {
        let Some((library, time)) = largest_work(scene, tool, is_serialization) else { continue };
        let (line, callee) = time.longest_line().unzip();
        let context = SerializationCost {
            tool: tool.tool.to_owned(),
            library: library.to_owned(),
            line,
            callee: callee.flatten(),
            processor: tool.mean(tool.processor_time()),
            times: CallTimes::of_calls(tool, time.sum, time.sum),
        };
        let proof = (Level::High, Reason::StacksSampled);
        let cause = Cause::SerializationCost(context);
        findings.push(make_finding(scene, &tool.calls, cause, proof, Disproof::ReturnLess, |call| {
            stretches_of(call, |stretch| library_of(stretch, is_serialization).is_some_and(|(name, _)| name == library))
        }));
    }
    findings
}

/// The library with the most time of the wanted work, where that is enough for a finding.
fn largest_work<'a>(
    scene: &Scene<'_, 'a>,
    tool: &WarmCalls<'_, 'a>,
    is_wanted: impl Fn(DataWork) -> bool,
) -> Option<(&'a str, StackTime<'a>)> {
    let times = stack_times(scene, &tool.calls, |stretch| library_of(stretch, &is_wanted));
    let most = times.into_iter().max_by(|a, b| a.1.sum.cmp(&b.1.sum).then_with(|| b.0.cmp(a.0)));
    most.filter(|(_, time)| is_share(time.sum, LEAST_PERCENT, tool.processor_time()) && tool.is_notable(time.sum))
}

fn library_of<'a>(
    stretch: &Stretch<'_, 'a>,
    is_wanted: impl Fn(DataWork) -> bool,
) -> Option<(&'a str, SampledStack<'a>)> {
    let stack = running_stack(stretch)?;
    let (work, library) = data_work(stack)?;
    is_wanted(work).then_some((library, stack))
}
