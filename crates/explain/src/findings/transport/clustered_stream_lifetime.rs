//! `clustered-stream-lifetime`: streams end at one fixed age, or after one fixed silence: a client's time-out for
//! bodies (undici's 300 s, typescript-sdk #270) or an edge that cuts idle streams (cloudflare agents #1583). The side
//! that closes tells which.
//!
//! A stream that ends with its client's session ends rightly: only ends after which the session goes on count, and replies
//! that end without their result. Requests that `client-time-out` names are left out.

use std::collections::{HashMap, HashSet};

use mcpace_record::{Closer, ExchangeId, Nanos, ReplyEnding};

use super::{ClusteredStreamLifetime, CountedFrom};
use crate::findings::equal_ages;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::waiting::time_outs::{TimeOut, find_time_outs};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason, Severity};
use crate::view::{Exchange, ReplyShape, Stamp, View};

/// A younger stream is a poll, or a `get-loop`.
const YOUNGEST: Nanos = Nanos::from_millis(5_000);

/// How long the end of a stream that was given up may take to be seen.
const LEAVE: Nanos = Nanos::from_millis(1_000);

/// Ends that are no chance.
const FEWEST: usize = 3;

/// Ages of one time-out differ by its clock's steps and the way, whatever their size.
const SPREAD: Nanos = Nanos::from_millis(250);

#[derive(Default)]
struct Ends {
    tally: Tally,
    streams: u64,
    without_result: u64,
}

/// A stream that ended before its time.
struct Cut<'e, 'a> {
    exchange: &'e Exchange<'a>,
    begun: Stamp,
    last: Stamp,
    end: Stamp,
    by: Closer,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let named: HashSet<ExchangeId> = find_time_outs(scene).iter().flat_map(TimeOut::exchange_ids).collect();
    let mut cuts = stream_cuts(scene.view);
    cuts.retain(|cut| !named.contains(&cut.exchange.id));
    let by = |closer| cuts.iter().filter(|cut| cut.by == closer).collect::<Vec<_>>();
    let mut found = Vec::new();
    for closer in [Closer::Client, Closer::Server] {
        let cuts = by(closer);
        let clusters = [
            (CountedFrom::LastEvent, largest_cluster(&cuts, |cut| cut.end.at.since(cut.last.at))),
            (CountedFrom::Beginning, largest_cluster(&cuts, |cut| cut.end.at.since(cut.begun.at))),
        ];
        // Streams that were silent throughout have the same age and silence. `max_by_key` returns the last of equal
        // clusters, which is the weaker claim.
        let best = clusters.into_iter().max_by_key(|(_, cluster)| cluster.len());
        if let Some((from, cluster)) = best.filter(|(_, cluster)| cluster.len() >= FEWEST) {
            found.extend(make_findings(scene, &cluster, from, closer));
        }
    }
    found
}

/// The most cuts whose ages are alike; none where most are not.
fn largest_cluster<'c, 'e, 'a>(
    cuts: &[&'c Cut<'e, 'a>],
    age: impl Fn(&Cut<'e, 'a>) -> Nanos,
) -> Vec<(&'c Cut<'e, 'a>, Nanos)> {
    let ages = cuts.iter().map(|cut| (*cut, age(cut))).filter(|(_, age)| *age >= YOUNGEST);
    equal_ages::largest_cluster(ages, |age| SPREAD.max(Nanos(age.0 / 50)))
}

fn stream_cuts<'e, 'a>(view: &'e View<'a>) -> Vec<Cut<'e, 'a>> {
    let (mut messages, mut streams) = (HashMap::new(), HashMap::new());
    for exchange in &view.exchanges {
        if exchange.is_message() {
            messages.insert(exchange.session_sent(), exchange.start);
        } else if exchange.is_standalone_stream() {
            streams.insert(exchange.session_sent(), exchange.start);
        }
    }
    // A client opens its next stream while it still takes leave of the one before.
    let goes_on = |exchange: &Exchange<'_>, end: Stamp| {
        let opened = streams.get(&exchange.session_sent()).filter(|next| next.event > exchange.start.event);
        opened.is_some_and(|next| next.at + LEAVE >= end.at)
            || messages.get(&exchange.session_sent()).is_some_and(|next| next.event > end.event)
    };
    let cut = view.exchanges.iter().filter_map(|exchange| {
        let near = exchange.near()?;
        let (begun, end) = (near.reply_head?, near.end?);
        let by = match exchange.ending? {
            ReplyEnding::ClientLeft => Closer::Client,
            ReplyEnding::ServerBroke | ReplyEnding::Complete => Closer::Server,
            ReplyEnding::NoReply | ReplyEnding::Cut => return None,
        };
        let unanswered = exchange.asks() && exchange.answer.is_none();
        let reopened = exchange.is_standalone_stream() && goes_on(exchange, end);
        let last =
            exchange.events.iter().filter_map(|event| event.passed().or(event.read())).next_back().unwrap_or(begun);
        let stream = exchange.shape == ReplyShape::Events && exchange.status == Some(200);
        (stream && (unanswered || reopened)).then_some(Cut { exchange, begun, last, end, by })
    });
    cut.collect()
}

fn make_findings(
    scene: &mut Scene<'_, '_>,
    cluster: &[(&Cut<'_, '_>, Nanos)],
    counted_from: CountedFrom,
    closed_by: Closer,
) -> Vec<Finding> {
    let age = cluster[cluster.len() / 2].1;
    let mut operations: ByOperation<'_, Ends> = ByOperation::new();
    for (cut, _) in cluster {
        let exchange = cut.exchange;
        let lost = exchange.asks();
        let time = if lost { scene.claim_stretch(exchange.call, exchange.sent().at, cut.end.at) } else { Nanos::ZERO };
        let ends = operations.value_of(scene.operation_of(exchange));
        ends.tally.add_cost(exchange.call, time, 1, 0);
        ends.tally.prove_events(&[(ProofRole::StreamHead, Some(cut.begun)), (ProofRole::StreamEnded, Some(cut.end))]);
        ends.streams += 1;
        ends.without_result += u64::from(lost);
    }
    let disproof = if closed_by == Closer::Client { Disproof::RaiseStreamTimeout } else { Disproof::BypassProxy };
    let found = operations.into_iter().map(|(operation, ends)| {
        let severity = if ends.without_result > 0 { Severity::High } else { Severity::Low };
        let context = ClusteredStreamLifetime {
            streams: ends.streams,
            without_result: ends.without_result,
            age,
            counted_from,
            closed_by,
        };
        let confidence = scene.confidence_for(Level::High, Reason::Repeated);
        let cause = Cause::ClusteredStreamLifetime(context);
        ends.tally.into_finding(cause, operation, severity, confidence, disproof)
    });
    found.collect()
}
