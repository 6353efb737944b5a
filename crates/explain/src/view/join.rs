//! One pass over the events: each goes to its connection, exchange or process.

use std::collections::{HashMap, HashSet};

use mcpace_record::{ConnectionId, EventKind, ExchangeId, Header, MessageNote, ReplyEnding, ServerTiming, Side};

use super::bursts::Burst;
use super::stdio::StdioJoin;
use super::{Connection, Exchange, Leg, Process, ReplyShape, Stamp, StreamEvent, Transport};

/// What one pass makes; exchanges are in order of their first event.
pub(super) struct Joined<'a> {
    pub(super) connections: Vec<Connection<'a>>,
    pub(super) exchanges: Vec<Exchange<'a>>,
    pub(super) processes: Vec<Process<'a>>,
    pub(super) bursts: Vec<Burst>,
}

#[derive(Default)]
pub(super) struct Join<'a> {
    connections: Vec<Connection<'a>>,
    connection_index: HashMap<ConnectionId, usize>,
    exchanges: Vec<Exchange<'a>>,
    exchange_index: HashMap<ExchangeId, usize>,
    events: HashMap<(usize, u32), usize>,
    told: Vec<(ExchangeId, ServerTiming)>,
    whole: HashMap<usize, &'a [MessageNote]>,
    stdio: StdioJoin<'a>,
}

impl<'a> Join<'a> {
    pub(super) fn event(&mut self, at: Stamp, kind: &'a EventKind) {
        match kind {
            EventKind::ConnectStart { .. }
            | EventKind::ConnectionOpened { .. }
            | EventKind::TlsReady { .. }
            | EventKind::ConnectFailed { .. }
            | EventKind::ConnectionClosed { .. } => self.connection_event(at, kind),
            EventKind::RequestHead { .. } | EventKind::RequestEnd { .. } => self.request(at, kind),
            EventKind::ReplyHead { .. }
            | EventKind::ReplyBodyStart { .. }
            | EventKind::ReplyEvent { .. }
            | EventKind::ReplyEnd { .. } => self.reply(at, kind),
            EventKind::ServerTiming { ex: Some(ex), timing, .. } => self.told.push((*ex, *timing)),
            _ => self.stdio.event(at, kind),
        }
    }

