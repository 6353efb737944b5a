//! `discovery-repeated`: OAuth metadata fetched again though nothing had changed (typescript-sdk #1527).
//!
//! A fresh client must fetch it, and so may one whose token was refused. Needless is a fetch that brings the same document
//! again while the same token is in use before and after it, or twice inside one call without a refusal in between, or after
//! a session's second refusal. As many fetches as there were other refusals may be needed, each by another client.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, DiscoveryRepeated, Disproof, Finding, Level, ProofRole, Reason};
use crate::view::Exchange;

#[derive(Default)]
struct Fetches<'a> {
    tally: Tally,
    targets: BTreeSet<&'a str>,
    repeats: u64,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut operations: ByOperation<'_, Fetches<'_>> = ByOperation::new();
    for (first, again) in needless_fetches(&scene.view.exchanges) {
        let fetches = operations.value_of(scene.operation_of(again));
        let from = again.sent();
        let to = again.completed().map_or(from.at, |stamp| stamp.at);
        let time = scene.claim_stretch(again.call, from.at, to);
        fetches.tally.add_cost(again.call, time, 1, again.bytes());
        fetches
            .tally
            .prove_events(&[(ProofRole::Discovery, Some(first.sent())), (ProofRole::RepeatedDiscovery, Some(from))]);
        fetches.targets.insert(again.target());
        fetches.repeats += 1;
    }
    operations.into_iter().map(|(operation, fetches)| make_finding(scene, operation, fetches)).collect()
}

/// Each needless fetch with the one before it.
fn needless_fetches<'e, 'a>(exchanges: &'e [Exchange<'a>]) -> Vec<(&'e Exchange<'a>, &'e Exchange<'a>)> {
    let tokens_after = tokens_after(exchanges);
    let (mut found, mut fetched) = (Vec::new(), HashMap::new());
    let (mut token, mut refused, mut refusals) = (None, 0, 0);
    let (mut refused_sessions, mut refused_again) = (HashSet::new(), false);
    let mut fetches: HashMap<&str, usize> = HashMap::new();
    for (at, exchange) in exchanges.iter().enumerate() {
        if is_discovery(exchange) {
            let earlier: Option<(usize, &Exchange<'_>)> = fetched.insert(exchange.target(), (at, exchange));
            let fetches = fetches.entry(exchange.target()).or_default();
            // Each refusal may be that of another client, which has to find out for itself.
            let owed = *fetches < refusals;
            *fetches += 1;
            let same_client = refused_again || (token.is_some() && token == tokens_after[at]);
            let unchanged = earlier.filter(|(before, first)| {
                let same_call = first.call.is_some() && first.call == exchange.call;
                let unrefused = refused <= *before;
                first.reply_digest == exchange.reply_digest && ((same_client && !owed) || (same_call && unrefused))
            });
            found.extend(unchanged.map(|(_, first)| (first, exchange)));
        } else {
            token = exchange.authorization().or(token);
            if matches!(exchange.status, Some(401 | 403)) {
                refused = at;
                refused_again = exchange.session_sent().is_some_and(|session| !refused_sessions.insert(session));
                refusals += usize::from(!refused_again);
            }
        }
    }
    found
}

/// For each exchange, the next token that any later one carries.
fn tokens_after<'a>(exchanges: &[Exchange<'a>]) -> Vec<Option<&'a str>> {
    let mut after = vec![None; exchanges.len()];
    let mut next = None;
    for (at, exchange) in exchanges.iter().enumerate().rev() {
        after[at] = next;
        next = exchange.authorization().or(next);
    }
    after
}

fn is_discovery(exchange: &Exchange<'_>) -> bool {
    exchange.method() == "GET" && exchange.target().contains("/.well-known/") && exchange.status == Some(200)
}

fn make_finding(scene: &Scene<'_, '_>, operation: Option<&str>, fetches: Fetches<'_>) -> Finding {
    let severity = fetches.tally.median_severity();
    let confidence = match fetches.repeats {
        1 => scene.confidence_for(Level::Medium, Reason::SeenOnce),
        _ => scene.confidence_for(Level::High, Reason::Repeated),
    };
    let context = DiscoveryRepeated {
        targets: fetches.targets.into_iter().map(str::to_owned).collect(),
        repeats: fetches.repeats,
    };
    fetches.tally.into_finding(
        Cause::DiscoveryRepeated(context),
        operation,
        severity,
        confidence,
        Disproof::ConnectTwiceWithSameCredentials,
    )
}
