//! The kernel's statistics of connections, as rises between two samples: what `packet-loss` and `slow-reader` start from.
//!
//! Counters are totals since the connection was opened, so that the first sample of a connection whose opening was seen
//! counts from zero. A counter that falls has not risen.

use std::collections::HashMap;

use mcpace_record::{ConnectionId, Nanos, Side, TcpInfo};

use crate::view::{Connection, Exchange, Leg, Stamp, Transport, View};

/// The time between two samples of one connection.
pub(super) struct SampleInterval {
    /// The connection's beginning, or a sample.
    pub(super) before: Stamp,
    pub(super) after: Stamp,
    /// Segments that were sent again meanwhile.
    pub(super) retransmitted: u32,
    /// Segments that were sent.
    pub(super) segments: u32,
    /// Time in which data waited for room at the peer or in the send buffer.
    pub(super) limited: Nanos,
}

/// An exchange of a sampled connection, with the leg that travelled on it.
pub(super) struct SampledExchange<'v, 'a> {
    pub(super) exchange: &'v Exchange<'a>,
    pub(super) leg: Leg,
}

/// A connection with statistics, and its requests in the order of their start.
pub(super) struct SampledConnection<'v, 'a> {
    pub(super) connection: &'v Connection<'a>,
    /// In the order of time.
    pub(super) intervals: Vec<SampleInterval>,
    pub(super) exchanges: Vec<SampledExchange<'v, 'a>>,
}

impl SampledConnection<'_, '_> {
    /// Numbers of the intervals that a stretch of time touches.
    pub(super) fn intervals_between(&self, from: Nanos, to: Nanos) -> std::ops::Range<usize> {
        let first = self.intervals.partition_point(|interval| interval.after.at < from);
        let end = self.intervals.partition_point(|interval| interval.before.at < to);
        first..end.max(first)
    }
}

/// The connections of one side that have statistics.
pub(super) fn sampled_connections<'v, 'a>(view: &'v View<'a>, side: Side) -> Vec<SampledConnection<'v, 'a>> {
    let mut by_connection: HashMap<ConnectionId, Vec<SampledExchange<'v, 'a>>> = HashMap::new();
    for exchange in view.exchanges.iter().filter(|e| e.transport == Transport::Http && e.is_message()) {
        let leg = if side == Side::Front { exchange.front() } else { exchange.back() };
        if let Some((leg, conn)) = leg.and_then(|leg| Some((leg, leg.conn?))) {
            by_connection.entry(conn).or_default().push(SampledExchange { exchange, leg });
        }
    }
    let sampled = view.connections.iter().filter(|connection| connection.side == side);
    let sampled = sampled.filter_map(|connection| {
        let intervals = sample_intervals(connection);
        let exchanges = by_connection.remove(&connection.id)?;
        (!intervals.is_empty()).then_some(SampledConnection { connection, intervals, exchanges })
    });
    sampled.collect()
}

fn sample_intervals(connection: &Connection<'_>) -> Vec<SampleInterval> {
    let opened = connection.opened.and(connection.begun()).map(|begun| (begun, TcpInfo::default()));
    let samples = connection.samples.iter().map(|sample| (sample.at, sample.info));
    let points: Vec<(Stamp, TcpInfo)> = opened.into_iter().chain(samples).collect();
    let intervals = points.windows(2).map(|pair| {
        let ((before, old), (after, new)) = (pair[0], pair[1]);
        let limited = new.rwnd_limited.since(old.rwnd_limited) + new.sndbuf_limited.since(old.sndbuf_limited);
        SampleInterval {
            before,
            after,
            retransmitted: new.retransmitted.saturating_sub(old.retransmitted),
            segments: new.segments_out.saturating_sub(old.segments_out),
            limited: limited.min(after.at.since(before.at)),
        }
    });
    intervals.collect()
}

/// Kind of request: method and tool.
pub(super) type RequestKind<'a> = (&'a str, Option<&'a str>);

/// The kind of an exchange's first request.
pub(super) fn request_kind<'a>(exchange: &Exchange<'a>) -> Option<RequestKind<'a>> {
    let request = exchange.messages.first()?;
    Some((request.method()?, request.name()))
}
