//! `repeated-dependency-call`: a tool sends the same statement, or the same request with other ids, many times within one call
//! ("N+1 queries").

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use mcpace_record::Nanos;

use super::stack_times::{calls_below_own, line_order};
use super::tool_finding::make_finding;
use super::{CallTimes, RepeatedDependencyCall};
use crate::DependencyKind;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason};
use crate::inside::frames::own_call;
use crate::inside::library_files::is_instrument;
use crate::inside::{Doing, Stretch, ToolCall, WarmCalls, called_function, median_count, sum_times};
use crate::view::{ProgramSpan, StackCall};

/// Requests of one pattern in one call, from which on they are repeated.
pub(super) const FEWEST_REPEATS: u64 = 4;

/// A dependency and a request without the parts that differ.
type Pattern<'a> = (&'a str, &'a str);

/// A line of the server's own code, and the function of a library that it calls.
type LibraryCall<'a> = (StackCall<'a>, &'a str);

/// The requests of one pattern in all calls.
struct Repeated {
    kind: DependencyKind,
    /// Number of requests in each call that has any.
    counts: Vec<u64>,
    /// Time in which at least one of the requests is under way.
    time: Nanos,
    /// The part of that time which one request for all would save: it takes at least as long as one of them.
    gain: Nanos,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tool in Rc::clone(&scene.warm_calls).iter() {
        let mut patterns: HashMap<Pattern<'_>, Repeated> = HashMap::new();
        for call in &tool.calls {
            for (pattern, spans) in spans_by_pattern(call) {
                let count = spans.len() as u64;
                let time = call.covered_time(spans.iter().copied());
                let mean = sum_times(spans.iter().map(|span| call.span_time(span))).0 / count.max(1);
                let entry = patterns.entry(pattern).or_insert_with(|| Repeated {
                    kind: spans.first().map_or(DependencyKind::Other, |span| span.kind),
                    counts: Vec::new(),
                    time: Nanos::ZERO,
                    gain: Nanos::ZERO,
                });
                entry.counts.push(count);
                entry.time = entry.time + time;
                entry.gain = entry.gain + time.since(Nanos(mean));
            }
        }
        let all_calls = tool.calls.len();
        let requests = |repeated: &Repeated| {
            let without = all_calls - repeated.counts.len();
            median_count(repeated.counts.iter().copied().chain(std::iter::repeat_n(0, without)))
        };
        let repeated = patterns.into_iter().filter(|(_, repeated)| requests(repeated) >= FEWEST_REPEATS);
        let most = repeated.max_by(|a, b| a.1.time.cmp(&b.1.time).then_with(|| b.0.cmp(&a.0)));
        let Some((pattern, repeated)) = most else { continue };
        // The client's library would do its work once as well, not for each request.
        let library = requesting_library(tool, pattern);
        let library_windows = |call: &ToolCall<'_, '_>| {
            let runs = |stretch: &&Stretch<'_, '_>| library.is_some() && library_call(stretch) == library;
            running_between(call, pattern).filter(runs).map(|stretch| (stretch.from, stretch.to)).collect::<Vec<_>>()
        };
        let library_time = sum_times(tool.calls.iter().flat_map(library_windows).map(|(from, to)| to.since(from)));
        let (time, gain) = (repeated.time + library_time, repeated.gain + library_time);
        if !tool.is_notable(gain) {
            continue;
        }
        let context = RepeatedDependencyCall {
            tool: tool.tool.to_owned(),
            kind: repeated.kind,
            dependency: pattern.0.to_owned(),
            pattern: pattern.1.to_owned(),
            requests: requests(&repeated),
            times: CallTimes::of_calls(tool, time, gain),
        };
        let proof = (Level::High, Reason::RequestsReported);
        let cause = Cause::RepeatedDependencyCall(context);
        findings.push(make_finding(scene, &tool.calls, cause, proof, Disproof::AskOnceForAll, |call| {
            let windows = spans_of(call, pattern).map(|span| call.span_window(span));
            windows.chain(library_windows(call)).collect()
        }));
    }
    findings
}

