//! Sums over the work of a server's programs in a stretch of time in which calls overlap.
//!
//! Times of threads and of requests that overlap are added, so the sums do not add up to the stretch and belong to no call.

use std::collections::HashMap;

use mcpace_record::{Nanos, Recording};
use serde::Serialize;

use super::frames::{own_call, serves_instrumentation, waits_for_work, working_package};
use super::tool_time::{DependencyTime, LineTime, PackageTime, SourceLine, called_function, keep_longest};
use super::{DependencyKind, Moments};
use crate::view::{SampledStack, SpanOwner, StackCall, Texts, join_events};

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

#[derive(Default)]
struct Sums<'a> {
    dependencies: HashMap<&'a str, (DependencyKind, u64, Nanos)>,
    packages: HashMap<Option<&'a str>, Nanos>,
    lines: HashMap<(StackCall<'a>, Option<&'a str>), (Nanos, Nanos)>,
    running: Nanos,
}

/// Adds up what the programs of `recording` did from `from` to `to`.
#[must_use]
pub fn inside_sums(recording: &Recording, from: Nanos, to: Nanos) -> InsideSums {
    let texts = Texts::default();
    let view = join_events(recording, &texts);
    let evidence = &view.inside;
    let mut sums = Sums::default();
    let spans = evidence.spans.requests.iter().filter(|span| {
        // The servers that the calls asked may report their own requests.
        (from..to).contains(&span.began) && span.owner != SpanOwner::OtherProgram
    });
    let mut result = InsideSums { stretch: to.since(from), ..InsideSums::default() };
    for span in spans {
        result.spans += 1;
        let entry = sums.dependencies.entry(span.dependency).or_insert((span.kind, 0, Nanos::ZERO));
        entry.1 += 1;
        entry.2 = entry.2 + span.ended.at.since(span.began);
    }
    let moments = Moments::of_samples(&evidence.samples);
    let mut sampled = Nanos::ZERO;
    for moment in 0..moments.starts.len() {
        if !(from..to).contains(&moments.at(moment)) {
            continue;
        }
        result.samples += 1;
        let (start, end) = moments.reach(moment);
        let time = end.min(to).since(start.max(from));
        sampled = sampled + time;
        for thread in moments.threads(moment) {
            sums.add_thread(evidence.stacks[thread.stack as usize], thread.running, time);
        }
    }
    result.running = sums.running;
    let dependency =
        |(name, (kind, requests, time)): (&str, _)| DependencyTime { kind, name: name.to_owned(), requests, time };
    result.dependencies = sums.dependencies.into_iter().map(dependency).collect();
    let package = |(name, time): (Option<&str>, _)| PackageTime { package: name.map(str::to_owned), time };
    result.packages = sums.packages.into_iter().map(package).collect();
    let line = |((call, callee), (running, waiting)): ((StackCall<'_>, Option<&str>), _)| LineTime {
        line: SourceLine::of_call(&call),
        callee: callee.map(str::to_owned),
        running,
        waiting,
    };
    // A thread that waits at one line all the time serves no call.
    let serves_calls = |line: &LineTime| line.running > Nanos::ZERO || line.waiting != sampled;
    result.lines = sums.lines.into_iter().map(line).filter(serves_calls).collect();
    keep_longest(&mut result.dependencies, &mut result.packages, &mut result.lines);
    result
}

impl<'a> Sums<'a> {
    fn add_thread(&mut self, stack: SampledStack<'a>, running: bool, time: Nanos) {
        if serves_instrumentation(stack) || waits_for_work(stack) {
            return;
        }
        let own = own_call(stack);
        if running {
            self.running = self.running + time;
            let package = self.packages.entry(working_package(stack)).or_default();
            *package = *package + time;
        }
        if let Some(own) = own {
            let line = self.lines.entry((stack[own], called_function(stack, own))).or_default();
            let sum = if running { &mut line.0 } else { &mut line.1 };
            *sum = *sum + time;
        }
    }
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
        let mut events = vec![seen(0, works), seen(1, waits), seen(2, idle), seen(3, background)];
        for at in (0..100).step_by(10) {
            let waiting = if at == 0 { 2 } else { 1 };
            events.extend([sample(at, 1, 0, true), sample(at, 2, waiting, false)]);
            events.extend([sample(at, 3, 2, false), sample(at, 4, 3, false)]);
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
    fn a_stretch_without_evidence_has_no_sums() {
        let recording = Recording::new(RecordingHead::bare(Instrument::Client), vec![request(10, 60)]);
        let sums = inside_sums(&recording, Nanos::from_millis(20), Nanos::from_millis(10));
        assert_eq!(sums, InsideSums::default());
    }
}
