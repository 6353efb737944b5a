//! `duplicate-request`: a request is sent again though its first sending succeeded (python-sdk #1274: mcp 1.12.0–1.13.1
//! with OAuth). `duplicates.rs` decides which requests are repeats; this rule charges them.

use std::collections::{BTreeSet, HashMap};

use crate::duplicates::{Basis, Duplicate, repeats_stream};
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, DuplicateRequest, Finding, Level, ProofRole, Reason, Severity};
use crate::view::Exchange;

#[derive(Default)]
struct Repeats<'a> {
    tally: Tally,
    methods: BTreeSet<&'a str>,
    context: DuplicateRequest,
    basis: Option<Basis>,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    if scene.duplicates.is_empty() {
        return Vec::new();
    }
    let view = scene.view;
    let mut operations: ByOperation<'_, Repeats<'_>> = ByOperation::new();
    for duplicate in scene.duplicates.clone() {
        let operation = scene.operation_of(&view.exchanges[duplicate.repeat]);
        charge_duplicate(scene, &duplicate, operations.value_of(operation));
    }
    charge_streams(scene, &mut operations);
    operations
        .into_iter()
        .filter(|(_, repeats)| repeats.context.repeats > 0)
        .map(|(operation, repeats)| make_finding(scene, operation, repeats))
        .collect()
}

fn charge_duplicate<'a>(scene: &mut Scene<'_, 'a>, duplicate: &Duplicate, repeats: &mut Repeats<'a>) {
    let view = scene.view;
    let (previous, repeat) = (&view.exchanges[duplicate.previous], &view.exchanges[duplicate.repeat]);
    // From the first reply's result on, the client could have gone on; it did so with the second.
    let from = previous.completed().map_or(repeat.sent().at, |s| s.at);
    let to = repeat.completed().map_or(view.end, |stamp| stamp.at);
    let time = scene.claim_stretch(repeat.call, from, to);
    repeats.tally.add_cost(repeat.call, time, 1, repeat.bytes());
    repeats.tally.prove_events(&[
        (ProofRole::FirstRequest, Some(previous.sent())),
        (ProofRole::FirstResult, previous.near().and_then(|n| n.result_end)),
        (ProofRole::FirstReplyEnd, previous.ended()),
        (ProofRole::RepeatedRequest, Some(repeat.sent())),
        (ProofRole::RepeatedResult, repeat.completed()),
    ]);
    let methods = repeat.messages.iter().filter_map(|m| m.method());
    repeats.methods.extend(methods);
    let context = &mut repeats.context;
    context.repeats += 1;
    context.executions += execution_count(repeat);
    context.after_reply_end += u64::from(duplicate.after_end);
    context.authenticated |= repeat.authorization().is_some();
    repeats.basis = repeats.basis.max(Some(duplicate.basis));
}

fn execution_count(repeat: &Exchange<'_>) -> u64 {
    let calls = repeat.messages.iter().filter(|m| m.requests("tools/call"));
    calls.count() as u64
}

/// The standalone GET goes through the same code, so it is repeated as well where the server lets it end.
fn charge_streams<'s, 'a>(scene: &mut Scene<'s, 'a>, operations: &mut ByOperation<'s, Repeats<'a>>) {
    let view = scene.view;
    let mut last: HashMap<Option<&str>, &Exchange<'_>> = HashMap::new();
    for stream in view.exchanges.iter().filter(|e| e.is_standalone_stream()) {
        let Some(first) = last.insert(stream.session_sent(), stream) else {
            continue;
        };
        if repeats_stream(first, stream) {
            let repeats = operations.value_of(scene.operation_of(stream));
            repeats.context.streams += 1;
            let none = mcpace_record::Nanos::ZERO;
            repeats.tally.add_cost(stream.call, none, 1, stream.bytes());
        }
    }
}

fn make_finding(scene: &Scene<'_, '_>, operation: Option<&str>, repeats: Repeats<'_>) -> Finding {
    let mut context = repeats.context;
    context.methods = repeats.methods.into_iter().map(str::to_owned).collect();
    // A tool that runs twice is wrong at any speed.
    let severity =
        if context.executions > 0 { Severity::High } else { repeats.tally.median_severity().max(Severity::Medium) };
    let confidence = match repeats.basis {
        Some(Basis::BytesAndId) => scene.confidence_for(Level::High, Reason::IdenticalBytesAndId),
        _ => scene.confidence_for(Level::Medium, Reason::IdenticalBytesBackToBack),
    };
    repeats.tally.into_finding(
        Cause::DuplicateRequest(context),
        operation,
        severity,
        confidence,
        Disproof::CountExecutionsAtServer,
    )
}
