//! Counts of one thread, and the sum of all threads' counts as one outcome.
//!
//! Constraint: pure. All counts of a call are made in one place ([`ThreadTally::count_call`]), so that none can be lost or be counted twice.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcpace_stats::{Histogram, HistogramSummary};

use crate::outcome::{Connections, ErrorKind, OperationOutcome, OutcomeKind, Quantiles, Saturation, Second};

/// Everything that one thread counts.
#[derive(Debug)]
pub(crate) struct ThreadTally {
    /// The plan's operations, then `initialize`, `initialized`, `delete`.
    pub(crate) operations: Vec<Counts>,
    pub(crate) connections: Connections,
    /// How late calls began for reasons of the thread's own.
    pub(crate) lateness: Histogram,
    pub(crate) intended: u64,
    pub(crate) begun: u64,
    pub(crate) late: u64,
    pub(crate) unfinished: u64,
    pub(crate) cpu_ns: u64,
    /// The time of the measured part, and how much of it the thread had nothing to do.
    pub(crate) measured_ns: u64,
    pub(crate) idle_ns: u64,
}

/// One operation's counts.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    ok: u64,
    errors: [u64; ErrorKind::ALL.len()],
    first_error: Option<(u64, Cow<'static, str>)>,
    times: Option<Box<Times>>,
    sent_bytes: u64,
    received_bytes: u64,
    json_replies: u64,
    sse_replies: u64,
}

/// Made with the first call: most runs have operations that never happen, and histograms are large.
#[derive(Debug, Default)]
struct Times {
    latency: Histogram,
    service: Histogram,
    failed: Histogram,
}

/// A call that has ended.
#[derive(Debug)]
pub(crate) struct EndedCall {
    /// Since it was due, and since it was sent.
    pub(crate) latency_ns: u64,
    pub(crate) service_ns: u64,
    /// When it ended, since the start.
    pub(crate) at_ns: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) form: Option<Form>,
    pub(crate) failure: Option<(ErrorKind, Cow<'static, str>)>,
}

/// The form of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Events,
}

impl ThreadTally {
    pub(crate) fn new(operations: usize) -> Self {
        Self {
            operations: (0..operations).map(|_| Counts::default()).collect(),
            connections: Connections::default(),
            lateness: Histogram::new(),
            intended: 0,
            begun: 0,
            late: 0,
            unfinished: 0,
            cpu_ns: 0,
            measured_ns: 0,
            idle_ns: 0,
        }
    }

    /// Counts a call that has ended.
    pub(crate) fn count_call(&mut self, operation: usize, ended: EndedCall) {
        let counts = &mut self.operations[operation];
        let times = counts.times.get_or_insert_default();
        match ended.failure {
            None => {
                counts.ok += 1;
                times.latency.record(ended.latency_ns);
                times.service.record(ended.service_ns);
            }
            Some((kind, words)) => {
                counts.errors[kind as usize] += 1;
                times.failed.record(ended.latency_ns);
                counts.first_error.get_or_insert((ended.at_ns, words));
            }
        }
        counts.sent_bytes += ended.sent_bytes;
        counts.received_bytes += ended.received_bytes;
        match ended.form {
            Some(Form::Json) => counts.json_replies += 1,
            Some(Form::Events) => counts.sse_replies += 1,
            None => {}
        }
    }

    /// Takes the operations counted since the last cut, with the other counts since the start.
    pub(crate) fn cut_operations(&mut self, is_open: bool) -> Self {
        let fresh = self.operations.iter().map(|_| Counts::default()).collect();
        Self {
            operations: std::mem::replace(&mut self.operations, fresh),
            connections: self.connections,
            // In the closed model, each call is due when it begins.
            intended: if is_open { self.intended } else { self.begun },
            begun: self.begun,
            late: self.late,
            unfinished: self.unfinished,
            ..Self::new(0)
        }
    }

    /// Adds operations that another thread's tally was cut from.
    pub(crate) fn merge_operations(&mut self, operations: Vec<Counts>) {
        for (own, others) in self.operations.iter_mut().zip(operations) {
            own.merge_counts(others);
        }
    }

