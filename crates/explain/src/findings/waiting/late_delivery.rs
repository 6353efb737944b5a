//! `late-delivery`: the result was complete at the client long before the call returned (python-sdk #2432, mcp-go #769).
//!
//! An explanation by exclusion, so it comes last and counts only time that no other finding explains. Two ways to be sure
//! enough: the client went on just when the reply's stream ended or its connection closed; or nothing on the wire tells,
//! and the time is several times everything else and comes again.

use mcpace_record::{ConnectionId, Nanos};

use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, LateDelivery, Level, ProofRole, Reason, Released};
use crate::ledger::sweep_call;
use crate::view::{Call, Stamp};
use crate::{Part, Parts, Segment};

/// Time that a client may need for parsing, validating and waking up, even a slow one on a busy machine.
const USUAL: Nanos = Nanos::from_millis(20);

/// A single late call counts from here on; a shorter one may be a pause of the machine.
const SINGLE: Nanos = Nanos::from_millis(100);

/// From this many calls on, one that is late without a sign on the wire is chance: another one was not.
const SEVERAL: u64 = 2;

/// Without a sign on the wire: how many times the call's other time it must be.
const TIMES_OTHER: u64 = 3;

/// Calls from which on a smaller part of a call is no chance, where nearly all calls have it: four in five. Fewer are enough
/// where each is as late as [`SINGLE`].
const FEWEST_ALIKE: u64 = 12;
const FEWEST_LATE: u64 = 2;

/// How soon after an end the client must go on for the end to have released it.
const RELEASE: Nanos = Nanos::from_millis(5);

#[derive(Default)]
struct LateDeliveries {
    tally: Tally,
    calls: u64,
    /// Calls that are late by a multiple of their other time, or with a sign on the wire.
    clear_calls: u64,
    of_calls: u64,
    longest: Nanos,
    released_by: Option<Released>,
}

impl LateDeliveries {
    /// A pause of the machine hits one call among several; a cause comes again, or leaves a sign on the wire.
    fn is_more_than_chance(&self) -> bool {
        if self.clear_calls == 0 {
            let fewest = if self.longest >= SINGLE { FEWEST_LATE } else { FEWEST_ALIKE };
            return self.calls >= fewest && self.calls * 5 >= self.of_calls * 4;
        }
        let comes_again = self.calls > 1 && self.calls * 2 >= self.of_calls;
        let signed = self.released_by != Some(Released::NothingSeen);
        comes_again || (self.longest >= SINGLE && (signed || self.of_calls < SEVERAL))
    }
}

/// The longest unexplained stretch of a call between a result and the client's next act.
struct Stretch {
    segment: Segment,
    free: Nanos,
    /// The call's other time.
    other: Nanos,
    released_by: Released,
    /// The end that released it.
    end: Option<Stamp>,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut operations: ByOperation<'_, LateDeliveries> = ByOperation::new();
    for call in &scene.view.calls {
        let Some(stretch) = longest_stretch(scene, call) else {
            continue;
        };
        let late = operations.value_of(Some(call.operation));
        late.of_calls += 1;
        let is_clear = is_late(scene, call, &stretch);
        if is_clear || is_held(scene, call, &stretch) {
            late.clear_calls += u64::from(is_clear);
            charge_stretch(scene, call, &stretch, late);
        }
    }
    operations
        .into_iter()
        .filter(|(_, late)| late.calls > 0)
        .filter(|(_, late)| late.is_more_than_chance())
        .map(|(operation, late)| make_finding(scene, operation, late))
        .collect()
}

fn longest_stretch(scene: &Scene<'_, '_>, call: &Call<'_>) -> Option<Stretch> {
    let swept = sweep_call(scene.view, &scene.stalls, call);
    let held = swept.segments.iter().enumerate().filter(|(_, segment)| {
        let exchange = segment.exchange.and_then(|id| scene.view.exchange(id));
        segment.part == Part::ClientReceive
            // After a document, a token above all, the client may wait for a stream that says nothing.
            && exchange.is_some_and(|e| e.answer.is_some() && e.near().is_some_and(|near| near.result_end.is_some()))
    });
    let free = |segment: &Segment| scene.unclaimed_time(call.id, segment.from, segment.to);
    let (at, segment) = held.max_by_key(|(_, segment)| free(segment))?;
    let idle = swept.segments.get(at + 1).filter(|next| next.part == Part::ClientSend);
    let goes_on = idle.map_or(segment.to, |next| next.to);
    let (released_by, end) = releasing_end(scene, segment, goes_on);
    let parts = Parts::of(&swept.segments);
    let other = parts.total().since(parts.client_receive);
    Some(Stretch { segment: *segment, free: free(segment), other, released_by, end })
}

