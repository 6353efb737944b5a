//! `task-leak`: the memory of a server rises with each request, and not with its sessions (python-sdk #756: mcp 1.8 to 1.11,
//! whose stateless mode leaves a task behind for each; typescript-sdk #2559).

use std::collections::HashSet;

use mcpace_record::{Nanos, Peer};

use super::growth::{Growth, process_growth};
use crate::findings::scene::Scene;
use crate::findings::tally::Tally;
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason, Severity, TaskLeak};

/// Requests for each session from which on a rise with requests is none with sessions.
const REQUESTS_EACH: usize = 50;

/// Sessions below which a rise can't be theirs.
const FEW_SESSIONS: usize = 20;

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    // A request that is refused may leave something behind as well.
    let mut requests: Vec<Nanos> = scene.view.exchanges.iter().filter_map(|e| Some(e.completed()?.at)).collect();
    requests.sort_unstable();
    let sessions: HashSet<&str> = scene.view.exchanges.iter().filter_map(|exchange| exchange.session()).collect();
    let few = sessions.len() < FEW_SESSIONS && sessions.len() * REQUESTS_EACH <= requests.len();
    if !few {
        return Vec::new();
    }
    let servers = scene.view.usage.iter().filter(|usage| usage.of == Peer::Server);
    // A small rise beside sessions may be theirs.
    let is_sure = |growth: &Growth| sessions.is_empty() || growth.level() > Level::Low;
    let grown: Vec<_> = servers.filter_map(|usage| process_growth(usage, &requests)).filter(is_sure).collect();
    let found = grown.iter().map(|growth| {
        let mut tally = Tally::default();
        tally.add_cost(None, Nanos::ZERO, 0, growth.total_bytes());
        tally.prove_events(&[
            (ProofRole::MemoryBefore, Some(growth.first.at)),
            (ProofRole::MemoryAfter, Some(growth.last.at)),
        ]);
        let context = TaskLeak {
            requests: growth.count,
            bytes_each: growth.bytes_each,
            least_bytes_each: growth.bytes_each_range.0,
            most_bytes_each: growth.bytes_each_range.1,
            bytes_before: growth.first.resident,
            bytes_after: growth.last.resident,
            threads: growth.threads,
        };
        let confidence = scene.confidence_for(growth.level(), Reason::RisesWithCount);
        tally.into_finding(Cause::TaskLeak(context), None, Severity::Medium, confidence, Disproof::WaitAndLookAgain)
    });
    found.collect()
}
