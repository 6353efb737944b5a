//! How much of what was measured fell into stretches in which the instrument itself was late.

use mcpace_record::Nanos;

use crate::findings::ProofRole;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::view::{Late, View};

/// Less than this in all is a hiccup.
const SHORTEST: Nanos = Nanos::from_millis(200);

/// The delays must make up at least one part in this many of the measured time.
const PART: u64 = 3;

/// One long pause is a pause.
const FEWEST: usize = 5;

/// Stretches charged to one call; past them a call that never ended would be walked along the whole recording.
const STRETCHES: usize = 256;

/// The instrument's lateness while something was under way.
pub(super) struct Lateness<'v> {
    late: Vec<&'v Late>,
    stretches: Vec<(Nanos, Nanos)>,
    /// Late in all, and of how much.
    pub(super) total: Nanos,
    pub(super) of: Nanos,
}

impl<'v> Lateness<'v> {
    /// `None` where it is too little to matter.
    pub(super) fn from_view(view: &'v View<'_>) -> Option<Self> {
        if view.late.len() < FEWEST {
            return None;
        }
        let windows = merge_stretches(work_windows(view));
        let under_way = |late: &&Late| {
            let next = windows.partition_point(|(_, to)| *to <= late.at.at - late.by);
            windows.get(next).is_some_and(|(from, _)| *from < late.at.at)
        };
        let late: Vec<&Late> = view.late.iter().filter(under_way).collect();
        let stretches = merge_stretches(late.iter().map(|late| (late.at.at - late.by, late.at.at)).collect());
        let total = overlap_time(&stretches, &windows);
        let of = windows.iter().fold(Nanos::ZERO, |sum, (from, to)| sum + to.since(*from));
        let enough = late.len() >= FEWEST && total >= SHORTEST && total.0.saturating_mul(PART) >= of.0;
        enough.then_some(Self { late, stretches, total, of })
    }

    pub(super) fn late_times(&self) -> u64 {
        self.late.len() as u64
    }

    /// Whether the instrument's threads were at work themselves for most of it.
    pub(super) fn is_own_work(&self) -> bool {
        let sum = |time: fn(&Late) -> Nanos| self.late.iter().fold(Nanos::ZERO, |sum, late| sum + time(late));
        sum(|late| late.busy).0.saturating_mul(2) >= sum(|late| late.by).0
    }

    /// Time that each operation lost, as far as nothing else explains it.
    pub(super) fn charge_late<'a>(&self, scene: &mut Scene<'_, 'a>) -> ByOperation<'a, Tally> {
        let mut operations: ByOperation<'_, Tally> = ByOperation::new();
        for call in &scene.view.calls {
            let end = scene.view.end_of(call);
            let first = self.stretches.partition_point(|(_, to)| *to <= call.start.at);
            let touched = self.stretches[first..].iter().take(STRETCHES).take_while(|(from, _)| *from < end);
            for (from, to) in touched {
                let time = scene.claim_stretch(Some(call.id), *from, *to);
                operations.value_of(Some(call.operation)).add_cost(Some(call.id), time, 0, 0);
            }
        }
        if scene.view.calls.is_empty() {
            operations.value_of(None).add_cost(None, self.total, 0, 0);
        }
        operations
    }

    pub(super) fn prove_late(&self, tally: &mut Tally) {
        for late in &self.late {
            tally.prove_events(&[(ProofRole::InstrumentLate, Some(late.at))]);
        }
    }
}

/// When something was under way: the client's operations, or where those are unknown, exchanges with messages.
fn work_windows(view: &View<'_>) -> Vec<(Nanos, Nanos)> {
    if !view.calls.is_empty() {
        return view.calls.iter().filter_map(|call| Some((call.start.at, call.end?.at))).collect();
    }
    let messages = view.exchanges.iter().filter(|exchange| exchange.is_message());
    messages.filter_map(|exchange| Some((exchange.sent().at, exchange.completed()?.at))).collect()
}

/// Union of the stretches: disjoint and sorted.
fn merge_stretches(mut stretches: Vec<(Nanos, Nanos)>) -> Vec<(Nanos, Nanos)> {
    stretches.retain(|(from, to)| from < to);
    stretches.sort_unstable();
    let mut union: Vec<(Nanos, Nanos)> = Vec::new();
    for (from, to) in stretches {
        match union.last_mut() {
            Some((_, end)) if from <= *end => *end = to.max(*end),
            _ => union.push((from, to)),
        }
    }
    union
}

/// How long two lists of disjoint, sorted stretches overlap.
fn overlap_time(first: &[(Nanos, Nanos)], second: &[(Nanos, Nanos)]) -> Nanos {
    let (mut one, mut other, mut sum) = (0, 0, Nanos::ZERO);
    while let (Some((from, to)), Some((begin, end))) = (first.get(one), second.get(other)) {
        sum = sum + to.min(end).since(*from.max(begin));
        if to <= end { one += 1 } else { other += 1 }
    }
    sum
}
