//! The calls of each tool, with the first call of each process apart from the others.

use mcpace_record::Nanos;

use super::{Doing, ToolCall};
use crate::view::View;

/// Calls of a tool, below which nothing is concluded.
pub(crate) const FEWEST_CALLS: usize = 3;

/// A cause takes at least this share of a call, and this time.
const LEAST_PERCENT: u64 = 10;
const SHORTEST: Nanos = Nanos::from_millis(2);

/// The calls of one tool.
pub(crate) struct WarmCalls<'s, 'a> {
    pub(crate) tool: &'a str,
    /// The calls that stand for the tool: those that are not the first of their process, where there are enough.
    pub(crate) calls: Vec<ToolCall<'s, 'a>>,
    /// The first call of each process that started within the recording.
    pub(crate) first_calls: Vec<ToolCall<'s, 'a>>,
    /// Whether `calls` has the first calls too, because there are few others.
    pub(crate) has_first_calls: bool,
}

impl<'s, 'a> WarmCalls<'s, 'a> {
    /// The calls by tool, in the order of their first calls.
    pub(crate) fn of_tools(view: &View<'_>, calls: Vec<ToolCall<'s, 'a>>) -> Vec<Self> {
        let mut starts: Vec<Nanos> = view.processes.iter().map(|process| process.started.at).collect();
        starts.sort_unstable();
        let mut tools: Vec<(&'a str, Vec<ToolCall<'s, 'a>>)> = Vec::new();
        for call in calls {
            match tools.iter_mut().find(|(tool, _)| *tool == call.tool) {
                Some((_, calls)) => calls.push(call),
                None => tools.push((call.tool, vec![call])),
            }
        }
        tools.into_iter().map(|(tool, calls)| Self::of_calls(tool, calls, &starts)).collect()
    }

    fn of_calls(tool: &'a str, all: Vec<ToolCall<'s, 'a>>, starts: &[Nanos]) -> Self {
        // A process that started before the recording had earlier calls.
        let mut of_process = 0;
        let mut is_first = Vec::with_capacity(all.len());
        for call in &all {
            let process = starts.partition_point(|start| *start <= call.from);
            is_first.push(process != of_process);
            of_process = process;
        }
        let of_kind = |wanted: bool| {
            all.iter().zip(&is_first).filter(|(_, first)| **first == wanted).map(|(call, _)| call.clone()).collect()
        };
        let (first_calls, later): (Vec<_>, Vec<_>) = (of_kind(true), of_kind(false));
        let has_first_calls = later.len() < FEWEST_CALLS;
        Self { tool, calls: if has_first_calls { all } else { later }, first_calls, has_first_calls }
    }

    /// Whether causes are concluded from the calls.
    pub(crate) fn are_enough(&self) -> bool {
        self.calls.len() >= FEWEST_CALLS
    }

    /// Whether a time, summed over all calls, is worth a finding.
    pub(crate) fn is_notable(&self, cause: Nanos) -> bool {
        is_notable(cause, self.server_time(), self.calls.len() as u64)
    }

    pub(crate) fn mean(&self, sum: Nanos) -> Nanos {
        Nanos(sum.0 / self.calls.len().max(1) as u64)
    }

    pub(crate) fn server_time(&self) -> Nanos {
        sum_times(self.calls.iter().map(|call| call.to.since(call.from)))
    }

    /// Time in which a thread ran.
    pub(crate) fn processor_time(&self) -> Nanos {
        let stretches = self.calls.iter().flat_map(|call| &call.stretches);
        sum_times(stretches.filter(|stretch| matches!(stretch.doing, Doing::Running(_))).map(|stretch| stretch.time()))
    }
}

/// Whether a time is worth a finding: `cause` and `server` are sums over all `calls`.
pub(crate) fn is_notable(cause: Nanos, server: Nanos, calls: u64) -> bool {
    is_share(cause, LEAST_PERCENT, server) && cause.0 / calls.max(1) >= SHORTEST.0
}

/// Whether `part` is at least `percent` of `whole`.
pub(crate) fn is_share(part: Nanos, percent: u64, whole: Nanos) -> bool {
    part.0.saturating_mul(100) >= whole.0.saturating_mul(percent)
}

pub(crate) fn sum_times(times: impl Iterator<Item = Nanos>) -> Nanos {
    times.fold(Nanos::ZERO, |sum, time| sum + time)
}

/// The median of counts; 0 of none.
pub(crate) fn median_count(counts: impl Iterator<Item = u64>) -> u64 {
    let mut counts: Vec<u64> = counts.collect();
    counts.sort_unstable();
    counts.get(counts.len() / 2).copied().unwrap_or(0)
}
