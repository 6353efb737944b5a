//! `distant-server`: the way to the server and back takes a notable part of each call.
//!
//! The kernel's shortest round-trip time is the network's alone. The smoothed one is no measure: acknowledgements that the
//! peer's kernel delays are in it. An exchange takes one round trip, and one more where its connection is opened for it, two
//! with TLS.

use std::collections::{BTreeMap, HashMap};

use mcpace_record::{CallId, ExchangeId, Nanos, Side};

use super::DistantServer;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason};
use crate::median::lower_median;
use crate::view::{Exchange, Stamp, View};

/// A shorter way stays in the building.
const SHORTEST: Nanos = Nanos::from_millis(1);

/// A cost of this size is notable, whatever part of the call it is; a smaller one if it is this part of a tool's call.
const LONG: Nanos = Nanos::from_millis(20);
const PART: u64 = 10;

/// A round trip to one address, with the sample that has it.
#[derive(Clone, Copy)]
struct RoundTrip {
    time: Nanos,
    at: Stamp,
}

/// An exchange's way to the server and back.
struct Trip<'v, 'a> {
    exchange: &'v Exchange<'a>,
    round_trip: RoundTrip,
    /// From the first to the last moment of a connection's opening, and its round trips.
    opening: Option<(Nanos, Nanos, u64)>,
    request_end: Stamp,
    result_start: Stamp,
}

impl Trip<'_, '_> {
    fn round_trips(&self) -> u64 {
        1 + self.opening.map_or(0, |(_, _, trips)| trips)
    }
}

/// A call, or an exchange that belongs to none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Call(CallId),
    Exchange(ExchangeId),
}

#[derive(Default)]
struct Journeys<'v, 'a> {
    /// Duration, and cost of the round trips.
    calls: Vec<(Nanos, Nanos)>,
    calls_tools: bool,
    trips: Vec<Trip<'v, 'a>>,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut operations: ByOperation<'_, Journeys<'_, '_>> = ByOperation::new();
    for (unit, trips) in trips_by_unit(scene.view) {
        let cost = trips
            .iter()
            .fold(0_u64, |sum, trip| sum.saturating_add(trip.round_trip.time.0.saturating_mul(trip.round_trips())));
        let Some(duration) = unit_duration(scene.view, unit, &trips) else { continue };
        let journeys = operations.value_of(trips.first().and_then(|trip| scene.operation_of(trip.exchange)));
        journeys.calls.push((duration, Nanos(cost)));
        journeys.calls_tools |= trips.iter().any(|trip| trip.exchange.requests("tools/call"));
        journeys.trips.extend(trips);
    }
    operations.into_iter().filter_map(|(operation, journeys)| make_finding(scene, operation, journeys)).collect()
}

/// The shortest round trip to each address of a server.
fn round_trips<'v>(view: &'v View<'_>) -> HashMap<&'v str, RoundTrip> {
    let mut shortest: HashMap<&str, RoundTrip> = HashMap::new();
    for connection in view.connections.iter().filter(|connection| connection.side == Side::Back) {
        for sample in connection.samples.iter().filter(|sample| sample.info.min_rtt > Nanos::ZERO) {
            let found = RoundTrip { time: sample.info.min_rtt, at: sample.at };
            let known = shortest.entry(connection.address).or_insert(found);
            if found.time < known.time {
                *known = found;
            }
        }
    }
    shortest.retain(|_, round_trip| round_trip.time >= SHORTEST);
    shortest
}

