//! The operations of the client's program, and which exchanges belong to which.
//!
//! An exchange belongs to the operation in whose window it starts; where several are open, to the one that started last,
//! since programs send soon after they start.

use std::collections::{BTreeSet, HashMap};

use mcpace_record::{CallId, CallOutcome, ConnectionId, EventKind, ExchangeId, Recording};
use serde::Serialize;

use super::{Connection, Exchange, Stamp};

/// Open streams named per call; past it a recording has thousands of them and the list tells nothing.
const IN_FLIGHT_LIMIT: usize = 64;

/// One operation of the client's program.
#[derive(Debug, Serialize)]
pub struct Call<'a> {
    /// Its id.
    pub id: CallId,
    /// `provider`, `connect`, `list`, `call`, `disconnect`.
    pub operation: &'a str,
    /// The tool, for `call`.
    pub tool: Option<&'a str>,
    /// Its start.
    pub start: Stamp,
    /// Its return; `None` where the recording ends before it.
    pub end: Option<Stamp>,
    /// How it ended.
    pub outcome: Option<&'a CallOutcome>,
    /// Exchanges that started in its window.
    pub exchanges: Vec<ExchangeId>,
    /// Exchanges from before it that were still open when it started, 64 at most.
    pub in_flight: Vec<ExchangeId>,
    /// Tries to connect in its window that failed.
    pub failed_connects: Vec<ConnectionId>,
}

enum Mark {
    Start(usize),
    End(usize),
    ExchangeStart(usize),
    ExchangeEnd(usize),
    FailedConnect(usize),
}

pub(super) fn join<'a>(
    recording: &'a Recording,
    exchanges: &mut [Exchange<'a>],
    connections: &[Connection<'a>],
) -> Vec<Call<'a>> {
    let mut calls = windows(recording);
    let (mut open, mut live) = (BTreeSet::new(), BTreeSet::new());
    for (_, mark) in marks(&calls, exchanges, connections) {
        match mark {
            Mark::Start(call) => {
                let ids = live.iter().take(IN_FLIGHT_LIMIT);
                calls[call].in_flight = ids.map(|at: &usize| exchanges[*at].id).collect();
                open.insert(call);
            }
            Mark::End(call) => {
                open.remove(&call);
            }
            Mark::ExchangeStart(at) => {
                live.insert(at);
                if let Some(call) = open.last() {
                    exchanges[at].call = Some(calls[*call].id);
                    calls[*call].exchanges.push(exchanges[at].id);
                }
            }
            Mark::ExchangeEnd(at) => {
                live.remove(&at);
            }
            Mark::FailedConnect(at) => {
                if let Some(call) = open.last() {
                    calls[*call].failed_connects.push(connections[at].id);
                }
            }
        }
    }
    calls
}

fn windows(recording: &Recording) -> Vec<Call<'_>> {
    let mut calls: Vec<Call<'_>> = Vec::new();
    let mut index = HashMap::new();
    for (event, seen) in recording.events().iter().enumerate() {
        let at = Stamp { at: seen.at, event };
        match &seen.kind {
            EventKind::CallStart { call, operation, tool } => {
                index.entry(*call).or_insert_with(|| {
                    calls.push(new_call(*call, operation, tool.as_deref(), at));
                    calls.len() - 1
                });
            }
            EventKind::CallEnd { call, outcome } => {
                let call = index.get(call).map(|at| &mut calls[*at]);
                if let Some(call) = call.filter(|call| call.end.is_none()) {
                    (call.end, call.outcome) = (Some(at), Some(outcome));
                }
            }
            _ => {}
        }
    }
    calls
}

fn new_call<'a>(id: CallId, operation: &'a str, tool: Option<&'a str>, start: Stamp) -> Call<'a> {
    Call {
        id,
        operation,
        tool,
        start,
        end: None,
        outcome: None,
        exchanges: Vec::new(),
        in_flight: Vec::new(),
        failed_connects: Vec::new(),
    }
}

/// All starts and ends in the order of their events.
fn marks(calls: &[Call<'_>], exchanges: &[Exchange<'_>], connections: &[Connection<'_>]) -> Vec<(usize, Mark)> {
    let mut marks = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        marks.push((call.start.event, Mark::Start(at)));
        if let Some(end) = call.end {
            marks.push((end.event, Mark::End(at)));
        }
    }
    for (at, exchange) in exchanges.iter().enumerate() {
        marks.push((exchange.start.event, Mark::ExchangeStart(at)));
        if let Some(end) = exchange.ended() {
            marks.push((end.event, Mark::ExchangeEnd(at)));
        }
    }
    for (at, connection) in connections.iter().enumerate() {
        if let (Some(begun), Some(_)) = (connection.begun(), connection.failed) {
            marks.push((begun.event, Mark::FailedConnect(at)));
        }
    }
    // An exchange of a single event (a stdio notification) must start before it ends: the sort is stable.
    marks.sort_by_key(|(event, _)| *event);
    marks
}
