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
    pub outcome: Option<Outcome<'a>>,
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
        matches!(self.outcome, None | Some(Outcome::Failed(_)))
    }
}

/// [`CallOutcome`], with the program's words kept elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome<'a> {
    /// It returned a result.
    Ok,
    /// It returned a tool's own error.
    ToolError,
    /// It failed, in the program's words.
    Failed(&'a str),
}

impl From<Outcome<'_>> for CallOutcome {
    fn from(outcome: Outcome<'_>) -> Self {
        match outcome {
            Outcome::Ok => CallOutcome::Ok,
            Outcome::ToolError => CallOutcome::ToolError,
            Outcome::Failed(words) => CallOutcome::Failed(words.to_owned()),
        }
    }
}

#[derive(Default)]
pub(super) struct CallJoin<'a> {
    calls: Vec<Call<'a>>,
    index: Positions,
}

impl<'a> CallJoin<'a> {
    pub(super) fn event(&mut self, keeper: &mut Keeper<'a>, at: Stamp, kind: &EventKind) {
        match kind {
            EventKind::CallStart { call, operation, tool } if self.index.get(call.0).is_none() => {
                self.index.insert(call.0, self.calls.len());
                self.calls.push(Call {
                    id: *call,
                    operation: keeper.text(operation),
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
                        CallOutcome::Ok => Outcome::Ok,
                        CallOutcome::ToolError => Outcome::ToolError,
                        CallOutcome::Failed(words) => Outcome::Failed(keeper.text(words)),
                    };
                    (call.end, call.outcome) = (Some(at), Some(outcome));
                }
            }
            _ => {}
        }
    }

    /// Each call with what started in its window; exchanges learn whose they are.
    pub(super) fn finish(
        self,
        keeper: &Keeper<'a>,
        exchanges: &mut [Exchange<'a>],
        connections: &[Connection<'a>],
    ) -> Vec<Call<'a>> {
        let mut calls = self.calls;
        let (mut open, mut live) = (BTreeSet::new(), BTreeSet::new());
        let (mut own, mut failed) = (Vec::new(), Vec::new());
        for Mark { what, at, .. } in marks(&calls, exchanges, connections) {
            match what {
                What::CallStart => {
                    let ids: Vec<_> =
                        live.iter().take(IN_FLIGHT_LIMIT).map(|at: &u32| exchanges[*at as usize].id).collect();
                    calls[at as usize].in_flight = keeper.list(ids);
                    open.insert(at);
                }
                What::CallEnd => {
                    open.remove(&at);
                }
                What::ExchangeStart => {
                    live.insert(at);
                    if let Some(call) = open.last() {
                        exchanges[at as usize].call = Some(calls[*call as usize].id);
                        own.push((*call, exchanges[at as usize].id));
                    }
                }
                What::ExchangeEnd => {
                    live.remove(&at);
                }
                What::ConnectFailed => failed.extend(open.last().map(|call| (*call, connections[at as usize].id))),
            }
        }
        for of_call in by_call(&mut own) {
            calls[of_call[0].0 as usize].exchanges = keeper.list(of_call.iter().map(|(_, id)| *id));
        }
        for of_call in by_call(&mut failed) {
            calls[of_call[0].0 as usize].failed_connects = keeper.list(of_call.iter().map(|(_, id)| *id));
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
    what: What,
}

enum What {
    CallStart,
    CallEnd,
    ExchangeStart,
    ExchangeEnd,
    ConnectFailed,
}

/// All starts and ends in the order of their events.
fn marks(calls: &[Call<'_>], exchanges: &[Exchange<'_>], connections: &[Connection<'_>]) -> Vec<Mark> {
    let mut marks = Vec::new();
    if calls.is_empty() {
        return marks;
    }
    for (at, call) in (0..).zip(calls) {
        marks.push(Mark { event: call.start.event, at, what: What::CallStart });
        marks.extend(call.end.map(|end| Mark { event: end.event, at, what: What::CallEnd }));
    }
    for (at, exchange) in (0..).zip(exchanges) {
        marks.push(Mark { event: exchange.start.event, at, what: What::ExchangeStart });
        marks.extend(exchange.ended().map(|end| Mark { event: end.event, at, what: What::ExchangeEnd }));
    }
    for (at, connection) in (0..).zip(connections) {
        if let (Some(begun), Some(_)) = (connection.begun(), connection.failed) {
            marks.push(Mark { event: begun.event, at, what: What::ConnectFailed });
        }
    }
    // An exchange of a single event (a stdio notification) must start before it ends: the sort is stable.
    marks.sort_by_key(|mark| mark.event);
    marks
}
