//! Split of a call's `server` time by the layers that the server reports.
//!
//! The wire is observed and the layers are only reported, so a report has to fit the wire: the layers and the rest add up to
//! `server` exactly. A report that can't be true is marked and splits nothing.

use std::collections::HashMap;

use mcpace_record::{ExchangeId, Nanos, ServerTiming};
use serde::Serialize;

use crate::view::{Exchange, Stamp};
use crate::{Part, Segment};

/// `server` by layer. The four times add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerSplit {
    /// HTTP, sessions, parsing, writing the reply. Less than the server reported where reading and writing took part of it: these are
    /// in `request` and `response`.
    #[serde(rename = "transport_ns")]
    pub transport: Nanos,
    /// Lookup, permissions, validation, serialisation.
    #[serde(rename = "dispatch_ns")]
    pub dispatch: Nanos,
    /// The tool's own code.
    #[serde(rename = "service_ns")]
    pub service: Nanos,
    /// The network, the kernel, and what the server did not tell.
    #[serde(rename = "rest_ns")]
    pub rest: Nanos,
    /// Why the timing of an exchange is not believed; its time is in `rest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
}

/// Why a server's account can't be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// Something in it was no time.
    Malformed,
    /// Its layers take longer than the whole exchange did, from the request's first byte to the result's last.
    LongerThanExchange,
}

/// Splits what the segments gave to `server`. `None` where no exchange has a timing.
pub(crate) fn split_server<'v, 'a: 'v>(
    exchanges: impl Iterator<Item = &'v Exchange<'a>>,
    segments: &[Segment],
    end: Nanos,
) -> Option<ServerSplit> {
    let mut timings = exchanges.filter_map(|exchange| Some((exchange, exchange.server_timing()?))).peekable();
    timings.peek()?;
    let mut whole = Nanos::ZERO;
    let mut own: HashMap<ExchangeId, Nanos> = HashMap::new();
    for segment in segments.iter().filter(|segment| segment.part == Part::Server) {
        let time = segment.to.since(segment.from);
        whole = whole + time;
        if let Some(id) = segment.exchange {
            let sum = own.entry(id).or_default();
            *sum = *sum + time;
        }
    }
    let mut split = ServerSplit::default();
    for (exchange, timing) in timings {
        if let Some(doubt) = timing_doubt(exchange, timing, end) {
            split.doubt.get_or_insert(doubt);
        } else {
            split.add_timing(timing, own.remove(&exchange.id).unwrap_or_default());
        }
    }
    split.rest = whole.since(split.transport + split.dispatch + split.service);
    Some(split)
}

impl ServerSplit {
    /// Adds an account, cut to the time that was the server's: what lies over it was reading and writing, seen in its
    /// neighbours, so that it comes off the transport first.
    fn add_timing(&mut self, timing: ServerTiming, server: Nanos) {
        let service = timing.service.min(server);
        let dispatch = timing.dispatch.min(server.since(service));
        let transport = timing.transport.min(server.since(service + dispatch));
        self.service = self.service + service;
        self.dispatch = self.dispatch + dispatch;
        self.transport = self.transport + transport;
    }
}

/// The stamps of both ends are of one clock, or apart by a way there and back that only makes the exchange longer.
fn timing_doubt(exchange: &Exchange<'_>, timing: ServerTiming, end: Nanos) -> Option<Doubt> {
    if timing.malformed {
        return Some(Doubt::Malformed);
    }
    let leg = exchange.back();
    let from = leg.and_then(|leg| leg.request_start).unwrap_or_else(|| exchange.sent());
    let to = leg.and_then(|leg| leg.result_end.or(leg.end)).map_or(end, |Stamp { at, .. }| at);
    (timing.total() > to.since(from.at)).then_some(Doubt::LongerThanExchange)
}
