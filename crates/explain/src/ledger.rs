//! One call's time, split by layer.
//!
//! A cursor sweeps over the call's window from its start to its return and hands each stretch to exactly one part, so the
//! parts add up to the whole by construction, whatever the events say. Where exchanges overlap, the earlier one keeps its
//! time and the later one gets the rest; an exchange that no answer is due for (a notification) yields to the next.
//!
//! A reply that waits for an acknowledgement is not the server's time: the server has written it. Where `delayed-ack` is
//! proven, that pause is `response`, so that the ledger and the finding agree.
//!
//! Deliberately absent: any threshold. The findings decide how much is too much.

use mcpace_record::{CallId, CallOutcome, ExchangeId, Nanos, Recording, ServerTiming};
use serde::Serialize;

use crate::findings::{Stalls, proven_stalls};
use crate::name::Names;
use crate::server_split::{ServerSplit, split_server};
use crate::view::{Call, Connection, Exchange, Leg, Texts, Transport, View, join_events};
use crate::{Name, Part, Parts, Segment};

/// One call's time by layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ledger {
    /// The call.
    pub call: CallId,
    /// `provider`, `connect`, `list`, `call`, `disconnect`.
    pub operation: Name,
    /// The tool, for `call`.
    pub tool: Option<Name>,
    /// The call's start.
    #[serde(rename = "start_ns")]
    pub start: Nanos,
    /// Its return; the recording's end where it never returned.
    #[serde(rename = "end_ns")]
    pub end: Nanos,
    /// How it ended; `None` where it never returned.
    pub outcome: Option<CallOutcome>,
    /// The split. Adds up to `end - start`, exactly.
    pub parts: Parts,
    /// Server's own timing of its layers, as it reported it, summed over the call's exchanges.
    pub server_timing: Option<ServerTiming>,
    /// `parts.server` by layer, as far as `server_timing` can be true. Adds up to it, exactly.
    pub split: Option<ServerSplit>,
    /// Processor time of the server's process in the call's exchanges, where it is known for each.
    #[serde(rename = "processor_ns")]
    pub processor: Option<Nanos>,
    /// The sweep behind `parts`: adjacent stretches that tile the window.
    pub segments: Vec<Segment>,
    /// The exchanges that started in the window.
    pub exchanges: Vec<ExchangeId>,
    /// Exchanges from before that were still open when the call started. They get none of its time.
    pub in_flight: Vec<ExchangeId>,
}

/// The ledger of every call, in the order of their starts.
#[must_use]
pub fn call_ledgers(recording: &Recording) -> Vec<Ledger> {
    let texts = Texts::default();
    let view = join_events(recording, &texts);
    let mut names = Names::default();
    let stalls = proven_stalls(&view);
    view.calls.iter().map(|call| call_ledger(&view, &stalls, call, &mut names)).collect()
}

fn call_ledger<'a>(view: &View<'a>, stalls: &Stalls, call: &Call<'a>, names: &mut Names<'a>) -> Ledger {
    let swept = sweep_call(view, stalls, call);
    let (server_timing, split) = swept.server_layers(view, call).unzip();
    Ledger {
        call: call.id,
        operation: names.name_of(call.operation),
        tool: call.tool.map(|tool| names.name_of(tool)),
        start: call.start.at,
        end: swept.end,
        outcome: call.outcome.map(CallOutcome::from),
        parts: Parts::of(&swept.segments),
        server_timing,
        split,
        processor: processor_time(view, call),
        segments: swept.segments,
        exchanges: call.exchanges.to_vec(),
        in_flight: call.in_flight.to_vec(),
    }
}

/// Processor time of the server's process in the call's exchanges, where it is known for each that got a reply.
pub(crate) fn processor_time(view: &View<'_>, call: &Call<'_>) -> Option<Nanos> {
    let asked = call.exchanges.iter().filter_map(|id| view.exchange(*id)).filter(|exchange| exchange.asks());
    let times: Option<Vec<Nanos>> = asked.map(|exchange| view.processor_time(exchange)).collect();
    times.filter(|times| !times.is_empty()).map(|times| times.into_iter().fold(Nanos::ZERO, |sum, time| sum + time))
}

/// A call's window by stretches. A recording has millions of calls, so that it is made anew where it is asked for.
pub(crate) struct Swept {
    /// The call's return, or the recording's end.
    pub(crate) end: Nanos,
    /// Adjacent stretches that tile the window.
    pub(crate) segments: Vec<Segment>,
}

