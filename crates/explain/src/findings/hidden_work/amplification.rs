//! `amplification`: a proxy or gateway sends several requests on for one call (fastmcp #930, #1583): a session for each, a
//! listing to look the tool up in, a ping.
//!
//! Needs two recordings, before and behind the gateway. The typical call counts, so that a gateway which sets itself up in
//! the first call is none.

use std::collections::BTreeMap;

use mcpace_record::Nanos;

use crate::findings::behind::{Passage, gateway_passages};
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Amplification, Cause, Disproof, Finding, Level, ProofRole, Reason};
use crate::view::Exchange;

/// Calls below which setting up explains it.
const FEWEST: usize = 3;

/// Requests for one call that are usual: the call itself, and one more.
const USUAL: usize = 2;

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let passages = gateway_passages(scene, Some("tools/call"));
    let mut counts: Vec<usize> = passages.iter().map(|passage| passage.behind.len()).collect();
    counts.sort_unstable();
    let typical = counts.get(counts.len() / 2).copied().unwrap_or(0);
    if passages.len() < FEWEST || typical <= USUAL {
        return Vec::new();
    }
    let mut methods: BTreeMap<String, u64> = BTreeMap::new();
    let mut operations: ByOperation<'_, Tally> = ByOperation::new();
    for passage in &passages {
        let tally = operations.value_of(scene.operation_of(passage.before));
        charge_extra(scene, passage, tally);
        for exchange in &passage.behind {
            *methods.entry(request_name(exchange)).or_default() += 1;
        }
    }
    let context = Amplification {
        calls: passages.len() as u64,
        requests: counts.iter().map(|count| *count as u64).sum(),
        typical: typical as u64,
        sessions: methods.get("initialize").copied().unwrap_or(0),
        methods,
    };
    operations
        .into_iter()
        .map(|(operation, tally)| {
            let severity = tally.median_severity();
            let confidence = scene.confidence_for(Level::High, Reason::AloneAtGateway);
            let cause = Cause::Amplification(context.clone());
            tally.into_finding(cause, operation, severity, confidence, Disproof::CallBehindGateway)
        })
        .collect()
}

/// Everything but the call itself is extra; its time is that before the call went on.
fn charge_extra(scene: &mut Scene<'_, '_>, passage: &Passage<'_, '_>, tally: &mut Tally) {
    let call = passage.behind.iter().find(|exchange| exchange.requests("tools/call"));
    let extra = passage.behind.iter().filter(|exchange| call.is_none_or(|call| call.id != exchange.id));
    let (mut requests, mut bytes) = (0, 0_u64);
    for exchange in extra {
        requests += 1;
        bytes = bytes.saturating_add(exchange.bytes());
    }
    let time = match call {
        Some(call) if call.sent().at > passage.behind[0].sent().at => {
            scene.claim_stretch(passage.before.call, passage.behind[0].sent().at, call.sent().at)
        }
        _ => Nanos::ZERO,
    };
    tally.add_cost(passage.before.call, time, requests, bytes);
    tally.prove_events(&[
        (ProofRole::RequestReceived, Some(passage.received)),
        (ProofRole::Answered, Some(passage.answered)),
    ]);
    tally.prove_behind(passage.behind.iter().map(|exchange| (ProofRole::SentOn, exchange.sent())));
}

/// The JSON-RPC method, or the HTTP one where there is none.
fn request_name(exchange: &Exchange<'_>) -> String {
    let method = exchange.messages.first().and_then(|message| message.method());
    method.unwrap_or(exchange.method()).to_owned()
}
