//! `delayed-ack`: a reply's second small write waits for the acknowledgement of the first, which the peer's kernel delays by
//! some 40 ms (Nagle's algorithm against delayed ACK; rust-sdk #683, context-forge #4007).
//!
//! In one reply, a pause of that size proves nothing: a tool may take as long. Three things together do: the pause is always
//! the kernel's, whatever is asked; a connection's first reply has none, since kernels acknowledge a young connection at
//! once; and what is asked differs, or the server's own word or a young connection shows that the tool doesn't take it. A
//! pause in the midst of a JSON body is no tool's in any case: the tool's result is there.

use std::collections::{HashMap, HashSet};

use mcpace_record::{ConnectionId, ExchangeId, Nanos};

use super::DelayedAck;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason, Severity};
use crate::view::{Exchange, ReplyShape, Stamp, Transport, View};

/// Linux delays an acknowledgement by 40 ms at least (TCP_DELACK_MIN); the rest is the machine's.
const SHORTEST: Nanos = Nanos::from_millis(38);
const LONGEST: Nanos = Nanos::from_millis(56);

/// Pauses that are no chance; and those in the midst of a JSON body, which no tool makes.
const FEWEST: usize = 5;
const FEWEST_IN_BODY: usize = 2;

/// A reply that a server sends in more pieces is a stream with a pace of its own.
const MOST_PIECES: usize = 6;

/// Larger replies fill whole segments, which wait for nothing.
const LARGEST: u64 = 64 * 1024;

/// Kind of request: method and tool.
type RequestKind<'a> = (&'a str, Option<&'a str>);

/// A reply's longest pause before its result.
struct Pause<'e, 'a> {
    exchange: &'e Exchange<'a>,
    asked: RequestKind<'a>,
    from: Stamp,
    to: Stamp,
    /// Whether it is the first reply of its connection.
    first: bool,
    /// Whether the first part of a JSON body came before it, and the rest after it.
    in_body: bool,
}

impl Pause<'_, '_> {
    fn pause_length(&self) -> Nanos {
        self.to.at.since(self.from.at)
    }

    fn is_kernels(&self) -> bool {
        (SHORTEST..=LONGEST).contains(&self.pause_length())
    }
}

#[derive(Default)]
struct Pauses {
    tally: Tally,
    times: Vec<Nanos>,
}

/// A reply's pause between its first write and its second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stall {
    /// The first write.
    pub(crate) from: Nanos,
    /// The second.
    pub(crate) to: Nanos,
}

/// The pauses that waited for an acknowledgement, by exchange.
pub(crate) type Stalls = HashMap<ExchangeId, Stall>;

/// The stalls of a recording that proves them; none of another.
pub(crate) fn proven_stalls(view: &View<'_>) -> Stalls {
    let pauses = longest_pauses(view);
    if proof_reason(&pauses).is_none() {
        return Stalls::new();
    }
    let stalled = pauses.iter().filter(|pause| pause.is_kernels());
    stalled.map(|pause| (pause.exchange.id, Stall { from: pause.from.at, to: pause.to.at })).collect()
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let pauses = longest_pauses(scene.view);
    let Some(reason) = proof_reason(&pauses) else { return Vec::new() };
    let of_replies = pauses.iter().filter(|pause| !pause.first).count() as u64;
    let mut operations: ByOperation<'_, Pauses> = ByOperation::new();
    for pause in pauses.iter().filter(|pause| pause.is_kernels()) {
        let exchange = pause.exchange;
        let time = scene.claim_stretch(exchange.call, pause.from.at, pause.to.at);
        let pauses = operations.value_of(scene.operation_of(exchange));
        pauses.tally.add_cost(exchange.call, time, 0, 0);
        pauses.tally.prove_events(&[
            (ProofRole::RequestReceived, exchange.back().and_then(|back| back.request_end)),
            (ProofRole::FirstWrite, Some(pause.from)),
            (ProofRole::SecondWrite, Some(pause.to)),
        ]);
        pauses.times.push(pause.pause_length());
    }
    operations
        .into_iter()
        .map(|(operation, pauses)| make_finding(scene, operation, pauses, of_replies, reason))
        .collect()
}

