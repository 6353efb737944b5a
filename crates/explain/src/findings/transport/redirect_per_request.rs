//! `redirect-per-request`: requests are sent on to another path each time, `/mcp` to `/mcp/` (fastmcp #1387).
//!
//! One redirect is how a server moves; a client that is sent on again for what it asks next pays a round trip each time.

use std::collections::HashMap;

use super::RedirectPerRequest;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, Reason, Role};
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
    let followed = followed(scene.view);
    let served = scene.view.exchanges.iter().filter(|e| e.is_message() && e.status.is_some() && !is_redirected(e));
    let served = served.count();
    if followed.len() < FEWEST || followed.len() * 2 < served {
        return Vec::new();
    }
    let mut operations: ByOperation<'_, Redirects<'_>> = ByOperation::new();
    for (redirected, again) in followed {
        let time = scene.claim(redirected.call, redirected.sent().at, again.sent().at);
        let redirects = operations.of(scene.operation(redirected));
        redirects.tally.cost(redirected.call, time, 1, redirected.bytes());
        redirects.tally.prove(&[
            (Role::FirstRequest, Some(redirected.sent())),
            (Role::Redirected, redirected.ended()),
            (Role::RepeatedRequest, Some(again.sent())),
        ]);
        redirects.redirects += 1;
        redirects.first.get_or_insert((redirected.status.unwrap_or_default(), redirected.target(), again.target()));
    }
    let found = operations.into_iter().map(|(operation, redirects)| conclude(scene, operation, redirects, served));
    found.collect()
}

fn is_redirected(exchange: &Exchange<'_>) -> bool {
    matches!(exchange.status, Some(301 | 302 | 303 | 307 | 308))
}

/// Each message that was sent on, with the same message at the other place.
fn followed<'e, 'a>(view: &'e View<'a>) -> Vec<(&'e Exchange<'a>, &'e Exchange<'a>)> {
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

fn conclude(scene: &Scene<'_, '_>, operation: Option<&str>, redirects: Redirects<'_>, of_requests: usize) -> Finding {
    let severity = redirects.tally.severity();
    let (status, from, to) = redirects.first.unwrap_or_default();
    let context = RedirectPerRequest {
        redirects: redirects.redirects,
        of_requests: of_requests as u64,
        status,
        from: from.to_owned(),
        to: to.to_owned(),
    };
    let confidence = scene.confidence(Level::High, Reason::Repeated);
    let cause = Cause::RedirectPerRequest(context);
    redirects.tally.finding(cause, operation, severity, confidence, Disproof::AskAtFinalPath)
}
