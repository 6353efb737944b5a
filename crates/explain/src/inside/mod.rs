//! Where the time inside a tool goes, by the spans and the sampled stacks of the server's programs.
//!
//! Each nanosecond between a call's request and its result at the server belongs to one stretch: a thread ran, the program
//! waited for a dependency, a thread waited at a line of the tool, or no source tells. The stretches of a call therefore add
//! up exactly. A running thread comes first: a request's span also covers the work that sends it.
//!
//! Spans and samples belong to a call by their time. Calls that overlap others are left out, because time cannot tell them apart.

pub(crate) mod frames;
mod tool_time;
mod warm_calls;

use mcpace_record::Nanos;

use crate::view::{Exchange, ProgramSpan, SampledStack, SampledThread, View};
use frames::{own_call, runs_event_loop, serves_instrumentation, waits_for_work};

pub use crate::view::DependencyKind;
pub use frames::Language;
pub use tool_time::{DependencyTime, LineTime, PackageTime, SourceLine, ToolTime};
pub(crate) use tool_time::{called_function, missing_sources, tool_times};
pub(crate) use warm_calls::{WarmCalls, median_count, sum_times};

/// A sample stands for the time around it, for at most this many times the usual time between two samples on each side.
const WIDEST_SAMPLE: u64 = 3;

/// A span's times come from the wall clock, and may be wrong by this much against the recording's clock.
const CLOCK_TOLERANCE: Nanos = Nanos::from_millis(1);

/// One call of a tool, alone at the server.
pub(crate) struct ToolCall<'v, 'a> {
    /// Its exchange.
    pub(crate) exchange: &'v Exchange<'a>,
    /// The tool.
    pub(crate) tool: &'a str,
    /// When the server had the request.
    pub(crate) from: Nanos,
    /// When the result began.
    pub(crate) to: Nanos,
    /// Disjoint stretches in order, without gaps.
    pub(crate) stretches: Vec<Stretch<'v, 'a>>,
    /// Spans of dependencies that began within the call, by their beginning.
    pub(crate) spans: Vec<&'v ProgramSpan<'a>>,
    /// How many moments were sampled within the call.
    pub(crate) samples: u64,
}

/// A part of a call's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch<'v, 'a> {
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    pub(crate) doing: Doing<'v, 'a>,
}

/// Activity of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Doing<'v, 'a> {
    /// A thread ran.
    Running(SampledStack<'a>),
    /// It waited for a dependency. `blocked` is the stack of the event loop's thread where that thread waited as well.
    Dependency { span: &'v ProgramSpan<'a>, blocked: Option<SampledStack<'a>> },
    /// A thread waited within the tool, and no span covers that. `blocks_loop` where that thread runs the event loop.
    Waiting { stack: SampledStack<'a>, blocks_loop: bool },
    /// No source tells.
    Unknown,
}

impl Stretch<'_, '_> {
    pub(crate) fn time(&self) -> Nanos {
        self.to.since(self.from)
    }
}

/// The calls of tools that were alone at the server, and the number of those that were not.
pub(crate) struct ToolCalls<'v, 'a> {
    pub(crate) calls: Vec<ToolCall<'v, 'a>>,
    /// Tools of calls that overlapped others.
    pub(crate) overlapping: Vec<&'a str>,
}

/// Splits the calls of all tools, in the order of their requests.
pub(crate) fn split_tool_calls<'v, 'a>(view: &'v View<'a>) -> ToolCalls<'v, 'a> {
    let mut split = ToolCalls { calls: Vec::new(), overlapping: Vec::new() };
    let evidence = &view.inside;
    if evidence.spans.is_empty() && evidence.samples.is_empty() {
        return split;
    }
    let mut windows: Vec<Window<'v, 'a>> = view.exchanges.iter().filter_map(Window::of_exchange).collect();
    windows.sort_by_key(|window| window.from);
    let moments = Moments::of_samples(&evidence.samples);
    let mut busy_until = Nanos::ZERO;
    for (number, window) in windows.iter().enumerate() {
        let is_alone = busy_until <= window.from && windows.get(number + 1).is_none_or(|next| next.from >= window.to);
        busy_until = busy_until.max(window.to);
        let Some(tool) = window.tool else { continue };
        if is_alone {
            split.calls.push(split_call(view, window, tool, &moments));
        } else {
            split.overlapping.push(tool);
        }
    }
    split
}

/// An exchange's time at the server.
struct Window<'v, 'a> {
    exchange: &'v Exchange<'a>,
    tool: Option<&'a str>,
    from: Nanos,
    to: Nanos,
}

impl<'v, 'a> Window<'v, 'a> {
    fn of_exchange(exchange: &'v Exchange<'a>) -> Option<Self> {
        let back = exchange.back().filter(|_| exchange.asks())?;
        let from = back.request_end?.at;
        let to = back.result_start.or(back.result_end).map_or(from, |stamp| stamp.at.max(from));
        let call = exchange.messages.iter().find(|message| message.method() == Some("tools/call"));
        Some(Self { exchange, tool: call.and_then(|call| call.name()), from, to })
    }
}

/// Samples by the moment at which they were taken.
struct Moments<'v> {
    /// Index of the first sample of each moment.
    starts: Vec<usize>,
    samples: &'v [SampledThread],
    /// The usual time between two moments.
    usual: Nanos,
}

impl<'v> Moments<'v> {
    fn of_samples(samples: &'v [SampledThread]) -> Self {
        let at = |number: usize| samples[number].at.at;
        let starts: Vec<usize> =
            (0..samples.len()).filter(|&number| number == 0 || at(number) != at(number - 1)).collect();
        let mut gaps: Vec<Nanos> = starts.windows(2).map(|pair| at(pair[1]).since(at(pair[0]))).collect();
        gaps.sort_unstable();
        let usual = gaps.get(gaps.len() / 2).copied().unwrap_or(Nanos::ZERO);
        Self { starts, samples, usual }
    }

    fn at(&self, moment: usize) -> Nanos {
        self.samples[self.starts[moment]].at.at
    }

    fn threads(&self, moment: usize) -> &'v [SampledThread] {
        let end = self.starts.get(moment + 1).copied().unwrap_or(self.samples.len());
        &self.samples[self.starts[moment]..end]
    }

    /// The time that a moment stands for: half of the way to its neighbours.
    fn reach(&self, moment: usize) -> (Nanos, Nanos) {
        let at = self.at(moment);
        let widest = Nanos(self.usual.0.saturating_mul(WIDEST_SAMPLE));
        let before = if moment == 0 { self.usual } else { at.since(self.at(moment - 1)) };
        let after = if moment + 1 == self.starts.len() { self.usual } else { self.at(moment + 1).since(at) };
        let half = |gap: Nanos| Nanos(gap.min(widest).0 / 2);
        (Nanos(at.0.saturating_sub(half(before).0)), at + half(after))
    }
}

