//! `redirect-per-request`: requests are sent on to another path each time, `/mcp` to `/mcp/` (fastmcp #1387).
//!
//! One redirect is how a server moves; a client that is sent on again for what it asks next pays a round trip each time.

use std::collections::HashMap;

use super::RedirectPerRequest;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason};
use crate::view::{Exchange, View};

/// Redirects below which it may be a move.
const FEWEST: usize = 2;

#[derive(Default)]
struct Redirects<'a> {
    tally: Tally,
    redirects: u64,
    first: Option<(u16, &'a str, &'a str)>,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let followed = followed_redirects(scene.view);
    let served = scene.view.exchanges.iter().filter(|e| e.is_message() && e.status.is_some() && !is_redirected(e));
    let served = served.count();
    if followed.len() < FEWEST || followed.len() * 2 < served {
        return Vec::new();
    }
    let mut operations: ByOperation<'_, Redirects<'_>> = ByOperation::new();
    for (redirected, again) in followed {
        let time = scene.claim_stretch(redirected.call, redirected.sent().at, again.sent().at);
        let redirects = operations.value_of(scene.operation_of(redirected));
        redirects.tally.add_cost(redirected.call, time, 1, redirected.bytes());
        redirects.tally.prove_events(&[
            (ProofRole::FirstRequest, Some(redirected.sent())),
            (ProofRole::Redirected, redirected.ended()),
            (ProofRole::RepeatedRequest, Some(again.sent())),
        ]);
        redirects.redirects += 1;
        redirects.first.get_or_insert((redirected.status.unwrap_or_default(), redirected.target(), again.target()));
    }
    let found = operations.into_iter().map(|(operation, redirects)| make_finding(scene, operation, redirects, served));
    found.collect()
}

fn is_redirected(exchange: &Exchange<'_>) -> bool {
    matches!(exchange.status, Some(301 | 302 | 303 | 307 | 308))
}

/// Each message that was sent on, with the same message at the other place.
fn followed_redirects<'e, 'a>(view: &'e View<'a>) -> Vec<(&'e Exchange<'a>, &'e Exchange<'a>)> {
    let (mut found, mut sent_on) = (Vec::new(), HashMap::new());
    for exchange in view.exchanges.iter().filter(|exchange| exchange.is_message()) {
        let key = (exchange.digest, exchange.session_sent());
        if let Some(redirected) = sent_on.remove(&key) {
            found.push((redirected, exchange));
        }
        if is_redirected(exchange) && exchange.digest.is_some() {
            sent_on.insert(key, exchange);
        }
    }
    found
}

fn make_finding(
    scene: &Scene<'_, '_>,
    operation: Option<&str>,
    redirects: Redirects<'_>,
    of_requests: usize,
) -> Finding {
    let severity = redirects.tally.median_severity();
    let (status, from, to) = redirects.first.unwrap_or_default();
    let context = RedirectPerRequest {
        redirects: redirects.redirects,
        of_requests: of_requests as u64,
        status,
        from: from.to_owned(),
        to: to.to_owned(),
    };
    let confidence = scene.confidence_for(Level::High, Reason::Repeated);
    let cause = Cause::RedirectPerRequest(context);
    redirects.tally.into_finding(cause, operation, severity, confidence, Disproof::AskAtFinalPath)
}
