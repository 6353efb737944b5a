//! `packet-loss`: a segment is lost, and the exchange stands still until the kernel sends it again, which takes 200 ms at least
//! where nothing follows the segment (`TCP_RTO_MIN`).
//!
//! Only the recorder's own segments are counted: requests to the server and replies to the client. Kernels send a segment
//! again without a loss now and then, and an exchange may be slow for its own reasons. The proof is both together, more often
//! than chance brings: exchanges that take longer than their kind by that time, at the moments at which segments are sent
//! again.

use std::collections::HashMap;

use mcpace_record::{Nanos, Side};

use super::tcp_samples::{
    RequestKind, SampleInterval, SampledConnection, SampledExchange, request_kind, sampled_connections,
};
use super::{PacketLoss, Way};
use crate::findings::chance::chance_of_many;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason};
use crate::median::lower_median;
use crate::view::{Stamp, View};

/// The kernel's shortest time-out is 200 ms; the rest is the scatter of the exchange.
const PAUSE: Nanos = Nanos::from_millis(180);

/// Two time-outs of one segment, the second twice as long.
const DOUBLED_PAUSE: Nanos = Nanos::from_millis(500);

/// Stalls from which on a finding is sure.
const SURE: usize = 4;

/// Chance may bring stalls and retransmissions together in one recording of ten thousand, or of so many that a finding is
/// possible.
const RARE: f64 = 1e-4;
const SELDOM: f64 = 0.03;

/// Chance of a single stall in which a segment was sent again twice.
const SELDOM_ONCE: f64 = 0.2;

/// Without a comparison, as where quick calls stall between any two samples: so many intervals with retransmissions, nearly
/// all of them with a stall, and one segment in so many that was sent again.
const FEWEST_ALIKE: usize = 3;
const SEGMENTS: u64 = 100;

/// An exchange that took longer than its kind while segments were sent again.
struct Stall<'v, 'a> {
    sampled: &'v SampledExchange<'v, 'a>,
    /// Where its pause begins.
    from: Nanos,
    pause: Nanos,
    before: Stamp,
    after: Stamp,
    retransmitted: u32,
}

/// Intervals between samples.
#[derive(Default)]
struct IntervalCounts {
    /// With retransmissions.
    rising: usize,
    /// Those of them with a stalled exchange.
    rising_stalled: usize,
    quiet: usize,
    quiet_stalled: usize,
    segments: u64,
    retransmitted: u64,
}

impl IntervalCounts {
    /// Probability that as many rising intervals have a stalled exchange if retransmissions have nothing to do with it.
    fn chance(&self) -> f64 {
        let usual_share = (self.quiet_stalled as f64 + 0.5) / (self.quiet as f64 + 1.0);
        chance_of_many(self.rising_stalled, self.rising, usual_share)
    }

    fn are_nearly_all_stalled(&self) -> bool {
        let alike = self.rising >= FEWEST_ALIKE && self.rising_stalled * 10 >= self.rising * 9;
        alike && self.retransmitted.saturating_mul(SEGMENTS) >= self.segments
    }
}

#[derive(Default)]
struct Stalls {
    tally: Tally,
    pauses: Vec<Nanos>,
    retransmitted: u64,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    [Side::Back, Side::Front].into_iter().flat_map(|side| find_on_side(scene, side)).collect()
}

