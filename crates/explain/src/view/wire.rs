//! Events of connections: each goes to its connection or its exchange.

use std::collections::{HashMap, HashSet};

use mcpace_record::{Closer, ConnectionId, EventKind, ExchangeId, ReplyEnding, ServerTiming, Side, TraceContext};

use super::head::{Heads, find_header, is_event_stream};
use super::leg::Fact;
use super::positions::Positions;
use super::stamp::PackedStamp;
use super::texts::Keeper;
use super::{Connection, Exchange, Note, ReplyShape, Stamp, StreamEvent, TcpSample, Transport};

#[derive(Default)]
pub(super) struct WireJoin<'a> {
    connections: Vec<Connection<'a>>,
    connection_index: Positions,
    exchanges: Vec<Exchange<'a>>,
    exchange_index: Positions,
    heads: Heads<'a>,
    strays: Strays,
    timings: Vec<(ExchangeId, ServerTiming)>,
    contexts: Vec<(ExchangeId, TraceContext)>,
}

/// Connections, and exchanges in the order of their first event.
type Wire<'a> = (Vec<Connection<'a>>, Vec<Exchange<'a>>);

impl<'a> WireJoin<'a> {
    pub(super) fn join_event(&mut self, keeper: &mut Keeper<'a>, at: Stamp, kind: &EventKind) {
        match kind {
            EventKind::ConnectStart { .. }
            | EventKind::ConnectionOpened { .. }
            | EventKind::TlsReady { .. }
            | EventKind::ConnectFailed { .. }
            | EventKind::ConnectionClosed { .. } => self.connection_event(keeper, at, kind),
            EventKind::TcpInfo { side, conn, info } => self.add_sample(*side, *conn, TcpSample { at, info: *info }),
            EventKind::RequestHead { .. } | EventKind::RequestEnd { .. } => self.join_request(keeper, at, kind),
            EventKind::ReplyHead { .. }
            | EventKind::ReplyBodyStart { .. }
            | EventKind::ReplyEvent { .. }
            | EventKind::ReplyEnd { .. } => self.join_reply(keeper, at, kind),
            EventKind::ServerTiming { ex: Some(ex), timing, .. } => self.timings.push((*ex, *timing)),
            _ => {}
        }
    }

    /// The wire, and the traces that exchanges belong to.
    pub(super) fn finish_wire(mut self, keeper: &Keeper<'a>) -> (Wire<'a>, Vec<(ExchangeId, TraceContext)>) {
        for (ex, timing) in std::mem::take(&mut self.timings) {
            if let Some(at) = self.exchange_index.get(ex.0) {
                self.exchanges[at].server_timing.get_or_insert_with(|| keeper.keep_value(timing));
            }
        }
        self.exchanges.iter_mut().for_each(find_result);
        chain_failed_tries(&mut self.connections);
        ((self.connections, self.exchanges), self.contexts)
    }

    fn connection_event(&mut self, keeper: &mut Keeper<'a>, at: Stamp, kind: &EventKind) {
        match kind {
            EventKind::ConnectStart { conn, address } => {
                let connection = self.connection_mut(*conn, Side::Back, keeper.keep_text(address), at);
                connection.connecting.get_or_insert(at);
            }
            EventKind::ConnectionOpened { side, conn, address, serves } => {
                let connection = self.connection_mut(*conn, *side, keeper.keep_text(address), at);
                connection.opened.get_or_insert(at);
                connection.serves = connection.serves.or(*serves);
            }
            EventKind::TlsReady { conn, .. } => {
                let connection = self.connection_mut(*conn, Side::Back, "", at);
                connection.secured.get_or_insert(at);
            }
            EventKind::ConnectFailed { conn, address, .. } => {
                let connection = self.connection_mut(*conn, Side::Back, keeper.keep_text(address), at);
                connection.failed.get_or_insert(at);
            }
            EventKind::ConnectionClosed { side, conn, by, reason } => {
                let connection = self.connection_mut(*conn, *side, "", at);
                if connection.closed.is_none() {
                    connection.closed = Some(at);
                    connection.closed_by = Some(*by);
                    // An orderly end has no reason, and the instrument has reasons of its own.
                    connection.reset = reason.is_some() && *by != Closer::Instrument;
                }
            }
            _ => {}
        }
    }

