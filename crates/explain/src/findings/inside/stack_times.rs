//! Time of a tool's calls by what their sampled stacks show.

use std::collections::HashMap;
use std::hash::Hash;

use mcpace_record::Nanos;

use crate::SourceLine;
use crate::findings::scene::Scene;
use crate::inside::frames::own_call;
use crate::inside::{Doing, Stretch, ToolCall, called_function};
use crate::view::{SampledStack, StackCall};

/// Time that no earlier finding explains.
#[derive(Debug, Default)]
pub(super) struct StackTime<'a> {
    pub(super) sum: Nanos,
    /// By the line of the server's own code, and what that line calls.
    lines: HashMap<(StackCall<'a>, Option<&'a str>), Nanos>,
}

impl StackTime<'_> {
    /// The line of the server's own code that takes the most time, and the function that it calls.
    pub(super) fn longest_line(&self) -> Option<(SourceLine, Option<String>)> {
        let most = self.lines.iter().max_by(|a, b| a.1.cmp(b.1).then_with(|| line_order(b.0).cmp(&line_order(a.0))));
        most.map(|((call, callee), _)| (SourceLine::of_call(call), callee.map(str::to_owned)))
    }
}

/// The order of lines of code and the functions that they call.
pub(super) fn line_order<'a, Callee: Copy + Ord>((call, callee): &(StackCall<'a>, Callee)) -> (&'a str, u32, Callee) {
    (call.file, call.line, *callee)
}

/// The times of all stretches for which `key_of` has a key.
pub(super) fn stack_times<'s, 'a, Key: Eq + Hash>(
    scene: &Scene<'s, 'a>,
    calls: &[ToolCall<'s, 'a>],
    key_of: impl Fn(&Stretch<'s, 'a>) -> Option<(Key, SampledStack<'a>)>,
) -> HashMap<Key, StackTime<'a>> {
    let mut times: HashMap<Key, StackTime<'a>> = HashMap::new();
    for call in calls {
        for stretch in &call.stretches {
            let Some((key, stack)) = key_of(stretch) else { continue };
            let time = scene.unclaimed_in(call.exchange.call, stretch.from, stretch.to);
            let entry = times.entry(key).or_default();
            entry.sum = entry.sum + time;
            if let Some(own) = own_call(stack) {
                let line = entry.lines.entry((stack[own], called_function(stack, own))).or_default();
                *line = *line + time;
            }
        }
    }
    times
}

/// The stack of a thread that ran.
pub(super) fn running_stack<'a>(stretch: &Stretch<'_, 'a>) -> Option<SampledStack<'a>> {
    match stretch.doing {
        Doing::Running(stack) => Some(stack),
        _ => None,
    }
}

/// The calls within the innermost own code, the innermost first; all calls where the stack has no own code.
pub(super) fn calls_below_own<'a>(stack: SampledStack<'a>) -> SampledStack<'a> {
    &stack[..own_call(stack).unwrap_or(stack.len())]
}

/// The stretches of a call that `is_cause` selects.
pub(super) fn stretches_of<'s, 'a>(
    call: &ToolCall<'s, 'a>,
    is_cause: impl Fn(&Stretch<'s, 'a>) -> bool,
) -> Vec<(Nanos, Nanos)> {
    call.stretches.iter().filter(|stretch| is_cause(stretch)).map(|stretch| (stretch.from, stretch.to)).collect()
}
