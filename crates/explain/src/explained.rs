//! All that a recording tells at once: its events are joined a single time.

use mcpace_record::{CallId, CallOutcome, Events, Nanos, RecordError, Recording};

use serde::Serialize;

use crate::findings::found;
use crate::ledger::ledgers_of;
use crate::view::{Texts, View, exchanges, exchanges_of_file};
use crate::waterfall::waterfall_of;
use crate::{Finding, Ledger, Waterfall};

/// Where the time of a recording's calls went, and why.
#[derive(Debug, Serialize)]
pub struct Explained {
    /// The ledger of every call, in the order of their starts.
    pub ledgers: Vec<Ledger>,
    /// All causes, worst first.
    pub findings: Vec<Finding>,
    /// Of each operation the call that is worth a look, in the order in which operations first occur: see [`shown`].
    pub waterfalls: Vec<Waterfall>,
    /// How many events it has.
    pub events: u64,
    /// How many the instrument could not keep.
    pub lost: u64,
    /// Whether its end is missing.
    pub partial: bool,
}

/// Explains `recording`; of a gateway too, where `behind` was recorded between it and the servers that it asks.
#[must_use]
pub fn explained(recording: &Recording, behind: Option<&Recording>) -> Explained {
    let texts = Texts::default();
    explain(&exchanges(recording, &texts), behind)
}

/// Explains a recording as it is read: of its events nothing is kept but what rules ask for.
///
/// # Errors
/// Those of reading.
pub fn explained_file(events: &mut Events<'_>, behind: Option<&Recording>) -> Result<Explained, RecordError> {
    let texts = Texts::default();
    Ok(explain(&exchanges_of_file(events, &texts)?, behind))
}

fn explain(view: &View<'_>, behind: Option<&Recording>) -> Explained {
    let ledgers = ledgers_of(view);
    let texts = Texts::default();
    let behind = behind.map(|behind| exchanges(behind, &texts));
    let findings = found(view, &ledgers, behind.as_ref());
    let waterfalls = shown(&ledgers).into_iter().filter_map(|call| waterfall_of(view, call)).collect();
    Explained { ledgers, findings, waterfalls, events: view.events, lost: view.lost, partial: view.partial }
}

/// Operations whose calls are shown; the contract of client programs has five.
const OPERATIONS: usize = 64;

/// The slowest call of each operation that returned a result. The first one is cold, and shown only where it is alone.
fn shown(ledgers: &[Ledger]) -> Vec<CallId> {
    let mut slowest: Vec<(&str, bool, Nanos, CallId)> = Vec::new();
    for ledger in ledgers.iter().filter(|ledger| ledger.outcome == Some(CallOutcome::Ok)) {
        let took = ledger.end.since(ledger.start);
        let operation = &*ledger.operation;
        if let Some((_, cold, most, call)) = slowest.iter_mut().find(|(known, ..)| *known == operation) {
            if *cold || took > *most {
                (*cold, *most, *call) = (false, took, ledger.call);
            }
        } else if slowest.len() < OPERATIONS {
            slowest.push((operation, true, took, ledger.call));
        }
    }
    slowest.into_iter().map(|(.., call)| call).collect()
}