fn find_on_side(scene: &mut Scene<'_, '_>, side: Side) -> Vec<Finding> {
    let view = scene.view;
    let connections = sampled_connections(view, side);
    if !connections.iter().any(|sampled| sampled.intervals.iter().any(|interval| interval.retransmitted > 0)) {
        return Vec::new();
    }
    let (stalls, counts) = find_stalls(view, &connections, side);
    let Some((level, reason)) = weigh_stalls(&stalls, &counts) else { return Vec::new() };
    let of_exchanges = connections.iter().map(|sampled| sampled.exchanges.len() as u64).sum();
    let mut operations: ByOperation<'_, Stalls> = ByOperation::new();
    for stall in &stalls {
        let exchange = stall.sampled.exchange;
        let time = scene.claim_stretch(exchange.call, stall.from, stall.from + stall.pause);
        let stalls = operations.value_of(scene.operation_of(exchange));
        stalls.tally.add_cost(exchange.call, time, 0, 0);
        stalls.tally.prove_events(&[
            (ProofRole::TcpBefore, Some(stall.before)),
            (ProofRole::FirstRequest, stall.sampled.leg.request_start),
            (ProofRole::ReplyHead, stall.sampled.leg.reply_head),
            (ProofRole::TcpAfter, Some(stall.after)),
        ]);
        stalls.pauses.push(stall.pause);
        stalls.retransmitted += u64::from(stall.retransmitted);
    }
    let findings = operations.into_iter().map(|(operation, mut stalls)| {
        let context = PacketLoss {
            way: Way::from(side),
            stalls: stalls.pauses.len() as u64,
            of_exchanges,
            retransmitted: stalls.retransmitted,
            typical: lower_median(&mut stalls.pauses).unwrap_or_default(),
        };
        let severity = stalls.tally.median_severity();
        let confidence = scene.confidence_for(level, reason);
        let disproof = Disproof::RepeatBesidePeer;
        stalls.tally.into_finding(Cause::PacketLoss(context), operation, severity, confidence, disproof)
    });
    findings.collect()
}

/// How sure the stalls are lost segments; `None` where chance may have brought them together.
fn weigh_stalls(stalls: &[Stall<'_, '_>], counts: &IntervalCounts) -> Option<(Level, Reason)> {
    let chance = counts.chance();
    let sent_twice = |stall: &Stall<'_, '_>| stall.retransmitted >= 2 && stall.pause >= DOUBLED_PAUSE;
    match counts.rising_stalled {
        0 => None,
        1 => (chance < SELDOM_ONCE && stalls.iter().any(sent_twice)).then_some((Level::Low, Reason::SeenOnce)),
        number if chance < RARE && number >= SURE => Some((Level::High, Reason::CountedByKernel)),
        _ if chance < RARE => Some((Level::Medium, Reason::CountedByKernel)),
        _ => (chance < SELDOM || counts.are_nearly_all_stalled()).then_some((Level::Low, Reason::CountedByKernel)),
    }
}

fn find_stalls<'v, 'a>(
    view: &View<'a>,
    connections: &'v [SampledConnection<'v, 'a>],
    side: Side,
) -> (Vec<Stall<'v, 'a>>, IntervalCounts) {
    let usual = usual_times(view, connections, side);
    let (mut stalls, mut counts) = (Vec::new(), IntervalCounts::default());
    for sampled in connections {
        // The difference of the number of stalled exchanges from each interval to the next.
        let mut stalled_from = vec![0_i64; sampled.intervals.len() + 1];
        for exchange in &sampled.exchanges {
            let Some(waited) = wait_of(view, sampled, exchange, side) else { continue };
            let usual = request_kind(exchange.exchange).and_then(|kind| usual.get(&kind));
            let Some(pause) = usual.map(|usual| waited.duration().since(*usual)).filter(|pause| *pause >= PAUSE) else {
                continue;
            };
            let touched = sampled.intervals_between(waited.from, waited.resent_until);
            stalled_from[touched.start] += 1;
            stalled_from[touched.end] -= 1;
            let rising = sampled.intervals[touched].iter().find(|interval| interval.retransmitted > 0);
            stalls.extend(rising.map(|interval| Stall {
                sampled: exchange,
                from: waited.pause_from,
                pause,
                before: interval.before,
                after: interval.after,
                retransmitted: interval.retransmitted,
            }));
        }
        let mut stalled = 0;
        for (interval, change) in sampled.intervals.iter().zip(stalled_from) {
            stalled += change;
            let (number, with_stall) = match interval.retransmitted {
                0 => (&mut counts.quiet, &mut counts.quiet_stalled),
                _ => (&mut counts.rising, &mut counts.rising_stalled),
            };
            *number += 1;
            counts.segments += u64::from(interval.segments);
            counts.retransmitted += u64::from(interval.retransmitted);
            *with_stall += usize::from(stalled > 0);
        }
    }
    (stalls, counts)
}

