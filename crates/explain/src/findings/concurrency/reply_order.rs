//! Replies that leave in the order of their requests: which of them were held by an earlier one.

use std::collections::HashMap;

use mcpace_record::Nanos;

use super::held_reply::HeldReply;
use super::served::{Owner, Served};
use super::stalls::CROSSING;
use crate::findings::chance::{FAR_LIKELIER, exceeds_chance};
use crate::view::View;

/// A call's own time must be this long to tell a reply that was held from a call that began late.
pub(super) const SHORTEST: Nanos = Nanos::from_millis(20);

/// Ready replies leave together, within this.
pub(super) const TOGETHER: Nanos = Nanos::from_millis(10);

/// Calls take equally long whose times differ by less than one part in so many.
const ALIKE: u64 = 40;

/// Groups of one size that prove a limit.
const FEWEST_WAVES: usize = 3;

/// Time on both sides of an end in which other ends are counted.
const NEIGHBOURHOOD: Nanos = Nanos::from_millis(250);

/// Calls whose replies came right after the reply of the call that was asked before them, though they were asked long after it.
pub(super) fn behind_earlier(view: &View<'_>, served: &[Served<'_>]) -> Vec<HeldReply> {
    let mut callers: HashMap<Owner<'_>, Vec<&Served<'_>>> = HashMap::new();
    for call in served.iter().filter(|call| call.tool.is_some() && call.owner != Owner::Nobody) {
        callers.entry(call.owner).or_default().push(call);
    }
    let ends = ToolEnds::of_calls(served);
    let shortest = served.iter().filter(|call| call.tool.is_some()).map(Served::server_time).min().unwrap_or_default();
    let alike = share_of_equal_times(served);
    let scatter = scatter_of_times(served);
    let (mut late, mut by_chance, mut advantage) = (Vec::new(), 0.0, 0.0);
    let (mut in_order, mut overtaken) = (0_usize, 0_usize);
    for calls in callers.values() {
        let pairs = calls.windows(2).map(|pair| (pair[0], pair[1]));
        for (before, call) in pairs.filter(|(before, call)| call.asked.at < before.answered.at) {
            if call.answered.at + CROSSING < before.answered.at {
                overtaken += 1;
                continue;
            }
            in_order += 1;
            let asked_together = call.asked.at.since(before.asked.at) < SHORTEST;
            by_chance += if asked_together { alike } else { ends.expected_within(call.answered.at, CROSSING) };
            let ready = (call.asked.at + shortest).min(call.answered.at);
            let is_held = call.answered.at.since(ready) >= SHORTEST;
            if is_held && call.answered.at.since(before.answered.at) <= CROSSING {
                // Density of the ends: in order, all within the crossing of stamps; else over the scatter of the time.
                let spread = call.server_time().0 as f64 * scatter / CROSSING.0 as f64;
                advantage += if asked_together { spread.min(1.0 / alike).ln().max(0.0) } else { spread.ln() };
                late.push(HeldReply {
                    exchange: view.exchanges[call.at].id,
                    asked: call.asked,
                    ready,
                    released: before.answered,
                    answered: call.answered,
                });
            }
        }
    }
    let ordered = overtaken * 10 <= in_order;
    if !ordered || !exceeds_chance(late.len(), by_chance) && advantage < FAR_LIKELIER {
        return Vec::new();
    }
    late.sort_by_key(|held| held.answered.at);
    if ends_in_waves(&late, served) { Vec::new() } else { late }
}

/// Whether replies come in groups of one size while others are open: a limit on calls at a time, not a slower reply, makes those.
fn ends_in_waves(late: &[HeldReply], served: &[Served<'_>]) -> bool {
    let mut asked: Vec<Nanos> = served.iter().map(|call| call.asked.at).collect();
    asked.sort_unstable();
    let mut answered: Vec<Nanos> = served.iter().map(|call| call.answered.at).collect();
    answered.sort_unstable();
    let open = |at: Nanos| asked.partition_point(|time| *time < at) - answered.partition_point(|time| *time <= at);
    let groups = late.chunk_by(|one, next| next.released.at <= one.answered.at);
    let unfinished = groups.filter(|group| open(group[group.len() - 1].answered.at) > 0);
    let mut sizes: Vec<usize> = unfinished.map(<[HeldReply]>::len).collect();
    sizes.sort_unstable();
    let commonest = sizes.chunk_by(|one, next| one == next).map(<[usize]>::len).max().unwrap_or(0);
    commonest >= FEWEST_WAVES && commonest * 4 >= sizes.len() * 3
}

/// The mean deviation of the logarithms of the times that calls took.
fn scatter_of_times(served: &[Served<'_>]) -> f64 {
    let tools = served.iter().filter(|call| call.tool.is_some());
    let mut logarithms: Vec<f64> = tools.map(|call| (call.server_time().0.max(1) as f64).ln()).collect();
    logarithms.sort_by(f64::total_cmp);
    let Some(usual) = logarithms.get(logarithms.len() / 2) else { return 0.0 };
    logarithms.iter().map(|one| (one - usual).abs()).sum::<f64>() / logarithms.len() as f64
}

/// Share of the pairs of calls that took equally long, among pairs of calls that did not run together.
fn share_of_equal_times(served: &[Served<'_>]) -> f64 {
    let times: Vec<Nanos> = served.iter().filter(|call| call.tool.is_some()).map(Served::server_time).collect();
    let half = times.len() / 2;
    let pairs = times.iter().zip(&times[half..]);
    let equal = pairs.filter(|(one, other)| one.0.abs_diff(other.0) <= CROSSING.0.max(one.0 / ALIKE)).count();
    (equal + 1) as f64 / (times.len() - half + 2) as f64
}

/// Times at which tool calls were answered.
pub(super) struct ToolEnds(Vec<Nanos>);

impl ToolEnds {
    pub(super) fn of_calls(served: &[Served<'_>]) -> Self {
        let mut ends: Vec<Nanos> =
            served.iter().filter(|call| call.tool.is_some()).map(|call| call.answered.at).collect();
        ends.sort_unstable();
        Self(ends)
    }

    /// Ends that chance brings within `time` before `at`, by how many there are around it. Those that came together with it
    /// are the observation itself, and don't count.
    pub(super) fn expected_within(&self, at: Nanos, time: Nanos) -> f64 {
        let around = self.count_ends(at, NEIGHBOURHOOD) - self.count_ends(at, TOGETHER);
        around as f64 * time.0 as f64 / (2 * (NEIGHBOURHOOD.0 - TOGETHER.0)) as f64
    }

    /// Ends at most `apart` before or after `at`.
    fn count_ends(&self, at: Nanos, apart: Nanos) -> usize {
        self.0.partition_point(|end| *end <= at + apart) - self.0.partition_point(|end| *end < at.since(apart))
    }
}
