//! Evidence about the inside of a server's programs: the spans of requests that they made, sampled stacks, and
//! connections.

use std::collections::{HashMap, HashSet};

use mcpace_record::{EventKind, EvidenceSource, Nanos, PauseCause, StackId, ThreadLock};

use super::sockets::{ProgramSocket, SocketJoin, SocketWait};
use super::span_join::{JoinedSpans, SpanJoin};
use super::texts::Keeper;
use super::{DependencyKind, Stamp};

/// Pauses, samples, times of helpers and timers that are kept at most; later ones are counted as left out.
const MOST_PAUSES: usize = 2_000_000;
const MOST_SAMPLES: usize = 10_000_000;
const MOST_HELPER_TIMES: usize = 2_000_000;
const MOST_TIMERS: usize = 2_000_000;

/// Reasons of missing sources that are kept at most.
const MOST_MISSING: usize = 16;

/// One function call in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StackCall<'a> {
    /// The function.
    pub(crate) function: &'a str,
    /// Its file.
    pub(crate) file: &'a str,
    /// The line in it.
    pub(crate) line: u32,
}

/// A stack, the innermost call first.
pub(crate) type SampledStack<'a> = &'a [StackCall<'a>];

/// A thread at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledThread {
    /// When.
    pub(crate) at: Stamp,
    /// Index into [`InsideEvidence::stacks`].
    pub(crate) stack: u32,
    /// Its process.
    pub(crate) pid: u32,
    /// Its number among the threads of the process.
    pub(crate) thread: u64,
    /// Whether it ran, as the system tells.
    pub(crate) running: bool,
    /// The lock that it held or waited for, where that is told.
    pub(crate) lock: Option<ThreadLock>,
}

/// A pause of a program's runtime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramPause {
    /// When the program went on.
    pub(crate) ended: Stamp,
    /// When it stopped.
    pub(crate) began: Nanos,
    /// The reason.
    pub(crate) cause: PauseCause,
}

/// A time in which something worked for the server while its code waits: another program, or threads of its runtime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HelperTime<'a> {
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    /// [`DependencyKind::Program`] or [`DependencyKind::PoolWork`].
    pub(crate) kind: DependencyKind,
    /// Name of the program, or of the work.
    pub(crate) name: &'a str,
}

/// A timer that a program's code waited for, from when it was set until it went off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramTimer {
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    /// The process.
    pub(crate) pid: u32,
    /// Index into [`InsideEvidence::stacks`]: the stack that set it.
    pub(crate) stack: u32,
}

/// Something that lasts.
pub(crate) trait Lasting {
    /// Its beginning and its end.
    fn window(&self) -> (Nanos, Nanos);
}

impl Lasting for HelperTime<'_> {
    fn window(&self) -> (Nanos, Nanos) {
        (self.from, self.to)
    }
}

impl Lasting for ProgramTimer {
    fn window(&self) -> (Nanos, Nanos) {
        (self.from, self.to)
    }
}

/// All evidence about the inside of a server's programs.
#[derive(Debug, Default)]
pub(crate) struct InsideEvidence<'a> {
    /// Requests that the programs made.
    pub(crate) spans: JoinedSpans<'a>,
    /// The different stacks.
    pub(crate) stacks: Vec<SampledStack<'a>>,
    /// Sampled threads, earliest first. Threads of one moment have one time.
    pub(crate) samples: Vec<SampledThread>,
    /// Pauses of the programs' runtimes, by their beginning.
    pub(crate) pauses: Vec<ProgramPause>,
    /// Connections that the programs made, by the time at which they were first seen.
    pub(crate) sockets: Vec<ProgramSocket<'a>>,
    /// Times in which an answer was awaited on one of the connections, by their beginning.
    pub(crate) socket_waits: Vec<SocketWait>,
    /// Times in which programs computed that the sampled processes started, and in which their runtimes worked on threads of
    /// their own.
    pub(crate) helpers: ByBeginning<HelperTime<'a>>,
    /// Timers that the programs' code waited for.
    pub(crate) timers: ByBeginning<ProgramTimer>,
    /// Sources that gave nothing, with the reason.
    pub(crate) missing: Vec<(EvidenceSource, &'a str)>,
    /// Spans and samples for which there was no room.
    pub(crate) left_out: u64,
}

/// Times by their beginning.
#[derive(Debug)]
pub(crate) struct ByBeginning<T> {
    times: Vec<T>,
    /// The latest end of a time and of all before it. It never decreases, so the first time that may reach a moment is found
    /// by bisection.
    latest_ends: Vec<Nanos>,
}

impl<T> Default for ByBeginning<T> {
    fn default() -> Self {
        Self { times: Vec::new(), latest_ends: Vec::new() }
    }
}

impl<T: Lasting> ByBeginning<T> {
    fn new(mut times: Vec<T>) -> Self {
        times.sort_by_key(|time| time.window().0);
        let ends = times.iter().scan(Nanos::ZERO, |latest, time| {
            *latest = time.window().1.max(*latest);
            Some(*latest)
        });
        Self { latest_ends: ends.collect(), times }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The times that reach between `from` and `to`, by their beginning.
    pub(crate) fn overlapping(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = &T> {
        let first = self.latest_ends.partition_point(|end| *end <= from);
        let within = self.times[first..].iter().take_while(move |time| time.window().0 < to);
        within.filter(move |time| time.window().1 > from)
    }
}

#[derive(Default)]
pub(super) struct InsideJoin<'a> {
    pub(super) spans: SpanJoin<'a>,
    evidence: InsideEvidence<'a>,
    helpers: Vec<HelperTime<'a>>,
    timers: Vec<ProgramTimer>,
    numbers: HashMap<StackId, u32>,
    sockets: SocketJoin<'a>,
    descendants: Vec<DescendantRun<'a>>,
}

/// A time in which a descendant of the watched process computed. It may be the server's own process.
struct DescendantRun<'a> {
    pid: u32,
    ancestors: Vec<u32>,
    time: HelperTime<'a>,
}

