//! `connection-per-request`: a new connection for each request though an open one was free (rust-sdk #790 by design).
//!
//! Sessions whose client breaks off its replies, after which a connection can't be used again, are `stream-not-drained`'s.
//! Where it breaks off some of them, that would look the same of these.

use std::collections::HashSet;

use mcpace_record::Nanos;

use super::connections::{Needless, left_early, wasteful_sessions};
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{
    Alternative, Cause, ConnectionPerRequest, Disproof, Finding, Level, ProofRole, Reason, ReplyKind,
};
use crate::view::ReplyShape;

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut context = ConnectionPerRequest {
        requests: 0,
        connections: 0,
        needless: 0,
        left_early: 0,
        replies: ReplyKind::Json,
        closed_by: None,
    };
    let (mut shapes, mut named, mut all) = (HashSet::new(), true, Vec::new());
    let view = scene.view;
    for session in wasteful_sessions(scene).into_iter().filter(|session| !session.breaks_off(view)) {
        context.requests += session.post_requests().count() as u64;
        context.connections += session.connections as u64;
        context.needless += session.needless.len() as u64;
        context.left_early += session.post_requests().filter(|e| left_early(view, e)).count() as u64;
        shapes.extend(session.post_requests().map(|e| e.shape == ReplyShape::Events));
        named &= session.named;
        all.extend(session.needless);
    }
    let closers = all.iter().filter_map(|n| scene.view.connection(n.free));
    context.closed_by = closers.filter_map(|c| c.closed_by).next();
    context.replies = match (shapes.contains(&true), shapes.contains(&false)) {
        (true, true) => ReplyKind::Mixed,
        (true, false) => ReplyKind::Sse,
        _ => ReplyKind::Json,
    };
    charge_setups(scene, &all)
        .into_iter()
        .map(|(operation, tally)| {
            let severity = tally.median_severity();
            let cause = Cause::ConnectionPerRequest(context.clone());
            let disproof = Disproof::ReuseOneClient;
            if context.left_early > 0 {
                let confidence = scene.confidence_for(Level::Low, Reason::EndNotSeen);
                return tally
                    .into_finding(cause, operation, severity, confidence, disproof)
                    .or_alternative(Alternative::STREAM_NOT_DRAINED_BY_DRAINING);
            }
            let level = if named { Level::High } else { Level::Medium };
            let confidence = scene.confidence_for(level, Reason::Repeated);
            tally.into_finding(cause, operation, severity, confidence, disproof)
        })
        .collect()
}

/// Cost of setting the connections up again, by operation.
pub(in crate::findings) fn charge_setups<'s, 'a>(
    scene: &mut Scene<'s, 'a>,
    all: &[Needless<'s, 'a>],
) -> ByOperation<'s, Tally> {
    let mut operations: ByOperation<'_, Tally> = ByOperation::new();
    for needless in all {
        let exchange = needless.exchange;
        let tally = operations.value_of(scene.operation_of(exchange));
        let connect = scene.view.opened_for(exchange).and_then(|connection| {
            let from = connection.begun()?.at;
            Some((from, connection.ready()?.at))
        });
        let (from, to) = connect.unwrap_or((Nanos::ZERO, Nanos::ZERO));
        let time = scene.claim_stretch(exchange.call, from, to);
        tally.add_cost(exchange.call, time, 0, 0);
        let freed = scene.view.connection(needless.free);
        tally.prove_events(&[
            (ProofRole::ConnectionClosed, freed.and_then(|c| c.closed)),
            (ProofRole::ConnectionOpened, Some(needless.opened)),
        ]);
    }
    operations
}
