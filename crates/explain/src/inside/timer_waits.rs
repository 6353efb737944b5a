//! Timers that a tool waits for: `await asyncio.sleep(…)`, `setTimeout(resolve, …)`.
//!
//! A program reports the timers that went off, with the stack that set each. Time-outs that are cancelled are not among them.
//! A timer belongs to a call if it was set and went off within it, by a stack with the tool's code. A loop in the background
//! sets timers all the time, so that one of them covers the call's beginning or its end; none of that stack belongs to the call.

use std::collections::HashSet;

use mcpace_record::Nanos;

use super::frames::{own_call, sleeps_in_event_loop};
use crate::view::{ProgramTimer, SampledStack, View};

/// Name of all timers, among the dependencies that a tool waits for.
pub(super) const TIMER: &str = "timer";

/// A timer within a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolTimer<'a> {
    /// When it was set.
    pub(crate) from: Nanos,
    /// When it went off.
    pub(crate) to: Nanos,
    /// The stack that set it.
    pub(crate) stack: SampledStack<'a>,
    /// Whether it holds the thread of the event loop.
    pub(crate) blocks_loop: bool,
}

/// The timers that the code of a call between `from` and `to` waited for, by their beginning.
pub(super) fn timers_of_call<'a>(view: &View<'a>, from: Nanos, to: Nanos) -> Vec<ToolTimer<'a>> {
    let near = || view.inside.timers.overlapping(from, to);
    let is_within = |timer: &ProgramTimer| timer.from >= from && timer.to <= to;
    let setter = |timer: &ProgramTimer| (timer.pid, timer.stack);
    let background: HashSet<(u32, u32)> = near().filter(|timer| !is_within(timer)).map(setter).collect();
    let of_call = near().filter(|timer| is_within(timer) && !background.contains(&setter(timer)));
    let timers = of_call.map(|timer| {
        let stack = view.inside.stacks[timer.stack as usize];
        ToolTimer { from: timer.from, to: timer.to, stack, blocks_loop: sleeps_in_event_loop(stack) }
    });
    timers.filter(|timer| own_call(timer.stack).is_some()).collect()
}
