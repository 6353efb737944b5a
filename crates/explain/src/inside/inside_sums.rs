//! Sums over the work of a server's programs in a stretch of time in which calls overlap.
//!
//! Times of threads and of requests that overlap are added, so the sums do not add up to the stretch and belong to no call.

use std::collections::{HashMap, HashSet};

use mcpace_record::{Nanos, Recording};
use serde::Serialize;

use super::Moments;
use super::frames::{own_call, serves_instrumentation, waits_for_work};
use super::tool_time::{DependencyTime, LineTime, PackageTime, TimeTables};
use crate::view::{SampledStack, SampledThread, SpanOwner, StackCall, Texts, join_events};

/// Sums over one stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InsideSums {
    /// Length of the stretch.
    #[serde(rename = "stretch_ns")]
    pub stretch: Nanos,
    /// Answer times of the dependencies, the longest first.
    pub dependencies: Vec<DependencyTime>,
    /// Time in which threads ran, by the package that they worked for, the longest first.
    pub packages: Vec<PackageTime>,
    /// Time in which threads ran or waited, by the line of the server's own code, the longest first.
    pub lines: Vec<LineTime>,
    /// Time in which threads ran.
    #[serde(rename = "running_ns")]
    pub running: Nanos,
    /// Moments that were sampled.
    pub samples: u64,
    /// Requests that began in the stretch.
    pub spans: u64,
}

/// Adds up what the programs of `recording` did from `from` to `to`.
#[must_use]
pub fn inside_sums(recording: &Recording, from: Nanos, to: Nanos) -> InsideSums {
    let texts = Texts::default();
    let view = join_events(recording, &texts);
    let evidence = &view.inside;
    let mut tables = TimeTables::default();
    let spans = evidence.spans.requests.iter().filter(|span| {
        // The servers that the calls asked may report their own requests.
        (from..to).contains(&span.began) && span.owner != SpanOwner::OtherProgram
    });
    let mut result = InsideSums { stretch: to.since(from), ..InsideSums::default() };
    for span in spans {
        result.spans += 1;
        tables.add_dependency(span.dependency, span.kind, 1, span.ended.at.since(span.began));
    }
    let moments = Moments::of_samples(&evidence.samples);
    let within: Vec<usize> =
        (0..moments.starts.len()).filter(|moment| (from..to).contains(&moments.at(*moment))).collect();
    let idle = idle_threads(&evidence.stacks, within.iter().map(|moment| moments.threads(*moment)));
    result.samples = within.len() as u64;
    for moment in within {
        let (start, end) = moments.reach(moment);
        let time = end.min(to).since(start.max(from));
        for thread in moments.threads(moment) {
            let stack = evidence.stacks[thread.stack as usize];
            if serves_instrumentation(stack) || waits_for_work(stack) || idle.contains(&(thread.pid, thread.thread)) {
                continue;
            }
            if thread.running {
                result.running = result.running + time;
                tables.add_running(stack, time);
            } else {
                tables.add_waiting(stack, time);
            }
        }
    }
    (result.dependencies, result.packages, result.lines) = tables.into_rows();
    result
}