    /// Statistics of a connection that was never opened, or of the other side's, are of no use.
    fn add_sample(&mut self, side: Side, conn: ConnectionId, sample: TcpSample) {
        let known = self.connection_index.get(conn.0).map(|place| &mut self.connections[place]);
        if let Some(connection) = known.filter(|connection| connection.side == side) {
            connection.samples.push(sample);
        }
    }

    fn join_request(&mut self, keeper: &mut Keeper<'a>, at: Stamp, kind: &EventKind) {
        match kind {
            EventKind::RequestHead { side, conn, ex, method, target, headers } => {
                let place = self.exchange_position(*ex, at);
                let exchange = &mut self.exchanges[place];
                if exchange.request.method.is_empty() {
                    exchange.request = self.heads.add_request(keeper, method, target, headers);
                }
                let leg = exchange.leg_mut(*side);
                leg.note_connection(*conn);
                leg.note_fact(Fact::RequestStart, at);
                let traceparent = find_header(headers, "traceparent").and_then(TraceContext::parse);
                self.contexts.extend(traceparent.map(|context| (*ex, context)));
            }
            EventKind::RequestEnd { side, ex, bytes, digest, messages, .. } => {
                let place = self.exchange_position(*ex, at);
                let exchange = &mut self.exchanges[place];
                if exchange.digest.is_none() {
                    exchange.digest = Some(*digest);
                    exchange.request_bytes = *bytes;
                }
                if exchange.messages.is_empty() {
                    exchange.messages = keeper.keep_notes(messages);
                }
                exchange.leg_mut(*side).note_fact(Fact::RequestEnd, at);
                let contexts =
                    messages.iter().filter_map(|message| TraceContext::parse(message.traceparent.as_deref()?));
                self.contexts.extend(contexts.map(|context| (*ex, context)));
            }
            _ => {}
        }
    }

    fn join_reply(&mut self, keeper: &mut Keeper<'a>, at: Stamp, kind: &EventKind) {
        match kind {
            EventKind::ReplyHead { side, ex, status, headers } => {
                let place = self.exchange_position(*ex, at);
                let exchange = &mut self.exchanges[place];
                exchange.status.get_or_insert(*status);
                exchange.reply = self.heads.merge_reply(keeper, exchange.reply, headers);
                if is_event_stream(headers) {
                    exchange.shape = ReplyShape::Events;
                }
                exchange.leg_mut(*side).note_fact(Fact::ReplyHead, at);
            }
            EventKind::ReplyBodyStart { side, ex } => {
                let place = self.exchange_position(*ex, at);
                self.exchanges[place].leg_mut(*side).note_fact(Fact::BodyStart, at);
            }
            EventKind::ReplyEvent { .. } => self.stream_event(keeper, at, kind),
            EventKind::ReplyEnd { side, ex, bytes, digest, ending, messages, .. } => {
                let place = self.exchange_position(*ex, at);
                let exchange = &mut self.exchanges[place];
                if exchange.reply_digest.is_none() {
                    exchange.reply_digest = Some(*digest);
                    exchange.reply_bytes = *bytes;
                }
                // The near side's word counts: the recorder may have read whole what the client never took.
                if exchange.ending.is_none() || *ending != ReplyEnding::Complete {
                    exchange.ending = Some(*ending);
                }
                exchange.leg_mut(*side).note_fact(Fact::End, at);
                // Whether it was a whole body is known at the end.
                if let (None, Some(answer)) = (exchange.answer, messages.iter().rfind(|message| message.answers())) {
                    let note = keeper.keep_note(answer);
                    exchange.answer = Some(keeper.keep_value(note));
                }
            }
            _ => {}
        }
    }

