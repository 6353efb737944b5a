//! A limit on the calls at a time, by how the time of a call depends on the calls that are under way when it is asked.
//!
//! Without a limit, a call's time does not depend on them. Under a limit of N, calls that find fewer than N under way take their
//! own time, and all others take longer. This holds in steady traffic too, in which no batch begins on an idle server.

use mcpace_record::Nanos;

use super::batches::CallBatch;
use super::served::Served;
use crate::findings::chance::chance_of_many;

/// How much longer a typical call that waited takes than a typical one that did not.
const LONGER: f64 = 1.1;

/// The least share of pairs in which the call that waited took longer, and how far it must be from chance.
const SEPARATED: f64 = 0.9;
const DEVIATIONS: f64 = 4.5;

/// Calls that waited for their turn.
const FEWEST_TURNS: usize = 4;

/// Shorter calls scatter by as much as a wait.
const SHORTEST: Nanos = Nanos::from_millis(20);
const SHORTEST_GAP: Nanos = Nanos::from_millis(10);

/// Part of the ends of calls that run beside each other which are close, at least.
const CLOSE_BY_CHANCE: f64 = 0.125;

/// Chance may spread the ends of one healthy recording in a thousand so evenly.
const SELDOM: f64 = 1e-3;

/// Largest limit that is looked for.
const LARGEST: usize = 256;

/// Calls that the limit is looked for in; of a larger recording, so many are taken evenly. Each limit that is tried looks at all
/// of them.
const SAMPLE: usize = 4_096;

/// Chance may separate the calls of one healthy recording in so many, where all calls that waited took longer.
const ONE_IN: f64 = 500.0;

/// The calls of `tools`, divided by the limit that their times show.
pub(super) fn find_loaded<'v, 'a>(tools: &[&'v Served<'a>]) -> Option<CallBatch<'v, 'a>> {
    let name = tools.first()?.tool;
    let mut asked: Vec<(Nanos, usize)> = tools.iter().map(|call| (call.asked.at, call.at)).collect();
    let mut ended: Vec<Nanos> = tools.iter().map(|call| call.answered.at).collect();
    asked.sort_unstable();
    ended.sort_unstable();
    let under_way = |call: &Served<'_>| {
        let before = asked.partition_point(|one| *one < (call.asked.at, call.at));
        before.saturating_sub(ended.partition_point(|end| *end <= call.asked.at))
    };
    let calls = tools.iter().filter(|call| call.tool == name);
    let mut calls: Vec<(usize, &Served<'_>)> = calls.map(|call| (under_way(call), *call)).collect();
    calls.sort_by_key(|(under_way, call)| (*under_way, call.answered.at));
    let sample: Vec<_> = calls.iter().step_by(calls.len().div_ceil(SAMPLE)).copied().collect();
    let levels = sample.chunk_by(|one, next| one.0 == next.0).take(LARGEST);
    let limits = levels.filter_map(|level| {
        let limit = level[0].0 + 1;
        let (prompt, load) = sample.split_at(sample.partition_point(|(under_way, _)| *under_way < limit));
        let own = prompt.iter().map(|(_, call)| call.server_time()).min()?;
        // Calls that find one fewer than the limit under way still take no longer than their own time.
        let is_prompt = median_time(level).0 * 2 <= own.0.saturating_mul(3);
        (is_prompt && is_separated(prompt, load)).then_some(limit)
    });
    let limit = limits.last()?;
    let prompt = calls.partition_point(|(under_way, _)| *under_way < limit);
    let time = calls[..prompt].iter().map(|(_, call)| call.server_time()).min()?;
    let mut calls: Vec<&Served<'_>> = calls.into_iter().map(|(_, call)| call).collect();
    calls[..prompt].sort_by_key(|call| call.answered.at);
    calls[prompt..].sort_by_key(|call| call.answered.at);
    Some(CallBatch { calls, prompt, at_a_time: limit, time })
}

