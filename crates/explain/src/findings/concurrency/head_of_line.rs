//! `head-of-line`: replies that were ready arrive only with a slower reply (python-sdk #2934), or, over stdio, when a buffer
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
use super::reply_order::{SHORTEST, TOGETHER, ToolEnds, behind_earlier};
use super::served::{Served, served_requests};
use super::stalls::{CROSSING, ToolWork};
use super::{HeadOfLine, ReleasedWith};
use crate::findings::chance::exceeds_chance;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason};
use crate::view::View;

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
        let slower = work.held_up(call, call.answered.at, CROSSING)?;
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

/// Time that a call takes by itself: the server's own report, else the shortest time of an equal call. A call that came
/// once counts with its own observed time.
fn own_time(call: &Served<'_>, usual: &HashMap<(&str, Digest), Nanos>) -> Option<Nanos> {
    if let Some(reported) = call.reported {
        return Some(reported);
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
