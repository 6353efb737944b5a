//! `head-of-line`: replies that were ready come only with a slower one's (python-sdk #2934), or, over stdio, when a buffer
//! of the server's stdout is full.
//!
//! That a reply was ready is known where the same call took a known time elsewhere, or the server told its own time. A reply
//! that merely ends with another one's says nothing: both may have taken as long. Where nothing tells a call's own time, the
//! order does: calls that run beside one another end together, in the order of their requests, more often than chance brings
//! calls of such different times together.

use std::collections::HashMap;

use mcpace_record::{Digest, Nanos};

use super::full_buffer::behind_buffer;
use super::held_reply::{FEWEST_HELD, HeldReply, SHORTEST_HOLD};
use super::served::{Owner, Served, served_requests};
use super::stalls::{CROSSING, ToolWork};
use super::{HeadOfLine, ReleasedWith};
use crate::findings::chance::exceeds_chance;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason};
use crate::view::View;

/// A call's own time must be this long to tell a reply that was held from a call that began late.
const SHORTEST: Nanos = Nanos::from_millis(20);

/// Groups of one size that prove a limit.
const FEWEST_WAVES: usize = 3;

/// Time on both sides of an end in which other ends are counted.
const NEIGHBOURHOOD: Nanos = Nanos::from_millis(250);

/// Ready replies leave together, within this.
const TOGETHER: Nanos = Nanos::from_millis(10);

#[derive(Default)]
struct Replies {
    tally: Tally,
    held: u64,
    longest: Nanos,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let served = served_requests(scene.view);
    let is_limited = !scene.episodes().is_empty();
    let rules: [(ReleasedWith, &dyn Fn() -> Vec<HeldReply>); 3] = [
        (ReleasedWith::SlowerReply, &|| behind_slower(scene.view, &served)),
        (ReleasedWith::FullBuffer, &|| behind_buffer(scene.view)),
        (ReleasedWith::SlowerReply, &|| if is_limited { Vec::new() } else { behind_earlier(scene.view, &served) }),
    ];
    let held = rules.into_iter().map(|(released_with, rule)| (released_with, rule()));
    let Some((released_with, late)) = held.into_iter().find(|(_, late)| late.len() >= FEWEST_HELD) else {
        return Vec::new();
    };
    make_findings(scene, &late, released_with)
}

/// Calls that took longer than the same call takes, and ended together with a slower one.
fn behind_slower(view: &View<'_>, served: &[Served<'_>]) -> Vec<HeldReply> {
    let Some(work) = ToolWork::longest_work(served) else { return Vec::new() };
    let usual = usual_times(served);
    let ends = ToolEnds::of_calls(served);
    let mut by_chance = 0.0;
    let late = served.iter().filter_map(|call| {
        let own = own_time(call, &usual).filter(|own| *own >= SHORTEST)?;
        let ready = call.asked.at + own;
        if call.tool.is_some() && call.answered.at.since(ready) >= SHORTEST_HOLD {
            by_chance += ends.expected_within(call.answered.at, TOGETHER.min(Nanos(own.0 / 2)));
        }
        let slower = work.held_up(call, call.answered.at)?;
        let together = call.answered.at.since(slower.answered.at) <= TOGETHER.min(Nanos(own.0 / 2));
        // The slower one must take long by itself, or both waited for a third.
        let slower_own = own_time(slower, &usual)?;
        let slow_itself = slower.server_time().0 <= slower_own.0.saturating_mul(5) / 4;
        // And it must be due later: equal calls that a busy server ends late, all together, hold each other up by nothing.
        let held = (slower.asked.at + slower_own).since(ready) >= SHORTEST_HOLD;
        (call.tool.is_some() && together && slow_itself && held).then_some(HeldReply {
            exchange: view.exchanges[call.at].id,
            asked: call.asked,
            ready,
            released: slower.answered,
            answered: call.answered,
        })
    });
    let late: Vec<HeldReply> = late.collect();
    if exceeds_chance(late.len(), by_chance) { late } else { Vec::new() }
}

