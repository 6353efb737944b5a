//! Counts of the recorder's traffic for a monitoring system: requests with their durations, exchanges, bytes,
//! connections, and events that were lost.
//!
//! Design constraints. The thread that writes the events also counts them, so that no exchange waits for it. Peers choose names, ids and the number of requests: each table has a limit, and ids are kept as hashes.
//!
//! Deliberately absent: requests from the server to the client, and notifications.

mod durations;
mod open_exchange;
mod snapshot;

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcpace_record::{ConnectionId, Event, EventKind, ExchangeId, MessageNote, Nanos, ReplyEnding, Side};

use self::durations::Durations;
use self::open_exchange::{OpenExchange, PendingRequest, RequestKey, is_request};
pub use self::snapshot::{DurationSeries, ExchangeCount, Exemplar, TrafficSnapshot};
use crate::flight_ring::count_events;
use crate::lock::lock_mutex;
use crate::monotonic_now;

/// Exchanges that are followed at one time, and requests whose answer may come on another stream than their reply.
const MOST_EXCHANGES: usize = 100_000;
const MOST_LATE: usize = 10_000;
/// Requests in open exchanges. One exchange may have a hundred.
const MOST_PENDING: usize = 100_000;
/// Time in which a request may be answered on another stream than its reply.
const LONGEST_LATE: Nanos = Nanos::from_millis(300_000);

/// Methods of HTTP that have counts of their own; the others are [`OTHER_METHOD`] (OpenTelemetry, `http.request.method`).
const METHODS: [&str; 7] = ["GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH"];
const OTHER_METHOD: &str = "_OTHER";

/// Code of the failure of a request that its client cancelled, by a notification or by leaving.
const CANCELLED: &str = "cancelled";

/// Counts of one recorder's traffic. A [`crate::Sink`] feeds it ([`crate::SinkOptions::metrics`]).
#[derive(Debug)]
pub struct TrafficMetrics {
    traffic: Mutex<Traffic>,
}

impl TrafficMetrics {
    /// `bounds` are the upper bounds of the histograms' buckets, in ascending order. A last bucket has no bound.
    #[must_use]
    pub fn new(bounds: &[Duration]) -> Self {
        let durations = Durations::new(bounds.iter().map(|bound| Nanos::from(*bound)).collect());
        Self { traffic: Mutex::new(Traffic::new(durations)) }
    }

    /// The counts up to the events that were written last.
    #[must_use]
    pub fn snapshot(&self) -> TrafficSnapshot {
        lock_mutex(&self.traffic).snapshot()
    }

    /// Counts events. `is_written` is whether they are in the recording.
    pub(crate) fn count_batch(&self, batch: &[Event], is_written: bool) {
        let mut traffic = lock_mutex(&self.traffic);
        if !is_written {
            traffic.lost_events += count_events(batch);
        }
        traffic.clock_offset = clock_offset();
        batch.iter().for_each(|event| traffic.count_event(event));
        if let Some(last) = batch.last() {
            traffic.forget_late(last.at);
        }
    }
}

/// Unix time less the recording's clock.
fn clock_offset() -> Duration {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    unix.saturating_sub(Duration::from_nanos(monotonic_now().0))
}

#[derive(Debug)]
struct Traffic {
    durations: Durations,
    hasher: RandomState,
    open: HashMap<ExchangeId, OpenExchange>,
    /// Requests in `open`.
    pending: usize,
    open_streams: u64,
    /// Streams of `GET` without a session, on which the old HTTP+SSE transport answers.
    sessionless_streams: u64,
    /// Requests whose exchange ended without an answer to them: those of the old HTTP+SSE transport, and those whose
    /// stream a client resumes.
    late: HashMap<RequestKey, PendingRequest>,
    /// Requests that were answered on another stream or cancelled while their own exchange was open: when, and the code
    /// of the failure.
    settled: HashMap<RequestKey, (Nanos, String)>,
    unmeasured_requests: u64,
    exchanges: HashMap<(&'static str, u16, ReplyEnding), u64>,
    request_bytes: u64,
    reply_bytes: u64,
    connections: HashMap<ConnectionId, Side>,
    opened_connections: [u64; 2],
    failed_connects: u64,
    events: u64,
    lost_events: u64,
    clock_offset: Duration,
}

impl Traffic {
    fn new(durations: Durations) -> Self {
        Self {
            durations,
            hasher: RandomState::new(),
            open: HashMap::new(),
            pending: 0,
            open_streams: 0,
            sessionless_streams: 0,
            late: HashMap::new(),
            settled: HashMap::new(),
            unmeasured_requests: 0,
            exchanges: HashMap::new(),
            request_bytes: 0,
            reply_bytes: 0,
            connections: HashMap::new(),
            opened_connections: [0; 2],
            failed_connects: 0,
            events: 0,
            lost_events: 0,
            clock_offset: Duration::ZERO,
        }
    }

