//! `session-leak`: the server's memory rises with the sessions that were begun, whether they were never ended (python-sdk
//! #1283; mcp-go #724) or ended and kept (python-sdk #3300).
//!
//! Most clients never end their sessions, so that alone is no finding: the memory must rise with them. Without session ids it
//! is `task-leak`'s; where each call begins a session, the two can't be told apart.

use std::collections::HashSet;

use mcpace_record::{Nanos, Peer};

use super::growth::{Growth, process_growth};
use crate::findings::scene::Scene;
use crate::findings::tally::Tally;
use crate::findings::{Alternative, Cause, Disproof, Finding, ProofRole, Reason, SessionLeak, Severity};
use crate::view::View;

/// Requests for each session from which on the two counts differ enough to tell sessions from requests.
const REQUESTS_EACH: u64 = 4;

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let sessions = RecordedSessions::from_view(scene.view);
    let servers = scene.view.usage.iter().filter(|usage| usage.of == Peer::Server);
    let counted = if sessions.left_open.is_empty() { &sessions.begun_at } else { &sessions.left_open };
    let grown: Vec<Growth> = servers.filter_map(|usage| process_growth(usage, counted)).collect();
    grown.iter().map(|growth| make_finding(scene, &sessions, growth)).collect()
}

/// The sessions of a recording.
struct RecordedSessions {
    begun: u64,
    ended: u64,
    /// When all began; sorted.
    begun_at: Vec<Nanos>,
    /// When those began that nobody ended; sorted.
    left_open: Vec<Nanos>,
}

impl RecordedSessions {
    fn from_view(view: &View<'_>) -> Self {
        let deleted = view.exchanges.iter().filter(|e| e.method() == "DELETE" && matches!(e.status, Some(200..=299)));
        let deleted: HashSet<&str> = deleted.filter_map(|exchange| exchange.session_sent()).collect();
        let (mut begun_at, mut left_open) = (Vec::new(), Vec::new());
        for exchange in view.exchanges.iter().filter(|e| e.requests("initialize") && e.succeeded()) {
            let Some(session) = exchange.session_given() else { continue };
            begun_at.extend(exchange.completed().map(|stamp| stamp.at));
            if !deleted.contains(session) {
                left_open.extend(exchange.completed().map(|stamp| stamp.at));
            }
        }
        begun_at.sort_unstable();
        left_open.sort_unstable();
        let begun = begun_at.len() as u64;
        Self { begun, ended: begun - left_open.len() as u64, begun_at, left_open }
    }
}

fn make_finding(scene: &Scene<'_, '_>, sessions: &RecordedSessions, growth: &Growth) -> Finding {
    let requests = scene.view.exchanges.iter().filter(|exchange| exchange.asks()).count() as u64;
    let told_apart = sessions.ended == 0 && requests >= sessions.begun.saturating_mul(REQUESTS_EACH);
    let mut tally = Tally::default();
    tally.add_cost(None, Nanos::ZERO, 0, growth.total_bytes());
    tally.prove_events(&[
        (ProofRole::MemoryBefore, Some(growth.first.at)),
        (ProofRole::MemoryAfter, Some(growth.last.at)),
    ]);
    let context = SessionLeak {
        begun: sessions.begun,
        ended: sessions.ended,
        bytes_each: growth.bytes_each,
        least_bytes_each: growth.bytes_each_range.0,
        most_bytes_each: growth.bytes_each_range.1,
        bytes_before: growth.first.resident,
        bytes_after: growth.last.resident,
    };
    let confidence = scene.confidence_for(growth.level(), Reason::RisesWithCount);
    let all_ended = sessions.ended == sessions.begun;
    let disproof = if all_ended { Disproof::WaitAndLookAgain } else { Disproof::EndEachSession };
    let finding = tally.into_finding(Cause::SessionLeak(context), None, Severity::Medium, confidence, disproof);
    if told_apart { finding } else { finding.or_alternative(Alternative::TASK_LEAK_BY_ONE_SESSION) }
}
