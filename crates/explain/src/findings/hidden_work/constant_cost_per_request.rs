//! `constant-cost-per-request`: the same extra time on every request, whatever it asks, notifications included: a token that
//! is looked up elsewhere, or session ids that are costly to open (fastmcp #3285; envoy ai-gateway #1598).
//!
//! A distant server looks just the same, so that a floor under all requests proves nothing. The proof is a control in
//! the same recording: requests to the same server without a token, or without a session, that come back much sooner.

use std::collections::{BTreeMap, HashSet};

use mcpace_record::Nanos;

use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, ConstantCostPerRequest, Disproof, Finding, Follows, Level, Reason, Role};
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
struct Wait<'s, 'a> {
    exchange: &'s Exchange<'a>,
    received: Stamp,
    head: Stamp,
}

impl Wait<'_, '_> {
    fn time(&self) -> Nanos {
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
    dear: Vec<&'w Wait<'s, 'a>>,
    quick: &'w Wait<'s, 'a>,
    controls: usize,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let waits: Vec<Wait<'_, '_>> = scene.view.exchanges.iter().filter_map(wait).collect();
    let session = |e: &Exchange<'_>| e.is_message().then_some(e.session_sent().is_some());
    let token = |e: &Exchange<'_>| Some(e.authorization().is_some());
    // A session's beginning has the token already: if it is quick, the token costs nothing.
    let cost = compare(&waits, Follows::Session, session).or_else(|| compare(&waits, Follows::Token, token));
    cost.map_or_else(Vec::new, |cost| conclude(scene, &cost))
}

fn wait<'s, 'a>(exchange: &'s Exchange<'a>) -> Option<Wait<'s, 'a>> {
    // The standalone stream's head may come late, and an OAuth endpoint has work of its own.
    let other = exchange.is_standalone_stream() || exchange.sends_form() || exchange.transport != Transport::Http;
    let leg = exchange.back().filter(|_| !other)?;
    Some(Wait { exchange, received: leg.request_end?, head: leg.reply_head? })
}

/// Whether messages that have something take a time that those without don't.
fn compare<'w, 's, 'a>(
    waits: &'w [Wait<'s, 'a>],
    follows: Follows,
    has: impl Fn(&Exchange<'a>) -> Option<bool> + Copy,
) -> Option<Cost<'w, 's, 'a>> {
    // An answer to what the server asked has no method, and is of no kind.
    let served = |w: &&Wait<'_, '_>| w.method().is_some() && matches!(w.exchange.status, Some(200..=299));
    let with = |has_it: bool| waits.iter().filter(move |w| has(w.exchange) == Some(has_it));
    let dear: Vec<_> = with(true).filter(served).collect();
    let mut controls: Vec<_> = with(false).collect();
    if dear.len() < FEWEST.0 || controls.len() < FEWEST_CONTROLS {
        return None;
    }
    controls.sort_by_key(|w| w.time());
    let quick = controls[controls.len() / 2];
    let mut floors: BTreeMap<&str, (Nanos, bool)> = BTreeMap::new();
    for wait in &dear {
        let floor = floors.entry(wait.method()?).or_insert((wait.time(), !wait.exchange.asks()));
        floor.0 = floor.0.min(wait.time());
    }
    let floor = floors.values().map(|(floor, _)| *floor).min()?;
    // Kinds of request near the floor: methods that do more take longer, but several kinds do hardly anything else.
    let near = |time: Nanos| time.0 <= floor.0.saturating_add(floor.0 / 2);
    let level = floors.values().filter(|(time, _)| near(*time)).count();
    let notifies = floors.values().any(|(time, notification)| *notification && near(*time));
    let dearer = floor.since(quick.time()) >= SHORTEST && floor.0 >= quick.time().0.saturating_mul(TIMES_CONTROL);
    let kinds = floors.len();
    (level >= FEWEST.1 && notifies && dearer).then_some(Cost {
        follows,
        floor,
        control: quick.time(),
        kinds,
        dear,
        quick,
        controls: controls.len(),
    })
}

fn conclude(scene: &mut Scene<'_, '_>, cost: &Cost<'_, '_, '_>) -> Vec<Finding> {
    let extra = cost.floor.since(cost.control);
    let mut operations: ByOperation<'_, Tally> = ByOperation::new();
    for wait in &cost.dear {
        let time = scene.claim(wait.exchange.call, wait.received.at, wait.received.at + extra);
        let tally = operations.of(scene.operation(wait.exchange));
        tally.cost(wait.exchange.call, time, 0, 0);
        tally.prove(&[(Role::RequestReceived, Some(wait.received)), (Role::ReplyHead, Some(wait.head))]);
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
            tally.prove(&[
                (Role::ControlReceived, Some(cost.quick.received)),
                (Role::ControlReplyHead, Some(cost.quick.head)),
            ]);
            let severity = tally.severity();
            let confidence = scene.confidence(level, Reason::ControlIsQuick);
            tally.finding(Cause::ConstantCostPerRequest(context.clone()), operation, severity, confidence, disproof)
        })
        .collect()
}
