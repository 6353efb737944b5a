//! The operations of the client's program, and which exchanges belong to which.
//!
//! An exchange belongs to the operation in whose window it starts; where several are open, to the one that started last,
//! since programs send soon after they start.

use std::collections::BTreeSet;

use mcpace_record::{CallId, CallOutcome, ConnectionId, EventKind, ExchangeId};

use super::positions::Positions;
use super::stamp::EventIndex;
use super::texts::Keeper;
use super::{Connection, Exchange, Stamp};

/// Open streams named per call; past it a recording has thousands of them and the list tells nothing.
const IN_FLIGHT_LIMIT: usize = 64;

/// One operation of the client's program.
#[derive(Debug)]
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
    pub outcome: Option<PackedOutcome<'a>>,
    /// Exchanges that started in its window.
    pub exchanges: &'a [ExchangeId],
    /// Exchanges from before it that were still open when it started, 64 at most.
    pub in_flight: &'a [ExchangeId],
    /// Tries to connect in its window that failed.
    pub failed_connects: &'a [ConnectionId],
}

impl Call<'_> {
    /// Whether it brought nothing: it failed, or never returned.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.outcome, None | Some(PackedOutcome::Failed(_)))
    }
}

/// [`CallOutcome`], with the program's words kept elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PackedOutcome<'a> {
    /// It returned a result.
    Ok,
    /// It returned a tool's own error.
    ToolError,
    /// It failed, in the program's words.
    Failed(&'a str),
}

impl From<PackedOutcome<'_>> for CallOutcome {
    fn from(outcome: PackedOutcome<'_>) -> Self {
        match outcome {
            PackedOutcome::Ok => CallOutcome::Ok,
            PackedOutcome::ToolError => CallOutcome::ToolError,
            PackedOutcome::Failed(words) => CallOutcome::Failed(words.to_owned()),
        }
    }
}

#[derive(Default)]
pub(super) struct CallJoin<'a> {
    calls: Vec<Call<'a>>,
    index: Positions,
}

impl<'a> CallJoin<'a> {
    pub(super) fn join_event(&mut self, keeper: &mut Keeper<'a>, at: Stamp, kind: &EventKind) {
        match kind {
            EventKind::CallStart { call, operation, tool } if self.index.get(call.0).is_none() => {
                self.index.insert(call.0, self.calls.len());
                self.calls.push(Call {
                    id: *call,
                    operation: keeper.keep_text(operation),
                    tool: keeper.some_text(tool.as_deref()),
                    start: at,
                    end: None,
                    outcome: None,
                    exchanges: &[],
                    in_flight: &[],
                    failed_connects: &[],
                });
            }
            EventKind::CallEnd { call, outcome } => {
                let call = self.index.get(call.0).map(|at| &mut self.calls[at]);
                if let Some(call) = call.filter(|call| call.end.is_none()) {
                    let outcome = match outcome {
                        CallOutcome::Ok => PackedOutcome::Ok,
                        CallOutcome::ToolError => PackedOutcome::ToolError,
                        CallOutcome::Failed(words) => PackedOutcome::Failed(keeper.keep_text(words)),
                    };
                    (call.end, call.outcome) = (Some(at), Some(outcome));
                }
            }
            _ => {}
        }
    }

    /// Each call with what started in its window; exchanges learn whose they are.
    pub(super) fn finish_calls(
        self,
        keeper: &Keeper<'a>,
        exchanges: &mut [Exchange<'a>],
        connections: &[Connection<'a>],
    ) -> Vec<Call<'a>> {
        let mut calls = self.calls;
        let (mut open, mut live) = (BTreeSet::new(), BTreeSet::new());
        let (mut own, mut failed) = (Vec::new(), Vec::new());
        for Mark { what, at, .. } in ordered_marks(&calls, exchanges, connections) {
            match what {
                MarkKind::CallStart => {
                    let ids: Vec<_> =
                        live.iter().take(IN_FLIGHT_LIMIT).map(|at: &u32| exchanges[*at as usize].id).collect();
                    calls[at as usize].in_flight = keeper.keep_list(ids);
                    open.insert(at);
                }
                MarkKind::CallEnd => {
                    open.remove(&at);
                }
                MarkKind::ExchangeStart => {
                    live.insert(at);
                    if let Some(call) = open.last() {
                        exchanges[at as usize].call = Some(calls[*call as usize].id);
                        own.push((*call, exchanges[at as usize].id));
                    }
                }
                MarkKind::ExchangeEnd => {
                    live.remove(&at);
                }
                MarkKind::ConnectFailed => failed.extend(open.last().map(|call| (*call, connections[at as usize].id))),
            }
        }
        for of_call in by_call(&mut own) {
            calls[of_call[0].0 as usize].exchanges = keeper.keep_list(of_call.iter().map(|(_, id)| *id));
        }
        for of_call in by_call(&mut failed) {
            calls[of_call[0].0 as usize].failed_connects = keeper.keep_list(of_call.iter().map(|(_, id)| *id));
        }
        calls
    }
}

/// Groups of pairs that belong to one call, each in its order.
fn by_call<T>(pairs: &mut [(u32, T)]) -> impl Iterator<Item = &[(u32, T)]> {
    pairs.sort_by_key(|(call, _)| *call);
    pairs.chunk_by(|one, next| one.0 == next.0)
}

/// Something that begins or ends, by its position.
struct Mark {
    event: EventIndex,
    at: u32,
    what: MarkKind,
}

enum MarkKind {
    CallStart,
    CallEnd,
    ExchangeStart,
    ExchangeEnd,
    ConnectFailed,
}

/// All starts and ends in the order of their events.
fn ordered_marks(calls: &[Call<'_>], exchanges: &[Exchange<'_>], connections: &[Connection<'_>]) -> Vec<Mark> {
    let mut marks = Vec::new();
    if calls.is_empty() {
        return marks;
    }
    for (at, call) in (0..).zip(calls) {
        marks.push(Mark { event: call.start.event, at, what: MarkKind::CallStart });
        marks.extend(call.end.map(|end| Mark { event: end.event, at, what: MarkKind::CallEnd }));
    }
    for (at, exchange) in (0..).zip(exchanges) {
        marks.push(Mark { event: exchange.start.event, at, what: MarkKind::ExchangeStart });
        marks.extend(exchange.ended().map(|end| Mark { event: end.event, at, what: MarkKind::ExchangeEnd }));
    }
    for (at, connection) in (0..).zip(connections) {
        if let (Some(begun), Some(_)) = (connection.begun(), connection.failed) {
            marks.push(Mark { event: begun.event, at, what: MarkKind::ConnectFailed });
        }
    }
    // An exchange of a single event (a stdio notification) must start before it ends: the sort is stable.
    marks.sort_by_key(|mark| mark.event);
    marks
}