    pub(super) fn finish(mut self) -> Joined<'a> {
        for (ex, timing) in std::mem::take(&mut self.told) {
            if let Some(at) = self.exchange_index.get(&ex) {
                self.exchanges[*at].told.get_or_insert(timing);
            }
        }
        for (at, exchange) in self.exchanges.iter_mut().enumerate() {
            find_result(exchange, self.whole.get(&at).copied().unwrap_or_default());
        }
        chain_failed_tries(&mut self.connections);
        let taken: HashSet<ExchangeId> = self.exchange_index.into_keys().collect();
        let lines = self.stdio.finish(&taken);
        let mut exchanges = self.exchanges;
        exchanges.extend(lines.exchanges);
        exchanges.sort_by_key(|exchange| exchange.start.event);
        Joined { connections: self.connections, exchanges, processes: lines.processes, bursts: lines.bursts }
    }

    fn connection_event(&mut self, at: Stamp, kind: &'a EventKind) {
        match kind {
            EventKind::ConnectStart { conn, address } => {
                let connection = self.connection(*conn, Side::Back, address, at);
                connection.connecting.get_or_insert(at);
            }
            EventKind::ConnectionOpened { side, conn, address, serves } => {
                let connection = self.connection(*conn, *side, address, at);
                connection.opened.get_or_insert(at);
                connection.serves = connection.serves.or(*serves);
            }
            EventKind::TlsReady { conn, .. } => {
                let connection = self.connection(*conn, Side::Back, "", at);
                connection.secured.get_or_insert(at);
            }
            EventKind::ConnectFailed { conn, address, .. } => {
                let connection = self.connection(*conn, Side::Back, address, at);
                connection.failed.get_or_insert(at);
            }
            EventKind::ConnectionClosed { side, conn, by, .. } => {
                let connection = self.connection(*conn, *side, "", at);
                if connection.closed.is_none() {
                    connection.closed = Some(at);
                    connection.closed_by = Some(*by);
                }
            }
            _ => {}
        }
    }

    fn request(&mut self, at: Stamp, kind: &'a EventKind) {
        match kind {
            EventKind::RequestHead { side, conn, ex, method, target, headers } => {
                let exchange = self.exchange(*ex, at);
                if exchange.method.is_empty() {
                    (exchange.method, exchange.target) = (method, target);
                    read_request_headers(exchange, headers);
                }
                let leg = leg(exchange, *side);
                leg.conn.get_or_insert(*conn);
                leg.request_start.get_or_insert(at);
            }
            EventKind::RequestEnd { side, ex, bytes, digest, messages, .. } => {
                let exchange = self.exchange(*ex, at);
                if exchange.digest.is_none() {
                    exchange.digest = Some(*digest);
                    exchange.request_bytes = *bytes;
                }
                if exchange.messages.is_empty() {
                    exchange.messages = messages;
                }
                leg(exchange, *side).request_end.get_or_insert(at);
            }
            _ => {}
        }
    }

    fn reply(&mut self, at: Stamp, kind: &'a EventKind) {
        match kind {
            EventKind::ReplyHead { side, ex, status, headers } => {
                let exchange = self.exchange(*ex, at);
                exchange.status.get_or_insert(*status);
                read_reply_headers(exchange, headers);
                leg(exchange, *side).reply_head.get_or_insert(at);
            }
            EventKind::ReplyBodyStart { side, ex } => {
                leg(self.exchange(*ex, at), *side).body_start.get_or_insert(at);
            }
            EventKind::ReplyEvent { .. } => self.stream_event(at, kind),
            EventKind::ReplyEnd { side, ex, bytes, digest, ending, messages, .. } => {
                let exchange = self.exchange(*ex, at);
                if exchange.reply_digest.is_none() {
                    exchange.reply_digest = Some(*digest);
                    exchange.reply_bytes = *bytes;
                }
                // The near side's word counts: the recorder may have read whole what the client never took.
                if exchange.ending.is_none() || *ending != ReplyEnding::Complete {
                    exchange.ending = Some(*ending);
                }
                leg(exchange, *side).end.get_or_insert(at);
                if let (false, Some(index)) = (messages.is_empty(), self.exchange_index.get(ex)) {
                    self.whole.entry(*index).or_insert(messages);
                }
            }
            _ => {}
        }
    }

    fn stream_event(&mut self, at: Stamp, kind: &'a EventKind) {
        let EventKind::ReplyEvent { side, ex, seq, began, bytes, event, messages, .. } = kind else {
            return;
        };
        self.exchange(*ex, at).shape = ReplyShape::Events;
        let index = self.exchange_index[ex];
        let events = &mut self.exchanges[index].events;
        let position = *self.events.entry((index, *seq)).or_insert_with(|| {
            events.push(StreamEvent {
                seq: *seq,
                began: (*began).min(at.at),
                read: None,
                passed: None,
                bytes: *bytes,
                event: None,
                messages: &[],
            });
            events.len() - 1
        });
        let noted = &mut events[position];
        noted.event = noted.event.or(event.as_deref());
        match side {
            Side::Front => noted.passed = noted.passed.or(Some(at)),
            Side::Back if noted.read.is_none() => {
                (noted.read, noted.messages) = (Some(at), messages);
                noted.began = (*began).min(at.at);
            }
            Side::Back => {}
        }
    }

    fn connection(&mut self, id: ConnectionId, side: Side, address: &'a str, at: Stamp) -> &mut Connection<'a> {
        let connections = &mut self.connections;
        let index = *self.connection_index.entry(id).or_insert_with(|| {
            connections.push(Connection::new(id, side, address, at));
            connections.len() - 1
        });
        &mut connections[index]
    }

    fn exchange(&mut self, id: ExchangeId, at: Stamp) -> &mut Exchange<'a> {
        let exchanges = &mut self.exchanges;
        let index = *self.exchange_index.entry(id).or_insert_with(|| {
            exchanges.push(Exchange::new(id, Transport::Http, at));
            exchanges.len() - 1
        });
        &mut exchanges[index]
    }
}