impl<'a> InsideJoin<'a> {
    pub(super) fn join_event(&mut self, keeper: &mut Keeper<'a>, at: Stamp, kind: &EventKind) {
        let evidence = &mut self.evidence;
        match kind {
            EventKind::Span(span) => self.spans.join_span(keeper, at, span, false),
            EventKind::StackSeen { stack, frames } => {
                let calls: Vec<StackCall<'a>> = frames
                    .iter()
                    .map(|frame| StackCall {
                        function: keeper.keep_text(&frame.function),
                        file: keeper.keep_text(&frame.file),
                        line: frame.line,
                    })
                    .collect();
                if let Ok(number) = u32::try_from(evidence.stacks.len()) {
                    self.numbers.entry(*stack).or_insert(number);
                    evidence.stacks.push(keeper.keep_list(calls));
                }
            }
            EventKind::StackSample { pid, thread, stack, running, lock } => match self.numbers.get(stack) {
                Some(stack) if evidence.samples.len() < MOST_SAMPLES => {
                    let (pid, thread, running, lock) = (*pid, *thread, *running, *lock);
                    evidence.samples.push(SampledThread { at, stack: *stack, pid, thread, running, lock });
                }
                _ => evidence.left_out += 1,
            },
            EventKind::RuntimePause { cause, began, .. } => {
                if evidence.pauses.len() < MOST_PAUSES {
                    evidence.pauses.push(ProgramPause { ended: at, began: (*began).min(at.at), cause: *cause });
                } else {
                    evidence.left_out += 1;
                }
            }
            EventKind::ProcessRan { pid, ancestors, program, began } => {
                if self.descendants.len() < MOST_HELPER_TIMES {
                    let (from, name) = ((*began).min(at.at), keeper.keep_text(program));
                    let time = HelperTime { from, to: at.at, kind: DependencyKind::Program, name };
                    self.descendants.push(DescendantRun { pid: *pid, ancestors: ancestors.clone(), time });
                } else {
                    evidence.left_out += 1;
                }
            }
            EventKind::PoolWork { work, began, .. } => {
                if self.helpers.len() < MOST_HELPER_TIMES {
                    let (from, name) = ((*began).min(at.at), keeper.keep_text(work));
                    self.helpers.push(HelperTime { from, to: at.at, kind: DependencyKind::PoolWork, name });
                } else {
                    evidence.left_out += 1;
                }
            }
            EventKind::TimerFired { pid, stack, began } => match self.numbers.get(stack) {
                Some(stack) if self.timers.len() < MOST_TIMERS => {
                    let from = (*began).min(at.at);
                    self.timers.push(ProgramTimer { from, to: at.at, pid: *pid, stack: *stack });
                }
                _ => evidence.left_out += 1,
            },
            EventKind::SourceMissing { source, reason, .. } if evidence.missing.len() < MOST_MISSING => {
                evidence.missing.push((*source, keeper.keep_text(reason)));
            }
            _ => self.sockets.join_event(keeper, at, kind),
        }
    }

    /// All evidence; `join` joins the spans.
    pub(super) fn finish_evidence(mut self, join: impl FnOnce(SpanJoin<'a>) -> JoinedSpans<'a>) -> InsideEvidence<'a> {
        let programs = self.program_times();
        self.helpers.extend(programs);
        self.evidence.helpers = ByBeginning::new(self.helpers);
        self.evidence.timers = ByBeginning::new(self.timers);
        self.evidence.spans = join(self.spans);
        self.evidence.left_out += self.evidence.spans.facts.left_out;
        self.evidence.pauses.sort_by_key(|pause| pause.began);
        let (sockets, waits, left_out) = self.sockets.finish_sockets();
        (self.evidence.sockets, self.evidence.socket_waits) = (sockets, waits);
        self.evidence.left_out = self.evidence.left_out.saturating_add(left_out);
        self.evidence
    }

    /// The times of programs that a sampled process started, and that are not sampled themselves.
    fn program_times(&self) -> Vec<HelperTime<'a>> {
        let sampled: HashSet<u32> = self.evidence.samples.iter().map(|sample| sample.pid).collect();
        let is_other = |one: &&DescendantRun<'_>| {
            !sampled.contains(&one.pid) && one.ancestors.iter().any(|pid| sampled.contains(pid))
        };
        self.descendants.iter().filter(is_other).map(|one| one.time).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helper_times_that_overlap_are_those_that_a_scan_finds() {
        let time = |(from, to): (u64, u64)| HelperTime {
            from: Nanos(from),
            to: Nanos(to),
            kind: DependencyKind::Program,
            name: "git",
        };
        // Short times, one that spans many others, and times that end in another order than they begin.
        let spans = [(40, 45), (5, 6), (0, 2), (10, 90), (20, 21), (30, 80), (95, 99), (95, 97)];
        let helpers = ByBeginning::new(spans.map(time).to_vec());
        let mut sorted = spans;
        sorted.sort_by_key(|span| span.0);
        for from in 0..100 {
            for to in from..101 {
                let scanned: Vec<_> = sorted.into_iter().filter(|span| span.0 < to && span.1 > from).collect();
                let found = helpers.overlapping(Nanos(from), Nanos(to));
                assert_eq!(found.map(|time| (time.from.0, time.to.0)).collect::<Vec<_>>(), scanned, "{from} to {to}");
            }
        }
    }
}
