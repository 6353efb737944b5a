//! `waits-for-get`: no request leaves until the server's own stream has its reply head (rust-sdk #553; python-sdk #3209
//! with an OAuth lock).
//!
//! Sees: an operation is under way, nothing of it is on the wire, the GET has no head yet; and the next request leaves as
//! soon as the head is there. A request that leaves meanwhile acquits the client, and so does an operation that starts
//! after the head.
//!
//! A connect that returns only with the head shows it as well: its operation ends right after the head, with nothing else on
//! the wire. Without operations, the first request after the head does, where it leaves right after it and ends a longer
//! silence: a program that waits for nothing sends its first request at any other time.

use std::collections::HashMap;

use mcpace_record::Nanos;

use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, HoldReason, Level, ProofRole, Reason, WaitsForGet};
use crate::view::{Exchange, Stamp};

/// A wait below this is no more than a slow network.
const SHORTEST: Nanos = Nanos::from_millis(50);

/// How soon after the head the held request must leave: where operations tell that it was wanted, and where only its moment
/// does, which chance may bring as well.
const RELEASE: Nanos = Nanos::from_millis(20);
const RELEASE_ALONE: Nanos = Nanos::from_millis(5);

#[derive(Default)]
struct GetWaits {
    tally: Tally,
    occurrences: u64,
    authenticated: bool,
    longest: Nanos,
}

/// A request that was held.
struct HeldRequest<'e, 'a> {
    stream: &'e Exchange<'a>,
    head: Stamp,
    since: Nanos,
    request: &'e Exchange<'a>,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut operations: ByOperation<'_, GetWaits> = ByOperation::new();
    for held in held_requests(scene) {
        let waits = operations.value_of(scene.operation_of(held.request));
        let call = held.request.call;
        let time = scene.claim_stretch(call, held.since, held.head.at);
        waits.tally.add_cost(call, time, 0, 0);
        waits.tally.prove_events(&[
            (ProofRole::StreamRequest, Some(held.stream.sent())),
            (ProofRole::StreamHead, Some(held.head)),
            (ProofRole::HeldRequest, Some(held.request.sent())),
        ]);
        waits.occurrences += 1;
        waits.authenticated |= held.stream.authorization().is_some();
        waits.longest = waits.longest.max(held.head.at.since(held.since));
    }
    operations.into_iter().map(|(operation, waits)| make_finding(scene, operation, waits)).collect()
}

fn held_requests<'s, 'a>(scene: &Scene<'s, 'a>) -> Vec<HeldRequest<'s, 'a>> {
    let exchanges = &scene.view.exchanges;
    let mut posts: HashMap<Option<&str>, Vec<&Exchange<'_>>> = HashMap::new();
    for exchange in exchanges.iter().filter(|e| e.is_message()) {
        posts.entry(exchange.session()).or_default().push(exchange);
    }
    let streams = exchanges.iter().filter(|e| e.is_standalone_stream());
    streams.filter_map(|stream| held_by(scene, stream, posts.get(&stream.session_sent())?)).collect()
}

fn held_by<'s, 'a>(
    scene: &Scene<'s, 'a>,
    stream: &'s Exchange<'a>,
    posts: &[&'s Exchange<'a>],
) -> Option<HeldRequest<'s, 'a>> {
    let head = stream.near()?.reply_head?;
    let next = posts.partition_point(|post| post.start.event < stream.start.event);
    let before = next.checked_sub(1).map(|before| posts[before]);
    if let Some(held) = connect_held_by(scene, stream, head) {
        return Some(held);
    }
    let request = *posts.get(next)?;
    let since = wanted_since(scene, request, before)?.max(stream.sent().at);
    let waited = head.at.since(since);
    let delay = request.sent().at.since(head.at);
    let is_alone = request.call.is_none() && !request.notifies("notifications/initialized");
    let soon = if is_alone { RELEASE_ALONE } else { RELEASE };
    let released = request.sent().at >= head.at && delay <= soon && delay.0 <= waited.0 / 4;
    (released && waited >= SHORTEST).then_some(HeldRequest { stream, head, since, request })
}

/// Since when the client had reason to send `request`; `None` where nothing tells.
fn wanted_since(scene: &Scene<'_, '_>, request: &Exchange<'_>, before: Option<&Exchange<'_>>) -> Option<Nanos> {
    let answered = before.and_then(|before| before.completed());
    let answered = answered.map_or(Nanos::ZERO, |stamp| stamp.at);
    if let Some(call) = request.call.and_then(|call| scene.view.call(call)) {
        return Some(answered.max(call.start.at));
    }
    // Without operations, only what the protocol sends by itself tells when it was due.
    let before = before?;
    let due = before.requests("initialize") || before.notifies("notifications/initialized");
    due.then_some(answered)
}

/// The operation that opened the stream and returned right after its head, with nothing else on the wire meanwhile.
fn connect_held_by<'s, 'a>(
    scene: &Scene<'s, 'a>,
    stream: &'s Exchange<'a>,
    head: Stamp,
) -> Option<HeldRequest<'s, 'a>> {
    let call = scene.view.call(stream.call?)?;
    let returned = call.end?;
    let delay = returned.at.since(head.at);
    let own = scene.exchanges_of(call);
    let is_last = own.last().is_some_and(|last| last.id == stream.id);
    let completed = own.iter().filter(|other| other.id != stream.id).filter_map(|other| other.completed());
    let since = completed.map(|stamp| stamp.at).fold(stream.sent().at, Nanos::max);
    let waited = head.at.since(since);
    let released = returned.at >= head.at && delay <= RELEASE && delay.0 <= waited.0 / 4;
    let is_held = is_last && call.operation == "connect" && released && waited >= SHORTEST;
    is_held.then_some(HeldRequest { stream, head, since, request: stream })
}

fn make_finding(scene: &Scene<'_, '_>, operation: Option<&str>, waits: GetWaits) -> Finding {
    let severity = waits.tally.median_severity();
    let confidence = match waits.occurrences {
        1 if operation.is_none() => scene.confidence_for(Level::Low, Reason::SeenOnce),
        1 => scene.confidence_for(Level::Medium, Reason::SeenOnce),
        _ => scene.confidence_for(Level::High, Reason::Repeated),
    };
    let (gate, disproof) = if waits.authenticated {
        (HoldReason::AuthorizationLock, Disproof::RepeatWithoutAuthentication)
    } else {
        (HoldReason::StreamFirst, Disproof::RefuseStandaloneStream)
    };
    let context = WaitsForGet { occurrences: waits.occurrences, gate, longest: waits.longest };
    waits.tally.into_finding(Cause::WaitsForGet(context), operation, severity, confidence, disproof)
}