/// Calls whose replies came right after the reply of the call that was asked before them, though they were asked long after it.
pub(super) fn behind_earlier(view: &View<'_>, served: &[Served<'_>]) -> Vec<HeldReply> {
    let mut callers: HashMap<Owner<'_>, Vec<&Served<'_>>> = HashMap::new();
    for call in served.iter().filter(|call| call.tool.is_some() && call.owner != Owner::Nobody) {
        callers.entry(call.owner).or_default().push(call);
    }
    let ends = ToolEnds::of_calls(served);
    let shortest = served.iter().filter(|call| call.tool.is_some()).map(Served::server_time).min().unwrap_or_default();
    let alike = share_of_equal_times(served);
    let (mut late, mut by_chance) = (Vec::new(), 0.0);
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
            if call.answered.at.since(before.answered.at) <= CROSSING {
                let ready = (call.asked.at + shortest).min(call.answered.at);
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
    if !ordered || !exceeds_chance(late.len(), by_chance) {
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

/// Share of the pairs of calls that took equally long, among pairs of calls that did not run together.
fn share_of_equal_times(served: &[Served<'_>]) -> f64 {
    let times: Vec<Nanos> = served.iter().filter(|call| call.tool.is_some()).map(Served::server_time).collect();
    let half = times.len() / 2;
    let pairs = times.iter().zip(&times[half..]);
    let equal = pairs.filter(|(one, other)| one.0.abs_diff(other.0) <= CROSSING.0).count();
    (equal + 1) as f64 / (times.len() - half + 2) as f64
}

/// Times at which tool calls were answered.
struct ToolEnds(Vec<Nanos>);

impl ToolEnds {
    fn of_calls(served: &[Served<'_>]) -> Self {
        let mut ends: Vec<Nanos> =
            served.iter().filter(|call| call.tool.is_some()).map(|call| call.answered.at).collect();
        ends.sort_unstable();
        Self(ends)
    }

    /// Ends that chance brings within `time` before `at`, by how many there are around it. Those that came together with it
    /// are the observation itself, and don't count.
    fn expected_within(&self, at: Nanos, time: Nanos) -> f64 {
        let around = self.count_ends(at, NEIGHBOURHOOD) - self.count_ends(at, TOGETHER);
        around as f64 * time.0 as f64 / (2 * (NEIGHBOURHOOD.0 - TOGETHER.0)) as f64
    }

    /// Ends at most `apart` before or after `at`.
    fn count_ends(&self, at: Nanos, apart: Nanos) -> usize {
        self.0.partition_point(|end| *end <= at + apart) - self.0.partition_point(|end| *end < at.since(apart))
    }
}

/// Time that a call takes by itself: the server's own report, else the shortest time of an equal call. A call that came
/// once counts with its own observed time.
fn own_time(call: &Served<'_>, usual: &HashMap<(&str, Digest), Nanos>) -> Option<Nanos> {
    if let Some(told) = call.told {
        return Some(told);
    }
    usual.get(&(call.tool?, call.content?)).copied()
}

fn usual_times<'a>(served: &[Served<'a>]) -> HashMap<(&'a str, Digest), Nanos> {
    let mut usual = HashMap::new();
    for call in served {
        if let (Some(tool), Some(content)) = (call.tool, call.content) {
            let shortest = usual.entry((tool, content)).or_insert(call.server_time());
            *shortest = call.server_time().min(*shortest);
        }
    }
    usual
}

fn make_findings(scene: &mut Scene<'_, '_>, late: &[HeldReply], released_with: ReleasedWith) -> Vec<Finding> {
    let view = scene.view;
    let mut operations: ByOperation<'_, Replies> = ByOperation::new();
    for late in late {
        let Some(exchange) = view.exchange(late.exchange) else { continue };
        let time = scene.claim_stretch(exchange.call, late.ready, late.answered.at);
        let replies = operations.value_of(scene.operation_of(exchange));
        replies.tally.add_cost(exchange.call, time, 0, 0);
        replies.tally.prove_events(&[
            (ProofRole::RequestReceived, Some(late.asked)),
            (ProofRole::OtherAnswered, Some(late.released)),
            (ProofRole::Answered, Some(late.answered)),
        ]);
        replies.held += 1;
        replies.longest = replies.longest.max(late.answered.at.since(late.ready));
    }
    let (level, reason, disproof) = match released_with {
        ReleasedWith::SlowerReply => (Level::Medium, Reason::ReadyBefore, Disproof::CallFromSecondSession),
        ReleasedWith::FullBuffer => (Level::Medium, Reason::BurstsFillBuffers, Disproof::FlushEachLine),
    };
    let found = operations.into_iter().map(|(operation, replies)| {
        let severity = replies.tally.median_severity();
        let context = HeadOfLine { held: replies.held, released_with, longest: replies.longest };
        let confidence = scene.confidence_for(level, reason);
        replies.tally.into_finding(Cause::HeadOfLine(context), operation, severity, confidence, disproof)
    });
    found.collect()
}
