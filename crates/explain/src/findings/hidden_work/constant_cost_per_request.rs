//! `constant-cost-per-request`: the same extra time on every request, whatever it asks, notifications included: a token that
//! is looked up elsewhere, or session ids that are costly to open (fastmcp #3285; envoy ai-gateway #1598).
//!
//! A distant server looks just the same, so that a floor under all requests proves nothing. The proof is a control in
//! the same recording: requests to the same server without a token, or without a session, that come back much sooner.

use std::collections::{BTreeMap, HashSet};

use mcpace_record::Nanos;

use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, ConstantCostPerRequest, Disproof, Finding, Follows, Level, ProofRole, Reason};
use crate::view::{Exchange, Stamp, Transport};

/// Requests, and kinds of them, below which nothing is concluded.
const FEWEST: (usize, usize) = (8, 3);

/// Requests without the token or session that must be there to compare with.
const FEWEST_CONTROLS: usize = 2;

/// A difference below this is the server's usual unevenness.
const SHORTEST: Nanos = Nanos::from_millis(5);

/// How many times the control's time it must be.
const TIMES_CONTROL: u64 = 3;

/// One request's wait for the server.
struct ServerWait<'s, 'a> {
    exchange: &'s Exchange<'a>,
    received: Stamp,
    head: Stamp,
}

impl ServerWait<'_, '_> {
    fn wait_time(&self) -> Nanos {
        self.head.at.since(self.received.at)
    }

    fn method(&self) -> Option<&str> {
        self.exchange.messages.first()?.method()
    }
}

struct Cost<'w, 's, 'a> {
    follows: Follows,
    floor: Nanos,
    control: Nanos,
    kinds: usize,
    dear: Vec<&'w ServerWait<'s, 'a>>,
    quick: &'w ServerWait<'s, 'a>,
    controls: usize,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let waits: Vec<ServerWait<'_, '_>> = scene.view.exchanges.iter().filter_map(server_wait).collect();
    let session = |e: &Exchange<'_>| e.is_message().then_some(e.session_sent().is_some());
    let token = |e: &Exchange<'_>| Some(e.authorization().is_some());
    // A session's beginning has the token already: if it is quick, the token costs nothing.
    let cost =
        compare_waits(&waits, Follows::Session, session).or_else(|| compare_waits(&waits, Follows::Token, token));
    cost.map_or_else(Vec::new, |cost| make_findings(scene, &cost))
}

fn server_wait<'s, 'a>(exchange: &'s Exchange<'a>) -> Option<ServerWait<'s, 'a>> {
    // The standalone stream's head may come late, and an OAuth endpoint has work of its own.
    let other = exchange.is_standalone_stream() || exchange.sends_form() || exchange.transport != Transport::Http;
    let leg = exchange.back().filter(|_| !other)?;
    Some(ServerWait { exchange, received: leg.request_end?, head: leg.reply_head? })
}

/// Whether messages that have something take a time that those without don't.
fn compare_waits<'w, 's, 'a>(
    waits: &'w [ServerWait<'s, 'a>],
    follows: Follows,
    has: impl Fn(&Exchange<'a>) -> Option<bool> + Copy,
) -> Option<Cost<'w, 's, 'a>> {
    // An answer to what the server asked has no method, and is of no kind.
    let served = |w: &&ServerWait<'_, '_>| w.method().is_some() && matches!(w.exchange.status, Some(200..=299));
    let with = |has_it: bool| waits.iter().filter(move |w| has(w.exchange) == Some(has_it));
    let dear: Vec<_> = with(true).filter(served).collect();
    let mut controls: Vec<_> = with(false).collect();
    if dear.len() < FEWEST.0 || controls.len() < FEWEST_CONTROLS {
        return None;
    }
    controls.sort_by_key(|w| w.wait_time());
    let quick = controls[controls.len() / 2];
    let mut floors: BTreeMap<&str, (Nanos, bool)> = BTreeMap::new();
    for wait in &dear {
        let floor = floors.entry(wait.method()?).or_insert((wait.wait_time(), !wait.exchange.asks()));
        floor.0 = floor.0.min(wait.wait_time());
    }
    let floor = floors.values().map(|(floor, _)| *floor).min()?;
    // Kinds of request near the floor: methods that do more take longer, but several kinds do hardly anything else.
    let near = |time: Nanos| time.0 <= floor.0.saturating_add(floor.0 / 2);
    let level = floors.values().filter(|(time, _)| near(*time)).count();
    let notifies = floors.values().any(|(time, notification)| *notification && near(*time));
    let dearer =
        floor.since(quick.wait_time()) >= SHORTEST && floor.0 >= quick.wait_time().0.saturating_mul(TIMES_CONTROL);
    let kinds = floors.len();
    (level >= FEWEST.1 && notifies && dearer).then_some(Cost {
        follows,
        floor,
        control: quick.wait_time(),
        kinds,
        dear,
        quick,
        controls: controls.len(),
    })
}

fn make_findings(scene: &mut Scene<'_, '_>, cost: &Cost<'_, '_, '_>) -> Vec<Finding> {
    let extra = cost.floor.since(cost.control);
    let mut operations: ByOperation<'_, Tally> = ByOperation::new();
    for wait in &cost.dear {
        let time = scene.claim_stretch(wait.exchange.call, wait.received.at, wait.received.at + extra);
        let tally = operations.value_of(scene.operation_of(wait.exchange));
        tally.add_cost(wait.exchange.call, time, 0, 0);
        tally.prove_events(&[
            (ProofRole::RequestReceived, Some(wait.received)),
            (ProofRole::ReplyHead, Some(wait.head)),
        ]);
    }
    let context = ConstantCostPerRequest {
        follows: cost.follows,
        requests: cost.dear.len() as u64,
        kinds: cost.kinds as u64,
        floor: cost.floor,
        without: cost.control,
    };
    let addresses: HashSet<&str> =
        cost.dear.iter().filter_map(|w| Some(scene.view.connection(w.exchange.back()?.conn?)?.address)).collect();
    // Another address is another server, or another way to it.
    let compared = cost.quick.exchange.back().and_then(|leg| scene.view.connection(leg.conn?));
    let same = compared.is_none_or(|connection| addresses.is_empty() || addresses.contains(connection.address));
    let level = if same && cost.controls > FEWEST_CONTROLS { Level::High } else { Level::Medium };
    let disproof = match cost.follows {
        Follows::Token => Disproof::CallWithoutToken,
        Follows::Session => Disproof::CallWithoutSession,
    };
    operations
        .into_iter()
        .map(|(operation, mut tally)| {
            tally.prove_events(&[
                (ProofRole::ControlReceived, Some(cost.quick.received)),
                (ProofRole::ControlReplyHead, Some(cost.quick.head)),
            ]);
            let severity = tally.median_severity();
            let confidence = scene.confidence_for(level, Reason::ControlIsQuick);
            tally.into_finding(
                Cause::ConstantCostPerRequest(context.clone()),
                operation,
                severity,
                confidence,
                disproof,
            )
        })
        .collect()
}