fn trips_by_unit<'v, 'a>(view: &'v View<'a>) -> BTreeMap<Unit, Vec<Trip<'v, 'a>>> {
    let round_trips = round_trips(view);
    let mut units: BTreeMap<Unit, Vec<Trip<'v, 'a>>> = BTreeMap::new();
    if round_trips.is_empty() {
        return units;
    }
    // Without the program's marks, each request of a tool is a call; of a host that calls none, each request.
    let calls_tools = view.exchanges.iter().any(|exchange| exchange.requests("tools/call"));
    for exchange in view.exchanges.iter().filter(|exchange| exchange.is_message()) {
        let is_alone = if calls_tools { exchange.requests("tools/call") } else { exchange.asks() };
        let unit = match exchange.call {
            Some(call) => Unit::Call(call),
            None if is_alone && exchange.succeeded() => Unit::Exchange(exchange.id),
            None => continue,
        };
        if let Some(trip) = trip_of(view, exchange, &round_trips) {
            units.entry(unit).or_default().push(trip);
        }
    }
    units
}

fn trip_of<'v, 'a>(
    view: &'v View<'a>,
    exchange: &'v Exchange<'a>,
    round_trips: &HashMap<&str, RoundTrip>,
) -> Option<Trip<'v, 'a>> {
    let leg = exchange.back()?;
    let round_trip = *round_trips.get(view.connection(leg.conn?)?.address)?;
    let opening = view.opened_for(exchange).and_then(|opened| {
        let trips = if opened.secured.is_some() { 2 } else { 1 };
        Some((opened.connecting?.at, opened.ready()?.at, trips))
    });
    let result_start = leg.result_start.or(leg.reply_head)?;
    Some(Trip { exchange, round_trip, opening, request_end: leg.request_end?, result_start })
}

fn unit_duration(view: &View<'_>, unit: Unit, trips: &[Trip<'_, '_>]) -> Option<Nanos> {
    match unit {
        Unit::Call(call) => {
            let call = view.call(call)?;
            Some(call.end?.at.since(call.start.at))
        }
        Unit::Exchange(_) => {
            let exchange = trips.first()?.exchange;
            Some(exchange.completed()?.at.since(exchange.sent().at))
        }
    }
}

fn make_finding(scene: &mut Scene<'_, '_>, operation: Option<&str>, journeys: Journeys<'_, '_>) -> Option<Finding> {
    let Journeys { calls, calls_tools, trips } = journeys;
    let (mut durations, mut costs): (Vec<_>, Vec<_>) = calls.into_iter().unzip();
    let (typical, cost) = (lower_median(&mut durations)?, lower_median(&mut costs)?);
    let is_notable = cost >= LONG || calls_tools && cost.0 >= typical.0 / PART;
    if !is_notable {
        return None;
    }
    let mut tally = Tally::default();
    let round_trip = trips.iter().map(|trip| trip.round_trip).min_by_key(|round_trip| round_trip.time)?;
    tally.prove_events(&[(ProofRole::TcpAfter, Some(round_trip.at))]);
    let mut connections = 0;
    for Trip { exchange, round_trip, opening, request_end, result_start } in &trips {
        // The way back is charged with the whole round trip: where in between the server begins is not seen.
        let left = Nanos(result_start.at.0.saturating_sub(round_trip.time.0)).max(request_end.at);
        let mut time = scene.claim_stretch(exchange.call, left, result_start.at);
        if let Some((from, to, trips)) = opening {
            let to = (*to).min(Nanos(from.0.saturating_add(round_trip.time.0.saturating_mul(*trips))));
            time = time + scene.claim_stretch(exchange.call, *from, to);
            connections += 1;
        }
        tally.add_cost(exchange.call, time, 0, 0);
        tally.prove_events(&[
            (ProofRole::FirstRequest, Some(*request_end)),
            (ProofRole::AnswerBegan, Some(*result_start)),
        ]);
    }
    let context = DistantServer {
        round_trip: round_trip.time,
        round_trips: cost.0 / round_trip.time.0.max(1),
        connections,
        of_calls: durations.len() as u64,
        typical,
    };
    let severity = tally.median_severity();
    let confidence = scene.confidence_for(Level::High, Reason::CountedByKernel);
    let cause = Cause::DistantServer(context);
    Some(tally.into_finding(cause, operation, severity, confidence, Disproof::RepeatBesidePeer))
}