/// Threads that wait at one line of the server's own code each time at which their process was sampled: they serve no call.
/// Each is told by its process and its number.
fn idle_threads<'v>(
    stacks: &[SampledStack<'_>],
    moments: impl Iterator<Item = &'v [SampledThread]>,
) -> HashSet<(u32, u64)> {
    let mut sampled: HashMap<u32, u64> = HashMap::new();
    let mut waits: HashMap<(u32, u64), (StackCall<'_>, u64)> = HashMap::new();
    for threads in moments {
        let pids: HashSet<u32> = threads.iter().map(|thread| thread.pid).collect();
        pids.into_iter().for_each(|pid| *sampled.entry(pid).or_default() += 1);
        for thread in threads.iter().filter(|thread| !thread.running) {
            let stack = stacks[thread.stack as usize];
            let Some(own) = own_call(stack) else { continue };
            let (line, times) = waits.entry((thread.pid, thread.thread)).or_insert((stack[own], 0));
            *times += u64::from(*line == stack[own]);
        }
    }
    let is_idle = |((pid, _), (_, times)): &((u32, u64), (StackCall<'_>, u64))| sampled.get(pid) == Some(times);
    waits.into_iter().filter(is_idle).map(|(thread, _)| thread).collect()
}

#[cfg(test)]
mod tests {
    use mcpace_record::{Event, EventKind, Instrument, RecordingHead, Span, SpanKind, StackFrame, StackId};

    use super::*;

    fn frame(function: &str, file: &str) -> StackFrame {
        StackFrame { function: function.to_owned(), file: file.to_owned(), line: 7 }
    }

    fn event(at_ms: u64, kind: EventKind) -> Event {
        Event { at: Nanos::from_millis(at_ms), kind }
    }

    fn sample(at_ms: u64, thread: u64, stack: u64, running: bool) -> Event {
        event(at_ms, EventKind::StackSample { pid: 1, thread, stack: StackId(stack), running, lock: None })
    }

    fn request(began_ms: u64, ended_ms: u64) -> Event {
        let mut span = Span { kind: SpanKind::Client, began: Nanos::from_millis(began_ms), ..Span::default() };
        span.add_attribute(("http.request.method", "GET"));
        span.add_attribute(("url.full", "http://api:80/a"));
        event(ended_ms, EventKind::Span(Box::new(span)))
    }

    #[test]
    fn threads_and_requests_that_overlap_are_added() {
        let works = vec![frame("send", "/l/site-packages/httpx/_client.py"), frame("forecast", "/srv/weather.py")];
        let waits = vec![frame("read", "/usr/lib/python3.11/ssl.py"), frame("forecast", "/srv/weather.py")];
        let idle = vec![frame("select", "/usr/lib/python3.11/selectors.py")];
        let seen = |stack, frames| event(0, EventKind::StackSeen { stack: StackId(stack), frames });
        let background = vec![frame("watch", "/srv/weather.py")];
        let pool = vec![frame("refresh", "/srv/cache.py")];
        let mut events = vec![seen(0, works), seen(1, waits), seen(2, idle), seen(3, background), seen(4, pool)];
        for at in (0..100).step_by(10) {
            let waiting = if at == 0 { 2 } else { 1 };
            events.extend([sample(at, 1, 0, true), sample(at, 2, waiting, false)]);
            events.extend([sample(at, 3, 2, false), sample(at, 4, 3, false)]);
            // Two threads of a pool in the background.
            events.extend([sample(at, 5, 4, false), sample(at, 6, 4, false)]);
        }
        events.extend([request(10, 60), request(20, 70), request(95, 120), request(200, 210)]);
        events.sort_by_key(|event| event.at);
        let recording = Recording::new(RecordingHead::bare(Instrument::Client), events);
        let sums = inside_sums(&recording, Nanos::ZERO, Nanos::from_millis(100));
        let millis = |time: Nanos| time.0 / 1_000_000;
        assert_eq!((sums.samples, sums.spans, millis(sums.stretch)), (10, 3, 100));
        let [dependency] = sums.dependencies.as_slice() else { panic!("{sums:?}") };
        assert_eq!((dependency.name.as_str(), dependency.requests, millis(dependency.time)), ("api:80", 3, 125));
        let [package] = sums.packages.as_slice() else { panic!("{sums:?}") };
        assert_eq!(package.package.as_deref(), Some("httpx"));
        assert!((90..=100).contains(&millis(package.time)) && package.time == sums.running, "{sums:?}");
        let [running, waiting] = sums.lines.as_slice() else { panic!("{sums:?}") };
        assert!(
            [running, waiting].iter().any(|line| line.running == Nanos::ZERO && line.callee.as_deref() == Some("read"))
        );
        assert!(
            [running, waiting].iter().any(|line| line.waiting == Nanos::ZERO && line.callee.as_deref() == Some("send"))
        );
    }

    #[test]
    fn a_thread_that_always_waits_is_left_out_and_others_at_its_line_are_not() {
        let sleeps = vec![frame("refresh", "/srv/cache.py")];
        let mut events = vec![event(0, EventKind::StackSeen { stack: StackId(0), frames: sleeps })];
        for at in (0..100).step_by(10) {
            // Two threads always wait there. Two others take turns, so that one of them waits at each moment.
            let turn = at / 10 % 2;
            events.extend([sample(at, 1, 0, false), sample(at, 2, 0, false), sample(at, 3 + turn, 0, false)]);
        }
        let recording = Recording::new(RecordingHead::bare(Instrument::Client), events);
        let sums = inside_sums(&recording, Nanos::ZERO, Nanos::from_millis(100));
        let [line] = sums.lines.as_slice() else { panic!("{sums:?}") };
        assert!((90..=100).contains(&(line.waiting.0 / 1_000_000)), "{sums:?}");
    }

    #[test]
    fn a_stretch_without_evidence_has_no_sums() {
        let recording = Recording::new(RecordingHead::bare(Instrument::Client), vec![request(10, 60)]);
        let sums = inside_sums(&recording, Nanos::from_millis(20), Nanos::from_millis(10));
        assert_eq!(sums, InsideSums::default());
    }
}
