//! Threads of a tool's calls that wait for each other: for a connection of a pool, for a lock, for the interpreter.
//!
//! Such waits grow where calls overlap, or where one call uses several threads. Which thread serves which call cannot be
//! seen, so that calls of one tool that overlap are looked at together: at each moment, as many threads wait for as many calls.

use std::collections::HashMap;
use std::hash::Hash;

use mcpace_record::{Nanos, ThreadLock};

use super::frames::{own_call, waits_for_work};
use super::pool_waits::{is_at_work, pool_wait};
use super::{Moments, Window};
use crate::view::{Exchange, SampledStack, SampledThread, StackCall, View};

/// The calls of one tool, in periods in which the server answered no other tool.
pub(crate) struct ToolPeriods<'v, 'a> {
    pub(crate) tool: &'a str,
    pub(crate) periods: Vec<Period<'v, 'a>>,
}

/// A time without a gap in which calls of one tool were at the server.
pub(crate) struct Period<'v, 'a> {
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    /// The calls, each with its time at the server.
    pub(crate) calls: Vec<(&'v Exchange<'a>, Nanos, Nanos)>,
}

/// Waits of one kind within the calls of one tool.
pub(crate) struct Contention<'a, K> {
    /// The kind: the name of the pool, or the kind of the lock.
    pub(crate) kind: K,
    /// Sum of the time for which calls waited.
    pub(crate) time: Nanos,
    /// Time that calls would save if no thread waited for another.
    pub(crate) gain: Nanos,
    /// Threads that waited or were waited for at one moment: the mean, rounded.
    pub(crate) threads: u64,
    /// The line of the server's own code that waits for the longest time.
    pub(crate) line: StackCall<'a>,
    /// The line of the server's own code that others wait for, where that is seen.
    pub(crate) holder: Option<StackCall<'a>>,
    /// Times in which threads waited, by their beginning.
    pub(crate) stretches: Vec<(Nanos, Nanos)>,
}

/// The wait of one thread at one moment.
pub(crate) struct ThreadWait<'a, K> {
    pub(crate) kind: K,
    /// The stack of the thread that it waits for, where that is seen.
    pub(crate) holder: Option<SampledStack<'a>>,
    /// Whether the waiting threads would still need the processor time of the threads at work. This is true for locks and
    /// false for pools.
    pub(crate) orders_work: bool,
}

/// A kind of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum LockKind {
    Interpreter,
    Mutex,
}

impl<'v, 'a> ToolPeriods<'v, 'a> {
    /// The periods of each tool, in the order of their first calls.
    pub(crate) fn of_view(view: &'v View<'a>) -> Vec<Self> {
        let mut windows: Vec<Window<'v, 'a>> = view.exchanges.iter().filter_map(Window::of_exchange).collect();
        windows.sort_by_key(|window| window.from);
        let mut tools: Vec<Self> = Vec::new();
        let mut next = windows.into_iter().filter_map(|window| Some((window.tool?, window))).peekable();
        while let Some((tool, first)) = next.next() {
            let mut period =
                Period { from: first.from, to: first.to, calls: vec![(first.exchange, first.from, first.to)] };
            let mut is_alone = true;
            while let Some((other, window)) = next.next_if(|(_, window)| window.from < period.to) {
                is_alone &= other == tool;
                period.to = period.to.max(window.to);
                period.calls.push((window.exchange, window.from, window.to));
            }
            if !is_alone {
                continue;
            }
            match tools.iter_mut().find(|known| known.tool == tool) {
                Some(known) => known.periods.push(period),
                None => tools.push(Self { tool, periods: vec![period] }),
            }
        }
        tools
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &(&'v Exchange<'a>, Nanos, Nanos)> {
        self.periods.iter().flat_map(|period| &period.calls)
    }

    /// The waits of threads of this tool's calls, the longest kind first. `wait_of` tells the wait of a thread, by the threads
    /// of its moment.
    pub(crate) fn contentions<K: Copy + Eq + Hash + Ord>(
        &self,
        view: &View<'a>,
        wait_of: impl Fn(&SampledThread, &[SampledThread]) -> Option<ThreadWait<'a, K>>,
    ) -> Vec<Contention<'a, K>> {
        let moments = Moments::of_samples(&view.inside.samples);
        let mut sums: HashMap<K, Sum<'a>> = HashMap::new();
        for period in &self.periods {
            for moment in moments.within(period.from, period.to) {
                let (from, to) = moments.reach(moment);
                let (from, to) = (from.max(period.from), to.min(period.to));
                let threads = moments.threads(moment);
                let at = moments.at(moment);
                let open = period.calls.iter().filter(|(_, from, to)| (*from..=*to).contains(&at)).count() as u64;
                let mut waits: HashMap<K, Vec<(StackCall<'a>, ThreadWait<'a, K>)>> = HashMap::new();
                for thread in threads {
                    let stack = view.inside.stacks[thread.stack as usize];
                    let Some(own) = own_call(stack) else { continue };
                    if let Some(wait) = wait_of(thread, threads) {
                        waits.entry(wait.kind).or_default().push((stack[own], wait));
                    }
                }
                for (kind, waits) in waits {
                    sums.entry(kind).or_default().add_moment((from, to), open, &waits);
                }
            }
        }
        let mut found: Vec<Contention<'a, K>> = sums.into_iter().filter_map(|(kind, sum)| sum.finish(kind)).collect();
        found.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.kind.cmp(&b.kind)));
        found
    }
}

