//! Where the time inside a tool goes, by the spans and the sampled stacks of the server's programs.
//!
//! Each nanosecond between a call's request and its result at the server belongs to one stretch: a thread ran, the program
//! waited for a dependency, a thread waited at a line of the tool, or no source tells. The stretches of a call therefore add
//! up exactly. A running thread comes first: a request's span also covers the work that sends it.
//!
//! Spans belong to a call by their trace where it leads to the call, and else by their time. Samples belong to a call by their
//! time. A call that overlaps others is split by its traced spans alone; without any it is left out, because time cannot tell
//! such calls apart.

mod contention;
mod flame_graph;
pub(crate) mod frames;
mod inside_sums;
pub(crate) mod library_files;
mod pool_waits;
mod timer_waits;
mod tool_time;
mod warm_calls;

use mcpace_record::Nanos;

use crate::view::{CLOCK_TOLERANCE, Exchange, HelperTime, ProgramSpan, SampledStack, SampledThread, SocketWait, View};
use frames::{own_call, runs_event_loop};
use pool_waits::is_at_work;
use timer_waits::{TIMER, ToolTimer, timers_of_call};

pub use crate::view::DependencyKind;
pub(crate) use contention::{Contention, LockKind, ThreadWait, ToolPeriods, lock_wait_of, pool_wait_of};
pub use flame_graph::{CodeOrigin, FlameFrame, FlameGraph, FlameNode};
pub use frames::Language;
pub use inside_sums::{InsideSums, inside_sums};
pub use tool_time::{DependencyTime, LineTime, PackageTime, SourceLine, ToolTime};
pub(crate) use tool_time::{called_function, missing_sources, tool_times};
pub(crate) use warm_calls::{FEWEST_CALLS, WarmCalls, is_notable, is_share, median_count, sum_times};

/// A sample stands for the time around it, for at most this many times the usual time between two samples on each side.
const WIDEST_SAMPLE: u64 = 3;

/// The kernel tells the times of data on connections in steps of a few milliseconds.
const TRAFFIC_TOLERANCE: Nanos = Nanos::from_millis(4);

/// One call of a tool.
#[derive(Clone)]
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
    /// Timers that its code set and that went off within the call, by their beginning.
    pub(crate) timers: Vec<ToolTimer<'a>>,
    /// How many moments were sampled within the call.
    pub(crate) samples: u64,
    /// Whether it was alone at the server.
    pub(crate) is_alone: bool,
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
    /// No span covers the time, and it waited for an answer on a connection, a helper worked (a program that it started, or
    /// threads of its runtime), or it waited for a timer. `thread` is the stack of a thread that waited within the tool, and
    /// whether that thread runs the event loop; for a timer, the stack that set it.
    Outside { kind: DependencyKind, name: &'a str, thread: Option<(SampledStack<'a>, bool)> },
    /// A thread waited within the tool, and no span covers that. `blocks_loop` where that thread runs the event loop.
    Waiting { stack: SampledStack<'a>, blocks_loop: bool },
    /// No source tells.
    Unknown,
}

impl<'a> Stretch<'_, 'a> {
    pub(crate) fn time(&self) -> Nanos {
        self.to.since(self.from)
    }

    /// The stack of the thread that ran or waited, where no span tells for what.
    pub(crate) fn stack(&self) -> Option<SampledStack<'a>> {
        match self.doing {
            Doing::Running(stack) | Doing::Waiting { stack, .. } => Some(stack),
            Doing::Outside { thread, .. } => thread.map(|(stack, _)| stack),
            Doing::Dependency { .. } | Doing::Unknown => None,
        }
    }
}

impl<'v, 'a> ToolCall<'v, 'a> {
    /// The part of a span's time that lies in the call.
    pub(crate) fn span_window(&self, span: &ProgramSpan<'_>) -> (Nanos, Nanos) {
        let from = span.began.clamp(self.from, self.to);
        (from, span.ended.at.clamp(from, self.to))
    }

    /// The time of a span in the call.
    pub(crate) fn span_time(&self, span: &ProgramSpan<'_>) -> Nanos {
        let (from, to) = self.span_window(span);
        to.since(from)
    }

    /// The time of the call that at least one of `spans` covers. The spans stand in the order in which they begin.
    pub(crate) fn covered_time<'x>(&self, spans: impl Iterator<Item = &'x ProgramSpan<'a>>) -> Nanos
    where
        'a: 'x,
    {
        let mut covered_to = self.from;
        sum_times(spans.map(|span| {
            let (from, to) = self.span_window(span);
            let fresh = to.since(from.max(covered_to));
            covered_to = covered_to.max(to);
            fresh
        }))
    }
}

/// The calls of tools that can be told apart, and those that cannot.
pub(crate) struct ToolCalls<'v, 'a> {
    pub(crate) calls: Vec<ToolCall<'v, 'a>>,
    /// Tools of calls that overlapped others, and that no trace leads to.
    pub(crate) overlapping: Vec<&'a str>,
}