fn split_call<'v, 'a>(
    view: &'v View<'a>,
    window: &Window<'v, 'a>,
    tool: &'a str,
    moments: &Moments<'_>,
) -> ToolCall<'v, 'a> {
    let (from, to) = (window.from, window.to);
    let all = &view.inside.spans;
    let earliest = Nanos(from.0.saturating_sub(CLOCK_TOLERANCE.0));
    let begin = all.partition_point(|span| span.began < earliest);
    let spans = all[begin..].iter().take_while(|span| span.began < to).filter(|span| span.ended.at > from);
    let spans: Vec<&ProgramSpan<'a>> = spans.collect();
    // Activity of the threads, by the moments that reach into the call.
    let first = moments.starts.partition_point(|&start| moments.samples[start].at.at < from).saturating_sub(1);
    let mut samples = 0;
    let mut seen: Vec<Stretch<'v, 'a>> = Vec::new();
    for moment in first..moments.starts.len() {
        let (start, end) = moments.reach(moment);
        if start >= to {
            break;
        }
        let (start, end) = (start.max(from), end.min(to));
        if start < end {
            samples += u64::from((from..to).contains(&moments.at(moment)));
            let doing = threads_doing(view, moments.threads(moment));
            seen.push(Stretch { from: start, to: end, doing });
        }
    }
    let stretches = merge_stretches(from, to, &seen, &spans);
    ToolCall { exchange: window.exchange, tool, from, to, stretches, spans, samples }
}

/// The state of a program by its threads: one that runs counts before one that waits at a line of the tool.
fn threads_doing<'v, 'a>(view: &'v View<'a>, threads: &[SampledThread]) -> Doing<'v, 'a> {
    let stack_of = |thread: &SampledThread| view.inside.stacks[thread.stack as usize];
    let at_work = || {
        threads
            .iter()
            .map(|thread| (thread, stack_of(thread)))
            .filter(|(_, stack)| !waits_for_work(stack) && !serves_instrumentation(stack))
    };
    let running = || at_work().filter(|(thread, _)| thread.running);
    if let Some((_, stack)) = running().find(|(_, stack)| own_call(stack).is_some()).or_else(|| running().next()) {
        return Doing::Running(stack);
    }
    match at_work().find(|(_, stack)| own_call(stack).is_some()) {
        Some((_, stack)) => Doing::Waiting { stack, blocks_loop: runs_event_loop(stack) },
        None => Doing::Unknown,
    }
}

/// Gives each part of `from` to `to` to what was seen, by precedence: a thread that runs, the dependency whose span began
/// last, a thread that waits.
fn merge_stretches<'v, 'a>(
    from: Nanos,
    to: Nanos,
    seen: &[Stretch<'v, 'a>],
    spans: &[&'v ProgramSpan<'a>],
) -> Vec<Stretch<'v, 'a>> {
    let mut bounds: Vec<Nanos> = vec![from, to];
    bounds.extend(seen.iter().flat_map(|stretch| [stretch.from, stretch.to]));
    bounds.extend(spans.iter().flat_map(|span| [span.began, span.ended.at.min(to)]));
    bounds.retain(|bound| (from..=to).contains(bound));
    bounds.sort_unstable();
    bounds.dedup();
    let mut stretches: Vec<Stretch<'v, 'a>> = Vec::new();
    let (mut next_seen, mut next_span) = (0, 0);
    // Spans that are open at the current bound, in the order in which they began.
    let mut open: Vec<&'v ProgramSpan<'a>> = Vec::new();
    for pair in bounds.windows(2) {
        let (start, end) = (pair[0], pair[1]);
        while seen.get(next_seen).is_some_and(|stretch| stretch.to <= start) {
            next_seen += 1;
        }
        while let Some(span) = spans.get(next_span).filter(|span| span.began <= start) {
            open.push(span);
            next_span += 1;
        }
        open.retain(|span| span.ended.at > start);
        let sampled = seen.get(next_seen).filter(|stretch| stretch.from <= start).map(|stretch| stretch.doing);
        let doing = match (sampled, open.last()) {
            (Some(Doing::Running(stack)), _) => Doing::Running(stack),
            (Some(Doing::Waiting { stack, blocks_loop: true }), Some(span)) => {
                Doing::Dependency { span, blocked: Some(stack) }
            }
            (_, Some(span)) => Doing::Dependency { span, blocked: None },
            (Some(other), None) => other,
            (None, None) => Doing::Unknown,
        };
        stretches.push(Stretch { from: start, to: end, doing });
    }
    stretches
}