#[derive(Default)]
struct Sum<'a> {
    time: Nanos,
    gain: Nanos,
    threads: u64,
    moments: u64,
    lines: HashMap<StackCall<'a>, Nanos>,
    holders: HashMap<StackCall<'a>, Nanos>,
    stretches: Vec<(Nanos, Nanos)>,
}

impl<'a> Sum<'a> {
    fn add_moment<K>(&mut self, (from, to): (Nanos, Nanos), open: u64, waits: &[(StackCall<'a>, ThreadWait<'a, K>)]) {
        let span = to.since(from);
        let waiting = (waits.len() as u64).min(open);
        if span.is_zero() || waiting == 0 {
            return;
        }
        let threads = waits.len() as u64 + 1;
        self.time = self.time + Nanos(span.0.saturating_mul(waiting));
        // Each of the threads that take turns would have to wait for its own turn only.
        let orders_work = waits.iter().any(|(_, wait)| wait.orders_work);
        let saved = match orders_work {
            true => span.0.saturating_mul(threads.min(open)).saturating_mul(threads - 1) / threads,
            false => span.0.saturating_mul(waiting),
        };
        self.gain = self.gain + Nanos(saved);
        self.threads += threads;
        self.moments += 1;
        for (line, wait) in waits {
            let time = self.lines.entry(*line).or_default();
            *time = *time + span;
            if let Some(own) = wait.holder.and_then(|stack| Some(stack[own_call(stack)?])) {
                let time = self.holders.entry(own).or_default();
                *time = *time + span;
            }
        }
        self.stretches.push((from, to));
    }

    fn finish<K>(self, kind: K) -> Option<Contention<'a, K>> {
        let longest = |lines: HashMap<StackCall<'a>, Nanos>| {
            lines.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0))).map(|(line, _)| line)
        };
        Some(Contention {
            kind,
            time: self.time,
            gain: self.gain,
            threads: (self.threads + self.moments / 2).checked_div(self.moments)?,
            line: longest(self.lines)?,
            holder: longest(self.holders),
            stretches: self.stretches,
        })
    }
}

/// The wait of a thread for a connection of a pool; the kind is the pool's package.
pub(crate) fn pool_wait_of<'a>(view: &View<'a>, thread: &SampledThread) -> Option<ThreadWait<'a, &'a str>> {
    let kind = pool_wait(view.inside.stacks[thread.stack as usize]).filter(|_| !thread.running)?;
    Some(ThreadWait { kind, holder: None, orders_work: false })
}

/// The wait of a thread for a lock. The interpreter's lock has a holder. For any other lock, a thread must be at work on the
/// server's own code in the same file: threads of libraries wait in the kernel for their own reasons.
pub(crate) fn lock_wait_of<'a>(
    view: &View<'a>,
    thread: &SampledThread,
    threads: &[SampledThread],
) -> Option<ThreadWait<'a, LockKind>> {
    let stack_of = |thread: &SampledThread| view.inside.stacks[thread.stack as usize];
    let stack = stack_of(thread);
    if thread.running || waits_for_work(stack) || pool_wait(stack).is_some() {
        return None;
    }
    let mut others = threads.iter().filter(|other| other.pid == thread.pid);
    match thread.lock? {
        ThreadLock::HoldsInterpreter => None,
        ThreadLock::WaitsLimited => {
            let holder = others.find(|other| other.lock == Some(ThreadLock::HoldsInterpreter)).map(stack_of)?;
            Some(ThreadWait { kind: LockKind::Interpreter, holder: Some(holder), orders_work: true })
        }
        ThreadLock::Waits => {
            let file = stack[own_call(stack)?].file;
            let holds = |other: &SampledThread| {
                let stack = stack_of(other);
                other.lock != Some(ThreadLock::Waits)
                    && is_at_work(stack)
                    && own_call(stack).is_some_and(|own| stack[own].file == file)
            };
            let holder = others.find(|other| holds(other)).map(stack_of)?;
            Some(ThreadWait { kind: LockKind::Mutex, holder: Some(holder), orders_work: true })
        }
    }
}