/// Why the pauses can't be the tools'; `None` where they may be.
fn proof_reason(pauses: &[Pause<'_, '_>]) -> Option<Reason> {
    let (young, old): (Vec<_>, Vec<_>) = pauses.iter().partition(|pause| pause.first);
    let stalled: Vec<_> = old.iter().filter(|pause| pause.is_kernels()).collect();
    let in_body = stalled.iter().filter(|pause| pause.in_body).count();
    let in_body = in_body >= FEWEST_IN_BODY && in_body * 2 >= stalled.len();
    let many = (stalled.len() >= FEWEST || in_body) && stalled.len() * 2 >= old.len();
    // A client that reads a head late sees a shorter pause, so half of the shortest pause counts as one.
    let paused = young.iter().filter(|pause| pause.pause_length() >= Nanos(SHORTEST.0 / 2)).count();
    let spared = paused * 2 < young.len();
    if !many || !spared {
        return None;
    }
    let mut by_asked: HashMap<RequestKind<'_>, usize> = HashMap::new();
    stalled.iter().for_each(|pause| *by_asked.entry(pause.asked).or_default() += 1);
    let differs = by_asked.values().filter(|count| **count > 1).count() > 1;
    let quick_when_young = young.iter().filter(|pause| by_asked.contains_key(&pause.asked)).count() > 1;
    let told = stalled.iter().filter(|pause| {
        let told = pause.exchange.server_timing().filter(|timing| !timing.malformed);
        told.is_some_and(|timing| timing.total() < Nanos(SHORTEST.0 / 2))
    });
    let told = told.count() * 2 > stalled.len();
    (in_body || differs || quick_when_young || told).then_some(Reason::AcknowledgementsOwnTime)
}

/// The longest pause in each small reply.
fn longest_pauses<'e, 'a>(view: &'e View<'a>) -> Vec<Pause<'e, 'a>> {
    let mut seen: HashSet<ConnectionId> = HashSet::new();
    let mut found = Vec::new();
    for exchange in view.exchanges.iter().filter(|exchange| exchange.transport == Transport::Http) {
        let Some(conn) = exchange.back().and_then(|back| back.conn) else { continue };
        let first = seen.insert(conn);
        let Some(asked) = request_of(exchange) else { continue };
        if let Some((from, to)) = longest_pause(exchange) {
            let body = exchange.back().and_then(|back| back.body_start);
            let in_body = exchange.shape != ReplyShape::Events && body.is_some_and(|body| from.at >= body.at);
            found.push(Pause { exchange, asked, from, to, first, in_body });
        }
    }
    found
}

fn request_of<'a>(exchange: &Exchange<'a>) -> Option<RequestKind<'a>> {
    let request = exchange.messages.iter().find(|_| exchange.asks() && exchange.answer.is_some())?;
    Some((request.method()?, request.name()))
}

fn longest_pause(exchange: &Exchange<'_>) -> Option<(Stamp, Stamp)> {
    let back = exchange.back()?;
    if exchange.reply_bytes > LARGEST || exchange.events.len() > MOST_PIECES {
        return None;
    }
    let end = back.result_end?;
    let events = exchange.events.iter().filter_map(|event| event.read());
    let single = [back.reply_head, back.body_start, back.result_start, Some(end)];
    let mut pieces: Vec<Stamp> = single.into_iter().flatten().chain(events).filter(|s| s.at <= end.at).collect();
    pieces.sort_by_key(|piece| (piece.at, piece.event));
    let pairs = pieces.windows(2).map(|pair| (pair[0], pair[1]));
    pairs.max_by_key(|(from, to)| to.at.since(from.at))
}

fn make_finding(
    scene: &Scene<'_, '_>,
    operation: Option<&str>,
    mut pauses: Pauses,
    of_replies: u64,
    reason: Reason,
) -> Finding {
    // Little in seconds, but most of what a call on a good network takes.
    let severity = pauses.tally.median_severity().max(Severity::Medium);
    pauses.times.sort_unstable();
    let typical = pauses.times.get(pauses.times.len() / 2).copied().unwrap_or_default();
    let context = DelayedAck { pauses: pauses.times.len() as u64, of_replies, typical };
    let confidence = scene.confidence_for(Level::Medium, reason);
    pauses.tally.into_finding(Cause::DelayedAck(context), operation, severity, confidence, Disproof::AcknowledgeAtOnce)
}
