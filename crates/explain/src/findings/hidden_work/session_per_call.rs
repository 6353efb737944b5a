//! `session-per-call`: each call begins a session of its own (langchain-mcp-adapters #207, context-forge #1918).
//!
//! Where the client's program told its operations, only sessions begun *inside* a call count: an experiment that connects
//! five times and calls five times is none. In a bare recording the order on the wire decides; there
//! several runs of one program look the same, and these can't share a session.

use std::collections::{HashMap, HashSet};

use mcpace_record::{ExchangeId, Nanos};

use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason, SessionPerCall};
use crate::view::{Call, Exchange};

/// Calls below which chance or a plain first connect explains it: where operations are marked, and where they are not.
const FEWEST: (u64, u64) = (2, 3);

#[derive(Default)]
struct OperationSessions {
    tally: Tally,
    context: SessionPerCall,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut operations: ByOperation<'_, OperationSessions> = ByOperation::new();
    if scene.view.calls.is_empty() {
        sessions_without_calls(scene, operations.value_of(None));
    } else {
        let processes = scene.view.processes.iter();
        let spawning = processes.filter_map(|p| p.exchanges.first().copied());
        let spawning: HashSet<ExchangeId> = spawning.collect();
        for call in scene.view.calls.iter().filter(|call| call.operation != "connect") {
            let sessions = operations.value_of(Some(call.operation));
            session_in_call(scene, call, &spawning, sessions);
        }
    }
    operations
        .into_iter()
        .filter(|(operation, sessions)| {
            let fewest = if operation.is_some() { FEWEST.0 } else { FEWEST.1 };
            sessions.context.tool_calls >= fewest && nearly_each(&sessions.context)
        })
        .map(|(operation, sessions)| make_finding(scene, operation, sessions))
        .collect()
}

fn nearly_each(context: &SessionPerCall) -> bool {
    context.sessions * 5 >= context.tool_calls * 4
}

/// One operation: is there a session's beginning before its tool call?
fn session_in_call<'a>(
    scene: &mut Scene<'_, 'a>,
    of: &Call<'a>,
    spawning: &HashSet<ExchangeId>,
    sessions: &mut OperationSessions,
) {
    let exchanges = scene.exchanges_of(of);
    let call = exchanges.iter().find(|e| e.requests("tools/call") && e.answer.is_some());
    let Some(call) = call else { return };
    sessions.context.tool_calls += 1;
    let begun = exchanges.iter().find(|e| begins_session(e) && e.start.event < call.start.event);
    let Some(begun) = begun else { return };
    sessions.context.sessions += 1;
    sessions.context.processes += u64::from(spawning.contains(&begun.id));
    let (from, to) = (begun.sent(), call.sent());
    let time = scene.claim_stretch(Some(of.id), from.at, to.at);
    let needless = exchanges.iter().filter(|e| keeps_session(e));
    let needless: Vec<_> = needless.filter(|e| !scene.is_repeat(e)).collect();
    let bytes = needless.iter().map(|e| e.bytes()).fold(0, u64::saturating_add);
    let tally = &mut sessions.tally;
    tally.add_cost(Some(of.id), time, needless.len() as u64, bytes);
    tally.prove_events(&[(ProofRole::SessionBegun, Some(from)), (ProofRole::ToolCalled, Some(to))]);
}

/// A recording without operations: each session's first tool call, by the session's id where it has one. Without ids,
/// sessions and tool calls take turns. Sessions that are all begun before any call is answered are several clients'.
fn sessions_without_calls(scene: &mut Scene<'_, '_>, sessions: &mut OperationSessions) {
    let mut begun: HashMap<Option<&str>, &Exchange<'_>> = HashMap::new();
    let (mut first_result, mut last_begun) = (Nanos(u64::MAX), Nanos::ZERO);
    for exchange in &scene.view.exchanges {
        if scene.is_repeat(exchange) || exchange.answer.is_none() {
            continue;
        }
        if begins_session(exchange) {
            begun.insert(exchange.session(), exchange);
        } else if exchange.requests("tools/call") {
            sessions.context.tool_calls += 1;
            first_result = exchange.completed().map_or(first_result, |result| result.at.min(first_result));
            let Some(begun) = begun.remove(&exchange.session_sent()) else { continue };
            sessions.context.sessions += 1;
            last_begun = last_begun.max(begun.sent().at);
            let time = exchange.sent().at.since(begun.sent().at);
            sessions.tally.add_cost(None, time, 1, begun.bytes());
            sessions.tally.prove_events(&[
                (ProofRole::SessionBegun, Some(begun.sent())),
                (ProofRole::ToolCalled, Some(exchange.sent())),
            ]);
        }
    }
    if last_begun < first_result {
        sessions.context.sessions = 0;
    }
    sessions.context.processes = scene.view.processes.len() as u64;
}

fn begins_session(exchange: &Exchange<'_>) -> bool {
    exchange.requests("initialize") && exchange.succeeded()
}

fn keeps_session(exchange: &Exchange<'_>) -> bool {
    begins_session(exchange)
        || exchange.notifies("notifications/initialized")
        || exchange.method() == "DELETE"
        || exchange.is_standalone_stream()
}

fn make_finding(scene: &Scene<'_, '_>, operation: Option<&str>, sessions: OperationSessions) -> Finding {
    let severity = sessions.tally.median_severity();
    let confidence = match operation {
        Some(_) => scene.confidence_for(Level::High, Reason::OrderInsideCall),
        None => scene.confidence_for(Level::Low, Reason::AnotherLooksAlike),
    };
    sessions.tally.into_finding(
        Cause::SessionPerCall(sessions.context),
        operation,
        severity,
        confidence,
        Disproof::HoldOneSession,
    )
}
