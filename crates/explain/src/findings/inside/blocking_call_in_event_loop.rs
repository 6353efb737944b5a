//! `blocking-call-in-event-loop`: a tool waits on the thread that runs the event loop, so that the server answers nobody else.
//!
//! Seen in sampled stacks: the thread with the event loop does not run, and is not in the loop's own wait. `time.sleep`,
//! `requests` and drivers without `await` do this in an `async def`. In Node.js, functions such as `readFileSync` and
//! `pbkdf2Sync` block as well while their thread runs: the language has an asynchronous counterpart of each.
//!
//! Deliberately absent: long computations in the tool's own code. They block the loop, too, but no call can be replaced.

use std::collections::HashMap;
use std::rc::Rc;

use mcpace_record::Nanos;

use super::tool_finding::make_finding;
use super::{BlockingCallInEventLoop, CallTimes};
use crate::SourceLine;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason};
use crate::inside::frames::{calls_synchronously, own_call};
use crate::inside::{Doing, Stretch, called_function};
use crate::view::{SampledStack, StackCall};

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tool in Rc::clone(&scene.warm_calls).iter() {
        let mut lines: HashMap<(StackCall<'_>, Option<&str>), Nanos> = HashMap::new();
        let mut cause = Nanos::ZERO;
        for stretch in tool.calls.iter().flat_map(|call| &call.stretches) {
            let Some(stack) = blocked_stack(stretch) else { continue };
            let Some(own) = own_call(stack) else { continue };
            cause = cause + stretch.time();
            let line = lines.entry((stack[own], called_function(stack, own))).or_default();
            *line = *line + stretch.time();
        }
        let most = lines.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.0.line.cmp(&a.0.0.line)));
        let Some(((own, callee), _)) = most.filter(|_| tool.is_notable(cause)) else { continue };
        let context = BlockingCallInEventLoop {
            tool: tool.tool.to_owned(),
            line: SourceLine::of_call(&own),
            callee: callee.map(str::to_owned),
            times: CallTimes::of_calls(tool, cause, cause),
        };
        let proof = (Level::High, Reason::StacksSampled);
        let cause = Cause::BlockingCallInEventLoop(context);
        findings.push(make_finding(scene, &tool.calls, cause, proof, Disproof::PingMeanwhile, |call| {
            let blocked = call.stretches.iter().filter(|stretch| blocked_stack(stretch).is_some());
            blocked.map(|stretch| (stretch.from, stretch.to)).collect()
        }));
    }
    findings
}

/// The stack that blocks the event loop in a stretch.
fn blocked_stack<'a>(stretch: &Stretch<'_, 'a>) -> Option<SampledStack<'a>> {
    match stretch.doing {
        Doing::Waiting { stack, blocks_loop: true } => Some(stack),
        Doing::Running(stack) if calls_synchronously(stack) => Some(stack),
        Doing::Dependency { blocked, .. } => blocked,
        Doing::Outside { thread: Some((stack, true)), .. } => Some(stack),
        _ => None,
    }
}
