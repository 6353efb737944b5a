//! `resume-loop`: a stream is asked again and again to go on after the same event, and the call that waits for it never has
//! its answer (python-sdk #2393, go-sdk #742, rust-sdk #958).
//!
//! Asking again is how resumption works: a server may let its stream end while a tool runs on, and the client comes back
//! until the answer is there. So it counts only where the answer never came, or the client gave up.

use std::collections::HashMap;

use mcpace_record::Nanos;

use super::rhythm::median_span;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason, ResumeLoop, Severity};
use crate::view::{Call, Exchange};

/// Attempts below which nothing is concluded, with the program's word that the call failed or without.
const FEWEST: (usize, usize) = (3, 5);

#[derive(Default)]
struct Loops {
    tally: Tally,
    attempts: u64,
    calls: u64,
    intervals: Vec<Nanos>,
    told: bool,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut operations: ByOperation<'_, Loops> = ByOperation::new();
    let pending = pending_requests(scene);
    for attempts in resume_attempts(scene) {
        let Some(first) = attempts.first() else { continue };
        let waiting = pending.get(&first.session_sent());
        let Some(waiting) = waiting.and_then(|asked| asked.iter().rfind(|e| e.start.event < first.start.event)) else {
            continue;
        };
        let call = waiting.call.and_then(|call| scene.view.call(call));
        let lost = call.map(Call::is_lost);
        let enough = if lost.is_some() { FEWEST.0 } else { FEWEST.1 };
        if lost != Some(false) && attempts.len() >= enough {
            let operation = scene.operation_of(waiting);
            charge_loop(scene, waiting, &attempts, lost.is_some(), operations.value_of(operation));
        }
    }
    operations.into_iter().map(|(operation, loops)| make_finding(scene, operation, loops)).collect()
}

/// GETs that ask to go on after the same event, none of which brought an answer.
fn resume_attempts<'s, 'a>(scene: &Scene<'s, 'a>) -> Vec<Vec<&'s Exchange<'a>>> {
    let mut order = Vec::new();
    let mut by_event: HashMap<(Option<&str>, &str), Vec<&Exchange<'_>>> = HashMap::new();
    for get in &scene.view.exchanges {
        let Some(id) = get.last_event_id().filter(|_| get.method() == "GET") else { continue };
        let key = (get.session_sent(), id);
        let same = by_event.entry(key).or_default();
        if same.is_empty() {
            order.push(key);
        }
        same.push(get);
    }
    let groups = order.into_iter().filter_map(|key| by_event.remove(&key));
    groups.filter(|gets| !gets.iter().any(|get| brings_answer(get))).collect()
}

fn brings_answer(get: &Exchange<'_>) -> bool {
    get.events.iter().flat_map(|event| event.messages).any(|message| message.answers())
}

/// Requests that never had their answer, by session, in order.
fn pending_requests<'s, 'a>(scene: &Scene<'s, 'a>) -> HashMap<Option<&'a str>, Vec<&'s Exchange<'a>>> {
    let mut pending: HashMap<Option<&str>, Vec<&Exchange<'_>>> = HashMap::new();
    for exchange in scene.view.exchanges.iter().filter(|e| e.asks() && e.answer.is_none()) {
        // An error status is an answer of its own.
        if !matches!(exchange.status, Some(400..)) {
            pending.entry(exchange.session()).or_default().push(exchange);
        }
    }
    pending
}

fn charge_loop(
    scene: &mut Scene<'_, '_>,
    waiting: &Exchange<'_>,
    attempts: &[&Exchange<'_>],
    told: bool,
    loops: &mut Loops,
) {
    let to = waiting.call.and_then(|call| scene.view.call(call)).map_or(scene.view.end, |call| scene.view.end_of(call));
    let again = &attempts[1..];
    let from = again.first().map_or(to, |get| get.sent().at);
    let time = scene.claim_stretch(waiting.call, from, to);
    let bytes = again.iter().map(|get| get.bytes()).fold(0, u64::saturating_add);
    loops.tally.add_cost(waiting.call, time, again.len() as u64, bytes);
    loops.tally.prove_events(&[(ProofRole::FirstRequest, Some(waiting.sent()))]);
    for get in attempts.iter().take(FEWEST.1) {
        loops
            .tally
            .prove_events(&[(ProofRole::ResumeRequest, Some(get.sent())), (ProofRole::StreamEnded, get.ended())]);
    }
    loops.attempts += attempts.len() as u64;
    loops.calls += 1;
    loops.intervals.extend(attempts.windows(2).map(|two| two[1].sent().at.since(two[0].sent().at)));
    loops.told |= told;
}

fn make_finding(scene: &Scene<'_, '_>, operation: Option<&str>, loops: Loops) -> Finding {
    let level = if loops.told { Level::High } else { Level::Medium };
    let context = ResumeLoop { attempts: loops.attempts, calls: loops.calls, period: median_span(loops.intervals) };
    loops.tally.into_finding(
        Cause::ResumeLoop(context),
        operation,
        Severity::High,
        scene.confidence_for(level, Reason::NeverAnswered),
        Disproof::ReplayAfterEvent,
    )
}