/// Splits the calls of all tools, in the order of their requests.
pub(crate) fn split_tool_calls<'v, 'a>(view: &'v View<'a>) -> ToolCalls<'v, 'a> {
    let mut split = ToolCalls { calls: Vec::new(), overlapping: Vec::new() };
    let evidence = &view.inside;
    if evidence.spans.facts.spans == 0
        && evidence.samples.is_empty()
        && evidence.pauses.is_empty()
        && evidence.sockets.is_empty()
        && evidence.timers.is_empty()
    {
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
        if is_alone || evidence.spans.traced.contains(&window.exchange.id) {
            split.calls.push(split_call(view, window, tool, &moments, is_alone));
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

    /// The moments that reach into a time.
    fn within(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = usize> {
        let first = self.starts.partition_point(|&start| self.samples[start].at.at < from).saturating_sub(1);
        let reaches = move |&moment: &usize| self.reach(moment).0 < to;
        (first..self.starts.len()).take_while(reaches).filter(move |&moment| self.reach(moment).1 > from)
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
    is_alone: bool,
) -> ToolCall<'v, 'a> {
    let (from, to) = (window.from, window.to);
    let spans = spans_of_call(view, window, is_alone);
    // Activity of the threads, by the moments that reach into the call.
    let mut samples = 0;
    let mut seen: Vec<Stretch<'v, 'a>> = Vec::new();
    for moment in moments.within(from, to).take_while(|_| is_alone) {
        let (start, end) = moments.reach(moment);
        samples += u64::from((from..to).contains(&moments.at(moment)));
        let doing = threads_doing(view, moments.threads(moment));
        seen.push(Stretch { from: start.max(from), to: end.min(to), doing });
    }
    let (waits, helpers) =
        if is_alone { (socket_waits(view, from, to), helper_times(view, from, to)) } else { Default::default() };
    let timers = if is_alone { timers_of_call(view, from, to) } else { Vec::new() };
    let stretches = merge_stretches(from, to, &seen, &spans, [&waits, &helpers], &timers);
    ToolCall { exchange: window.exchange, tool, from, to, stretches, spans, timers, samples, is_alone }
}

/// The requests of a call, by their beginning: those whose trace leads to it, and for a call that was alone those whose trace
/// leads nowhere and whose time is the call's.
fn spans_of_call<'v, 'a>(view: &'v View<'a>, window: &Window<'v, 'a>, is_alone: bool) -> Vec<&'v ProgramSpan<'a>> {
    let (from, to) = (window.from, window.to);
    let joined = &view.inside.spans;
    let all = &joined.requests;
    let earliest = Nanos(from.0.saturating_sub(CLOCK_TOLERANCE.0));
    let traced = joined.by_exchange.get(&window.exchange.id).map_or(&[][..], Vec::as_slice);
    let traced = traced.iter().map(|number| &all[*number as usize]);
    let begin = if is_alone { all.partition_point(|span| span.began < earliest) } else { all.len() };
    let timed = all[begin..].iter().take_while(|span| span.began < to);
    let timed = timed.filter(|span| joined.may_serve(window.exchange.id, span));
    let mut spans: Vec<&ProgramSpan<'a>> =
        traced.chain(timed).filter(|span| span.began < to && span.ended.at > from).collect();
    spans.sort_by_key(|span| span.began);
    spans
}

/// The state of a program by its threads: one that runs counts before one that waits at a line of the tool.
fn threads_doing<'v, 'a>(view: &'v View<'a>, threads: &[SampledThread]) -> Doing<'v, 'a> {
    let stack_of = |thread: &SampledThread| view.inside.stacks[thread.stack as usize];
    let at_work = || threads.iter().map(|thread| (thread, stack_of(thread))).filter(|(_, stack)| is_at_work(stack));
    let running = || at_work().filter(|(thread, _)| thread.running);
    if let Some((_, stack)) = running().find(|(_, stack)| own_call(stack).is_some()).or_else(|| running().next()) {
        return Doing::Running(stack);
    }
    match at_work().find(|(_, stack)| own_call(stack).is_some()) {
        Some((_, stack)) => Doing::Waiting { stack, blocks_loop: runs_event_loop(stack) },
        None => Doing::Unknown,
    }
}

/// Waits for answers that began and ended within a call, with the addresses. A connection that waits for longer is no part of
/// the call: it may be subscribed to something.
fn socket_waits<'a>(view: &View<'a>, from: Nanos, to: Nanos) -> Vec<HelperTime<'a>> {
    let all = &view.inside.socket_waits;
    let begin = all.partition_point(|wait| wait.from + CLOCK_TOLERANCE < from);
    let within = all[begin..].iter().take_while(|wait| wait.from < to).filter(|wait| wait.to <= to + TRAFFIC_TOLERANCE);
    let named = |wait: &SocketWait| HelperTime {
        from: wait.from,
        to: wait.to.min(to),
        kind: DependencyKind::Connection,
        name: view.inside.sockets[wait.socket as usize].address,
    };
    within.map(named).collect()
}

/// The times of helpers that reach into a call.
fn helper_times<'a>(view: &View<'a>, from: Nanos, to: Nanos) -> Vec<HelperTime<'a>> {
    let times = view.inside.helpers.overlapping(from, to);
    times.map(|time| HelperTime { from: time.from.max(from), to: time.to.min(to), ..*time }).collect()
}