fn leg<'e>(exchange: &'e mut Exchange<'_>, side: Side) -> &'e mut Leg {
    match side {
        Side::Front => exchange.front.get_or_insert_default(),
        Side::Back => exchange.back.get_or_insert_default(),
    }
}

fn read_request_headers<'a>(exchange: &mut Exchange<'a>, headers: &'a [Header]) {
    exchange.session_sent = header(headers, "mcp-session-id");
    exchange.authorization = header(headers, "authorization");
    exchange.last_event_id = header(headers, "last-event-id");
    exchange.sends_form =
        header(headers, "content-type").is_some_and(|value| value.starts_with("application/x-www-form-urlencoded"));
    exchange.accepts_events = header(headers, "accept").is_some_and(|value| value.contains("text/event-stream"));
}

fn read_reply_headers<'a>(exchange: &mut Exchange<'a>, headers: &'a [Header]) {
    exchange.session_given = exchange.session_given.or_else(|| header(headers, "mcp-session-id"));
    exchange.closes_connection |=
        header(headers, "connection").is_some_and(|value| value.trim().eq_ignore_ascii_case("close"));
    exchange.content_encoding = exchange.content_encoding.or_else(|| header(headers, "content-encoding"));
    if header(headers, "content-type").is_some_and(|value| value.starts_with("text/event-stream")) {
        exchange.shape = ReplyShape::Events;
    }
}

fn header<'a>(headers: &'a [Header], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|Header(candidate, _)| candidate.eq_ignore_ascii_case(name))
        .map(|Header(_, value)| value.as_str())
}

/// Finds the message that carries the result: the whole body, or the event that answers the last open request.
fn find_result<'a>(exchange: &mut Exchange<'a>, whole: &'a [MessageNote]) {
    if exchange.shape != ReplyShape::Events {
        if exchange.reply_bytes > 0 && exchange.ending == Some(ReplyEnding::Complete) {
            exchange.shape = ReplyShape::Whole;
            exchange.answer = whole.iter().rev().find(|message| message.answers());
            for leg in [&mut exchange.front, &mut exchange.back].into_iter().flatten() {
                leg.result_start = leg.body_start;
                leg.result_end = leg.end;
            }
        }
    } else if let Some((position, answer)) = last_answer(exchange) {
        exchange.answer = Some(answer);
        let event = &exchange.events[position];
        let (began, read, passed) = (event.began, event.read, event.passed);
        if let Some(front) = &mut exchange.front {
            (front.result_start, front.result_end) = (passed, passed);
        }
        if let (Some(back), Some(read)) = (&mut exchange.back, read) {
            back.result_start = Some(Stamp { at: began, ..read });
            back.result_end = Some(read);
        }
    }
    let timing = exchange.answer.and_then(|answer| answer.timing);
    exchange.told = timing.or(exchange.told);
}

fn last_answer<'a>(exchange: &Exchange<'a>) -> Option<(usize, &'a MessageNote)> {
    let mut open: HashSet<&str> = exchange
        .messages
        .iter()
        .filter(|message| message.kind == mcpace_record::MessageKind::Request)
        .filter_map(|message| message.id.as_deref())
        .collect();
    for (position, event) in exchange.events.iter().enumerate() {
        for message in event.messages.iter().filter(|message| message.answers()) {
            let closed = message.id.as_deref().is_some_and(|id| open.remove(id));
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
