//! `task-leak`: the memory of a server without sessions rises with each request (python-sdk #756: mcp 1.8 to 1.11, whose
//! stateless mode leaves a task behind for each).

use mcpace_record::{Nanos, Peer};

use super::growth::process_growth;
use crate::findings::scene::Scene;
use crate::findings::tally::Tally;
use crate::findings::{Cause, Disproof, Finding, ProofRole, Reason, Severity, TaskLeak};

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    if scene.view.exchanges.iter().any(|exchange| exchange.session().is_some()) {
        return Vec::new();
    }
    let answered = scene.view.exchanges.iter().filter(|exchange| exchange.asks() && exchange.answer.is_some());
    let mut requests: Vec<Nanos> = answered.filter_map(|exchange| Some(exchange.completed()?.at)).collect();
    requests.sort_unstable();
    let servers = scene.view.usage.iter().filter(|usage| usage.of == Peer::Server);
    let grown: Vec<_> = servers.filter_map(|usage| process_growth(usage, &requests)).collect();
    let found = grown.iter().map(|growth| {
        let mut tally = Tally::default();
        tally.add_cost(None, Nanos::ZERO, 0, growth.bytes_each());
        tally.prove_events(&[
            (ProofRole::MemoryBefore, Some(growth.first.at)),
            (ProofRole::MemoryAfter, Some(growth.last.at)),
        ]);
        let context = TaskLeak {
            requests: growth.count,
            bytes_each: growth.bytes_each,
            bytes_before: growth.first.resident,
            bytes_after: growth.last.resident,
            threads: growth.threads,
        };
        let confidence = scene.confidence_for(growth.level(), Reason::RisesWithCount);
        tally.into_finding(Cause::TaskLeak(context), None, Severity::Medium, confidence, Disproof::WaitAndLookAgain)
    });
    found.collect()
}
