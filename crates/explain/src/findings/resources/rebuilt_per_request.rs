//! `rebuilt-per-request`: the processor time of each request grows with the number of tools: schemas or catalogues are built
//! anew each time (go-sdk #685 before 1.3.0; python-sdk #3133 in the client, where there is an output schema).
//!
//! Needs recordings of the same program with few tools and with many, side by side, and samples of its process in each. Each
//! process is a point: how many tools it listed, and what a request took of its processor.

use std::collections::HashSet;

use mcpace_record::{Digest, Nanos, Peer};

use crate::findings::scene::Scene;
use crate::findings::tally::Tally;
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason, RebuiltPerRequest, Severity};
use crate::view::{Exchange, Look, Stamp, Usage};

/// Requests of a process below which its time a request is chance.
const FEWEST: u64 = 20;

/// How many more tools there must be, as a factor and in number.
const MORE_TOOLS: (u64, u64) = (4, 20);

/// How much more a request must take, as a factor and in time.
const MORE_TIME: (u64, Nanos) = (2, Nanos::from_micros(300));

/// Listings take longer with more tools by right: at most one request in so many may be one.
const SELDOM_LISTED: u64 = 10;

/// One process: what it listed and what it used.
struct Point {
    tools: u64,
    requests: u64,
    each: Nanos,
    listed: Stamp,
    first: Look,
    last: Look,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let sides = [Peer::Server, Peer::Client];
    sides.into_iter().filter_map(|of| find_side(scene, of)).collect()
}

fn find_side(scene: &Scene<'_, '_>, of: Peer) -> Option<Finding> {
    let mut points = process_points(scene, of);
    points.sort_by_key(|point| point.tools);
    let (few, many) = (points.first()?, points.last()?);
    let more_tools = many.tools >= few.tools.saturating_mul(MORE_TOOLS.0).max(few.tools + MORE_TOOLS.1);
    let more_time = many.each.0 >= few.each.0.saturating_mul(MORE_TIME.0) && many.each.since(few.each) >= MORE_TIME.1;
    let rises = points.windows(2).all(|two| two[0].tools == two[1].tools || two[1].each >= two[0].each);
    if !more_tools || !more_time || !rises {
        return None;
    }
    let mut tally = Tally::default();
    let extra = many.each.since(few.each);
    tally.add_cost(None, Nanos(extra.0.saturating_mul(many.requests)), 0, 0);
    for point in [few, many] {
        tally.prove_events(&[
            (ProofRole::Listing, Some(point.listed)),
            (ProofRole::ProcessorBefore, Some(point.first.at)),
            (ProofRole::ProcessorAfter, Some(point.last.at)),
        ]);
    }
    let context = RebuiltPerRequest {
        of,
        few_tools: few.tools,
        many_tools: many.tools,
        requests: many.requests,
        each_with_few: few.each,
        each_with_many: many.each,
    };
    let level = if points.len() > 2 { Level::High } else { Level::Medium };
    let severity = if extra >= Nanos::from_millis(10) { Severity::Medium } else { Severity::Low };
    let confidence = scene.confidence_for(level, Reason::RisesWithTools);
    Some(tally.into_finding(
        Cause::RebuiltPerRequest(context),
        None,
        severity,
        confidence,
        Disproof::ChangeNumberOfTools,
    ))
}

/// Processes of one side that had the wire to themselves.
fn process_points(scene: &Scene<'_, '_>, of: Peer) -> Vec<Point> {
    let mut processes: Vec<(&Usage, Look, Look)> = Vec::new();
    for usage in scene.view.usage.iter().filter(|usage| usage.of == of) {
        if let (Some(first), Some(last)) = (usage.looks.first(), usage.looks.last()) {
            processes.push((usage, *first, *last));
        }
    }
    processes.sort_by_key(|(_, first, _)| first.at.at);
    let exchanges = &scene.view.exchanges;
    let mut latest = Nanos::ZERO;
    let mut points = Vec::new();
    for (position, (_, first, last)) in processes.iter().enumerate() {
        let alone =
            first.at.at >= latest && processes.get(position + 1).is_none_or(|(_, next, _)| next.at.at >= last.at.at);
        latest = latest.max(last.at.at);
        if alone {
            // Exchanges are in the order of their events, and so are the looks.
            let from = exchanges.partition_point(|exchange| exchange.start.event < first.at.event);
            let to = exchanges.partition_point(|exchange| exchange.start.event < last.at.event);
            points.extend(exchanges.get(from..to).and_then(|within| process_point(within, *first, *last)));
        }
    }
    points
}

fn process_point(within: &[Exchange<'_>], first: Look, last: Look) -> Option<Point> {
    let (mut known, mut tools, mut listings, mut listed): (HashSet<Option<Digest>>, _, _, _) =
        (HashSet::new(), 0, 0, None);
    for listing in within.iter().filter(|exchange| exchange.requests("tools/list")) {
        let answer = listing.answer?;
        listings += 1;
        listed = listed.or(Some(listing.sent()));
        if known.insert(answer.content) {
            tools += u64::from(answer.tools()?);
        }
    }
    let requests = within.iter().filter(|exchange| exchange.asks()).count() as u64;
    if requests < FEWEST || listings * SELDOM_LISTED > requests {
        return None;
    }
    let each = Nanos(last.cpu.since(first.cpu).0 / requests);
    Some(Point { tools, requests, each, listed: listed?, first, last })
}