fn spans_of<'s, 'v, 'a>(
    call: &'s ToolCall<'v, 'a>,
    pattern: Pattern<'a>,
) -> impl Iterator<Item = &'v ProgramSpan<'a>> + use<'s, 'v, 'a> {
    call.spans.iter().copied().filter(move |span| (span.dependency, span.pattern) == pattern)
}

/// The stretches of a running thread from the end of the first request of a pattern to the beginning of the last one.
fn running_between<'s, 'v, 'a>(
    call: &'s ToolCall<'v, 'a>,
    pattern: Pattern<'a>,
) -> impl Iterator<Item = &'s Stretch<'v, 'a>> + use<'s, 'v, 'a> {
    let mut windows = spans_of(call, pattern).map(|span| call.span_window(span));
    let from = windows.next().map_or(call.to, |(_, ended)| ended);
    let to = windows.last().map_or(call.from, |(began, _)| began);
    let running = call.stretches.iter().filter(|stretch| matches!(stretch.doing, Doing::Running(_)));
    running.filter(move |stretch| from <= stretch.from && stretch.to <= to)
}

/// The library that sends the requests of a pattern: of all that run between two of them, the one that runs longest, if it
/// is one in which the instrument was seen, which stands around each request.
fn requesting_library<'a>(tool: &WarmCalls<'_, 'a>, pattern: Pattern<'a>) -> Option<LibraryCall<'a>> {
    let stretches = || tool.calls.iter().flat_map(|call| &call.stretches);
    let has_instrument = |stretch: &&Stretch<'_, '_>| {
        stretch.stack().is_some_and(|stack| calls_below_own(stack).iter().any(is_instrument))
    };
    let requesting: HashSet<LibraryCall<'_>> = stretches().filter(has_instrument).filter_map(library_call).collect();
    let mut times: HashMap<LibraryCall<'_>, Nanos> = HashMap::new();
    for stretch in tool.calls.iter().flat_map(|call| running_between(call, pattern)) {
        if let Some(library) = library_call(stretch).filter(|library| requesting.contains(library)) {
            let time = times.entry(library).or_default();
            *time = *time + stretch.time();
        }
    }
    let longest = times.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| line_order(&b.0).cmp(&line_order(&a.0))));
    longest.map(|(library, _)| library)
}

fn library_call<'a>(stretch: &Stretch<'_, 'a>) -> Option<LibraryCall<'a>> {
    let stack = stretch.stack()?;
    let own = own_call(stack)?;
    Some((stack[own], called_function(stack, own)?))
}

/// The spans of a call by their pattern, each in the order in which they begin.
fn spans_by_pattern<'v, 'a>(call: &ToolCall<'v, 'a>) -> HashMap<Pattern<'a>, Vec<&'v ProgramSpan<'a>>> {
    let mut patterns: HashMap<Pattern<'a>, Vec<&'v ProgramSpan<'a>>> = HashMap::new();
    for span in &call.spans {
        patterns.entry((span.dependency, span.pattern)).or_default().push(span);
    }
    patterns
}

/// Whether most requests of a call are repeats of one pattern, which another finding names.
pub(super) fn is_mostly_repeats<'a>(call: &ToolCall<'_, 'a>, spans: &[&ProgramSpan<'a>]) -> bool {
    let mut patterns: HashMap<Pattern<'a>, (u64, Nanos)> = HashMap::new();
    for span in spans {
        let entry = patterns.entry((span.dependency, span.pattern)).or_default();
        *entry = (entry.0 + 1, entry.1 + call.span_time(span));
    }
    let all = sum_times(spans.iter().map(|span| call.span_time(span)));
    patterns.values().any(|(count, time)| *count >= FEWEST_REPEATS && time.0 >= all.0 / 2)
}