/// Whether the calls that were asked under `load` took longer than the `prompt` ones, and by more than chance brings.
fn is_separated(prompt: &[(usize, &Served<'_>)], load: &[(usize, &Served<'_>)]) -> bool {
    if prompt.is_empty() || load.is_empty() {
        return false;
    }
    let (usual, waited) = (median_time(prompt), median_time(load));
    let mut times: Vec<Nanos> = prompt.iter().map(|(_, call)| call.server_time()).collect();
    times.sort_unstable();
    // Pairs in which the call that was asked under load took longer: the statistic of Mann and Whitney.
    let longer: usize = load.iter().map(|(_, call)| times.partition_point(|time| *time < call.server_time())).sum();
    let (first, second) = (prompt.len() as f64, load.len() as f64);
    let share = longer as f64 / (first * second);
    let deviations = (share - 0.5) * (12.0 * first * second / (first + second + 1.0)).sqrt();
    let is_chance = if share >= 1.0 {
        ways_to_choose(prompt.len() + load.len(), prompt.len()) < ONE_IN
    } else {
        share < SEPARATED || deviations < DEVIATIONS
    };
    usual >= SHORTEST && !is_chance && waited.0 as f64 >= LONGER * usual.0 as f64
}

fn median_time(calls: &[(usize, &Served<'_>)]) -> Nanos {
    let mut times: Vec<Nanos> = calls.iter().map(|(_, call)| call.server_time()).collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// The binomial coefficient: in so many ways chance may choose the calls that are quick.
fn ways_to_choose(number: usize, chosen: usize) -> f64 {
    let chosen = chosen.min(number - chosen);
    (0..chosen).map(|place| (number - place) as f64 / (place + 1) as f64).product()
}

/// The calls of `tools`, if they ran one after another: between the ends of two calls that overlap lies the time that a call
/// takes by itself. This time is `own` where a call found the server idle. Else the ends show it, which lie apart.
pub(super) fn find_turns<'v, 'a>(tools: &[&'v Served<'a>], own: Nanos) -> Option<CallBatch<'v, 'a>> {
    let mut calls = tools.to_vec();
    calls.sort_by_key(|call| call.answered.at);
    let gaps = gaps_between_ends(&calls);
    let together = gaps.partition_point(|gap| gap.0 < own.0 / 20 * 17);
    let is_own = own >= SHORTEST && together * 20 <= gaps.len();
    let time = if is_own { own } else { typical_gap(&calls, &gaps)? };
    let longer = time.0.saturating_add(time.0 / 4);
    let mut ended = Nanos::ZERO;
    let (waiting, mut prompt): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| {
        let before = std::mem::replace(&mut ended, call.answered.at);
        call.asked.at < before && call.server_time().0 >= longer
    });
    let in_turns = waiting.len() >= FEWEST_TURNS;
    let first = prompt.len();
    prompt.extend(waiting);
    in_turns.then_some(CallBatch { calls: prompt, prompt: first, at_a_time: 1, time })
}

/// The times between the ends of calls that overlap, in the order of their length. The calls are in the order of their ends.
fn gaps_between_ends(calls: &[&Served<'_>]) -> Vec<Nanos> {
    let overlapping = calls.windows(2).filter(|pair| pair[1].asked.at < pair[0].answered.at);
    let mut gaps: Vec<Nanos> = overlapping.map(|pair| pair[1].answered.at.since(pair[0].answered.at)).collect();
    gaps.sort_unstable();
    gaps
}

/// The median gap between ends, if ends lie apart as only those of calls do that wait for one another.
///
/// Ends of calls that run beside each other have nothing to do with each other: of two such calls, the ends lie within a
/// quarter of the median in one case of eight, and of more calls more often. Calls that repeat in equal time stay apart as
/// they began. So the times must differ enough to mix the ends.
fn typical_gap(calls: &[&Served<'_>], gaps: &[Nanos]) -> Option<Nanos> {
    let typical = *gaps.get(gaps.len() / 2)?;
    let close = gaps.partition_point(|gap| gap.0 < typical.0 / 4);
    let chance = 1.0 - chance_of_many(close + 1, gaps.len(), CLOSE_BY_CHANCE);
    let mut times: Vec<Nanos> = calls.iter().map(|call| call.server_time()).collect();
    times.sort_unstable();
    let scatter = times[times.len() * 3 / 4].since(times[times.len() / 4]);
    let is_mixed = typical >= SHORTEST_GAP && scatter.0 >= typical.0 / 3 * 2;
    (is_mixed && chance < SELDOM).then_some(typical)
}
