//! `gc-pauses`: the runtime of a server's language stops its programs to collect garbage, for a notable part of each call.
//!
//! The runtime reports its pauses: CPython's `gc.callbacks`, Node's `perf_hooks`, the events of the JVM. Pauses while a client
//! is built belong to that: without the client there is less garbage.

use std::rc::Rc;

use mcpace_record::{Nanos, PauseCause};

use super::tool_finding::make_finding;
use super::{CallTimes, GcPauses};
use crate::SourceLine;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason};
use crate::inside::frames::own_call;
use crate::inside::{Doing, ToolCall, WarmCalls, sum_times};
use crate::view::{ProgramPause, StackCall, View};

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let view = scene.view;
    let mut findings = Vec::new();
    for tool in Rc::clone(&scene.warm_calls).iter() {
        let pauses: Vec<Vec<(Nanos, Nanos)>> = tool.calls.iter().map(|call| pauses_in(view, call)).collect();
        let unclaimed = tool.calls.iter().zip(&pauses).flat_map(|(call, pauses)| {
            pauses.iter().map(|(from, to)| scene.unclaimed_in(call.exchange.call, *from, *to))
        });
        let cause = sum_times(unclaimed);
        if !tool.is_notable(cause) {
            continue;
        }
        let longest = pauses.iter().flatten().map(|(from, to)| to.since(*from)).max().unwrap_or_default();
        let count: usize = pauses.iter().map(Vec::len).sum();
        let context = GcPauses {
            tool: tool.tool.to_owned(),
            pauses: count as f64 / tool.calls.len().max(1) as f64,
            longest,
            line: interrupted_line(tool, &pauses),
            times: CallTimes::of_calls(tool, cause, cause),
        };
        let proof = (Level::High, Reason::PausesReported);
        let cause = Cause::GcPauses(context);
        findings
            .push(make_finding(scene, &tool.calls, cause, proof, Disproof::CollectLess, |call| pauses_in(view, call)));
    }
    findings
}

/// The pauses within a call, in order and without overlaps: two processes may pause at the same time.
fn pauses_in(view: &View<'_>, call: &ToolCall<'_, '_>) -> Vec<(Nanos, Nanos)> {
    let mut pauses: Vec<(Nanos, Nanos)> = Vec::new();
    for ProgramPause { began, ended, .. } in pauses_near(view, call) {
        let (from, to) = ((*began).max(call.from), ended.at.min(call.to));
        match pauses.last_mut() {
            _ if from >= to => {}
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => pauses.push((from, to)),
        }
    }
    pauses
}

/// The pauses that begin before the call's end. Those that begin before the call are few: a pause is short.
fn pauses_near<'v>(view: &'v View<'_>, call: &ToolCall<'_, '_>) -> impl Iterator<Item = &'v ProgramPause> {
    let earliest = call.from.since(LONGEST_PAUSE);
    let all = &view.inside.pauses;
    let first = all.partition_point(|pause| pause.began < earliest);
    let end = call.to;
    let near = all[first..].iter().take_while(move |pause| pause.began < end);
    near.filter(|pause| pause.cause == PauseCause::GarbageCollection)
}

/// A pause that began longer before a call is not looked for.
const LONGEST_PAUSE: Nanos = Nanos::from_millis(10_000);

/// The line of the server's own code that pauses interrupt for the longest time.
fn interrupted_line(tool: &WarmCalls<'_, '_>, pauses: &[Vec<(Nanos, Nanos)>]) -> Option<SourceLine> {
    let mut lines: std::collections::HashMap<StackCall<'_>, Nanos> = std::collections::HashMap::new();
    for (call, pauses) in tool.calls.iter().zip(pauses) {
        let mut next = 0;
        for stretch in &call.stretches {
            let Doing::Running(stack) = stretch.doing else { continue };
            while pauses.get(next).is_some_and(|(_, to)| *to <= stretch.from) {
                next += 1;
            }
            let overlaps = pauses[next..].iter().take_while(|(from, _)| *from < stretch.to);
            let time = sum_times(overlaps.map(|(from, to)| (*to).min(stretch.to).since((*from).max(stretch.from))));
            if let Some(own) = own_call(stack).filter(|_| !time.is_zero()) {
                let line = lines.entry(stack[own]).or_default();
                *line = *line + time;
            }
        }
    }
    let most =
        lines.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| (b.0.file, b.0.line).cmp(&(a.0.file, a.0.line))));
    most.map(|(call, _)| SourceLine::of_call(&call))
}
