//! `client-time-out`: the client gives requests up after one time, before their answers come (claude-code #47076).
//! `time_outs.rs` decides which requests were given up, and after which time; this rule charges their wait.

use std::collections::{BTreeMap, BTreeSet};

use mcpace_record::Nanos;

use super::time_outs::{GiveUp, TimeOut, find_time_outs, subject_of};
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, ClientTimeOut, Disproof, Finding, Level, ProofRole, Reason, Severity};

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let time_outs = find_time_outs(scene);
    time_outs.iter().flat_map(|time_out| make_findings(scene, time_out)).collect()
}

fn make_findings<'s, 'a>(scene: &mut Scene<'s, 'a>, time_out: &TimeOut<'s, 'a>) -> Vec<Finding> {
    let mut operations: ByOperation<'_, Vec<&GiveUp<'_, '_>>> = ByOperation::new();
    for give_up in &time_out.give_ups {
        operations.value_of(scene.operation_of(give_up.exchange)).push(give_up);
    }
    let mut found = Vec::new();
    for (operation, give_ups) in operations {
        let mut tally = Tally::default();
        for give_up in &give_ups {
            let exchange = give_up.exchange;
            let time = scene.claim_stretch(exchange.call, exchange.sent().at, give_up.at.at);
            tally.add_cost(exchange.call, time, 1, 0);
            tally.prove_events(&[
                (ProofRole::FirstRequest, Some(exchange.sent())),
                (ProofRole::GivenUp, Some(give_up.at)),
                (ProofRole::Answered, give_up.later_answer()),
            ]);
        }
        let level = if time_out.is_rare { Level::Medium } else { Level::High };
        let confidence = scene.confidence_for(level, Reason::Repeated);
        let cause = Cause::ClientTimeOut(context_of(scene, time_out, &give_ups));
        // The result is lost, and the server works on in vain.
        found.push(tally.into_finding(cause, operation, Severity::High, confidence, Disproof::RaiseRequestTimeout));
    }
    found
}

fn context_of(scene: &Scene<'_, '_>, time_out: &TimeOut<'_, '_>, give_ups: &[&GiveUp<'_, '_>]) -> ClientTimeOut {
    let asked: BTreeSet<_> = give_ups.iter().map(|give_up| subject_of(give_up.exchange)).collect();
    let requests = scene.view.exchanges.iter().filter(|exchange| exchange.asks());
    let later = give_ups.iter().filter_map(|give_up| Some((give_up.exchange.sent(), give_up.later_answer()?)));
    let waits: Vec<Nanos> = later.map(|(sent, answered)| answered.at.since(sent.at)).collect();
    ClientTimeOut {
        calls: give_ups.len() as u64,
        of_calls: requests.filter(|exchange| asked.contains(&subject_of(exchange))).count() as u64,
        tool: tool_of(give_ups.iter().copied()),
        time_out: time_out.time,
        counted_from: time_out.counted_from,
        layer: most(give_ups.iter().map(|give_up| give_up.layer)).unwrap_or(super::GiveUpLayer::Call),
        sign: most(give_ups.iter().map(|give_up| give_up.sign)).unwrap_or(super::GiveUpSign::Closed),
        answered_later: waits.len() as u64,
        longest_answer: waits.into_iter().max(),
    }
}

/// The name that all of these requests ask for.
pub(super) fn tool_of<'g, 's: 'g, 'a: 's>(mut give_ups: impl Iterator<Item = &'g GiveUp<'s, 'a>>) -> Option<String> {
    let name = subject_of(give_ups.next()?.exchange).1?;
    give_ups.all(|give_up| subject_of(give_up.exchange).1 == Some(name)).then(|| name.to_owned())
}

/// The value that occurs most often; of equal ones the first in their order.
fn most<T: Ord>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(value, _)| value)
}