    /// Adds another thread's.
    pub(crate) fn merge_tally(&mut self, other: Self) {
        // The busiest thread is what limits: the others' idle time doesn't help its users.
        if other.busy_share() > self.busy_share() || self.measured_ns == 0 {
            (self.measured_ns, self.idle_ns) = (other.measured_ns, other.idle_ns);
        }
        self.merge_operations(other.operations);
        let (own, others) = (&mut self.connections, other.connections);
        own.opened += others.opened;
        own.reused_requests += others.reused_requests;
        own.failed += others.failed;
        own.closed_by_peer += others.closed_by_peer;
        self.lateness.merge(&other.lateness);
        self.intended += other.intended;
        self.begun += other.begun;
        self.late += other.late;
        self.unfinished += other.unfinished;
        self.cpu_ns += other.cpu_ns;
    }

    /// The share of the measured time in which the thread had something to do.
    pub(crate) fn busy_share(&self) -> f64 {
        busy_share(self.measured_ns, self.idle_ns)
    }

    /// Whether the engine was the limit. In the open model its calls must begin when they are due; in the closed model nothing
    /// is late, but a thread without a free moment leaves replies unread.
    pub(crate) fn engine_saturation(&self, is_open: bool) -> Option<Saturation> {
        const LATE_NS: u64 = 1_000_000;
        /// In less time a thread is busy or not by chance.
        const LEAST_NS: u64 = 100_000_000;
        if self.measured_ns < LEAST_NS {
            return None;
        }
        let most_busy = if is_open { 0.90 } else { 0.95 };
        /// Fewer calls than these were late by chance, however few there were in all.
        const FEWEST_LATE: u64 = 5;
        let calls = self.lateness.count();
        let share = (FEWEST_LATE as f64 / calls.max(1) as f64).max(0.01);
        if is_open && calls >= FEWEST_LATE && self.lateness.quantile(1.0 - share) > LATE_NS {
            Some(Saturation::LateStarts)
        } else {
            (self.busy_share() >= most_busy).then_some(Saturation::ThreadsBusy)
        }
    }
}

impl Counts {
    fn merge_counts(&mut self, other: Self) {
        self.ok += other.ok;
        for (own, others) in self.errors.iter_mut().zip(other.errors) {
            *own += others;
        }
        self.first_error = match (self.first_error.take(), other.first_error) {
            (Some(own), Some(others)) => Some(if own.0 <= others.0 { own } else { others }),
            (own, others) => own.or(others),
        };
        if let Some(others) = other.times {
            let own = self.times.get_or_insert_default();
            own.latency.merge(&others.latency);
            own.service.merge(&others.service);
            own.failed.merge(&others.failed);
        }
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.json_replies += other.json_replies;
        self.sse_replies += other.sse_replies;
    }

    /// Calls that ended.
    pub(crate) fn ended_calls(&self) -> u64 {
        self.ok + self.errors.iter().sum::<u64>()
    }

    /// As it goes out.
    pub(crate) fn to_outcome(&self, name: String, kind: OutcomeKind) -> OperationOutcome {
        let count = self.ended_calls();
        let summary = |choose: fn(&Times) -> &Histogram| match &self.times {
            Some(times) => HistogramSummary::from(choose(times)),
            None => HistogramSummary::from(&Histogram::new()),
        };
        OperationOutcome {
            name,
            kind,
            count,
            ok: self.ok,
            errors: ErrorKind::ALL.into_iter().zip(self.errors).collect::<BTreeMap<_, _>>(),
            first_error: self.first_error.as_ref().map(|(_, words)| words.clone().into_owned()),
            latency: summary(|times| &times.latency),
            service: summary(|times| &times.service),
            failed: summary(|times| &times.failed),
            sent_bytes: self.sent_bytes,
            received_bytes: self.received_bytes,
            json_replies: self.json_replies,
            sse_replies: self.sse_replies,
        }
    }
}

/// One thread's part of one second.
#[derive(Debug)]
pub(crate) struct SecondPart {
    /// The number of the second, from 0.
    pub(crate) second: u64,
    pub(crate) users: u64,
    pub(crate) intended: u64,
    pub(crate) ok: u64,
    pub(crate) errors: u64,
    pub(crate) latency: Histogram,
    /// How long the part is: a whole second but for the last.
    pub(crate) length_ns: u64,
    pub(crate) idle_ns: u64,
    /// The tally's operations of this second, where the engine is one of several.
    pub(crate) cut: Option<Box<ThreadTally>>,
}