    fn stream_event(&mut self, keeper: &mut Keeper<'a>, at: Stamp, kind: &EventKind) {
        let EventKind::ReplyEvent { side, ex, seq, began, bytes, event, messages, .. } = kind else {
            return;
        };
        let place = self.exchange_position(*ex, at);
        let exchange = &mut self.exchanges[place];
        exchange.shape = ReplyShape::Events;
        let events = &mut exchange.events;
        let position = self.strays.event_position(place, *seq, events).unwrap_or_else(|| {
            if events.is_empty() {
                // Most streams have one event: the reply.
                events.reserve_exact(1);
            }
            events.push(StreamEvent::new(*seq, (*began).min(at.at), *bytes));
            self.strays.note_event(place, *seq, events.len() - 1)
        });
        let noted = &mut events[position];
        noted.event = noted.event.or_else(|| keeper.some_text(event.as_deref()));
        match side {
            Side::Front if noted.passed().is_none() => noted.passed = PackedStamp::of(Some(at)),
            Side::Back if noted.read().is_none() => {
                (noted.read, noted.messages) = (PackedStamp::of(Some(at)), keeper.keep_notes(messages));
                noted.began = (*began).min(at.at);
            }
            Side::Front | Side::Back => {}
        }
    }

    fn connection_mut(&mut self, id: ConnectionId, side: Side, address: &'a str, at: Stamp) -> &mut Connection<'a> {
        let known = self.connection_index.get(id.0);
        let place = known.unwrap_or_else(|| {
            self.connection_index.insert(id.0, self.connections.len());
            self.connections.push(Connection::new(id, side, address, at));
            self.connections.len() - 1
        });
        &mut self.connections[place]
    }

    /// The position of the exchange, a new one where this is its first event.
    fn exchange_position(&mut self, id: ExchangeId, at: Stamp) -> usize {
        self.exchange_index.get(id.0).unwrap_or_else(|| {
            self.exchange_index.insert(id.0, self.exchanges.len());
            self.exchanges.push(Exchange::new(id, Transport::Http, at));
            self.exchanges.len() - 1
        })
    }
}

/// Positions of server-sent events that don't stand at their number, by exchange and number.
#[derive(Default)]
struct Strays(HashMap<(usize, u32), usize>);

impl Strays {
    fn event_position(&self, exchange: usize, seq: u32, events: &[StreamEvent<'_>]) -> Option<usize> {
        let in_order = events.get(seq as usize).is_some_and(|event| event.seq == seq).then_some(seq as usize);
        in_order.or_else(|| self.0.get(&(exchange, seq)).copied())
    }

    fn note_event(&mut self, exchange: usize, seq: u32, position: usize) -> usize {
        if seq as usize != position {
            self.0.insert((exchange, seq), position);
        }
        position
    }
}

/// Finds the message that carries the result: the whole body, or the event that answers the last open request.
fn find_result(exchange: &mut Exchange<'_>) {
    let whole = exchange.answer.take();
    if exchange.shape != ReplyShape::Events {
        if exchange.reply_bytes > 0 && exchange.ending == Some(ReplyEnding::Complete) {
            exchange.shape = ReplyShape::Whole;
            exchange.answer = whole;
            for leg in exchange.legs_mut() {
                leg.set_result(leg.fact_stamp(Fact::BodyStart), leg.fact_stamp(Fact::End));
            }
        }
    } else if let Some((position, answer)) = last_answer(exchange) {
        exchange.answer = Some(answer);
        let event = &exchange.events[position];
        let (began, read, passed) = (event.began, event.read(), event.passed());
        exchange.set_result(began, read, passed);
    }
    let timing = exchange.answer.and_then(|answer| answer.timing);
    exchange.server_timing = timing.or(exchange.server_timing);
}

fn last_answer<'a>(exchange: &Exchange<'a>) -> Option<(usize, &'a Note<'a>)> {
    let requests = exchange.messages.iter().filter(|message| message.kind() == mcpace_record::MessageKind::Request);
    let mut open: HashSet<&str> = requests.filter_map(|message| message.id).collect();
    for (position, event) in exchange.events.iter().enumerate() {
        for message in event.messages.iter().filter(|message| message.answers()) {
            let closed = message.id.is_some_and(|id| open.remove(id));
            if closed && open.is_empty() {
                return Some((position, message));
            }
        }
    }
    None
}

/// A connection whose predecessors failed one after the other was tried for since the first of them.
fn chain_failed_tries(connections: &mut [Connection<'_>]) {
    let mut chain = None;
    for connection in connections.iter_mut().filter(|c| c.side == Side::Back) {
        if let Some(from) = chain {
            connection.tried_from = from;
        }
        chain = connection.failed.is_some().then_some(connection.tried_from);
    }
}