pub(crate) fn sweep_call(view: &View<'_>, stalls: &Stalls, call: &Call<'_>) -> Swept {
    let mut sweep = Sweep::new(call.start.at, view.end_of(call), stalls);
    let acts = working_acts(view, call);
    for (position, act) in acts.iter().enumerate() {
        let next = acts.get(position + 1).map(Act::begin_time);
        sweep.sweep_act(view, act, next);
    }
    sweep.return_to_caller(!acts.is_empty() || !view.incomplete);
    Swept { end: sweep.end, segments: sweep.segments }
}

impl Swept {
    /// Server's own timing of its layers, summed over the call's exchanges, and the server's part split by these layers
    /// as far as the timing can be true.
    pub(crate) fn server_layers(&self, view: &View<'_>, call: &Call<'_>) -> Option<(ServerTiming, ServerSplit)> {
        let exchanges = || call.exchanges.iter().filter_map(|id| view.exchange(*id));
        let server_timing = exchanges().filter_map(Exchange::server_timing).reduce(|sum, timing| ServerTiming {
            transport: sum.transport + timing.transport,
            dispatch: sum.dispatch + timing.dispatch,
            service: sum.service + timing.service,
            malformed: sum.malformed || timing.malformed,
        });
        server_timing.zip(split_server(exchanges(), &self.segments, self.end))
    }
}

/// Something that the client's side does on the wire.
enum Act<'v, 'a> {
    /// A working exchange; `from` is its first act.
    Exchange(&'v Exchange<'a>, Nanos),
    /// A try to connect that failed.
    FailedConnect(&'v Connection<'a>, Nanos),
}

impl Act<'_, '_> {
    fn begin_time(&self) -> Nanos {
        match self {
            Act::Exchange(_, from) | Act::FailedConnect(_, from) => *from,
        }
    }
}

/// The call's working exchanges and failed connects by their start. The server's own stream is no work of a call, and a
/// session's end is work of `disconnect` only.
fn working_acts<'v, 'a>(view: &'v View<'a>, call: &Call<'a>) -> Vec<Act<'v, 'a>> {
    let working = |exchange: &&Exchange<'_>| {
        !exchange.is_standalone_stream() && (exchange.method() != "DELETE" || call.operation == "disconnect")
    };
    let exchanges = call.exchanges.iter().filter_map(|id| view.exchange(*id));
    let mut acts: Vec<Act<'_, '_>> =
        exchanges.filter(working).map(|exchange| Act::Exchange(exchange, first_act(view, call, exchange))).collect();
    let failed = call.failed_connects.iter();
    let failed = failed.filter_map(|id| view.connection(*id));
    acts.extend(failed.filter_map(|c| Some(Act::FailedConnect(c, c.begun()?.at))));
    acts.sort_by_key(Act::begin_time);
    acts
}

/// The new connection's start where our own client opened one for it in the window, else the request's first byte.
fn first_act(view: &View<'_>, call: &Call<'_>, exchange: &Exchange<'_>) -> Nanos {
    let sent = exchange.sent().at;
    if exchange.front().is_some() {
        return sent;
    }
    let connection = view.opened_for(exchange).and_then(Connection::begun);
    match connection {
        Some(begun) if begun.at >= call.start.at => begun.at.min(sent),
        _ => sent,
    }
}

struct Sweep<'s> {
    stalls: &'s Stalls,
    cursor: Nanos,
    end: Nanos,
    /// No stretch may reach past it: the next act, for an exchange that yields to it.
    limit: Nanos,
    segments: Vec<Segment>,
    /// The last exchange whose result came, and its reply's end where that was seen.
    reading: Option<(ExchangeId, Option<Nanos>)>,
    last: Option<ExchangeId>,
}

impl<'s> Sweep<'s> {
    fn new(start: Nanos, end: Nanos, stalls: &'s Stalls) -> Self {
        let end = end.max(start);
        Self { stalls, cursor: start, end, limit: end, segments: Vec::new(), reading: None, last: None }
    }

    fn sweep_act(&mut self, view: &View<'_>, act: &Act<'_, '_>, next: Option<Nanos>) {
        match act {
            Act::FailedConnect(connection, from) => {
                self.fill_gap(*from, None);
                self.fill_part(Part::Connect, connection.failed.map(|f| f.at), None);
                self.reading = None;
            }
            Act::Exchange(exchange, from) => {
                self.fill_gap(*from, Some(exchange.id));
                let due = exchange.asks() || !exchange.is_message();
                let yields = !due || exchange.back().is_none();
                self.limit = next.filter(|_| yields).unwrap_or(self.end).min(self.end);
                self.sweep_exchange(view, exchange);
                self.limit = self.end;
                self.last = Some(exchange.id);
                let result = exchange.near().and_then(|near| near.result_end);
                self.reading = result.map(|_| (exchange.id, exchange.ended().map(|end| end.at)));
            }
        }
    }

