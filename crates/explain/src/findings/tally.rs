//! Collects occurrences of one cause in one operation.

use std::collections::BTreeMap;

use mcpace_record::{CallId, Nanos};

use super::scene::severity_of;
use super::{CallCost, Cause, Confidence, Cost, Disproof, Evidence, Finding, ProofRole, Severity};
use crate::view::Stamp;

/// Events named per finding: the first occurrences are proof enough.
const EVIDENCE_LIMIT: usize = 32;

#[derive(Default)]
pub(super) struct Tally {
    calls: BTreeMap<CallId, CallCost>,
    total: Cost,
    evidence: Vec<Evidence>,
}

impl Tally {
    pub(super) fn add_cost(&mut self, call: Option<CallId>, time: Nanos, requests: u64, bytes: u64) {
        self.total.time = self.total.time + time;
        self.total.requests = self.total.requests.saturating_add(requests);
        self.total.bytes = self.total.bytes.saturating_add(bytes);
        let Some(call) = call else { return };
        let cost = self.calls.entry(call).or_insert(CallCost { call, time: Nanos::ZERO, requests: 0, bytes: 0 });
        cost.time = cost.time + time;
        cost.requests = cost.requests.saturating_add(requests);
        cost.bytes = cost.bytes.saturating_add(bytes);
    }

    /// Names the events of one occurrence; all of them or, past the limit, none.
    pub(super) fn prove_events(&mut self, events: &[(ProofRole, Option<Stamp>)]) {
        if self.evidence.len() + events.len() > EVIDENCE_LIMIT {
            return;
        }
        let events = events.iter().filter_map(|(role, stamp)| {
            stamp.map(|Stamp { at, event }| Evidence { event: event.index(), at, role: *role, behind: false })
        });
        self.evidence.extend(events);
    }

    /// Names events of the recording behind the gateway, as far as there is room.
    pub(super) fn prove_behind(&mut self, events: impl Iterator<Item = (ProofRole, Stamp)>) {
        let room = EVIDENCE_LIMIT - self.evidence.len().min(EVIDENCE_LIMIT);
        let events = events.take(room);
        self.evidence.extend(events.map(|(role, Stamp { at, event })| Evidence {
            event: event.index(),
            at,
            role,
            behind: true,
        }));
    }

    /// The severity of the median call's time.
    pub(super) fn median_severity(&self) -> Severity {
        let mut times: Vec<Nanos> = self.calls.values().map(|cost| cost.time).collect();
        times.sort_unstable();
        let typical = times.get(times.len() / 2).copied();
        severity_of(typical.unwrap_or(self.total.time))
    }

    pub(super) fn into_finding(
        self,
        cause: Cause,
        operation: Option<&str>,
        severity: Severity,
        confidence: Confidence,
        disproof: Disproof,
    ) -> Finding {
        Finding {
            cause,
            severity,
            confidence,
            operation: operation.map(str::to_owned),
            calls: self.calls.into_values().collect(),
            total: self.total,
            evidence: self.evidence,
            disproof,
            alternatives: Vec::new(),
        }
    }
}

/// Values by operation, in the order in which operations first occur.
pub(super) struct ByOperation<'s, T> {
    entries: Vec<(Option<&'s str>, T)>,
}

impl<'s, T: Default> ByOperation<'s, T> {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// The value of `operation`.
    pub(super) fn value_of(&mut self, operation: Option<&'s str>) -> &mut T {
        // Few operations exist; a hostile recording may name many, and then shares the last entry.
        let known = self.entries.iter().position(|(name, _)| *name == operation);
        let at = known.unwrap_or_else(|| {
            if self.entries.len() < OPERATION_LIMIT {
                self.entries.push((operation, T::default()));
            }
            self.entries.len() - 1
        });
        &mut self.entries[at].1
    }
}

impl<'s, T> IntoIterator for ByOperation<'s, T> {
    type Item = (Option<&'s str>, T);
    type IntoIter = std::vec::IntoIter<Self::Item>;
    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

/// Operations told apart; the contract of client programs has five.
const OPERATION_LIMIT: usize = 64;