impl SecondPart {
    pub(crate) fn new(second: u64) -> Self {
        let latency = Histogram::new();
        Self { second, users: 0, intended: 0, ok: 0, errors: 0, latency, length_ns: 0, idle_ns: 0, cut: None }
    }

    /// Adds another thread's part of the same second.
    pub(crate) fn merge_part(&mut self, other: Self) {
        self.users += other.users;
        self.intended += other.intended;
        self.ok += other.ok;
        self.errors += other.errors;
        self.latency.merge(&other.latency);
        self.length_ns += other.length_ns;
        self.idle_ns += other.idle_ns;
        match (&mut self.cut, other.cut) {
            (Some(own), Some(others)) => own.merge_tally(*others),
            (own, others) => *own = own.take().or(others),
        }
    }

    /// As it goes out.
    pub(crate) fn second_outcome(&self, warm_up_s: f64) -> Second {
        let at = |q| self.latency.quantile(q) as f64 / 1e9;
        Second {
            at_s: self.second as f64,
            warm_up: (self.second as f64) < warm_up_s,
            users: self.users,
            intended: self.intended,
            ok: self.ok,
            errors: self.errors,
            latency: Quantiles {
                p50_s: at(0.5),
                p90_s: at(0.9),
                p99_s: at(0.99),
                max_s: self.latency.max() as f64 / 1e9,
            },
            engine_busy: busy_share(self.length_ns, self.idle_ns),
        }
    }
}

fn busy_share(whole_ns: u64, idle_ns: u64) -> f64 {
    if whole_ns == 0 { 0.0 } else { (1.0 - idle_ns as f64 / whole_ns as f64).clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::{EndedCall, ThreadTally};
    use crate::outcome::{ErrorKind, OutcomeKind, Saturation};

    fn ended(at_ns: u64, failure: Option<ErrorKind>) -> EndedCall {
        let failure = failure.map(|kind| (kind, format!("at {at_ns}").into()));
        EndedCall { latency_ns: 5, service_ns: 3, at_ns, sent_bytes: 1, received_bytes: 2, form: None, failure }
    }

    #[test]
    fn no_call_is_lost_in_merging() {
        let (mut one, mut two) = (ThreadTally::new(1), ThreadTally::new(1));
        for (at, kind) in ErrorKind::ALL.into_iter().enumerate() {
            one.count_call(0, ended(100 + at as u64, Some(kind)));
            two.count_call(0, ended(50 + at as u64, Some(kind)));
            two.count_call(0, ended(1, None));
        }
        one.merge_tally(two);
        let outcome = one.operations.remove(0).to_outcome("x".to_owned(), OutcomeKind::Call);
        let kinds = ErrorKind::ALL.len() as u64;
        assert_eq!((outcome.count, outcome.ok), (3 * kinds, kinds));
        assert!(outcome.errors.values().all(|count| *count == 2));
        assert_eq!((outcome.latency.count, outcome.service.count, outcome.failed.count), (kinds, kinds, 2 * kinds));
        assert_eq!(outcome.first_error.as_deref(), Some("at 50"));
    }

    #[test]
    fn the_engine_says_when_it_was_the_limit() {
        let mut tally = ThreadTally::new(0);
        (tally.measured_ns, tally.idle_ns) = (10_000_000, 0);
        assert_eq!((tally.engine_saturation(true), tally.engine_saturation(false)), (None, None), "too short to tell");
        (tally.measured_ns, tally.idle_ns) = (1_000_000_000, 80_000_000);
        assert_eq!(
            (tally.engine_saturation(true), tally.engine_saturation(false)),
            (Some(Saturation::ThreadsBusy), None)
        );
        tally.idle_ns = 500_000_000;
        assert_eq!(tally.engine_saturation(true), None);
        (0..150).for_each(|_| tally.lateness.record(1_000));
        (0..3).for_each(|_| tally.lateness.record(2_000_000));
        assert_eq!(tally.engine_saturation(true), None, "by chance");
        (0..3).for_each(|_| tally.lateness.record(2_000_000));
        assert_eq!(
            (tally.engine_saturation(true), tally.engine_saturation(false)),
            (Some(Saturation::LateStarts), None)
        );
    }
}