/// Times in the order in which they begin, of which the one counts that began last and has not ended.
struct Latest<'x, T> {
    times: &'x [T],
    next: usize,
    open: Vec<&'x T>,
}

impl<'x, T> Latest<'x, T> {
    fn new(times: &'x [T]) -> Self {
        Self { times, next: 0, open: Vec::new() }
    }

    /// The one that counts at `at`, which never goes back. `window` tells the beginning and the end of one.
    fn find(&mut self, at: Nanos, window: impl Fn(&T) -> (Nanos, Nanos)) -> Option<&'x T> {
        while let Some(one) = self.times.get(self.next).filter(|one| window(one).0 <= at) {
            self.open.push(one);
            self.next += 1;
        }
        // Only the last one counts, so that ended ones below it may stay.
        while self.open.last().is_some_and(|one| window(one).1 <= at) {
            self.open.pop();
        }
        self.open.last().copied()
    }
}

/// Gives each part of `from` to `to` to what was seen, by precedence: a thread that runs, the dependency whose span began
/// last, the connection whose wait began last, the helper whose time began last, a thread that blocks the event loop, the timer
/// that was set last, another thread that waits.
fn merge_stretches<'v, 'a>(
    from: Nanos,
    to: Nanos,
    seen: &[Stretch<'v, 'a>],
    spans: &[&'v ProgramSpan<'a>],
    [waits, helpers]: [&[HelperTime<'a>]; 2],
    timers: &[ToolTimer<'a>],
) -> Vec<Stretch<'v, 'a>> {
    let mut bounds: Vec<Nanos> = vec![from, to];
    bounds.extend(seen.iter().flat_map(|stretch| [stretch.from, stretch.to]));
    bounds.extend(spans.iter().flat_map(|span| [span.began, span.ended.at.min(to)]));
    bounds.extend(waits.iter().chain(helpers).flat_map(|time| [time.from, time.to]));
    bounds.extend(timers.iter().flat_map(|timer| [timer.from, timer.to]));
    bounds.retain(|bound| (from..=to).contains(bound));
    bounds.sort_unstable();
    bounds.dedup();
    let mut stretches: Vec<Stretch<'v, 'a>> = Vec::new();
    let mut next_seen = 0;
    let (mut spans, mut waits, mut helpers) = (Latest::new(spans), Latest::new(waits), Latest::new(helpers));
    let mut timers = Latest::new(timers);
    for pair in bounds.windows(2) {
        let (start, end) = (pair[0], pair[1]);
        while seen.get(next_seen).is_some_and(|stretch| stretch.to <= start) {
            next_seen += 1;
        }
        let sampled = seen.get(next_seen).filter(|stretch| stretch.from <= start).map(|stretch| stretch.doing);
        let span = spans.find(start, |span| (span.began, span.ended.at)).copied();
        let wait = waits.find(start, |wait| (wait.from, wait.to));
        let helper = helpers.find(start, |time| (time.from, time.to));
        let timer = timers.find(start, |timer| (timer.from, timer.to));
        let outside = wait.or(helper).map(|time| (time.kind, time.name));
        let doing = match (sampled, span, outside) {
            (Some(Doing::Running(stack)), _, _) => Doing::Running(stack),
            (Some(Doing::Waiting { stack, blocks_loop: true }), Some(span), _) => {
                Doing::Dependency { span, blocked: Some(stack) }
            }
            (_, Some(span), _) => Doing::Dependency { span, blocked: None },
            (Some(Doing::Waiting { stack, blocks_loop }), None, Some((kind, name))) => {
                Doing::Outside { kind, name, thread: Some((stack, blocks_loop)) }
            }
            (_, None, Some((kind, name))) => Doing::Outside { kind, name, thread: None },
            (Some(blocking @ Doing::Waiting { blocks_loop: true, .. }), None, None) => blocking,
            (other, None, None) => match timer {
                Some(ToolTimer { stack, blocks_loop: true, .. }) => Doing::Waiting { stack, blocks_loop: true },
                Some(ToolTimer { stack, .. }) => {
                    Doing::Outside { kind: DependencyKind::Timer, name: TIMER, thread: Some((stack, false)) }
                }
                None => other.unwrap_or(Doing::Unknown),
            },
        };
        stretches.push(Stretch { from: start, to: end, doing });
    }
    stretches
}