/// The end that released the call: the reply or its connection ended just before the client went on at `goes_on`.
fn releasing_end(scene: &Scene<'_, '_>, segment: &Segment, goes_on: Nanos) -> (Released, Option<Stamp>) {
    let exchange = segment.exchange.and_then(|id| scene.view.exchange(id));
    let Some(exchange) = exchange else {
        return (Released::NothingSeen, None);
    };
    let slack = RELEASE.max(Nanos(goes_on.since(segment.from).0 / 10));
    let releases = |end: &Stamp| end.at >= segment.from && end.at <= goes_on && goes_on.since(end.at) <= slack;
    if let Some(end) = exchange.ended().filter(releases) {
        return (Released::ReplyEnd, Some(end));
    }
    let closed = |conn: ConnectionId| scene.view.connection(conn)?.closed;
    let conn = exchange.near().and_then(|near| near.conn);
    match conn.and_then(closed).filter(releases) {
        Some(end) => (Released::ConnectionClose, Some(end)),
        None => (Released::NothingSeen, None),
    }
}

fn is_late(scene: &Scene<'_, '_>, call: &Call<'_>, stretch: &Stretch) -> bool {
    let total = scene.view.end_of(call).since(call.start.at);
    if stretch.released_by != Released::NothingSeen {
        // The reply must have stayed open for most of the stretch: an end right after the result releases nobody.
        let end = stretch.end.map_or(Nanos::ZERO, |end| end.at);
        let open = scene.unclaimed_time(call.id, stretch.segment.from, end);
        return open >= USUAL && stretch.free.0 >= total.0 / 10;
    }
    stretch.free >= USUAL.max(Nanos(stretch.other.0.saturating_mul(TIMES_OTHER)))
}

/// Whether the client held the result for a notable part of the call, without a sign on the wire.
fn is_held(scene: &Scene<'_, '_>, call: &Call<'_>, stretch: &Stretch) -> bool {
    let total = scene.view.end_of(call).since(call.start.at);
    stretch.released_by == Released::NothingSeen && stretch.free >= SINGLE.min(Nanos(total.0 / 10)).max(USUAL)
}

fn charge_stretch(scene: &mut Scene<'_, '_>, call: &Call<'_>, stretch: &Stretch, late: &mut LateDeliveries) {
    let (from, to) = (stretch.segment.from, stretch.segment.to);
    let time = scene.claim_stretch(Some(call.id), from, to);
    late.tally.add_cost(Some(call.id), time, 0, 0);
    let exchange = stretch.segment.exchange;
    let exchange = exchange.and_then(|id| scene.view.exchange(id));
    let end = match stretch.released_by {
        Released::ConnectionClose => ProofRole::ConnectionClosed,
        Released::ReplyEnd | Released::NothingSeen => ProofRole::ReplyEnd,
    };
    late.tally.prove_events(&[
        (ProofRole::CallStarted, Some(call.start)),
        (ProofRole::Result, exchange.and_then(|e| e.near()?.result_end)),
        (end, stretch.end.or(exchange.and_then(|e| e.ended()))),
        (ProofRole::CallReturned, call.end),
    ]);
    late.calls += 1;
    if stretch.free > late.longest {
        late.longest = stretch.free;
        late.released_by = Some(stretch.released_by);
    }
}

fn make_finding(scene: &Scene<'_, '_>, operation: Option<&str>, late: LateDeliveries) -> Finding {
    let released_by = late.released_by.unwrap_or(Released::NothingSeen);
    let (confidence, disproof) = match released_by {
        Released::NothingSeen => {
            (scene.confidence_for(Level::Low, Reason::NothingOnTheWire), Disproof::MeasureClientProcessorTime)
        }
        Released::ReplyEnd | Released::ConnectionClose => {
            (scene.confidence_for(Level::High, Reason::ReturnFollowsEnd), Disproof::EndReplyWithResult)
        }
    };
    let severity = late.tally.median_severity();
    let context = LateDelivery { calls: late.calls, of_calls: late.of_calls, released_by, longest: late.longest };
    late.tally.into_finding(Cause::LateDelivery(context), operation, severity, confidence, disproof)
}