/// The time of an exchange in which a lost segment would hold it up.
struct Wait {
    from: Nanos,
    to: Nanos,
    /// Where the pause of a lost segment begins.
    pause_from: Nanos,
    /// A segment that held the exchange up was sent again before.
    resent_until: Nanos,
}

impl Wait {
    fn duration(&self) -> Nanos {
        self.to.since(self.from)
    }
}

fn wait_of(
    view: &View<'_>,
    sampled: &SampledConnection<'_, '_>,
    SampledExchange { exchange, leg }: &SampledExchange<'_, '_>,
    side: Side,
) -> Option<Wait> {
    let end = leg.result_end.or(leg.end)?;
    if side == Side::Front {
        // The reply is with the recorder's kernel: when the client has it shows where the client's program tells.
        let call = exchange.call.and_then(|call| view.call(call));
        let last = call.filter(|call| call.exchanges.last() == Some(&exchange.id));
        let returned = last.and_then(|call| call.end).map_or(end.at, |returned| returned.at.max(end.at));
        return Some(Wait { from: leg.reply_head?.at, to: returned, pause_from: end.at, resent_until: returned });
    }
    // A lost segment of the handshake holds up the first request, if that is there already.
    let SampledConnection { connection, .. } = sampled;
    let first = connection.first_exchange == Some(exchange.id);
    let sent = exchange.sent().at;
    let is_awaited = first && connection.ready().is_some_and(|ready| ready.at > sent);
    let begun = connection.begun().filter(|_| is_awaited).map(|begun| begun.at.max(sent));
    let from = begun.or(leg.request_start.map(|start| start.at))?;
    let pause_from = if is_awaited { from } else { leg.request_end?.at };
    let resent_until = leg.reply_head.unwrap_or(end).at;
    Some(Wait { from, to: end.at, pause_from, resent_until })
}

/// The usual time of each kind of request: the median of those during which nothing was sent again, where there are some.
fn usual_times<'a>(
    view: &View<'a>,
    connections: &[SampledConnection<'_, 'a>],
    side: Side,
) -> HashMap<RequestKind<'a>, Nanos> {
    let mut times: HashMap<_, (Vec<Nanos>, Vec<Nanos>)> = HashMap::new();
    for sampled in connections {
        let rising = rising_before(&sampled.intervals);
        for exchange in &sampled.exchanges {
            let Some((kind, waited)) = request_kind(exchange.exchange).zip(wait_of(view, sampled, exchange, side))
            else {
                continue;
            };
            let touched = sampled.intervals_between(waited.from, waited.resent_until);
            let (quiet, others) = times.entry(kind).or_default();
            let is_quiet = rising[touched.end] == rising[touched.start];
            if is_quiet { quiet.push(waited.duration()) } else { others.push(waited.duration()) }
        }
    }
    let usual = |(mut quiet, mut others): (Vec<Nanos>, Vec<Nanos>)| {
        lower_median(&mut quiet).or_else(|| lower_median(&mut others))
    };
    times.into_iter().filter_map(|(kind, times)| Some((kind, usual(times)?))).collect()
}

/// How many intervals before each one have retransmissions.
fn rising_before(intervals: &[SampleInterval]) -> Vec<usize> {
    let rising = intervals.iter().scan(0, |rising, interval| {
        *rising += usize::from(interval.retransmitted > 0);
        Some(*rising)
    });
    std::iter::once(0).chain(rising).collect()
}
