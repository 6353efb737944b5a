//! The calls from which causes inside a tool are concluded, by tool.

use mcpace_record::Nanos;

use super::ToolCall;

/// Calls of a tool, below which nothing is concluded; from one more on, the first is left out.
pub(crate) const FEWEST_CALLS: usize = 3;

/// A cause takes at least this share of a call, and this time.
const LEAST_PERCENT: u64 = 10;
const SHORTEST: Nanos = Nanos::from_millis(2);

/// The calls of one tool.
pub(crate) struct WarmCalls<'s, 'a> {
    pub(crate) tool: &'a str,
    pub(crate) calls: Vec<ToolCall<'s, 'a>>,
}

impl<'s, 'a> WarmCalls<'s, 'a> {
    /// The calls by tool, for tools with enough of them, in the order of their first calls.
    pub(crate) fn of_tools(calls: Vec<ToolCall<'s, 'a>>) -> Vec<Self> {
        let mut tools: Vec<Self> = Vec::new();
        for call in calls {
            match tools.iter_mut().find(|tool| tool.tool == call.tool) {
                Some(tool) => tool.calls.push(call),
                None => tools.push(Self { tool: call.tool, calls: vec![call] }),
            }
        }
        tools.retain(|tool| tool.calls.len() >= FEWEST_CALLS);
        for tool in &mut tools {
            if tool.calls.len() > FEWEST_CALLS {
                tool.calls.remove(0);
            }
        }
        tools
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
}

/// Whether a time is worth a finding: `cause` and `server` are sums over all `calls`.
pub(crate) fn is_notable(cause: Nanos, server: Nanos, calls: u64) -> bool {
    cause.0.saturating_mul(100) >= server.0.saturating_mul(LEAST_PERCENT) && cause.0 / calls.max(1) >= SHORTEST.0
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
