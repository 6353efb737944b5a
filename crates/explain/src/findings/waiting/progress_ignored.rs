//! `progress-ignored`: the client's time-out ends requests for which the server sends progress, though progress may extend it
//! (2025-06-18, basic/lifecycle: timeouts). A time-out that counts from the last progress is none of these: its requests differ
//! in age.

use mcpace_record::Nanos;

use super::client_time_out::tool_of;
use super::time_outs::{GiveUp, TimeOut, find_time_outs};
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, CountedFrom, Disproof, Finding, Level, ProgressIgnored, ProofRole, Reason, Severity};

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let time_outs = find_time_outs(scene);
    let is_first = |time_out: &TimeOut<'_, '_>| !time_outs.iter().any(|other| other.time < time_out.time);
    // Where requests without progress end sooner, progress extends the time-out, up to a longest time.
    let ignored = time_outs.iter().filter(|time_out| time_out.counted_from == CountedFrom::Beginning);
    ignored.filter(|time_out| is_first(time_out)).flat_map(|time_out| make_findings(scene, time_out)).collect()
}

fn make_findings<'s, 'a>(scene: &mut Scene<'s, 'a>, time_out: &TimeOut<'s, 'a>) -> Vec<Finding> {
    let (with, without): (Vec<_>, Vec<_>) = time_out.give_ups.iter().partition(|give_up| give_up.has_progress());
    let mut operations: ByOperation<'_, Vec<&GiveUp<'_, '_>>> = ByOperation::new();
    for give_up in with {
        operations.value_of(scene.operation_of(give_up.exchange)).push(give_up);
    }
    let mut found = Vec::new();
    for (operation, give_ups) in operations {
        let mut tally = Tally::default();
        for give_up in &give_ups {
            // Their time is charged to the time-out.
            tally.add_cost(give_up.exchange.call, Nanos::ZERO, 0, 0);
            tally.prove_events(&[
                (ProofRole::FirstRequest, Some(give_up.exchange.sent())),
                (ProofRole::FirstProgress, give_up.progress.first().copied()),
                (ProofRole::GivenUp, Some(give_up.at)),
            ]);
        }
        let confidence = match (without.is_empty(), time_out.is_rare) {
            (false, false) => scene.confidence_for(Level::High, Reason::SameWithoutProgress),
            (false, true) => scene.confidence_for(Level::Medium, Reason::SameWithoutProgress),
            (true, _) => scene.confidence_for(Level::Medium, Reason::Repeated),
        };
        let cause = Cause::ProgressIgnored(ProgressIgnored {
            calls: give_ups.len() as u64,
            tool: tool_of(give_ups.iter().copied()),
            time_out: time_out.time,
            notifications: give_ups.iter().map(|give_up| give_up.progress.len() as u64).sum(),
            silence: give_ups.iter().map(|give_up| give_up.silence).max().unwrap_or_default(),
            without_progress: without.len() as u64,
        });
        found.push(tally.into_finding(cause, operation, Severity::Medium, confidence, Disproof::SendNoProgress));
    }
    found
}
