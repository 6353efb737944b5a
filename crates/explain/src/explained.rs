//! All that a recording tells at once: its events are joined a single time.

use mcpace_record::{CallId, CallOutcome, Events, EvidenceSource, Nanos, RecordError, Recording};

use crate::findings::{causes_of_view, proven_stalls};
use crate::inside::{missing_sources, tool_times};
use crate::methods::{Method, count_methods};
use crate::process_exits::process_exits;
use crate::view::{
    Process, SpanFacts, TakeSpan, Texts, View, calls_of_spans, exchanges_of_file, join_events, join_with_spans,
};
use crate::waterfall::waterfall_of;
use crate::{Accounts, Finding, ProcessExit, SerialCalls, ToolTime, Waterfall};

/// Where the time of a recording's calls went, and why.
#[derive(Debug)]
pub struct Explained {
    /// Where the time of every call went.
    pub accounts: Accounts,
    /// All causes, worst first.
    pub findings: Vec<Finding>,
    /// One waterfall for each operation, of the call that is worth a look, in the order in which operations first
    /// occur: see `slowest_calls`.
    pub waterfalls: Vec<Waterfall>,
    /// The client's requests by method, in the order in which methods first occur.
    pub methods: Vec<Method>,
    /// How long each server process took from its start to its first answer, where it was answered by one.
    pub starts: Vec<Nanos>,
    /// How each server process ended.
    pub exits: Vec<ProcessExit>,
    /// Tool calls that a foreign client made one after another within one turn.
    pub serial_calls: SerialCalls,
    /// Where the time inside each tool went, where the server's programs were looked into.
    pub tool_times: Vec<ToolTime>,
    /// Sources of evidence about the inside of the server that gave nothing, with the reason.
    pub missing_sources: Vec<(EvidenceSource, String)>,
    /// How the spans of programs were joined.
    pub spans: SpanFacts,
    /// How many events it has.
    pub events: u64,
    /// How many the instrument could not keep.
    pub lost: u64,
    /// Whether its end is missing.
    pub partial: bool,
}

/// Explains `recording`; of a gateway too, where `behind` was recorded between it and the servers that it asks.
#[must_use]
pub fn explain_recording(recording: &Recording, behind: Option<&Recording>) -> Explained {
    let texts = Texts::default();
    explain_view(&join_events(recording, &texts), behind)
}

/// Explains a recording as it is read: of its events nothing is kept but what rules ask for.
///
/// # Errors
/// Those of reading.
pub fn explained_file(events: &mut Events<'_>, behind: Option<&Recording>) -> Result<Explained, RecordError> {
    let texts = Texts::default();
    Ok(explain_view(&exchanges_of_file(events, &texts)?, behind))
}

/// Explains `recording` together with spans from elsewhere, which `read` hands over. Their times plus `offset` nanoseconds are those
/// of the recording's clock, unless they come from another machine.
///
/// # Errors
/// Those of `read`.
pub fn explain_with_spans<E>(
    recording: &Recording,
    behind: Option<&Recording>,
    offset: i64,
    read: impl FnOnce(&mut TakeSpan<'_>) -> Result<(), E>,
) -> Result<Explained, E> {
    let texts = Texts::default();
    Ok(explain_view(&join_with_spans(recording, &texts, offset, read)?, behind))
}

/// Explains spans alone, which `read` hands over. The spans of servers that answer tool calls are the calls.
///
/// # Errors
/// Those of `read`.
pub fn explain_spans<E>(read: impl FnOnce(&mut TakeSpan<'_>) -> Result<(), E>) -> Result<Explained, E> {
    let texts = Texts::default();
    Ok(explain_view(&calls_of_spans(&texts, read)?, None))
}

fn explain_view(view: &View<'_>, behind: Option<&Recording>) -> Explained {
    let texts = Texts::default();
    let behind = behind.map(|behind| join_events(behind, &texts));
    let findings = causes_of_view(view, behind.as_ref());
    let accounts = Accounts::from_view(view, &proven_stalls(view));
    let waterfalls = slowest_calls(&accounts).into_iter().filter_map(|call| waterfall_of(view, call)).collect();
    let starts = call_starts(view);
    Explained {
        accounts,
        findings,
        waterfalls,
        methods: count_methods(view),
        starts,
        exits: process_exits(view),
        serial_calls: SerialCalls::from_view(view),
        tool_times: tool_times(view),
        missing_sources: missing_sources(view),
        spans: view.inside.spans.facts.clone(),
        events: view.events,
        lost: view.lost,
        partial: view.partial,
    }
}

fn call_starts(view: &View<'_>) -> Vec<Nanos> {
    let first_answer = |process: &Process<'_>| {
        let mut exchanges = process.exchanges.iter().filter_map(|id| view.exchange(*id));
        let first = exchanges.find(|exchange| exchange.asks())?;
        first.answer.and_then(|_| first.completed())
    };
    view.processes.iter().filter_map(|process| Some(first_answer(process)?.at.since(process.started.at))).collect()
}

/// Operations whose calls are shown; the contract of client programs has five.
const OPERATIONS: usize = 64;

/// The slowest call of each operation that returned a result. The first one is cold, and shown only where it is alone.
fn slowest_calls(accounts: &Accounts) -> Vec<CallId> {
    let mut slowest: Vec<(&str, bool, Nanos, CallId)> = Vec::new();
    for account in accounts.iter().filter(|account| accounts.outcome(account) == Some(&CallOutcome::Ok)) {
        let took = account.end.since(account.start);
        let operation = accounts.operation(account);
        if let Some((_, cold, most, call)) = slowest.iter_mut().find(|(known, ..)| *known == operation) {
            if *cold || took > *most {
                (*cold, *most, *call) = (false, took, account.call);
            }
        } else if slowest.len() < OPERATIONS {
            slowest.push((operation, true, took, account.call));
        }
    }
    slowest.into_iter().map(|(.., call)| call).collect()
}
