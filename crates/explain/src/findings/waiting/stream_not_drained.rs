//! `stream-not-drained`: the client drops a reply's body once it has the result, so that its connection can't be used again:
//! a new one for each call (rust-sdk #789, python-sdk #3281 for SSE).
//!
//! It is no constant delay: what it costs is connecting. Whether reading on would have helped depends on the server: one
//! that holds its streams open leaves the client no choice. Where other replies in the recording ended right after their
//! result, the server's streams do end.

use mcpace_record::{Nanos, ReplyEnding};

use crate::findings::scene::Scene;
use crate::findings::transport::connection_per_request::charge_setups;
use crate::findings::transport::connections::{left_early, wasteful_sessions};
use crate::findings::{Alternative, Cause, Disproof, Finding, Level, Reason, StreamNotDrained};
use crate::view::{ReplyShape, View};

/// A stream that ends this soon after its result was worth reading on.
const PROMPT: Nanos = Nanos::from_millis(50);

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let (mut context, mut all) = (StreamNotDrained::default(), Vec::new());
    let view = scene.view;
    for session in wasteful_sessions(scene).into_iter().filter(|session| session.breaks_off(view)) {
        context.requests += session.post_requests().count() as u64;
        context.connections += session.connections as u64;
        context.needless += session.needless.len() as u64;
        context.left_early += session.post_requests().filter(|exchange| left_early(view, exchange)).count() as u64;
        all.extend(session.needless);
    }
    let ends_promptly = ends_promptly(scene.view);
    charge_setups(scene, &all)
        .into_iter()
        .map(|(operation, tally)| {
            let severity = tally.median_severity();
            let confidence = if ends_promptly {
                scene.confidence_for(Level::High, Reason::OthersEndPromptly)
            } else {
                scene.confidence_for(Level::Low, Reason::EndNotSeen)
            };
            let cause = Cause::StreamNotDrained(context.clone());
            tally
                .into_finding(cause, operation, severity, confidence, Disproof::DrainReplies)
                .or_alternative(Alternative::CONNECTION_PER_REQUEST_BY_DRAINING)
        })
        .collect()
}

/// Whether streams that were read to their end ended right after their result: at least two, and nearly all.
fn ends_promptly(view: &View<'_>) -> bool {
    let whole = view.exchanges.iter().filter(|exchange| {
        let stream = exchange.shape == ReplyShape::Events && exchange.is_message();
        stream && exchange.ending == Some(ReplyEnding::Complete)
    });
    let (mut prompt, mut all) = (0_u64, 0_u64);
    for exchange in whole {
        if let Some((result, end)) = exchange.near().and_then(|near| Some((near.result_end?, near.end?))) {
            all += 1;
            prompt += u64::from(end.at.since(result.at) <= PROMPT);
        }
    }
    all >= 2 && prompt * 10 >= all * 9
}