    /// The client's own time up to its next act: still reading where the last reply is open, else preparing.
    fn fill_gap(&mut self, until: Nanos, next: Option<ExchangeId>) {
        if let Some((exchange, end)) = self.reading {
            let open_until = end.map_or(until, |end| end.min(until));
            self.fill_part(Part::ClientReceive, Some(open_until), Some(exchange));
        }
        self.fill_part(Part::ClientSend, Some(until), next);
    }

    fn sweep_exchange(&mut self, view: &View<'_>, exchange: &Exchange<'_>) {
        let id = Some(exchange.id);
        let Some(near) = exchange.near() else { return };
        let request_end = near.request_end.or(near.reply_head).or(near.end);
        let request_end = request_end.map(|stamp| stamp.at);
        match (exchange.front(), exchange.back()) {
            (Some(_), Some(back)) => {
                self.fill_part(Part::Request, request_end, id);
                self.sweep_connect(view, exchange, Part::Unaccounted);
                let passed = back.request_end.or(back.request_start);
                self.fill_part(Part::Unaccounted, passed.map(|stamp| stamp.at), id);
            }
            (None, Some(back)) => {
                self.sweep_connect(view, exchange, Part::ClientSend);
                let begins = back.request_start.map(|stamp| stamp.at);
                self.fill_part(Part::ClientSend, begins, id);
                self.fill_part(Part::Request, request_end, id);
            }
            (_, None) => self.fill_part(Part::Request, request_end, id),
        }
        match exchange.back() {
            Some(back) if back.request_start.is_some() => self.sweep_reply(exchange, &back),
            // It never reached the server: what passes until its end is nobody's that we can name.
            _ => self.fill_part(Part::Unaccounted, Some(end_or_zero(near.end)), id),
        }
        let completed = exchange.completed().map(|stamp| stamp.at);
        self.fill_part(Part::Unaccounted, completed, id);
    }

    fn sweep_connect(&mut self, view: &View<'_>, exchange: &Exchange<'_>, before: Part) {
        let id = Some(exchange.id);
        let Some(connection) = view.opened_for(exchange) else {
            return;
        };
        let from = match exchange.transport {
            Transport::Http => connection.tried_from.max(exchange.start.at),
            Transport::Stdio => return,
        };
        let from = if exchange.front().is_some() { from } else { connection.begun().map_or(from, |begun| begun.at) };
        if let Some(ready) = connection.ready().or(connection.failed) {
            self.fill_part(before, Some(from.min(ready.at)), id);
            self.fill_part(Part::Connect, Some(ready.at), id);
        }
    }

    fn sweep_reply(&mut self, exchange: &Exchange<'_>, back: &Leg) {
        let id = Some(exchange.id);
        match (back.result_start, back.result_end) {
            (Some(first), Some(last)) => {
                if let Some(stall) = self.stalls.get(&exchange.id) {
                    self.fill_part(Part::Server, Some(stall.from.min(first.at)), id);
                    self.fill_part(Part::Response, Some(stall.to), id);
                }
                self.fill_part(Part::Server, Some(first.at), id);
                self.fill_part(Part::Response, Some(last.at), id);
            }
            // No result: the server's until the reply's end, on whichever side that was seen, or until nobody waits.
            _ => {
                let end = back.end.or(exchange.ended());
                self.fill_part(Part::Server, Some(end_or_zero(end)), id);
            }
        }
    }

    fn return_to_caller(&mut self, known: bool) {
        let part = match (self.last, known) {
            (Some(_), _) => Part::ClientReceive,
            // Nothing went out: the client was busy with itself, if all that went out was seen.
            (None, true) => Part::ClientSend,
            (None, false) => Part::Unaccounted,
        };
        self.fill_part(part, Some(self.end), self.last);
    }

    /// Hands the time from the cursor up to `until` to `part`; the only place where the cursor moves.
    fn fill_part(&mut self, part: Part, until: Option<Nanos>, exchange: Option<ExchangeId>) {
        let Some(until) = until else { return };
        let until = until.min(self.limit);
        if until <= self.cursor {
            return;
        }
        let from = std::mem::replace(&mut self.cursor, until);
        match self.segments.last_mut() {
            Some(last) if last.part == part && last.exchange == exchange => last.to = until,
            _ => self.segments.push(Segment { part, from, to: until, exchange }),
        }
    }
}

fn end_or_zero(end: Option<crate::view::Stamp>) -> Nanos {
    end.map_or(Nanos(u64::MAX), |end| end.at)
}
