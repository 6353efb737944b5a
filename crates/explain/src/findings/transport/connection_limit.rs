//! `connection-limit`: as many replies are open as the client has connections for, and its next request leaves only when one
//! of them ends, or never.
//!
//! Sees: an operation starts, nothing of it is on the wire, N replies are open and never more; and its request leaves as one
//! of them ends, or the operation fails without one. Needs the client program's own stamps: without them nothing tells that
//! it wanted to send.

use mcpace_record::{ExchangeId, Nanos};

use super::ConnectionLimit;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason};
use crate::view::{Call, EventIndex, Exchange, PackedOutcome, Stamp, View};

/// One reply that is open is the server's own stream, or the call before.
const SMALLEST: usize = 2;

/// A wait below this is not felt.
const SHORTEST: Nanos = Nanos::from_millis(200);

/// How soon after the end of a reply the request must leave.
const RELEASE: Nanos = Nanos::from_millis(20);

#[derive(Default)]
struct PoolWaits {
    tally: Tally,
    held: u64,
    never_left: u64,
    longest: Nanos,
}

/// A request that found no connection.
struct QueuedRequest {
    open: usize,
    until: Nanos,
    released: Option<Stamp>,
    sent: Option<Stamp>,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let held: Vec<(&Call<'_>, QueuedRequest)> =
        scene.view.calls.iter().filter_map(|call| Some((call, held_call(scene.view, call)?))).collect();
    let Some((_, first)) = held.first() else { return Vec::new() };
    let limit = first.open;
    if held.iter().any(|(_, held)| held.open != limit) || most_open(scene.view) > limit {
        return Vec::new();
    }
    let occurrences = held.len();
    let mut operations: ByOperation<'_, PoolWaits> = ByOperation::new();
    for (call, held) in held {
        let time = scene.claim_stretch(Some(call.id), call.start.at, held.until);
        let waits = operations.value_of(Some(call.operation));
        waits.tally.add_cost(Some(call.id), time, 0, 0);
        waits.tally.prove_events(&[
            (ProofRole::CallStarted, Some(call.start)),
            (ProofRole::ReplyEnd, held.released),
            (ProofRole::HeldRequest, held.sent),
        ]);
        waits.held += 1;
        waits.never_left += u64::from(held.sent.is_none());
        waits.longest = waits.longest.max(held.until.since(call.start.at));
    }
    let found = operations.into_iter().map(|(operation, waits)| {
        let severity = waits.tally.median_severity();
        let context = ConnectionLimit {
            limit: limit as u64,
            held: waits.held,
            never_left: waits.never_left,
            longest: waits.longest,
        };
        let confidence = match occurrences {
            1 => scene.confidence_for(Level::Low, Reason::SeenOnce),
            _ => scene.confidence_for(Level::Medium, Reason::Repeated),
        };
        let cause = Cause::ConnectionLimit(context);
        waits.tally.into_finding(cause, operation, severity, confidence, Disproof::RaiseConnectionLimit)
    });
    found.collect()
}

fn held_call(view: &View<'_>, call: &Call<'_>) -> Option<QueuedRequest> {
    let (start, end) = (call.start.at, view.end_of(call));
    let before: Vec<&Exchange<'_>> = call.in_flight.iter().filter_map(|id| view.exchange(*id)).collect();
    let sent = call.exchanges.iter().filter_map(|id| view.exchange(*id)).find(|e| e.is_message());
    match sent.map(Exchange::sent) {
        Some(sent) => {
            let released = before
                .iter()
                .filter_map(|open| open.ended())
                .filter(|end| end.at >= start && end.at <= sent.at && sent.at.since(end.at) <= RELEASE);
            let released = released.max_by_key(|end| end.at)?;
            let open = before.iter().filter(|open| open.ended().is_none_or(|end| end.at >= released.at)).count();
            let waited = released.at.since(start) >= SHORTEST && open >= SMALLEST;
            waited.then_some(QueuedRequest { open, until: released.at, released: Some(released), sent: Some(sent) })
        }
        None => {
            let failed = matches!(call.outcome, Some(PackedOutcome::Failed(_)));
            let open = before.iter().filter(|open| open.ended().is_none_or(|ended| ended.at >= end)).count();
            let waited = failed && end.since(start) >= SHORTEST && open >= SMALLEST;
            waited.then_some(QueuedRequest { open, until: end, released: None, sent: None })
        }
    }
}

/// The most replies that were open at one time.
fn most_open(view: &View<'_>) -> usize {
    let mut marks: Vec<(EventIndex, bool, ExchangeId)> = Vec::with_capacity(view.exchanges.len() * 2);
    for exchange in &view.exchanges {
        marks.push((exchange.start.event, true, exchange.id));
        marks.extend(exchange.ended().map(|end| (end.event, false, exchange.id)));
    }
    marks.sort_unstable_by_key(|(event, begins, _)| (*event, !begins));
    let (mut open, mut most) = (0_usize, 0);
    for (_, begins, _) in marks {
        open = if begins { open + 1 } else { open.saturating_sub(1) };
        most = most.max(open);
    }
    most
}
