//! `slow-reader`: the client does not read what the server sends, so that the reply waits in the recorder's kernel.
//!
//! The kernel counts the time in which a connection had data to send and no room at the peer, or none in its own buffer. A
//! large reply to a distant client waits for the window for a few round trips, which is no fault of the reader.

use mcpace_record::{Nanos, Side};

use super::SlowReader;
use super::tcp_samples::{SampleInterval, SampledConnection, sampled_connections};
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason};
use crate::median::lower_median;
use crate::view::{Exchange, Stamp, View};

/// A wait of this length counts, whatever part of the exchange it is.
const LONG: Nanos = Nanos::from_millis(20);

/// A shorter one counts if it is this part of the exchange.
const SHORTEST: Nanos = Nanos::from_millis(5);
const PART: u64 = 10;

/// Round trips that a reply may wait for a window.
const ROUND_TRIPS: u64 = 4;

/// A reply that waited for the client to read.
struct HeldReply<'v, 'a> {
    exchange: &'v Exchange<'a>,
    head: Stamp,
    waited: Nanos,
    before: Stamp,
    after: Stamp,
}

#[derive(Default)]
struct Replies {
    tally: Tally,
    waits: Vec<Nanos>,
    largest: u64,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let view = scene.view;
    let connections = sampled_connections(view, Side::Front);
    let of_replies = connections.iter().map(|sampled| sampled.exchanges.len() as u64).sum();
    let mut operations: ByOperation<'_, Replies> = ByOperation::new();
    for held in connections.iter().flat_map(|sampled| held_replies(view, sampled)) {
        let exchange = held.exchange;
        let time = scene.claim_stretch(exchange.call, held.head.at, held.head.at + held.waited);
        let replies = operations.value_of(scene.operation_of(exchange));
        replies.tally.add_cost(exchange.call, time, 0, 0);
        replies.tally.prove_events(&[
            (ProofRole::TcpBefore, Some(held.before)),
            (ProofRole::ReplyHead, Some(held.head)),
            (ProofRole::TcpAfter, Some(held.after)),
        ]);
        replies.waits.push(held.waited);
        replies.largest = replies.largest.max(exchange.reply_bytes);
    }
    let findings = operations.into_iter().map(|(operation, mut replies)| {
        let number = replies.waits.len();
        let typical = lower_median(&mut replies.waits).unwrap_or_default();
        let context = SlowReader {
            replies: number as u64,
            of_replies,
            largest: replies.largest,
            typical,
            longest: replies.waits.last().copied().unwrap_or_default(),
        };
        let confidence = match number {
            1 => scene.confidence_for(Level::Medium, Reason::SeenOnce),
            _ => scene.confidence_for(Level::High, Reason::CountedByKernel),
        };
        let severity = replies.tally.median_severity();
        let disproof = Disproof::AskWithAnotherClient;
        replies.tally.into_finding(Cause::SlowReader(context), operation, severity, confidence, disproof)
    });
    findings.collect()
}

/// The replies of a connection that waited for a notable time.
fn held_replies<'v, 'a>(view: &View<'a>, sampled: &SampledConnection<'v, 'a>) -> Vec<HeldReply<'v, 'a>> {
    let round_trip = sampled.connection.samples.iter().map(|sample| sample.info.min_rtt).max().unwrap_or_default();
    let mut replies: Vec<(&'v Exchange<'a>, Stamp)> =
        sampled.exchanges.iter().filter_map(|sampled| Some((sampled.exchange, sampled.leg.reply_head?))).collect();
    replies.sort_by_key(|(_, head)| (head.at, head.event));
    let limited = sampled.intervals.iter().filter(|interval| interval.limited > Nanos::ZERO);
    let mut held: Vec<HeldReply<'v, 'a>> = Vec::new();
    for interval in limited {
        let waiting = waiting_replies(view, &replies, interval);
        let waited = Nanos(interval.limited.0 / waiting.len().max(1) as u64);
        for (exchange, head) in waiting {
            match held.last_mut().filter(|reply| reply.exchange.id == exchange.id) {
                Some(reply) => (reply.waited, reply.after) = (reply.waited + waited, interval.after),
                None => {
                    let (before, after) = (interval.before, interval.after);
                    held.push(HeldReply { exchange, head: *head, waited, before, after });
                }
            }
        }
    }
    held.retain(|reply| {
        let waited = reply.waited;
        let is_notable = waited >= LONG || waited >= SHORTEST && waited.0 >= reply_time(view, reply).0 / PART;
        is_notable && waited.0 > round_trip.0.saturating_mul(ROUND_TRIPS)
    });
    held
}

/// The replies that an interval's wait belongs to, in equal parts: all that began in it. Where only one began, the wait may
/// be that of the reply before: a sample that follows a reply's head at once has nothing of its wait. The one with more time
/// after its head has it.
fn waiting_replies<'r, 'v, 'a>(
    view: &View<'a>,
    replies: &'r [(&'v Exchange<'a>, Stamp)],
    interval: &SampleInterval,
) -> &'r [(&'v Exchange<'a>, Stamp)] {
    let (from, to) = (interval.before.at, interval.after.at);
    let first = replies.partition_point(|(_, head)| head.at <= from);
    let end = replies.partition_point(|(_, head)| head.at <= to);
    if end - first > 1 || first == 0 {
        return &replies[first..end];
    }
    let Some((next, head)) = replies[first..end].first() else { return &replies[first - 1..first] };
    let (before, _) = &replies[first - 1];
    let call = before.call.and_then(|call| view.call(call));
    let gone_on = call.and_then(|call| call.end).map_or(next.sent().at, |end| end.at.min(next.sent().at));
    if gone_on.since(from) > to.since(head.at) { &replies[first - 1..first] } else { &replies[first..end] }
}

/// The time from the request to the reply's end or, where that is later, to the end of the wait.
fn reply_time(view: &View<'_>, reply: &HeldReply<'_, '_>) -> Nanos {
    let call = reply.exchange.call.and_then(|call| view.call(call));
    let returned = call.and_then(|call| call.end).map_or(Nanos::ZERO, |end| end.at);
    let handed = reply.exchange.ended().map_or(Nanos::ZERO, |end| end.at);
    let read = reply.head.at + reply.waited;
    returned.max(handed).max(read).since(reply.exchange.sent().at)
}