    fn count_event(&mut self, event: &Event) {
        self.events += 1;
        match &event.kind {
            EventKind::ConnectionOpened { side, conn, .. } => {
                self.opened_connections[usize::from(*side == Side::Back)] += 1;
                if self.connections.len() >= MOST_EXCHANGES {
                    // Those that remain lost their ends with other events.
                    self.connections.clear();
                }
                self.connections.insert(*conn, *side);
            }
            EventKind::ConnectionClosed { conn, .. } => drop(self.connections.remove(conn)),
            EventKind::ConnectFailed { conn, .. } => {
                self.failed_connects += 1;
                self.connections.remove(conn);
            }
            EventKind::EventsLost { count } => {
                self.events -= 1;
                self.lost_events += count;
            }
            EventKind::RequestHead { side: Side::Front, ex, method, headers, .. } => {
                self.leave_room();
                self.open.insert(*ex, OpenExchange::new(known_method(method), headers, &self.hasher));
            }
            EventKind::RequestHead { side: Side::Back, ex, headers, .. } => {
                if let Some(exchange) = self.open.get_mut(ex) {
                    exchange.add_trace(headers);
                }
            }
            EventKind::RequestEnd { side: Side::Front, ex, bytes, messages, .. } => {
                self.request_bytes += bytes;
                self.add_requests(event.at, *ex, messages);
            }
            EventKind::ReplyHead { ex, status, headers, .. } => {
                if let Some(exchange) = self.open.get_mut(ex)
                    && exchange.begin_reply(*status, headers)
                {
                    self.open_streams += 1;
                    self.sessionless_streams += u64::from(exchange.is_sessionless_stream());
                }
            }
            EventKind::ReplyEvent { side: Side::Back, ex, bytes, id, messages, .. } => {
                self.reply_bytes += bytes;
                if let Some(exchange) = self.open.get_mut(ex) {
                    exchange.add_event(*bytes, id.is_some());
                }
                self.measure_answers(event.at, *ex, messages);
            }
            EventKind::ReplyEnd { side: Side::Back, ex, bytes, ending, messages, .. } => {
                self.measure_answers(event.at, *ex, messages);
                self.end_exchange(event.at, *ex, *bytes, *ending);
            }
            _ => {}
        }
    }

    /// Forgets the open exchanges where they are too many: those that remain lost their ends with other events.
    fn leave_room(&mut self) {
        if self.open.len() < MOST_EXCHANGES {
            return;
        }
        self.unmeasured_requests += self.open.values().map(|exchange| exchange.requests.len() as u64).sum::<u64>();
        self.open.clear();
        self.pending = 0;
        self.open_streams = 0;
        self.sessionless_streams = 0;
    }

    fn add_requests(&mut self, at: Nanos, ex: ExchangeId, messages: &[MessageNote]) {
        let Some(exchange) = self.open.get_mut(&ex) else {
            // The reply ended before the request did.
            self.unmeasured_requests += messages.iter().filter(|message| is_request(message)).count() as u64;
            return;
        };
        if self.pending + messages.len() > MOST_PENDING {
            self.unmeasured_requests += messages.iter().filter(|message| is_request(message)).count() as u64;
        } else {
            self.pending += exchange.add_requests(at, messages, &self.hasher);
        }
        let cancelled: Vec<RequestKey> = exchange.cancelled_requests(messages, &self.hasher).collect();
        cancelled.into_iter().for_each(|key| self.settle_elsewhere(at, key, CANCELLED.to_owned()));
    }

    /// Ends a request by a message that does not travel on the request's own reply.
    fn settle_elsewhere(&mut self, at: Nanos, key: RequestKey, error: String) {
        if let Some(request) = self.late.remove(&key) {
            self.durations.record(&request, at, &error, self.clock_offset);
            return;
        }
        if self.settled.len() >= MOST_LATE {
            self.settled.clear();
        }
        self.settled.insert(key, (at, error));
    }

