//! Requests that a gateway sends on for one request while that request is its only one.
//!
//! Two recordings on the one clock, one before the gateway and one behind it. Nothing else ties a request to those that it
//! causes, so only requests count that the gateway had alone: where two are under way, what belongs to which is not known.

use std::collections::BTreeMap;

use mcpace_record::Nanos;

use super::scene::Scene;
use crate::view::{Exchange, Stamp};

/// A request before the gateway, with what was sent behind it meanwhile.
pub(super) struct Passage<'s, 'a> {
    pub(super) before: &'s Exchange<'a>,
    /// The gateway had the request.
    pub(super) received: Stamp,
    /// Its answer was there.
    pub(super) answered: Stamp,
    /// In the order of their start; never empty.
    pub(super) behind: Vec<&'s Exchange<'a>>,
}

impl<'s, 'a> Passage<'s, 'a> {
    /// Requests sent to each server behind the gateway, by the server's address and the request's target.
    pub(super) fn by_server(&self, scene: &Scene<'s, 'a>) -> BTreeMap<(&'s str, &'a str), Vec<&'s Exchange<'a>>> {
        let mut servers: BTreeMap<(&str, &str), Vec<&Exchange<'_>>> = BTreeMap::new();
        for exchange in &self.behind {
            let connection = exchange.back().and_then(|leg| leg.conn);
            let connection = connection.and_then(|conn| scene.behind?.connection(conn));
            servers.entry((connection.map_or("", |c| c.address), exchange.target())).or_default().push(exchange);
        }
        servers
    }
}

/// Every request for `method` (or any) that the gateway had alone and answered, with what it sent meanwhile.
pub(super) fn gateway_passages<'s, 'a>(scene: &Scene<'s, 'a>, method: Option<&str>) -> Vec<Passage<'s, 'a>> {
    let Some(behind) = scene.behind else { return Vec::new() };
    let mut windows: Vec<_> = scene.view.exchanges.iter().filter_map(gateway_window).collect();
    windows.sort_by_key(|(from, _, _)| from.at);
    let mut sent: Vec<&Exchange<'_>> = behind.exchanges.iter().collect();
    sent.sort_by_key(|exchange| exchange.sent().at);
    let (mut found, mut latest) = (Vec::new(), Nanos::ZERO);
    for (position, (received, answered, before)) in windows.iter().enumerate() {
        let first = received.at >= latest;
        let Some(answered) = answered else {
            // The requests that this one still causes can't be told from those that others cause.
            latest = Nanos(u64::MAX);
            continue;
        };
        let last = windows.get(position + 1).is_none_or(|(from, _, _)| from.at >= answered.at);
        let alone = first && last;
        latest = latest.max(answered.at);
        if !alone || method.is_some_and(|method| !before.requests(method)) {
            continue;
        }
        let first = sent.partition_point(|exchange| exchange.sent().at < received.at);
        let meanwhile = sent[first..].iter().take_while(|exchange| exchange.sent().at <= answered.at);
        let behind: Vec<_> = meanwhile.copied().collect();
        if !behind.is_empty() {
            found.push(Passage { before, received: *received, answered: *answered, behind });
        }
    }
    found
}

/// When the gateway had the whole of a request, and when its answer was there.
fn gateway_window<'s, 'a>(exchange: &'s Exchange<'a>) -> Option<(Stamp, Option<Stamp>, &'s Exchange<'a>)> {
    let leg = exchange.back().filter(|_| exchange.asks())?;
    Some((leg.request_end?, leg.result_end.or(leg.end), exchange))
}
