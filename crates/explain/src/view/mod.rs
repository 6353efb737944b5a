//! The recording as connections, exchanges, processes and calls: events joined by their ids, nothing judged yet.
//!
//! Every fact keeps the index of the event that it comes from, so that whatever is concluded later can name its proof.
//! Input is hostile: an id seen twice keeps its first facts, a fact without its beginning is kept as far as it goes.

mod bursts;
mod calls;
mod connection;
mod exchange;
mod join;
mod late_answers;
mod lateness;
mod stdio;
mod usage;

use std::collections::HashMap;

use mcpace_record::{CallId, ConnectionId, ExchangeId, Nanos, Recording};
use serde::Serialize;

pub(crate) use bursts::Burst;
pub use calls::Call;
pub use connection::{Connection, Process};
pub use exchange::{Exchange, Leg, ReplyShape, StreamEvent, Transport};
pub use lateness::Late;
pub use usage::{Look, Usage};

/// One fact's time and the event that says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stamp {
    /// When, on the recording's clock.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// Index into [`Recording::events`].
    pub event: usize,
}

/// A recording, joined. Exchanges and connections are in order of their first event.
#[derive(Debug, Serialize)]
pub struct View<'a> {
    /// Every transport connection of either side.
    pub connections: Vec<Connection<'a>>,
    /// Every HTTP exchange, and every line of a stdio client with the line that answers it.
    pub exchanges: Vec<Exchange<'a>>,
    /// Every operation of the client's program.
    pub calls: Vec<Call<'a>>,
    /// Every server process that was spawned.
    pub processes: Vec<Process<'a>>,
    /// What processes of either side used, where that was looked at.
    pub usage: Vec<Usage>,
    /// When the instrument itself was late, earliest first.
    pub late: Vec<Late>,
    /// The last event's time.
    #[serde(rename = "end_ns")]
    pub end: Nanos,
    /// Whether events are missing: lost by the instrument, or the recording was cut off.
    pub incomplete: bool,
    /// Reads of a server's stdout that brought several answers.
    #[serde(skip)]
    pub(crate) bursts: Vec<Burst>,
    #[serde(skip)]
    connection_index: HashMap<ConnectionId, usize>,
    #[serde(skip)]
    exchange_index: HashMap<ExchangeId, usize>,
    #[serde(skip)]
    call_index: HashMap<CallId, usize>,
}

/// Joins the events of `recording`. Time is O(n log n) in the number of events, whatever they are.
#[must_use]
pub fn exchanges(recording: &Recording) -> View<'_> {
    let mut join = join::Join::default();
    for (event, seen) in recording.events().iter().enumerate() {
        let at = seen.at;
        join.event(Stamp { at, event }, &seen.kind);
    }
    let mut parts = join.finish();
    late_answers::attach(&mut parts.exchanges);
    let calls = calls::join(recording, &mut parts.exchanges, &parts.connections);
    let mut view = View {
        connection_index: index(parts.connections.iter().map(|c| c.id)),
        exchange_index: index(parts.exchanges.iter().map(|e| e.id)),
        call_index: index(calls.iter().map(|c| c.id)),
        connections: parts.connections,
        exchanges: parts.exchanges,
        calls,
        processes: parts.processes,
        usage: usage::usage(recording),
        late: lateness::lateness(recording),
        bursts: parts.bursts,
        end: recording.events().last().map_or(Nanos::ZERO, |e| e.at),
        incomplete: recording.partial || recording.lost() > 0,
    };
    view.note_first_exchanges();
    view
}

impl<'a> View<'a> {
    /// The connection `id`.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection<'a>> {
        self.connection_index.get(&id).map(|at| &self.connections[*at])
    }

    /// The exchange `id`.
    #[must_use]
    pub fn exchange(&self, id: ExchangeId) -> Option<&Exchange<'a>> {
        self.exchange_index.get(&id).map(|at| &self.exchanges[*at])
    }

    /// The call `id`.
    #[must_use]
    pub fn call(&self, id: CallId) -> Option<&Call<'a>> {
        self.call_index.get(&id).map(|at| &self.calls[*at])
    }

    /// The server-facing connection that was opened for `exchange` and not for an earlier one.
    #[must_use]
    pub fn opened_for(&self, exchange: &Exchange<'a>) -> Option<&Connection<'a>> {
        self.connection(exchange.back.as_ref()?.conn?)
            .filter(|connection| connection.first_exchange == Some(exchange.id))
    }

    fn note_first_exchanges(&mut self) {
        for exchange in &self.exchanges {
            for leg in [&exchange.front, &exchange.back].into_iter().flatten() {
                let at = leg.conn.and_then(|conn| self.connection_index.get(&conn));
                if let Some(at) = at {
                    self.connections[*at].first_exchange.get_or_insert(exchange.id);
                }
            }
        }
    }
}

fn index<K: std::hash::Hash + Eq>(ids: impl Iterator<Item = K>) -> HashMap<K, usize> {
    ids.enumerate().map(|(at, id)| (id, at)).collect()
}
