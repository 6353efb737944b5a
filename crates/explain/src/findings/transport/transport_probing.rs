//! `transport-probing`: on every connect a POST that is refused, and then a GET: the client tries out which transport the
//! server speaks, and forgets (csharp-sdk #456).

use std::collections::HashMap;

use mcpace_record::{ConnectionId, Nanos};

use super::TransportProbing;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason};
use crate::view::{Exchange, Transport, View};

/// Once, a client must find out.
const FEWEST: usize = 2;

/// The GET follows the refusal, not something else.
const FOLLOWS: Nanos = Nanos::from_millis(5_000);

#[derive(Default)]
struct Probes {
    tally: Tally,
    probes: u64,
    status: u16,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let probes = find_probes(scene.view);
    if probes.len() < FEWEST {
        return Vec::new();
    }
    let mut operations: ByOperation<'_, Probes> = ByOperation::new();
    for (refused, stream) in probes {
        let time = scene.claim_stretch(refused.call, refused.sent().at, stream.sent().at);
        let probes = operations.value_of(scene.operation_of(refused));
        probes.tally.add_cost(refused.call, time, 1, refused.bytes());
        probes.tally.prove_events(&[
            (ProofRole::FirstRequest, Some(refused.sent())),
            (ProofRole::Refused, refused.near().and_then(|near| near.reply_head)),
            (ProofRole::StreamRequest, Some(stream.sent())),
        ]);
        probes.probes += 1;
        probes.status = refused.status.unwrap_or_default();
    }
    operations.into_iter().map(|(operation, probes)| make_finding(scene, operation, probes)).collect()
}

/// Each refused POST with the GET right after it.
fn find_probes<'e, 'a>(view: &'e View<'a>) -> Vec<(&'e Exchange<'a>, &'e Exchange<'a>)> {
    let (mut found, mut before) = (Vec::new(), None);
    // Other clients may connect meanwhile: on each connection, the message before counts as well.
    let mut before_on: HashMap<Option<ConnectionId>, &Exchange<'_>> = HashMap::new();
    for exchange in view.exchanges.iter().filter(|exchange| exchange.transport == Transport::Http) {
        let connection = exchange.near().and_then(|near| near.conn);
        let candidates: [Option<&Exchange<'_>>; 2] =
            [before.replace(exchange), before_on.insert(connection, exchange).filter(|_| connection.is_some())];
        let probed = |before: &&Exchange<'_>| is_refused(before) && exchange.is_standalone_stream();
        let Some(refused) = candidates.into_iter().flatten().find(probed) else {
            continue;
        };
        let follows = refused.ended().is_some_and(|end| {
            let begun = exchange.sent().at;
            begun >= end.at && begun.since(end.at) <= FOLLOWS
        });
        let same = refused.call == exchange.call && exchange.session_sent().is_none();
        if follows && same {
            found.push((refused, exchange));
        }
    }
    found
}

/// A first message that is refused for what it is: not for want of a token, a session or patience.
fn is_refused(exchange: &Exchange<'_>) -> bool {
    let begins = exchange.requests("initialize") || exchange.requests("server/discover");
    let status = exchange.status.unwrap_or_default();
    begins
        && exchange.session_sent().is_none()
        && matches!(status, 400..=499)
        && !matches!(status, 401 | 403 | 407 | 429)
}

fn make_finding(scene: &Scene<'_, '_>, operation: Option<&str>, probes: Probes) -> Finding {
    let severity = probes.tally.median_severity();
    let context = TransportProbing { probes: probes.probes, status: probes.status };
    let confidence = scene.confidence_for(Level::High, Reason::Repeated);
    let cause = Cause::TransportProbing(context);
    probes.tally.into_finding(cause, operation, severity, confidence, Disproof::NameTransport)
}
