//! `timer-wait`: a tool waits for a timer that its own code, or a library that it calls, has set: `asyncio.sleep`, `setTimeout`.
//!
//! The program reports each timer with its line, when it was set, and when it went off. Only time counts in which no code of
//! the program ran and no dependency was awaited. A sleep on the thread of the event loop is a `blocking-call-in-event-loop`.

use std::rc::Rc;

use super::stack_times::{stack_times, stretches_of};
use super::tool_finding::make_finding;
use super::{CallTimes, TimerWait};
use crate::DependencyKind;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason};
use crate::inside::frames::called_library;
use crate::inside::{Doing, Stretch, median_count};
use crate::view::SampledStack;

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tool in Rc::clone(&scene.warm_calls).iter() {
        let times = stack_times(scene, &tool.calls, timer_of);
        let longest = times.into_iter().max_by(|a, b| a.1.sum.cmp(&b.1.sum).then_with(|| b.0.cmp(&a.0)));
        let Some((library, time)) = longest.filter(|(_, time)| tool.is_notable(time.sum)) else { continue };
        let Some((line, _)) = time.longest_line() else { continue };
        let timers = tool.calls.iter().map(|call| {
            let waits = call.timers.iter().filter(|timer| !timer.blocks_loop);
            waits.filter(|timer| called_library(timer.stack) == library).count() as u64
        });
        let context = TimerWait {
            tool: tool.tool.to_owned(),
            timers: median_count(timers),
            library: library.map(str::to_owned),
            line,
            times: CallTimes::of_calls(tool, time.sum, time.sum),
        };
        let proof = (Level::High, Reason::TimersReported);
        let cause = Cause::TimerWait(context);
        findings.push(make_finding(scene, &tool.calls, cause, proof, Disproof::ShortenTimer, |call| {
            stretches_of(call, |stretch| timer_of(stretch).is_some_and(|(name, _)| name == library))
        }));
    }
    findings
}

/// The library that set the timer which a stretch waits for, `None` for the server's own code, and the stack.
fn timer_of<'a>(stretch: &Stretch<'_, 'a>) -> Option<(Option<&'a str>, SampledStack<'a>)> {
    match stretch.doing {
        Doing::Outside { kind: DependencyKind::Timer, thread: Some((stack, _)), .. } => {
            Some((called_library(stack), stack))
        }
        _ => None,
    }
}