    fn measure_answers(&mut self, at: Nanos, ex: ExchangeId, messages: &[MessageNote]) {
        for answer in messages.iter().filter(|message| message.answers()) {
            let Some(exchange) = self.open.get_mut(&ex) else { return };
            let Some(key) = exchange.key_of(answer, &self.hasher) else { continue };
            let error = match answer.code {
                Some(code) => code.to_string(),
                None if answer.is_error => "tool_error".to_owned(),
                None => String::new(),
            };
            // Without a session, ids of several clients are the same.
            let is_known = !exchange.is_sessionless_stream() || self.sessionless_streams == 1;
            if let Some(request) = exchange.take_request(key) {
                self.pending -= 1;
                self.durations.record(&request, at, &error, self.clock_offset);
            } else if exchange.method == "GET" && is_known {
                self.settle_elsewhere(at, key, error);
            }
        }
    }

    fn end_exchange(&mut self, at: Nanos, ex: ExchangeId, bytes: u64, ending: ReplyEnding) {
        let Some(exchange) = self.open.remove(&ex) else {
            self.reply_bytes += bytes;
            return;
        };
        self.reply_bytes += bytes.saturating_sub(exchange.event_bytes);
        self.pending -= exchange.requests.len();
        self.open_streams -= u64::from(exchange.is_stream);
        self.sessionless_streams -= u64::from(exchange.is_sessionless_stream());
        *self.exchanges.entry((exchange.method, exchange.status / 100, ending)).or_default() += 1;
        for request in exchange.requests {
            let settled = self.settled.remove(&request.key).filter(|(at, _)| *at >= request.arrived);
            let failure = match ending {
                ReplyEnding::Complete => (exchange.status >= 400).then(|| exchange.status.to_string()),
                // A client that resumes the stream may still get the answer.
                ReplyEnding::ServerBroke | ReplyEnding::ClientLeft if exchange.is_resumable => None,
                ReplyEnding::ServerBroke => Some("server_broke".to_owned()),
                ReplyEnding::ClientLeft => Some(CANCELLED.to_owned()),
                ReplyEnding::NoReply => Some("no_reply".to_owned()),
                ReplyEnding::Cut => Some("cut".to_owned()),
            };
            match settled.or_else(|| failure.map(|error| (at, error))) {
                Some((at, error)) => self.durations.record(&request, at, &error, self.clock_offset),
                None => self.await_late_answer(request),
            }
        }
    }

    fn await_late_answer(&mut self, request: PendingRequest) {
        if self.late.len() >= MOST_LATE {
            self.unmeasured_requests += self.late.len() as u64;
            self.late.clear();
        }
        let before = self.late.insert(request.key, request);
        self.unmeasured_requests += u64::from(before.is_some());
    }

    /// Forgets the requests that have waited too long for an answer on another stream.
    fn forget_late(&mut self, now: Nanos) {
        let before = self.late.len();
        self.late.retain(|_, request| now.since(request.arrived) < LONGEST_LATE);
        self.unmeasured_requests += (before - self.late.len()) as u64;
    }

    fn snapshot(&self) -> TrafficSnapshot {
        let exchanges = self.exchanges.iter().map(|((method, class, ending), count)| ExchangeCount {
            method,
            status: if *class == 0 { String::new() } else { format!("{class}xx") },
            ending: *ending,
            count: *count,
        });
        let open = |side| self.connections.values().filter(|open| **open == side).count() as u64;
        let [client_connections_opened, server_connections_opened] = self.opened_connections;
        TrafficSnapshot {
            durations: self.durations.series(),
            unmeasured_requests: self.unmeasured_requests,
            exchanges: exchanges.collect(),
            open_exchanges: self.open.len() as u64,
            open_streams: self.open_streams,
            request_bytes: self.request_bytes,
            reply_bytes: self.reply_bytes,
            client_connections: open(Side::Front),
            server_connections: open(Side::Back),
            client_connections_opened,
            server_connections_opened,
            failed_connects: self.failed_connects,
            events: self.events,
            lost_events: self.lost_events,
        }
    }
}

fn known_method(method: &str) -> &'static str {
    METHODS.into_iter().find(|known| *known == method).unwrap_or(OTHER_METHOD)
}

#[cfg(test)]
mod tests;
